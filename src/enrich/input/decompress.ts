/** Decompresses gzip and zstd, in libuv's thread pool. Everything before damaged bytes is returned before the error. */
import type { Transform } from 'node:stream';
import type { Zlib } from 'node:zlib';
import { zlib } from '../../builtins.js';
import { AtlasError } from '../../errors.js';
import { type ByteSource, chunksOf } from './source.js';
import { ZstdFrameEnd } from './zstd-frame.js';

/** Compressed bytes processed at a time. */
const INPUT_BYTES = 32_768;
/** Output of zlib comes in chunks of this many bytes. */
const OUTPUT_BYTES = 262_144;

/**
 * One stream of zlib, driven chunk by chunk. It waits until its output is taken, because zstd makes hundreds of megabytes of a
 * chunk that repeats itself. As a readable stream, zlib would drop its last output when it fails.
 */
class Decompressor {
  readonly #stream: Transform & Zlib;
  #parts: Buffer[] = [];
  #failure: Error | undefined;
  #hasEnded = false;
  /** Set after an error: then no callback of a write is called. */
  #isClosed = false;
  #wake: () => void = () => {};

  constructor(stream: Transform & Zlib) {
    this.#stream = stream;
    stream.on('data', (part: Buffer) => {
      this.#parts.push(part);
      stream.pause();
      this.#wake();
    });
    stream.on('error', (error) => {
      this.#failure = error;
    });
    stream.on('end', () => {
      this.#hasEnded = true;
      this.#wake();
    });
    stream.on('close', () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  /**
   * Yields what a chunk is decompressed to. Returns how many of its bytes belong to the stream.
   *
   * @throws Error if the bytes are damaged, after yielding the data before that
   */
  async *write(chunk: Uint8Array): AsyncGenerator<Buffer, number> {
    const before = this.#stream.bytesWritten;
    let isWritten = false;
    this.#stream.write(chunk, () => {
      isWritten = true;
      this.#wake();
    });
    yield* this.#outputUntil(() => isWritten);
    const used = this.#stream.bytesWritten - before;
    // Bytes were left over, so the compressed data has ended; its output may still be on its way.
    if (used < chunk.length) yield* this.#outputUntil(() => this.#hasEnded);
    return used;
  }

  /** Ends the input, and yields the rest of the output. Throws as `write` does. */
  async *end(): AsyncGenerator<Buffer, void> {
    this.#stream.end();
    yield* this.#outputUntil(() => this.#hasEnded);
  }

  async *#outputUntil(isDone: () => boolean): AsyncGenerator<Buffer, void> {
    for (;;) {
      if (this.#parts.length > 0) {
        yield* this.#parts.splice(0);
        this.#stream.resume();
      } else if (this.#isClosed || (isDone() && this.#stream.readableLength === 0)) {
        if (this.#failure !== undefined) throw this.#failure;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  destroy(): void {
    this.#stream.destroy();
  }
}

const UNEXPECTED_END = 'unexpected end of file';

/** The bytes of a source, read as fields of any length and as chunks. */
class ByteReader {
  readonly #chunks: AsyncGenerator<Buffer>;
  #chunk: Buffer = Buffer.alloc(0);

  constructor(source: ByteSource) {
    this.#chunks = chunksOf(source, INPUT_BYTES);
  }

  /** Returns the next chunk; undefined at the end. */
  async nextChunk(): Promise<Buffer | undefined> {
    const chunk = this.#chunk;
    this.#chunk = chunk.subarray(chunk.length);
    if (chunk.length > 0) return chunk;
    const { value, done } = await this.#chunks.next();
    return done === true ? undefined : value;
  }

  /** Returns the end of a chunk to the reader. */
  unread(rest: Buffer): void {
    this.#chunk = rest;
  }

  /** Skips zero bytes. Returns whether there are bytes after them. */
  async skipZeros(): Promise<boolean> {
    for (;;) {
      const chunk = await this.nextChunk();
      if (chunk === undefined) return false;
      const start = chunk.findIndex((byte) => byte !== 0);
      if (start < 0) continue;
      this.unread(chunk.subarray(start));
      return true;
    }
  }

  /** Returns the next byte; undefined at the end. */
  async nextByte(): Promise<number | undefined> {
    const chunk = await this.nextChunk();
    if (chunk === undefined) return undefined;
    this.unread(chunk.subarray(1));
    return chunk[0];
  }

  /** Returns the next bytes. Throws at the end. */
  async take(length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; at++) {
      const byte = await this.nextByte();
      if (byte === undefined) throw new Error(UNEXPECTED_END);
      bytes[at] = byte;
    }
    return bytes;
  }
}

/** The header flags of gzip (RFC 1952 §2.3.1) that announce more fields. */
const FHCRC = 2;
const FEXTRA = 4;
const FNAME = 8;
const FCOMMENT = 16;
const DEFLATE = 8;

async function skipString(reader: ByteReader): Promise<void> {
  while ((await reader.take(1))[0] !== 0);
}

/** Reads a member header after its two magic bytes. */
async function skipGzipHeader(reader: ByteReader): Promise<void> {
  const header = await reader.take(8);
  if (header[0] !== DEFLATE) throw new Error('unknown compression method');
  const flags = header[1]!;
  if (flags & FEXTRA) await reader.take((await reader.take(2)).readUInt16LE());
  if (flags & FNAME) await skipString(reader);
  if (flags & FCOMMENT) await skipString(reader);
  if (flags & FHCRC) await reader.take(2);
}

/** Yields the data of one member, and checks its trailer. */
async function* inflateMember(reader: ByteReader): AsyncGenerator<Buffer> {
  await skipGzipHeader(reader);
  const inflater = new Decompressor(zlib().createInflateRaw({ chunkSize: OUTPUT_BYTES }));
  let crc = 0;
  let length = 0;
  async function* check<Result>(parts: AsyncGenerator<Buffer, Result>): AsyncGenerator<Buffer, Result> {
    for (;;) {
      const { value, done } = await parts.next();
      if (done === true) return value;
      crc = zlib().crc32(value, crc);
      length += value.length;
      yield value;
    }
  }
  try {
    for (let hasEnded = false; !hasEnded; ) {
      const chunk = await reader.nextChunk();
      if (chunk === undefined) {
        yield* check(inflater.end());
        break;
      }
      const used = yield* check(inflater.write(chunk));
      hasEnded = used < chunk.length;
      if (hasEnded) reader.unread(chunk.subarray(used));
    }
  } finally {
    inflater.destroy();
  }
  const trailer = await reader.take(8);
  if (trailer.readUInt32LE(0) !== crc) throw new Error('incorrect data check');
  if (trailer.readUInt32LE(4) !== length % 2 ** 32) throw new Error('incorrect length check');
}

/**
 * Yields the data of a gzip file: members (RFC 1952 §2.2), with any number of zero bytes after them as padding.
 *
 * zlib's own gunzip drops the last output before garbage, so the members are parsed here and only inflated by zlib.
 *
 * @throws Error if the bytes are damaged or incomplete, after yielding the data before that
 */
async function* gunzip(source: ByteSource): AsyncGenerator<Buffer> {
  const reader = new ByteReader(source);
  while (await reader.skipZeros()) {
    if ((await reader.nextByte()) !== 0x1f || (await reader.nextByte()) !== 0x8b) {
      throw new Error('the gzip data is followed by bytes that are not gzip');
    }
    yield* inflateMember(reader);
  }
}

/** The versions of Node that support zstd. */
export const ZSTD_NODE_VERSIONS = '22.15, 23.8 or later';

/**
 * Yields the data of one zstd frame, whose magic number is next. A decompressor gets no byte after the end of its frame: some
 * versions of Node ignore further frames, and frames that are cut off.
 */
async function* unzstdFrame(reader: ByteReader, createDecompressor: () => Transform & Zlib): AsyncGenerator<Buffer> {
  const end = new ZstdFrameEnd();
  const decompressor = new Decompressor(createDecompressor());
  try {
    while (!end.isReached) {
      const chunk = await reader.nextChunk();
      if (chunk === undefined) throw new Error(UNEXPECTED_END);
      const length = end.add(chunk);
      if (length < chunk.length) reader.unread(chunk.subarray(length));
      yield* decompressor.write(chunk.subarray(0, length));
    }
    yield* decompressor.end();
  } finally {
    decompressor.destroy();
  }
}

/**
 * Yields the data of a zstd file, one or more frames (RFC 8878 §3.1).
 *
 * @throws AtlasError E_BAD_INPUT if this version of Node does not support zstd; Error as {@link gunzip} does
 */
async function* unzstd(source: ByteSource): AsyncGenerator<Buffer> {
  // A function of newer versions of Node.
  const { createZstdDecompress } = zlib() as { createZstdDecompress?: () => Transform & Zlib };
  if (createZstdDecompress === undefined) {
    throw new AtlasError(
      'E_BAD_INPUT',
      `${source.name} is compressed with zstd, which Node ${process.versions.node} does not support; use Node ` +
        `${ZSTD_NODE_VERSIONS}, or decompress it first, as in: zstd -dc FILE | ipatlas …`,
    );
  }
  const reader = new ByteReader(source);
  for (;;) {
    const chunk = await reader.nextChunk();
    if (chunk === undefined) return;
    reader.unread(chunk);
    yield* unzstdFrame(reader, createZstdDecompress);
  }
}

export type Compression = 'gzip' | 'zstd';

/** Produces the next chunk while the caller processes the current one. */
async function* readAhead(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  for (let next = chunks.next(); ; ) {
    const { value, done } = await next;
    if (done === true) return;
    next = chunks.next();
    next.catch(() => {}); // awaited above, unless the caller stops
    yield value;
  }
}

/** Yields the decompressed data of a source. Throws as the functions above do. */
export function decompress(source: ByteSource, compression: Compression): AsyncIterable<Uint8Array> {
  return readAhead(compression === 'gzip' ? gunzip(source) : unzstd(source));
}
