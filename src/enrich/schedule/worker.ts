/** A worker thread: does the posted tasks, one after the other. */
import { parentPort } from 'node:worker_threads';
import { readPart, writePart } from '../../file-part.js';
import { Kernel } from '../kernel/kernel.js';
import { type Outcome, type Task, WorkQueue } from './work-queue.js';
import type { WorkerEvent, WorkerStart } from './worker-pool.js';

const port = parentPort!;
port.once('message', ({ layout, thread, module, queue: shared }: WorkerStart) => {
  const kernel = new Kernel(layout, module, thread);
  const queue = new WorkQueue(shared);
  const memory = new Uint8Array(layout.memory.buffer);

  function perform({ slot, kind, part }: Task): Outcome {
    const place = layout.slots[slot]!;
    try {
      if (kind === 'write') writePart(part!, memory.subarray(place.output));
      else if (part !== undefined && !readPart(part, memory.subarray(place.input))) return 'failed';
    } catch {
      // The main thread repeats what failed, and reports its error.
      return 'failed';
    }
    return kind === 'write' || kernel.run(place) ? 'done' : 'partly done';
  }

  port.postMessage('ready' satisfies WorkerEvent);
  for (let task = queue.claimNext(); task !== undefined; task = queue.claimNext()) {
    queue.finish(task.slot, perform(task));
    if (queue.consumeWakeup()) port.postMessage('finished' satisfies WorkerEvent);
  }
});
