/** Reads inputs into the kernel's slots, chunk by chunk. */
import type { Slot } from '../kernel/kernel.js';
import type { ChunkSource, Scheduler } from '../schedule/scheduler.js';
import type { SlotPool } from '../schedule/slot-pool.js';
import type { Chunk, ChunkBuffer } from './chunk-buffer.js';
import type { ByteSource } from './source.js';

export interface ChunkReaderDependencies {
  /** Read in order, each to its end, then closed. */
  inputs: Iterable<ByteSource> | AsyncIterable<ByteSource>;
  /** The free slots. Their number limits how far the reader is ahead of the writer. */
  pool: SlotPool<Slot>;
  /** Creates the buffer that assembles the chunks. */
  createBuffer: (slot: Slot) => ChunkBuffer;
  /** Bytes read before, in other runs. */
  bytesBefore: number;
  /** Called at the start of each input. */
  onInput: (name: string) => void;
  /** Receives the chunks. */
  scheduler: Scheduler;
  /** Whether the threads that process lines of regular files read them. */
  mayReadElsewhere: boolean;
}

export class ChunkReader {
  readonly #dependencies: ChunkReaderDependencies;
  #isStopped = false;
  /** Ends the wait of `#unlessStopped`. */
  #stopWaiting: (() => void) | undefined;
  /** Bytes read from the inputs that are closed, before decompression. */
  #bytesOfClosed: number;
  /** An input of which chunks may still be read by other threads. */
  #open: ByteSource | undefined;
  /** Resolves when the last chunk is released, and so all chunks. */
  #released: Promise<void> = Promise.resolve();

  constructor(dependencies: ChunkReaderDependencies) {
    this.#dependencies = dependencies;
    this.#bytesOfClosed = dependencies.bytesBefore;
  }

  /** Bytes read from the inputs that are closed, before decompression; after `read`, all bytes read. */
  get bytesRead(): number {
    return this.#bytesOfClosed;
  }

  /** Stops reading, even if a read waits. Chunks that are complete remain scheduled. */
  stop(): void {
    this.#isStopped = true;
    this.#stopWaiting?.();
  }

  /**
   * Reads all inputs, or until `stop`.
   *
   * @throws AtlasError E_BAD_INPUT if an input cannot be read or is not in its format; the errors of the iteration over the inputs
   */
  async read(): Promise<void> {
    const { inputs, pool, createBuffer } = this.#dependencies;
    const buffer = createBuffer(await pool.acquire());
    const sources = Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
    for (let input = 1; ; input++) {
      // The writer of a pipe may take its time.
      const next = await this.#unlessStopped(Promise.resolve(sources.next()));
      if (next === undefined || next.done === true) return;
      const source = next.value;
      try {
        if (!this.#isStopped && (await this.#readInput(source, input, buffer))) {
          await this.#unlessStopped(this.#released);
        }
      } finally {
        if (this.#isStopped) this.#open = source;
        else await source.close();
        this.#bytesOfClosed += source.bytesRead;
      }
      if (this.#isStopped) return;
    }
  }

  /** Must be called when all chunks are processed. */
  async close(): Promise<void> {
    await this.#open?.close();
  }

  /** Reads an input. Returns whether other threads read chunks of it. */
  async #readInput(source: ByteSource, input: number, buffer: ChunkBuffer): Promise<boolean> {
    const { name } = source;
    const { mayReadElsewhere } = this.#dependencies;
    let isReadElsewhere = false;
    this.#dependencies.onInput(name);
    buffer.start(name);
    for (;;) {
      const stretch = mayReadElsewhere ? await buffer.takeStretch(source) : undefined;
      if (stretch !== undefined) {
        isReadElsewhere = true;
        await this.#schedule(stretch, { input, name, bytesRead: this.#bytesOfClosed + source.bytesRead }, buffer);
        if (this.#isStopped) return true;
        continue;
      }
      const bytes = await this.#unlessStopped(source.read(buffer.space));
      if (bytes === undefined) return isReadElsewhere;
      let chunk = bytes === 0 ? buffer.end() : buffer.add(bytes);
      while (chunk !== undefined) {
        const bytesRead = this.#bytesOfClosed + source.bytesRead;
        await this.#schedule(chunk, { input, name, bytesRead }, buffer);
        if (this.#isStopped) return isReadElsewhere;
        chunk = buffer.next();
      }
      if (bytes === 0) return isReadElsewhere;
    }
  }

  async #schedule(chunk: Chunk, source: ChunkSource, buffer: ChunkBuffer): Promise<void> {
    const { scheduler, pool } = this.#dependencies;
    if (scheduler.mustWait) {
      await this.#unlessStopped(this.#released);
      if (this.#isStopped) return;
    }
    this.#released = scheduler.add(chunk, source);
    if (!buffer.needsSlot(chunk)) {
      await this.#unlessStopped(this.#released);
      return;
    }
    const slot = await this.#unlessStopped(pool.acquire());
    if (slot !== undefined) buffer.useSlot(slot);
  }

  /** Waits for a promise, or until reading is stopped: then returns undefined. */
  #unlessStopped<T>(promise: Promise<T>): Promise<T | undefined> {
    if (this.#isStopped) {
      promise.catch(() => {}); // after a stop, the outcome of a read does not matter
      return Promise.resolve(undefined);
    }
    // Not Promise.race with one long-lived promise: that would retain a reaction for each chunk read.
    return new Promise((resolve, reject) => {
      this.#stopWaiting = () => resolve(undefined);
      promise.then(resolve, reject);
    });
  }
}
