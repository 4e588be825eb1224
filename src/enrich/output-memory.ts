/**
 * Memory for outputs of messages that is used again. New memory of this size is expensive: the operating system fills each page
 * with zeros at its first use, and Node collects garbage after some 64 MB of it.
 */
import { ENRICH_SPARE_BYTES } from '../limits.js';

/** Less memory than this, in bytes, is not kept: it is cheap to allocate. */
const MIN_BYTES = 65_536;
/** Memory is allocated in multiples of this, in bytes, so that outputs of nearly the same size can have the same memory. */
const STEP_BYTES = 16_384;
/** An output gets at most so many times the memory that it needs. */
const MAX_EXCESS = 1.5;

export class OutputMemory {
  /** Memory that is not in use, the newest last. */
  readonly #spare: Buffer[] = [];
  #spareBytes = 0;

  /** Returns memory of at least a number of bytes, with any content. */
  take(bytes: number): Buffer {
    if (bytes < MIN_BYTES) return Buffer.allocUnsafeSlow(bytes);
    const at = this.#spare.findLastIndex(({ length }) => length >= bytes && length <= MAX_EXCESS * bytes);
    if (at < 0) return Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
    const [memory] = this.#spare.splice(at, 1);
    this.#spareBytes -= memory!.length;
    return memory!;
  }

  /**
   * Takes memory back. Keeps at most {@link ENRICH_SPARE_BYTES}, and drops the oldest.
   *
   * @param bytes memory that `take` returned, or a part of it; nothing may refer to that memory any more
   */
  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength < MIN_BYTES || buffer.byteLength > ENRICH_SPARE_BYTES) return;
    this.#spare.push(Buffer.from(buffer));
    this.#spareBytes += buffer.byteLength;
    while (this.#spareBytes > ENRICH_SPARE_BYTES) this.#spareBytes -= this.#spare.shift()!.length;
  }
}
