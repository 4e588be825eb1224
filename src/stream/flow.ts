/** Limits what is in flight, in messages and in bytes. */

/** How much may be in flight. */
export interface FlowLimit {
  messages: number;
  bytes: number;
}

export class FlowWindow {
  readonly #limit: FlowLimit;
  #messages = 0;
  #bytes = 0;
  #wake: (() => void)[] = [];

  /** @param limit most that is in flight at a time */
  constructor(limit: FlowLimit) {
    this.#limit = limit;
  }

  get messages(): number {
    return this.#messages;
  }
  get bytes(): number {
    return this.#bytes;
  }
  get isEmpty(): boolean {
    return this.#messages === 0;
  }

  /** Counts messages in. */
  enter(bytes: number, messages = 1): void {
    this.#messages += messages;
    this.#bytes += bytes;
  }

  /** Counts messages out. */
  leave(bytes: number, messages = 1): void {
    this.#messages -= messages;
    this.#bytes -= bytes;
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  /** What may still enter. */
  get room(): FlowLimit {
    return { messages: this.#limit.messages - this.#messages, bytes: this.#limit.bytes - this.#bytes };
  }

  /** Resolves when no more than half of the limit is in flight: fewer and larger requests than for each free place. */
  async halfFree(): Promise<void> {
    while (2 * this.#messages > this.#limit.messages || 2 * this.#bytes > this.#limit.bytes) await this.#change();
  }

  /** Resolves when less than the limit is in flight. */
  async hasRoom(): Promise<void> {
    while (this.#messages >= this.#limit.messages || this.#bytes >= this.#limit.bytes) await this.#change();
  }

  /** Resolves when nothing is in flight. */
  async empty(): Promise<void> {
    while (!this.isEmpty) await this.#change();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake.push(resolve);
    });
  }
}
