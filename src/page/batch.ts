/** Looks up many addresses: in requests of a thousand, with progress, and again from where it stopped. */
import type { Entry } from './extract.js';
import { yieldToBrowser } from './input.js';
import { Results } from './results.js';
import { batchSize, lookUpBatch } from './service.js';

export interface BatchEvents {
  /** Called after each request. */
  onProgress(): void;
  /** Called when the rate is used up. */
  onWait(seconds: number): void;
}

export class Batch {
  readonly #entries: readonly Entry[];
  readonly results = new Results();
  /** Entries that are done. */
  #done = 0;

  constructor(entries: readonly Entry[]) {
    this.#entries = entries;
  }

  get done(): number {
    return this.#done;
  }

  get total(): number {
    return this.#entries.length;
  }

  get isComplete(): boolean {
    return this.#done === this.total;
  }

  /**
   * Looks up what is left.
   *
   * @throws RequestError if a request failed, or the reason of the signal; it can be called again
   */
  async run(signal: AbortSignal, { onProgress, onWait }: BatchEvents): Promise<void> {
    const size = await batchSize();
    while (!this.isComplete) {
      const entries = this.#entries.slice(this.#done, this.#done + size);
      const addresses = entries.filter(({ valid }) => valid).map(({ text }) => text);
      const found = addresses.length === 0 ? {} : await lookUpBatch(addresses, signal, onWait);
      for (const entry of entries) {
        const result = entry.valid ? found[entry.text] : undefined;
        this.results.add(entry, result === undefined || 'error' in result ? undefined : result);
      }
      this.#done += entries.length;
      onProgress();
      await yieldToBrowser();
    }
  }
}
