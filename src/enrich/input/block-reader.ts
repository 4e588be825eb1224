/** Reads inputs into the kernel's slots, block by block. */
import type { Slot } from '../kernel/kernel.js';
import type { Scheduler } from '../schedule/scheduler.js';
import type { SlotPool } from '../schedule/slot-pool.js';
import type { Block, BlockBuffer } from './line-buffer.js';
import type { ByteSource } from './source.js';

export interface BlockReaderParts {
  /** Read in order, each to its end, then closed. */
  inputs: Iterable<ByteSource> | AsyncIterable<ByteSource>;
  /** The free slots. Their number limits how far the reader is ahead of the writer. */
  pool: SlotPool<Slot>;
  /** The slot for a line that does not fit into an ordinary slot. */
  large: Slot;
  /** Creates the buffer that assembles the blocks. */
  createBuffer: (slot: Slot) => BlockBuffer;
  /** Called at the start of each input. */
  onInput: (name: string) => void;
  /** Called for each block before it is scheduled. Its errors end the reading. */
  onBlock: (block: Block) => void;
  /** Receives the blocks. */
  scheduler: Scheduler;
}

export class BlockReader {
  readonly #parts: BlockReaderParts;
  #isStopped = false;
  /** Ends the wait of `#unlessStopped`. */
  #stopWaiting: (() => void) | undefined;
  /** Bytes read from the inputs that are closed, before decompression. */
  #bytesOfClosed = 0;

  constructor(parts: BlockReaderParts) {
    this.#parts = parts;
  }

  /** Bytes read from the inputs that are closed, before decompression; after `read`, all bytes read. */
  get bytesRead(): number {
    return this.#bytesOfClosed;
  }

  /** Stops reading, even if a read waits. Blocks that are complete remain scheduled. */
  stop(): void {
    this.#isStopped = true;
    this.#stopWaiting?.();
  }

  /**
   * Reads all inputs, or until `stop`.
   *
   * @throws AtlasError E_BAD_INPUT if an input cannot be read; the errors of the iteration over the inputs
   */
  async read(): Promise<void> {
    const { inputs, pool, createBuffer } = this.#parts;
    const buffer = createBuffer(await pool.acquire());
    let input = 0;
    for await (const source of inputs) {
      try {
        input++;
        if (!this.#isStopped) await this.#readInput(source, input, buffer);
      } finally {
        await source.close();
        this.#bytesOfClosed += source.bytesRead;
      }
      if (this.#isStopped) return;
    }
  }

  async #readInput(source: ByteSource, input: number, buffer: BlockBuffer): Promise<void> {
    const { scheduler, pool, large, onInput, onBlock } = this.#parts;
    onInput(source.name);
    for (;;) {
      const bytes = await this.#unlessStopped(source.read(buffer.space));
      if (bytes === undefined) return;
      let block = bytes === 0 ? buffer.end() : buffer.add(bytes);
      while (block !== undefined) {
        onBlock(block);
        const bytesRead = this.#bytesOfClosed + source.bytesRead;
        const released = scheduler.add(block, { input, name: source.name, bytesRead });
        if (block.slot === large) {
          await this.#unlessStopped(released);
        } else {
          const slot = await this.#unlessStopped(pool.acquire());
          if (slot === undefined) return;
          buffer.useSlot(slot);
        }
        if (this.#isStopped) return;
        block = buffer.next();
      }
      if (bytes === 0) return;
    }
  }

  /** Waits for a promise, or until reading is stopped: then returns undefined. */
  #unlessStopped<T>(promise: Promise<T>): Promise<T | undefined> {
    if (this.#isStopped) {
      promise.catch(() => {}); // after a stop, the outcome of a read does not matter
      return Promise.resolve(undefined);
    }
    // Not Promise.race with one long-lived promise: that would retain a reaction for each block read.
    return new Promise((resolve, reject) => {
      this.#stopWaiting = () => resolve(undefined);
      promise.then(resolve, reject);
    });
  }
}
