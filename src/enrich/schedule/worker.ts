/** A worker thread: runs the kernel over the posted slots, one after the other. */
import { parentPort } from 'node:worker_threads';
import { Kernel } from '../kernel/kernel.js';
import { WorkQueue } from './work-queue.js';
import type { WorkerEvent, WorkerStart } from './worker-pool.js';

const port = parentPort!;
port.once('message', ({ layout, thread, module, queue: shared }: WorkerStart) => {
  const kernel = new Kernel(layout, thread, module);
  const queue = new WorkQueue(shared);
  port.postMessage('ready' satisfies WorkerEvent);
  for (;;) {
    const slot = queue.claimNext();
    if (slot === undefined) return;
    queue.finish(slot, kernel.run(layout.slots[slot]!));
    if (queue.consumeWakeup()) port.postMessage('finished' satisfies WorkerEvent);
  }
});
