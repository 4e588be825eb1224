/**
 * Decides which thread runs the kernel over which chunk, and returns the chunks in the order in which they were read.
 *
 * Worker threads take chunks from the work queue. The main thread runs the kernel as well if more chunks wait than the
 * workers take.
 */
import type { ChunkRunner } from '../chunk-runner.js';
import type { Chunk } from '../input/chunk-buffer.js';
import type { Slot } from '../kernel/kernel.js';
import type { SlotPool } from './slot-pool.js';
import type { WorkQueue } from './work-queue.js';
import type { WorkerPool } from './worker-pool.js';

/** Chunks left to each worker to claim next, so that it has work while the main thread is busy with a chunk. */
export const WAITING_PER_WORKER = 2;

/** Where a chunk comes from. */
export interface ChunkSource {
  /** The input: its number, from 1, and its name. */
  input: number;
  name: string;
  /** Bytes read from all inputs when the chunk was complete, before decompression. */
  bytesRead: number;
}

/** A chunk between the reader and the writer. */
export interface ScheduledChunk extends ChunkSource {
  readonly chunk: Chunk;
  /** Whether the kernel's first run is still to be made by this thread, by any thread, or by none because it is over. */
  run: 'here' | 'anywhere' | 'over';
  /** What the first run returned: whether it processed all records. */
  isDone: boolean;
  /** Must be called when all results of the chunk are written. */
  release(): void;
}

export interface SchedulerParts {
  runner: ChunkRunner;
  /** All slots of ordinary chunks; the work queue names a slot by its index. */
  slots: readonly Slot[];
  pool: SlotPool<Slot>;
  /** Undefined if this thread works alone. */
  workers: WorkerPool | undefined;
  queue: WorkQueue | undefined;
}

export class Scheduler {
  readonly #parts: SchedulerParts;
  /** Chunks that were read and not yet returned by `next`, in order. */
  readonly #chunks: ScheduledChunk[] = [];
  #chunkCount = 0;
  #isReadingDone = false;
  #failure: { error: unknown } | undefined;
  #notify: () => void = () => {};

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    if (parts.workers !== undefined) parts.workers.onEvent = () => this.#notify();
  }

  /** Returns whether all chunks so far must be released before a chunk is added. */
  mustWait(chunk: Chunk): boolean {
    return this.#parts.runner.mustWait(chunk);
  }

  /** Adds a chunk. The promise resolves when the chunk is released. @throws AtlasError as {@link ChunkRunner.prepare} does */
  add(chunk: Chunk, source: ChunkSource): Promise<void> {
    const { runner, slots, pool, workers, queue } = this.#parts;
    const index = slots.indexOf(chunk.slot);
    const hasWork = runner.prepare(chunk);
    return new Promise((resolve) => {
      const release = (): void => {
        if (index >= 0) pool.release(chunk.slot);
        resolve();
      };
      const run = !hasWork ? 'over' : queue === undefined || index < 0 ? 'here' : 'anywhere';
      this.#chunks.push({ chunk, ...source, run, isDone: true, release });
      if (run === 'anywhere') queue!.post(index);
      // A single chunk needs no workers.
      if (++this.#chunkCount === 2) workers?.start();
      this.#notify();
    });
  }

  /** Must be called when no more chunks will be added. */
  endReading(): void {
    this.#isReadingDone = true;
    this.#notify();
  }

  /** Makes `next` throw an error, even if it is waiting. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#notify();
  }

  /**
   * Returns the next chunk in order, after its first run; undefined after the last chunk. Meanwhile runs the kernel over
   * chunks that no worker takes.
   *
   * @throws AtlasError E_FAULT if a worker thread has ended; the error passed to `fail`
   */
  async next(): Promise<ScheduledChunk | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      const first = this.#chunks[0];
      if (first !== undefined && this.#isRunOver(first)) return this.#chunks.shift();
      this.#parts.workers?.check();
      const own = this.#chooseOwnChunk();
      if (own !== undefined) {
        this.#runHere(own);
        // Gives the reader a turn.
        await undefined;
      } else if (first === undefined && this.#isReadingDone) {
        return undefined;
      } else {
        await this.#waitForChange(first);
      }
    }
  }

  #indexOf({ chunk }: ScheduledChunk): number {
    return this.#parts.slots.indexOf(chunk.slot);
  }

  #isRunOver(scheduled: ScheduledChunk): boolean {
    if (scheduled.run !== 'anywhere') return scheduled.run === 'over';
    const isDone = this.#parts.queue!.result(this.#indexOf(scheduled));
    if (isDone === undefined) return false;
    scheduled.isDone = isDone;
    scheduled.run = 'over';
    return true;
  }

  /**
   * Returns the chunk that this thread should run the kernel over, if any. As long as there is more to read, it leaves the
   * workers as many chunks as they take.
   */
  #chooseOwnChunk(): ScheduledChunk | undefined {
    const { queue, workers, pool } = this.#parts;
    const waiting = this.#chunks.filter(
      (scheduled) =>
        scheduled.run === 'here' || (scheduled.run === 'anywhere' && queue!.isWaiting(this.#indexOf(scheduled))),
    );
    const hasSpareChunk =
      waiting.length > WAITING_PER_WORKER * (workers?.ready ?? 0) || this.#isReadingDone || pool.isEmpty;
    return hasSpareChunk ? waiting[0] : waiting.find(({ run }) => run === 'here');
  }

  #runHere(scheduled: ScheduledChunk): void {
    if (scheduled.run === 'anywhere' && !this.#parts.queue!.claim(this.#indexOf(scheduled))) return;
    scheduled.isDone = this.#parts.runner.run(scheduled.chunk);
    scheduled.run = 'over';
  }

  /** Waits until a chunk is added or finished, reading ends, or a worker or a write fails. */
  #waitForChange(first: ScheduledChunk | undefined): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve;
      this.#parts.queue?.requestWakeup();
      // Checks again after the request (lost wake-up).
      if (this.#failure !== undefined || (first !== undefined && this.#isRunOver(first))) resolve();
    });
  }
}
