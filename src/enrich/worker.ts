/** A worker thread: runs the kernel over the slots it is told, one after the other. */
import { parentPort, workerData } from 'node:worker_threads';
import { Kernel } from './kernel/kernel.js';
import type { KernelLayout } from './kernel/layout.js';

/** What a worker is started with. */
export interface WorkerData {
  layout: KernelLayout;
  module: WebAssembly.Module;
}

/** What it says: once, that it can begin; then for each run the slot's number and whether all lines were dealt with. */
export type WorkerAnswer = 'ready' | [slot: number, done: boolean];

const { layout, module } = workerData as WorkerData;
const kernel = new Kernel(layout, module);
parentPort!.on('message', (slot: number) => {
  parentPort!.postMessage([slot, kernel.run(layout.slots[slot]!)] satisfies WorkerAnswer);
});
parentPort!.postMessage('ready' satisfies WorkerAnswer);
