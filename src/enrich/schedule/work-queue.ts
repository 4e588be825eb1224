/**
 * Worker threads over one shared memory: a block is named by its slot, and its bytes never move. Which slot is to be worked
 * on stands in shared memory as well, for whoever is free to claim, this thread included: a message to another thread and
 * back would take as long as a tenth of the work.
 */
import { Worker } from 'node:worker_threads';
import { AtlasError, messageOf } from '../../errors.js';
import { packageFile } from '../../package-root.js';
import { kernelModule } from '../kernel/kernel.js';
import type { KernelLayout } from '../kernel/layout.js';

/** The compiled file: a thread cannot be started from TypeScript. */
const WORKER_FILE = 'dist/src/enrich/schedule/worker.js';

/** 4-byte numbers that the threads share; behind them, for each slot, its state and when it was posted. */
const BOARD = { posts: 0, mainSleeps: 1, stopped: 2, slots: 3 } as const;

/** States of a slot, at first 0: to be worked on, being worked on, worked on: all lines dealt with, or not all. */
const WAITING = 1;
const CLAIMED = 2;
const DONE = 3;
const PARTLY_DONE = 4;

/** What there is to do. */
export class Board {
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** @param of the number of slots, or the memory of a board that is to be shared */
  constructor(of: number | SharedArrayBuffer) {
    this.shared = typeof of === 'number' ? new SharedArrayBuffer(4 * (BOARD.slots + 2 * of)) : of;
    this.#numbers = new Int32Array(this.shared);
  }

  /** Says that a slot is to be worked on. */
  post(slot: number): void {
    const posts = Atomics.load(this.#numbers, BOARD.posts);
    this.#numbers[BOARD.slots + 2 * slot + 1] = posts;
    Atomics.store(this.#numbers, BOARD.slots + 2 * slot, WAITING);
    Atomics.store(this.#numbers, BOARD.posts, (posts + 1) | 0);
    Atomics.notify(this.#numbers, BOARD.posts, 1);
  }

  /** Takes a slot on; returns false where another thread has. */
  claim(slot: number): boolean {
    return Atomics.compareExchange(this.#numbers, BOARD.slots + 2 * slot, WAITING, CLAIMED) === WAITING;
  }

  /** Says that a slot has been worked on. */
  finish(slot: number, done: boolean): void {
    Atomics.store(this.#numbers, BOARD.slots + 2 * slot, done ? DONE : PARTLY_DONE);
  }

  /** Whether a slot's lines were all dealt with, or undefined until it has been worked on. */
  outcome(slot: number): boolean | undefined {
    const state = Atomics.load(this.#numbers, BOARD.slots + 2 * slot);
    return state < DONE ? undefined : state === DONE;
  }

  isWaiting(slot: number): boolean {
    return Atomics.load(this.#numbers, BOARD.slots + 2 * slot) === WAITING;
  }

  /** Claims the slot that was posted first, waiting for one; undefined when there will be none. Blocks the thread. */
  claimNext(): number | undefined {
    for (;;) {
      const posts = Atomics.load(this.#numbers, BOARD.posts);
      if (Atomics.load(this.#numbers, BOARD.stopped) !== 0) return undefined;
      const slot = this.#first(posts);
      if (slot === undefined) Atomics.wait(this.#numbers, BOARD.posts, posts);
      else if (this.claim(slot)) return slot;
    }
  }

  /** The slot that waits longest. */
  #first(posts: number): number | undefined {
    let first: number | undefined;
    let longest = 0;
    for (let slot = 0; BOARD.slots + 2 * slot < this.#numbers.length; slot++) {
      const waited = (posts - this.#numbers[BOARD.slots + 2 * slot + 1]!) | 0;
      if (waited > longest && this.isWaiting(slot)) {
        first = slot;
        longest = waited;
      }
    }
    return first;
  }

  /** Asks to be told when a slot is finished; whoever asks must look once more afterwards. */
  sleep(): void {
    Atomics.store(this.#numbers, BOARD.mainSleeps, 1);
  }

  /** Whether the main thread is to be told; once for each time that it asked. */
  takeSleep(): boolean {
    return Atomics.exchange(this.#numbers, BOARD.mainSleeps, 0) !== 0;
  }

  /** Lets no thread wait any longer. */
  stop(): void {
    Atomics.store(this.#numbers, BOARD.stopped, 1);
    Atomics.add(this.#numbers, BOARD.posts, 1);
    Atomics.notify(this.#numbers, BOARD.posts);
  }
}

/** The first message to a worker. */
export interface WorkerStart {
  layout: KernelLayout;
  /** Its number; the main thread is 0. */
  thread: number;
  module: WebAssembly.Module;
  board: SharedArrayBuffer;
}

/** What a worker says: once, that it begins; then, where it was asked to, that it has finished a slot. */
export type WorkerNews = 'ready' | 'finished';

export class WorkerPool {
  readonly #size: number;
  readonly #threads: Worker[] = [];
  #start: Omit<WorkerStart, 'thread'> | undefined;
  #board: Board | undefined;
  #error: AtlasError | undefined;
  /** Called when a thread has something to say. */
  onNews: () => void = () => {};
  /** Threads that have begun; starting takes some time. */
  ready = 0;

  /** @param size number of threads */
  constructor(size: number) {
    this.#size = size;
  }

  /** Starts the threads, where that has not been done. They may start before there is anything to work in. */
  start(): void {
    while (this.#threads.length < this.#size) this.#threads.push(this.#startOne());
  }

  /**
   * Says what memory to work in, once.
   *
   * @returns where to say what there is to do
   */
  workIn(layout: KernelLayout): Board {
    this.#board = new Board(layout.slots.length);
    this.#start = { layout, module: kernelModule(layout), board: this.#board.shared };
    for (const [index, thread] of this.#threads.entries()) this.#tell(thread, index);
    return this.#board;
  }

  #startOne(): Worker {
    const thread = new Worker(packageFile(WORKER_FILE));
    thread.on('message', (news: WorkerNews) => {
      if (news === 'ready') this.ready++;
      this.onNews();
    });
    const ended = (why: string, cause?: unknown): void => {
      this.#error ??= new AtlasError('E_FAULT', `a worker thread ended: ${why}`, { cause });
      this.onNews();
    };
    thread.on('error', (cause) => ended(messageOf(cause), cause));
    thread.on('exit', (code) => ended(`exit code ${code}`));
    this.#tell(thread, this.#threads.length);
    return thread;
  }

  /** Says to a thread what to work in, once that is known. */
  #tell(thread: Worker, index: number): void {
    if (this.#start === undefined) return;
    thread.postMessage({ ...this.#start, thread: index + 1 } satisfies WorkerStart);
  }

  /** @throws AtlasError E_FAULT where a thread has ended: the slot it was working on will never be finished */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** Ends the threads; what they are working on is abandoned. */
  async close(): Promise<void> {
    this.#board?.stop();
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }
}
