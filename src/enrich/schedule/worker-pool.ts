/** Worker threads that run the kernel in one shared memory. A chunk is named by its slot; its bytes never move. */
import type { Worker } from 'node:worker_threads';
import { type AtlasError, endedEarly, messageOf } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import type { KernelLayout } from '../kernel/layout.js';
import { kernelModule } from '../kernel/module.js';
import { WorkQueue } from './work-queue.js';

/**
 * The compiled file, because Node 20 cannot start a thread from TypeScript. One CommonJS file, made by scripts/bundle-cli.js: a
 * thread then starts a third sooner.
 */
const WORKER_FILE = 'dist/src/enrich/schedule/worker.cjs';

/** The only message to a worker. */
export interface WorkerStart {
  layout: KernelLayout;
  /** The worker's number; the main thread is 0. */
  thread: number;
  module: WebAssembly.Module;
  /** The memory of the work queue. */
  queue: SharedArrayBuffer;
}

/** A message from a worker: `ready` once, then `finished` after a slot if the main thread requested a wake-up. */
export type WorkerEvent = 'ready' | 'finished';

export class WorkerPool {
  readonly #size: number;
  readonly #threads: Worker[] = [];
  #start: Omit<WorkerStart, 'thread'> | undefined;
  #queue: WorkQueue | undefined;
  #error: AtlasError | undefined;
  /** Called at each message from a worker, and when a worker ends. */
  onEvent: () => void = () => {};
  /** Number of threads that have started. */
  ready = 0;

  /** @param size number of threads */
  constructor(size: number) {
    this.#size = size;
  }

  /** Starts the threads if they are not started. They can be started before the memory exists. */
  start(): void {
    while (this.#threads.length < this.#size) this.#threads.push(this.#startThread());
  }

  /** Gives the threads their memory; must be called once. Returns the queue to post slots to. */
  setMemory(layout: KernelLayout): WorkQueue {
    this.#queue = new WorkQueue(layout.slots.length);
    this.#start = { layout, module: kernelModule(layout), queue: this.#queue.shared };
    for (const [index, thread] of this.#threads.entries()) this.#sendStart(thread, index);
    return this.#queue;
  }

  #startThread(): Worker {
    // Not imported: a short input is processed without threads, and the module takes a while to load.
    const { Worker } = process.getBuiltinModule('node:worker_threads');
    // Otherwise the thread's output is piped to process.stdout, which makes the descriptor non-chunking.
    const thread = new Worker(packageFile(WORKER_FILE), { stdout: true });
    thread.on('message', (event: WorkerEvent) => {
      if (event === 'ready') this.ready++;
      this.onEvent();
    });
    const onEnd = (reason: string, cause?: unknown): void => {
      this.#error ??= endedEarly(`a worker thread ended: ${reason}`, cause);
      this.onEvent();
    };
    thread.on('error', (cause) => onEnd(messageOf(cause), cause));
    thread.on('exit', (code) => onEnd(`exit code ${code}`));
    this.#sendStart(thread, this.#threads.length);
    return thread;
  }

  #sendStart(thread: Worker, index: number): void {
    if (this.#start === undefined) return;
    thread.postMessage({ ...this.#start, thread: index + 1 } satisfies WorkerStart);
  }

  /** @throws AtlasError E_FAULT if a thread has ended, because the slot that it claimed will never be finished */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** Ends the threads. Unfinished slots are abandoned. */
  async close(): Promise<void> {
    this.#queue?.stop();
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}
