/**
 * The slots that are free. The last one returned is taken first, because its memory is still in the processor's cache.
 */
export class SlotPool<T> {
  readonly #free: T[] = [];
  #waiting: ((slot: T) => void) | undefined;

  /** Returns a slot to the pool, or hands it to the caller that waits for one. */
  release(slot: T): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#free.push(slot);
    else waiting(slot);
  }

  /** Returns whether all slots are in use. */
  get isEmpty(): boolean {
    return this.#free.length === 0;
  }

  /** Takes a slot, waiting until one is free. Only one caller may wait at a time. */
  async acquire(): Promise<T> {
    const slot = this.#free.pop();
    if (slot !== undefined) return slot;
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }
}
