/**
 * The slots that wait for a thread, as a queue in shared memory. Threads claim slots with atomic operations, because a
 * message to another thread and back would take up to a tenth of the time that the work itself takes.
 */
import type { FilePart } from '../../file-part.js';

/** 4-byte numbers shared by the threads. After them come those of each slot. */
const HEADER = { posted: 0, wakeupRequested: 1, stopped: 2, length: 3 } as const;

/**
 * The numbers of a slot: its state, its number in the order of posting, and the part of a file that is its input or will be its
 * output; a length of 0 is no part. The high word of the position counts units of 4 GiB.
 */
const SLOT = { state: 0, order: 1, fd: 2, length: 3, position: 4, positionHigh: 5, numbers: 6 } as const;

/** States of a slot. At first 0: not posted. */
const RUN_WAITS = 1;
const WRITE_WAITS = 2;
const CLAIMED = 3;
const FINISHED = 4;

/**
 * How a task ended: all lines processed or all bytes written; lines left over; a part of a file that could not be read or
 * written.
 */
const OUTCOMES = ['done', 'partly done', 'failed'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** What a thread is to do with a slot: run the kernel, over the part of a file if there is one; or write the slot's output. */
export interface Task {
  slot: number;
  kind: 'run' | 'write';
  part: FilePart | undefined;
}

export class WorkQueue {
  /** The queue's memory. A thread that gets it can make a queue on it. */
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** @param slots number of slots for a new queue, or the memory of an existing queue */
  constructor(slots: number | SharedArrayBuffer) {
    this.shared = typeof slots === 'number' ? new SharedArrayBuffer(4 * (HEADER.length + SLOT.numbers * slots)) : slots;
    this.#numbers = new Int32Array(this.shared);
  }

  /** Posts a task for any thread. */
  post({ slot, kind, part }: Task): void {
    const at = this.#at(slot);
    const posted = Atomics.load(this.#numbers, HEADER.posted);
    this.#numbers[at + SLOT.order] = posted;
    this.#numbers[at + SLOT.length] = part?.length ?? 0;
    if (part !== undefined) {
      this.#numbers[at + SLOT.fd] = part.fd;
      this.#numbers[at + SLOT.position] = part.position; // modulo 2^32
      this.#numbers[at + SLOT.positionHigh] = Math.floor(part.position / 2 ** 32);
    }
    Atomics.store(this.#numbers, at, kind === 'run' ? RUN_WAITS : WRITE_WAITS);
    Atomics.store(this.#numbers, HEADER.posted, (posted + 1) | 0);
    Atomics.notify(this.#numbers, HEADER.posted, 1);
  }

  /** Claims a slot on which the kernel is to run; returns false if another thread has claimed it. */
  claim(slot: number): boolean {
    return Atomics.compareExchange(this.#numbers, this.#at(slot), RUN_WAITS, CLAIMED) === RUN_WAITS;
  }

  /** Records how a task ended. */
  finish(slot: number, outcome: Outcome): void {
    Atomics.store(this.#numbers, this.#at(slot), FINISHED + OUTCOMES.indexOf(outcome));
  }

  /** Returns how the task of a slot ended; undefined until it has. */
  outcome(slot: number): Outcome | undefined {
    return OUTCOMES[Atomics.load(this.#numbers, this.#at(slot)) - FINISHED];
  }

  /** Returns whether the kernel is to run on a slot, and no thread has claimed it yet. */
  isWaiting(slot: number): boolean {
    return Atomics.load(this.#numbers, this.#at(slot)) === RUN_WAITS;
  }

  /**
   * Claims a task: a write if there is one, because it frees a slot, else the run that was posted first. Blocks the thread until
   * there is one; returns undefined after `stop`.
   */
  claimNext(): Task | undefined {
    for (;;) {
      const posted = Atomics.load(this.#numbers, HEADER.posted);
      if (Atomics.load(this.#numbers, HEADER.stopped) !== 0) return undefined;
      const slot = this.#first(posted);
      if (slot === undefined) {
        Atomics.wait(this.#numbers, HEADER.posted, posted);
        continue;
      }
      const kind = this.isWaiting(slot) ? 'run' : 'write';
      const state = kind === 'run' ? RUN_WAITS : WRITE_WAITS;
      if (Atomics.compareExchange(this.#numbers, this.#at(slot), state, CLAIMED) === state) {
        return { slot, kind, part: this.#part(slot) };
      }
    }
  }

  #at(slot: number): number {
    return HEADER.length + SLOT.numbers * slot;
  }

  #part(slot: number): FilePart | undefined {
    const at = this.#at(slot);
    const length = this.#numbers[at + SLOT.length]!;
    const position = this.#numbers[at + SLOT.positionHigh]! * 2 ** 32 + (this.#numbers[at + SLOT.position]! >>> 0);
    return length === 0 ? undefined : { fd: this.#numbers[at + SLOT.fd]!, position, length };
  }

  /** Returns the slot whose task is to be claimed. Differences are taken modulo 2^32, because the counter wraps. */
  #first(posted: number): number | undefined {
    let oldest: number | undefined;
    let greatestAge = 0;
    for (let slot = 0; this.#at(slot) < this.#numbers.length; slot++) {
      const state = Atomics.load(this.#numbers, this.#at(slot));
      if (state === WRITE_WAITS) return slot;
      const age = (posted - this.#numbers[this.#at(slot) + SLOT.order]!) | 0;
      if (age > greatestAge && state === RUN_WAITS) {
        oldest = slot;
        greatestAge = age;
      }
    }
    return oldest;
  }

  /** Asks for a message when a slot is finished. The caller must check again after this call (lost wake-up). */
  requestWakeup(): void {
    Atomics.store(this.#numbers, HEADER.wakeupRequested, 1);
  }

  /** Returns whether a message was requested, and clears the request. */
  consumeWakeup(): boolean {
    return Atomics.exchange(this.#numbers, HEADER.wakeupRequested, 0) !== 0;
  }

  /** Ends the waiting of all threads. */
  stop(): void {
    Atomics.store(this.#numbers, HEADER.stopped, 1);
    Atomics.add(this.#numbers, HEADER.posted, 1);
    Atomics.notify(this.#numbers, HEADER.posted);
  }
}
