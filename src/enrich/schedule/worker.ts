/** A worker thread: runs the kernel over the slots that wait, one after the other. */
import { parentPort } from 'node:worker_threads';
import { Kernel } from '../kernel/kernel.js';
import { Board, type WorkerNews, type WorkerStart } from './work-queue.js';

const port = parentPort!;
port.once('message', ({ layout, thread, module, board: shared }: WorkerStart) => {
  const kernel = new Kernel(layout, thread, module);
  const board = new Board(shared);
  port.postMessage('ready' satisfies WorkerNews);
  for (;;) {
    const slot = board.claimNext();
    if (slot === undefined) return;
    board.finish(slot, kernel.run(layout.slots[slot]!));
    if (board.takeSleep()) port.postMessage('finished' satisfies WorkerNews);
  }
});
