/**
 * Hands values from one asynchronous function to another; the last one put in comes out first, since what was used last is
 * still in the processor's cache.
 */
export class Channel<T> {
  readonly #values: T[] = [];
  #waiting: ((value: T | undefined) => void) | undefined;
  #closed = false;

  /** Puts a value in; it is dropped where the channel is closed. */
  put(value: T): void {
    if (this.#closed) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#values.push(value);
    else waiting(value);
  }

  /** Whether to take a value means to wait for it. */
  get isEmpty(): boolean {
    return this.#values.length === 0;
  }

  /** Takes the next value, waiting for it; undefined where the channel is closed and empty. One may wait at a time. */
  async take(): Promise<T | undefined> {
    if (this.#values.length > 0) return this.#values.pop();
    if (this.#closed) return undefined;
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Lets no more values in. */
  close(): void {
    this.#closed = true;
    this.#waiting?.(undefined);
    this.#waiting = undefined;
  }
}
