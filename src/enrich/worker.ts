/** A worker thread: runs the kernel over the slots it is told, one after the other. */
import { parentPort } from 'node:worker_threads';
import { Kernel } from './kernel/kernel.js';
import type { KernelLayout } from './kernel/layout.js';

/** The first message to it. */
export interface WorkerStart {
  layout: KernelLayout;
  module: WebAssembly.Module;
}

/** What it says: once, that it can begin; then for each run the slot's number and whether all lines were dealt with. */
export type WorkerAnswer = 'ready' | [slot: number, done: boolean];

const port = parentPort!;
port.once('message', ({ layout, module }: WorkerStart) => {
  const kernel = new Kernel(layout, module);
  port.on('message', (slot: number) => {
    port.postMessage([slot, kernel.run(layout.slots[slot]!)] satisfies WorkerAnswer);
  });
  port.postMessage('ready' satisfies WorkerAnswer);
});
