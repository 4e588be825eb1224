/**
 * Decides which thread runs the kernel over which chunk, and returns the chunks in the order in which they were read.
 *
 * Worker threads take chunks from the work queue. The main thread runs the kernel as well if more chunks wait than the
 * workers take. Chunks of regular files are read, and written, by the threads that process them: the main thread only decides
 * where they are in the files.
 */
import type { ChunkRunner } from '../chunk-runner.js';
import type { Chunk } from '../input/chunk-buffer.js';
import { readStretch } from '../input/source.js';
import type { Slot } from '../kernel/kernel.js';
import type { PlacedBytes } from '../output/sink.js';
import type { SlotPool } from './slot-pool.js';
import type { WorkQueue } from './work-queue.js';
import type { WorkerPool } from './worker-pool.js';

/** Chunks left to each worker to claim next, so that it has work while the main thread is busy with a chunk. */
export const WAITING_PER_WORKER = 2;

/** Workers that this thread helps. More of them keep it busy with handing out chunks and taking them back. */
const MAX_HELPED_WORKERS = 7;

/** Chunks that need no workers: this thread processes 2 MB while one starts. */
const CHUNKS_ALONE = 4;

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
  reachedEnd: boolean;
  /** Why the chunk could not be read. */
  error?: unknown;
  /** Must be called when all results of the chunk are written. */
  release(): void;
}

export interface SchedulerDependencies {
  runner: ChunkRunner;
  /** All slots of ordinary chunks; the work queue names a slot by its index. */
  slots: readonly Slot[];
  pool: SlotPool<Slot>;
  /** Undefined if this thread works alone. */
  workers: WorkerPool | undefined;
  queue: WorkQueue | undefined;
}

export class Scheduler {
  readonly #dependencies: SchedulerDependencies;
  /** Chunks that were read and not yet returned by `next`, in order. */
  readonly #chunks: ScheduledChunk[] = [];
  /** Outputs that workers write. */
  #writes: { slot: number; placed: PlacedBytes; onWritten: () => void }[] = [];
  #chunkCount = 0;
  #isReadingDone = false;
  #failure: { error: unknown } | undefined;
  #notify: () => void = () => {};

  constructor(dependencies: SchedulerDependencies) {
    this.#dependencies = dependencies;
    if (dependencies.workers !== undefined) dependencies.workers.onEvent = () => this.#notify();
  }

  /** Whether all chunks so far must be released before another one is added. */
  get mustWait(): boolean {
    return this.#dependencies.runner.mustWait;
  }

  /** Adds a chunk. The promise resolves when the chunk is released. @throws AtlasError as {@link ChunkRunner.prepare} does */
  add(chunk: Chunk, source: ChunkSource): Promise<void> {
    const { runner, slots, pool, workers, queue } = this.#dependencies;
    const index = slots.indexOf(chunk.slot);
    const hasWork = runner.prepare(chunk);
    return new Promise((resolve) => {
      const release = (): void => {
        if (index >= 0) pool.release(chunk.slot);
        resolve();
      };
      const run = !hasWork ? 'over' : queue === undefined || index < 0 ? 'here' : 'anywhere';
      this.#chunks.push({ chunk, ...source, run, reachedEnd: true, release });
      if (run === 'anywhere') queue!.post({ slot: index, kind: 'run', part: chunk.from });
      if (workers !== undefined && ++this.#chunkCount > CHUNKS_ALONE) {
        runner.makeAllTables();
        workers.start();
      }
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
   * @throws AtlasError E_FAULT if a worker thread has ended; E_BAD_INPUT if the chunk cannot be read; the errors of writing; the
   *   error passed to `fail`
   */
  async next(): Promise<ScheduledChunk | undefined> {
    for (;;) {
      this.#settleWrites();
      if (this.#failure !== undefined) throw this.#failure.error;
      const first = this.#chunks[0];
      if (first !== undefined && this.#isRunOver(first)) {
        if (first.error !== undefined) throw first.error;
        return this.#chunks.shift();
      }
      this.#dependencies.workers?.check();
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

  /** Returns whether a worker can write the output of a chunk. */
  canWrite(scheduled: ScheduledChunk): boolean {
    // Other results are not in the slot.
    const isInSlot = this.#dependencies.runner.isPlain(scheduled.chunk) && this.#indexOf(scheduled) >= 0;
    return isInSlot && (this.#dependencies.workers?.ready ?? 0) > 0;
  }

  /**
   * Lets a worker write the output of a chunk.
   *
   * @param onWritten called when it is written. A failure is thrown by `next` and `finishWrites`
   */
  write(scheduled: ScheduledChunk, placed: PlacedBytes, onWritten: () => void): void {
    const slot = this.#indexOf(scheduled);
    this.#writes.push({ slot, placed, onWritten });
    this.#dependencies.queue!.post({ slot, kind: 'write', part: placed });
  }

  /** Waits for all writes. @throws as `next` does */
  async finishWrites(): Promise<void> {
    for (;;) {
      this.#settleWrites();
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#writes.length === 0) return;
      this.#dependencies.workers!.check();
      await this.#waitForChange(undefined);
    }
  }

  /** Takes note of the writes that are over. Returns whether there was one. */
  #settleWrites(): boolean {
    if (this.#writes.length === 0) return false;
    const before = this.#writes.length;
    this.#writes = this.#writes.filter(({ slot, placed, onWritten }) => {
      const outcome = this.#dependencies.queue!.outcome(slot);
      if (outcome === undefined) return true;
      try {
        if (outcome === 'failed') placed.writeHere();
        onWritten();
      } catch (error) {
        this.fail(error);
      }
      return false;
    });
    return this.#writes.length < before;
  }

  #indexOf({ chunk }: ScheduledChunk): number {
    return this.#dependencies.slots.indexOf(chunk.slot);
  }

  #isRunOver(scheduled: ScheduledChunk): boolean {
    if (scheduled.run !== 'anywhere') return scheduled.run === 'over';
    const outcome = this.#dependencies.queue!.outcome(this.#indexOf(scheduled));
    if (outcome === undefined) return false;
    scheduled.reachedEnd = outcome === 'done';
    scheduled.run = outcome === 'failed' ? 'here' : 'over';
    return scheduled.run === 'over';
  }

  /** Returns whether the first chunk needs this thread: its run is over, or has failed in a worker. */
  #isChanged(first: ScheduledChunk): boolean {
    return this.#isRunOver(first) || first.run === 'here';
  }

  /**
   * Returns the chunk that this thread should run the kernel over, if any. As long as there is more to read, it leaves the
   * workers as many chunks as they take.
   */
  #chooseOwnChunk(): ScheduledChunk | undefined {
    const { queue, workers, pool } = this.#dependencies;
    const ready = workers?.ready ?? 0;
    if (ready > MAX_HELPED_WORKERS) return this.#chunks.find(({ run }) => run === 'here');
    const waiting = this.#chunks.filter(
      (scheduled) =>
        scheduled.run === 'here' || (scheduled.run === 'anywhere' && queue!.isWaiting(this.#indexOf(scheduled))),
    );
    const hasSpareChunk = waiting.length > WAITING_PER_WORKER * ready || this.#isReadingDone || pool.isEmpty;
    return hasSpareChunk ? waiting[0] : waiting.find(({ run }) => run === 'here');
  }

  #runHere(scheduled: ScheduledChunk): void {
    if (scheduled.run === 'anywhere' && !this.#dependencies.queue!.claim(this.#indexOf(scheduled))) return;
    const { chunk, name } = scheduled;
    scheduled.run = 'over';
    try {
      if (chunk.from !== undefined) readStretch(name, chunk.from, chunk.slot.input);
    } catch (error) {
      // Thrown by `next`, after everything before it.
      scheduled.error = error;
      return;
    }
    scheduled.reachedEnd = this.#dependencies.runner.run(chunk);
  }

  /** Waits until a chunk is added or finished, reading ends, or a worker or a write fails. */
  #waitForChange(first: ScheduledChunk | undefined): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve;
      this.#dependencies.queue?.requestWakeup();
      // Checks again after the request (lost wake-up).
      const hasChanged = this.#settleWrites() || (first !== undefined && this.#isChanged(first));
      if (this.#failure !== undefined || hasChanged) resolve();
    });
  }
}
