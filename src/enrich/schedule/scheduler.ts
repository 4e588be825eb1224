/**
 * Decides which thread runs the kernel over which block, and returns the blocks in the order in which they were read.
 *
 * Worker threads take blocks from the work queue. The main thread runs the kernel as well if more blocks wait than the
 * workers take.
 */
import type { BlockRunner } from '../block-runner.js';
import type { Block } from '../input/line-buffer.js';
import type { Slot } from '../kernel/kernel.js';
import type { SlotPool } from './slot-pool.js';
import type { WorkQueue } from './work-queue.js';
import type { WorkerPool } from './worker-pool.js';

/** Blocks left to each worker to claim next, so that it has work while the main thread is busy with a block. */
export const WAITING_PER_WORKER = 2;

/** A block between the reader and the writer. */
export interface ScheduledBlock {
  readonly block: Block;
  /** The input of the block: its number, from 1, and its name. */
  readonly input: number;
  readonly name: string;
  /** Bytes read from all inputs when the block was complete, before decompression. */
  readonly bytesRead: number;
  /** Whether the kernel's first run is still to be made by this thread, by any thread, or by none because it is over. */
  run: 'here' | 'anywhere' | 'over';
  /** What the first run returned: whether it processed all lines. */
  isDone: boolean;
  /** Must be called when all results of the block are written. */
  release(): void;
}

export interface SchedulerParts {
  runner: BlockRunner;
  /** All slots of ordinary blocks; the work queue names a slot by its index. */
  slots: readonly Slot[];
  pool: SlotPool<Slot>;
  /** Undefined if this thread works alone. */
  workers: WorkerPool | undefined;
  queue: WorkQueue | undefined;
}

export class Scheduler {
  readonly #parts: SchedulerParts;
  /** Blocks that were read and not yet returned by `next`, in order. */
  readonly #blocks: ScheduledBlock[] = [];
  #blockCount = 0;
  #isReadingDone = false;
  #failure: { error: unknown } | undefined;
  #notify: () => void = () => {};

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    if (parts.workers !== undefined) parts.workers.onEvent = () => this.#notify();
  }

  /** Adds a block. The promise resolves when the block is released. */
  add(block: Block, source: { input: number; name: string; bytesRead: number }): Promise<void> {
    const { runner, slots, pool, workers, queue } = this.#parts;
    const index = slots.indexOf(block.slot);
    const hasWork = runner.prepare(block);
    return new Promise((resolve) => {
      const release = (): void => {
        if (index >= 0) pool.release(block.slot);
        resolve();
      };
      const run = !hasWork ? 'over' : queue === undefined || index < 0 ? 'here' : 'anywhere';
      this.#blocks.push({ block, ...source, run, isDone: true, release });
      if (run === 'anywhere') queue!.post(index);
      // A single block needs no workers.
      if (++this.#blockCount === 2) workers?.start();
      this.#notify();
    });
  }

  /** Must be called when no more blocks will be added. */
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
   * Returns the next block in order, after its first run; undefined after the last block. Meanwhile runs the kernel over
   * blocks that no worker takes.
   *
   * @throws AtlasError E_FAULT if a worker thread has ended; the error passed to `fail`
   */
  async next(): Promise<ScheduledBlock | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      const first = this.#blocks[0];
      if (first !== undefined && this.#isRunOver(first)) return this.#blocks.shift();
      this.#parts.workers?.check();
      const own = this.#chooseOwnBlock();
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

  #indexOf({ block }: ScheduledBlock): number {
    return this.#parts.slots.indexOf(block.slot);
  }

  #isRunOver(scheduled: ScheduledBlock): boolean {
    if (scheduled.run !== 'anywhere') return scheduled.run === 'over';
    const isDone = this.#parts.queue!.result(this.#indexOf(scheduled));
    if (isDone === undefined) return false;
    scheduled.isDone = isDone;
    scheduled.run = 'over';
    return true;
  }

  /**
   * Returns the block that this thread should run the kernel over, if any. As long as there is more to read, it leaves the
   * workers as many blocks as they take.
   */
  #chooseOwnBlock(): ScheduledBlock | undefined {
    const { queue, workers, pool } = this.#parts;
    const waiting = this.#blocks.filter(
      (scheduled) =>
        scheduled.run === 'here' || (scheduled.run === 'anywhere' && queue!.isWaiting(this.#indexOf(scheduled))),
    );
    const hasSpareBlock =
      waiting.length > WAITING_PER_WORKER * (workers?.ready ?? 0) || this.#isReadingDone || pool.isEmpty;
    return hasSpareBlock ? waiting[0] : waiting.find(({ run }) => run === 'here');
  }

  #runHere(scheduled: ScheduledBlock): void {
    if (scheduled.run === 'anywhere' && !this.#parts.queue!.claim(this.#indexOf(scheduled))) return;
    scheduled.isDone = this.#parts.runner.run(scheduled.block);
    scheduled.run = 'over';
  }

  /** Waits until a block is added or finished, reading ends, or a worker or a write fails. */
  #waitForChange(first: ScheduledBlock | undefined): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve;
      this.#parts.queue?.requestWakeup();
      // Checks again after the request (lost wake-up).
      if (this.#failure !== undefined || (first !== undefined && this.#isRunOver(first))) resolve();
    });
  }
}
