/**
 * The slots that wait for a thread, as a queue in shared memory. Threads claim slots with atomic operations, because a
 * message to another thread and back would take up to a tenth of the time that the work itself takes.
 */

/** 4-byte numbers shared by the threads. After them, each slot has two: its state, and its number in the order of posting. */
const HEADER = { posted: 0, wakeupRequested: 1, stopped: 2, length: 3 } as const;

/** States of a slot. At first 0: not posted. */
const WAITING = 1;
const CLAIMED = 2;
const DONE = 3;
const PARTLY_DONE = 4;

export class WorkQueue {
  /** The queue's memory. A thread that gets it can make a queue on it. */
  readonly shared: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** @param slots number of slots for a new queue, or the memory of an existing queue */
  constructor(slots: number | SharedArrayBuffer) {
    this.shared = typeof slots === 'number' ? new SharedArrayBuffer(4 * (HEADER.length + 2 * slots)) : slots;
    this.#numbers = new Int32Array(this.shared);
  }

  /** Posts a slot for any thread to work on. */
  post(slot: number): void {
    const posted = Atomics.load(this.#numbers, HEADER.posted);
    this.#numbers[HEADER.length + 2 * slot + 1] = posted;
    Atomics.store(this.#numbers, HEADER.length + 2 * slot, WAITING);
    Atomics.store(this.#numbers, HEADER.posted, (posted + 1) | 0);
    Atomics.notify(this.#numbers, HEADER.posted, 1);
  }

  /** Claims a slot; returns false if another thread has claimed it. */
  claim(slot: number): boolean {
    return Atomics.compareExchange(this.#numbers, HEADER.length + 2 * slot, WAITING, CLAIMED) === WAITING;
  }

  /** Records the result of the kernel's run over a slot: whether it processed all lines. */
  finish(slot: number, isDone: boolean): void {
    Atomics.store(this.#numbers, HEADER.length + 2 * slot, isDone ? DONE : PARTLY_DONE);
  }

  /** Returns whether the kernel processed all lines of a slot; undefined until its run is over. */
  result(slot: number): boolean | undefined {
    const state = Atomics.load(this.#numbers, HEADER.length + 2 * slot);
    return state < DONE ? undefined : state === DONE;
  }

  /** Returns whether a slot is posted and not yet claimed. */
  isWaiting(slot: number): boolean {
    return Atomics.load(this.#numbers, HEADER.length + 2 * slot) === WAITING;
  }

  /** Claims the slot that was posted first. Blocks the thread until there is one; returns undefined after `stop`. */
  claimNext(): number | undefined {
    for (;;) {
      const posted = Atomics.load(this.#numbers, HEADER.posted);
      if (Atomics.load(this.#numbers, HEADER.stopped) !== 0) return undefined;
      const slot = this.#oldest(posted);
      if (slot === undefined) Atomics.wait(this.#numbers, HEADER.posted, posted);
      else if (this.claim(slot)) return slot;
    }
  }

  /** Returns the waiting slot that was posted first. Differences are taken modulo 2^32, because the counter wraps. */
  #oldest(posted: number): number | undefined {
    let oldest: number | undefined;
    let greatestAge = 0;
    for (let slot = 0; HEADER.length + 2 * slot < this.#numbers.length; slot++) {
      const age = (posted - this.#numbers[HEADER.length + 2 * slot + 1]!) | 0;
      if (age > greatestAge && this.isWaiting(slot)) {
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
