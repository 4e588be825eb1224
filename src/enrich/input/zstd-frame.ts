/** Finds the end of a zstd frame without decompressing it (RFC 8878 §3.1). All numbers are little-endian. */

const MAGIC = 0xfd2fb528;
/** The magic numbers of skippable frames differ in the last four bits only. */
const SKIPPABLE_MAGIC = 0x184d2a50;

// Bits of the frame header descriptor, §3.1.1.1.1.
const SINGLE_SEGMENT = 1 << 5;
const CONTENT_CHECKSUM = 1 << 2;
/** Bytes of the content size field, by the descriptor's upper two bits; one byte if 0 and the frame is a single segment. */
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];
/** Bytes of the dictionary id, by the descriptor's lower two bits. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];

const BLOCK_HEADER_BYTES = 3;
/** The type of a block that repeats one byte. */
const RLE_BLOCK = 1;
const CHECKSUM_BYTES = 4;

/** Takes the bytes of a frame, split anywhere. */
export class ZstdFrameEnd {
  /** The field being read, and the number of bytes still to come of it. */
  #field: Buffer = Buffer.alloc(0);
  #missing = 4;
  /** Bytes to skip before the next field. */
  #skip = 0;
  /** Handles the field when it is complete, and sets what comes next. */
  #onField: (field: Buffer) => void = (field) => this.#onMagic(field);
  #hasChecksum = false;
  isReached = false;

  /**
   * @param chunk the next bytes of the file
   * @returns how many of them belong to the frame
   * @throws Error if they do not begin a zstd frame
   */
  add(chunk: Uint8Array): number {
    let at = 0;
    while (!this.isReached && at < chunk.length) {
      if (this.#skip > 0) {
        const length = Math.min(this.#skip, chunk.length - at);
        this.#skip -= length;
        at += length;
      } else {
        const part = chunk.subarray(at, at + this.#missing);
        this.#field = Buffer.concat([this.#field, part]);
        this.#missing -= part.length;
        at += part.length;
        if (this.#missing === 0) this.#endField();
      }
      if (this.#skip === 0 && this.#missing === 0) this.isReached = true;
    }
    return at;
  }

  #endField(): void {
    const field = this.#field;
    this.#field = Buffer.alloc(0);
    this.#onField(field);
  }

  #expect(length: number, onField: (field: Buffer) => void): void {
    this.#missing = length;
    this.#onField = onField;
  }

  #onMagic(field: Buffer): void {
    const magic = field.readUInt32LE();
    if (magic === MAGIC) {
      this.#expect(1, (descriptor) => this.#onDescriptor(descriptor[0]!));
    } else if ((magic & ~0xf) === SKIPPABLE_MAGIC) {
      this.#expect(4, (size) => {
        this.#skip = size.readUInt32LE();
      });
    } else {
      throw new Error('the zstd data is followed by bytes that are not zstd');
    }
  }

  #onDescriptor(descriptor: number): void {
    const isSingleSegment = (descriptor & SINGLE_SEGMENT) !== 0;
    this.#hasChecksum = (descriptor & CONTENT_CHECKSUM) !== 0;
    const contentSize = CONTENT_SIZE_BYTES[descriptor >> 6]!;
    // A window descriptor of one byte, or a content size of at least one byte.
    const windowOrSize = isSingleSegment ? Math.max(contentSize, 1) : contentSize + 1;
    this.#skip = windowOrSize + DICTIONARY_ID_BYTES[descriptor & 3]!;
    this.#expect(BLOCK_HEADER_BYTES, (header) => this.#onBlockHeader(header.readUIntLE(0, BLOCK_HEADER_BYTES)));
  }

  #onBlockHeader(header: number): void {
    const isLast = (header & 1) !== 0;
    const type = (header >> 1) & 3;
    this.#skip = type === RLE_BLOCK ? 1 : header >> 3;
    if (!isLast) {
      this.#missing = BLOCK_HEADER_BYTES;
    } else if (this.#hasChecksum) {
      this.#skip += CHECKSUM_BYTES;
    }
  }
}
