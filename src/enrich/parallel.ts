/** Worker threads over one shared memory: a block is named by its slot, and its bytes never move. */
import { Worker } from 'node:worker_threads';
import { AtlasError, messageOf } from '../errors.js';
import { packageFile } from '../package-root.js';
import { kernelModule } from './kernel/kernel.js';
import type { KernelLayout } from './kernel/layout.js';
import type { WorkerAnswer, WorkerData } from './worker.js';

/** The compiled file: a thread cannot be started from TypeScript. */
const WORKER_FILE = 'dist/src/enrich/worker.js';

interface Run {
  resolve: (done: boolean) => void;
  reject: (error: unknown) => void;
}

export class WorkerPool {
  readonly #layout: KernelLayout;
  readonly #jobs: number;
  /** Started at the first run, each with the number of runs that it has not answered. */
  readonly #workers: { thread: Worker; runs: number }[] = [];
  /** By slot. */
  readonly #runs = new Map<number, Run>();

  constructor(layout: KernelLayout, jobs: number) {
    this.#layout = layout;
    this.#jobs = jobs;
  }

  /**
   * Has a worker run the kernel over a slot.
   *
   * @returns whether all its lines were dealt with
   * @throws AtlasError E_FAULT where the worker ends
   */
  run(slot: number): Promise<boolean> {
    while (this.#workers.length < this.#jobs) this.#start();
    const idlest = this.#workers.reduce((least, worker) => (worker.runs < least.runs ? worker : least));
    return new Promise((resolve, reject) => {
      const settle = () => {
        idlest.runs--;
        this.#runs.delete(slot);
      };
      this.#runs.set(slot, {
        resolve: (done) => {
          settle();
          resolve(done);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      idlest.runs++;
      idlest.thread.postMessage(slot);
    });
  }

  #start(): void {
    const workerData: WorkerData = { layout: this.#layout, module: kernelModule() };
    const thread = new Worker(packageFile(WORKER_FILE), { workerData });
    thread.on('message', ([slot, done]: WorkerAnswer) => this.#runs.get(slot)?.resolve(done));
    thread.on('error', (error) => this.#fail(error));
    this.#workers.push({ thread, runs: 0 });
  }

  #fail(cause: unknown): void {
    const error = new AtlasError('E_FAULT', `a worker thread ended: ${messageOf(cause)}`, { cause });
    for (const run of [...this.#runs.values()]) run.reject(error);
  }

  /** Ends the workers; what they are working on is abandoned. */
  async close(): Promise<void> {
    await Promise.all(this.#workers.map(({ thread }) => thread.terminate()));
  }
}
