/** Where bytes come from: files and standard input, unpacked where they are gzip. */
import { closeSync, constants, fstatSync, openSync, read, readSync, statSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { isatty, ReadStream as TerminalStream } from 'node:tty';
import { createGunzip } from 'node:zlib';
import { AtlasError, messageOf, systemErrorCode } from '../../errors.js';

/** Bytes that are pulled by whoever needs them, into memory that is theirs. */
export interface ByteSource {
  /** What messages call it: the path, or `standard input`. */
  readonly name: string;
  /** Bytes there are to take, where that is known beforehand (a file's size). */
  readonly size: number | undefined;
  /** Bytes taken so far, before decompression. */
  readonly taken: number;
  /**
   * Reads what is there, waiting for at least one byte.
   *
   * @param target receives the bytes from its start on; at least one byte long
   * @returns how many bytes, 0 at the end
   * @throws AtlasError E_BAD_INPUT where the bytes cannot be read or unpacked
   */
  read(target: Uint8Array): Promise<number>;
  close(): Promise<void>;
}

const STDIN = 'standard input';

function unreadable(name: string, error: unknown): AtlasError {
  return new AtlasError('E_BAD_INPUT', `${name} cannot be read: ${messageOf(error)}`, { cause: error });
}

/** Bytes of a regular file that are read before signals and timers get their turn: a few milliseconds' work. */
const BYTES_A_TURN = 1_048_576;

/** A file whose reads end by themselves: a regular one, or a device such as /dev/zero. */
class FileSource implements ByteSource {
  readonly name: string;
  readonly size: number | undefined;
  taken = 0;
  /** Where signals and timers get their next turn. */
  #nextTurn = 0;
  #closed = false;
  readonly #fd: number;

  constructor(name: string, fd: number, size: number | undefined) {
    this.name = name;
    this.#fd = fd;
    this.size = size;
  }

  async read(target: Uint8Array): Promise<number> {
    // A regular file is read right here: that takes a tenth of what handing it to another thread and back does. Signals and
    // timers get their turn now and then.
    if (this.taken >= this.#nextTurn) {
      this.#nextTurn = this.taken + BYTES_A_TURN;
      await new Promise(setImmediate);
      // Whoever closed it meanwhile waits for nothing; and the descriptor may be another file's by now.
      if (this.#closed) return 0;
    }
    try {
      const bytes = this.size === undefined ? await this.#readAside(target) : readSync(this.#fd, target);
      this.taken += bytes;
      return bytes;
    } catch (error) {
      throw unreadable(this.name, error);
    }
  }

  #readAside(target: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      read(this.#fd, target, 0, target.length, null, (error, bytes) =>
        error === null ? resolve(bytes) : reject(error),
      );
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    closeSync(this.#fd);
  }
}

/** A stream of chunks, such as a pipe, or what comes out of decompression. */
class StreamSource implements ByteSource {
  readonly name: string;
  readonly size: number | undefined;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #takenSoFar: (() => number) | undefined;
  readonly #close: () => void;
  #read = 0;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(
    name: string,
    chunks: AsyncIterable<Uint8Array>,
    details: { size?: number | undefined; taken?: () => number; close?: () => void } = {},
  ) {
    this.name = name;
    this.size = details.size;
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#takenSoFar = details.taken;
    this.#close = details.close ?? (() => {});
  }

  get taken(): number {
    return this.#takenSoFar === undefined ? this.#read : this.#takenSoFar();
  }

  async read(target: Uint8Array): Promise<number> {
    while (this.#chunk.length === 0) {
      let next: IteratorResult<Uint8Array>;
      try {
        next = await this.#chunks.next();
      } catch (error) {
        throw unreadable(this.name, error);
      }
      if (next.done === true) return 0;
      this.#chunk = next.value;
    }
    const bytes = Math.min(target.length, this.#chunk.length);
    target.set(this.#chunk.subarray(0, bytes));
    this.#chunk = this.#chunk.subarray(bytes);
    this.#read += bytes;
    return bytes;
  }

  async close(): Promise<void> {
    this.#close();
  }
}

/**
 * A source over chunks that come from anywhere.
 *
 * @param name what messages call it
 */
export function streamSource(name: string, chunks: AsyncIterable<Uint8Array>): ByteSource {
  return new StreamSource(name, chunks);
}

/** The first two bytes of gzip data (RFC 1952 §2.3.1). */
const GZIP_MAGIC = [0x1f, 0x8b];

/** A source with its first bytes read ahead and given back. */
class PeekedSource implements ByteSource {
  readonly #source: ByteSource;
  #head: Uint8Array;

  constructor(source: ByteSource, head: Uint8Array) {
    this.#source = source;
    this.#head = head;
  }
  get name(): string {
    return this.#source.name;
  }
  get size(): number | undefined {
    return this.#source.size;
  }
  get taken(): number {
    return this.#source.taken;
  }
  async read(target: Uint8Array): Promise<number> {
    if (this.#head.length === 0) return this.#source.read(target);
    const bytes = Math.min(target.length, this.#head.length);
    target.set(this.#head.subarray(0, bytes));
    this.#head = this.#head.subarray(bytes);
    return bytes;
  }
  close(): Promise<void> {
    return this.#source.close();
  }
}

/** The bytes of a source as chunks, for libraries that take streams. */
export async function* chunksOf(source: ByteSource, chunkBytes = 65_536): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafeSlow(chunkBytes);
    const bytes = await source.read(chunk);
    if (bytes === 0) return;
    yield chunk.subarray(0, bytes);
  }
}

/** Packed bytes that are unpacked at a time. What they become has to be held, and is a thousand times as much at worst. */
const PACKED_BYTES = 32_768;

/**
 * Unpacks gzip. What is whole comes out before it fails: as a stream to read from, zlib's would drop what it holds.
 *
 * @throws Error where the bytes are damaged, or end too early
 */
async function* unzipped(packed: ByteSource): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: 262_144 });
  const parts: Buffer[] = [];
  let failure: Error | undefined;
  let wake = (): void => {};
  gunzip.on('data', (part: Buffer) => parts.push(part));
  gunzip.on('error', (error) => {
    failure = error;
  });
  // Comes behind an error, too, when a write is called back no more.
  const closed = new Promise<void>((resolve) => {
    gunzip.on('close', () => {
      resolve();
      wake();
    });
  });
  const chunks = chunksOf(packed, PACKED_BYTES);
  /** Unpacks the next chunk; returns whether there was one. */
  async function step(): Promise<boolean> {
    const { value, done } = await chunks.next();
    if (done === true) {
      gunzip.end();
      await closed;
      return false;
    }
    await new Promise<void>((resolve) => {
      wake = resolve;
      gunzip.write(value, () => resolve());
    });
    return failure === undefined;
  }

  try {
    for (let more = true, next = step(); more; ) {
      more = await next;
      const ready = parts.splice(0);
      // The next chunk is unpacked while this one is dealt with.
      if (more) {
        next = step();
        next.catch(() => {}); // it is awaited above, or nobody wants to know any more
      }
      yield* ready;
    }
    if (failure !== undefined) throw failure;
  } finally {
    gunzip.destroy();
  }
}

/** Unpacks a source where its first bytes say that it is gzip; several gzip members in a row count as one file. */
async function unpacked(source: ByteSource): Promise<ByteSource> {
  const head = new Uint8Array(GZIP_MAGIC.length);
  let bytes = 0;
  while (bytes < head.length) {
    const more = await source.read(head.subarray(bytes));
    if (more === 0) break;
    bytes += more;
  }
  const peeked = new PeekedSource(source, head.subarray(0, bytes));
  if (bytes < head.length || !GZIP_MAGIC.every((byte, index) => head[index] === byte)) return peeked;
  return new StreamSource(source.name, unzipped(peeked), {
    size: source.size,
    taken: () => source.taken,
    close: () => void source.close(),
  });
}

/** A source that looks at its first bytes on the first read only: a pipe's writer may take its time. */
class UnpackingSource implements ByteSource {
  readonly #packed: ByteSource;
  #unpacked: ByteSource | undefined;

  constructor(packed: ByteSource) {
    this.#packed = packed;
  }
  get name(): string {
    return this.#packed.name;
  }
  get size(): number | undefined {
    return this.#packed.size;
  }
  get taken(): number {
    return this.#packed.taken;
  }
  async read(target: Uint8Array): Promise<number> {
    this.#unpacked ??= await unpacked(this.#packed);
    return this.#unpacked.read(target);
  }
  close(): Promise<void> {
    return (this.#unpacked ?? this.#packed).close();
  }
}

/** A pipe, socket or terminal as a stream: a read of one that waits for its writer would keep the process from exiting. */
function streamOf(fd: number): Readable {
  if (fd === 0) return process.stdin;
  return isatty(fd) ? new TerminalStream(fd) : new Socket({ fd, readable: true, writable: false });
}

/** Opens a file. To open a named pipe would wait for its writer, and nothing else would be done meanwhile; reading waits. */
function openFile(path: string): number {
  const { O_RDONLY, O_NONBLOCK } = constants;
  return openSync(path, statSync(path).isFIFO() ? O_RDONLY | O_NONBLOCK : O_RDONLY);
}

/**
 * Opens a file or standard input for reading. gzip is recognized by its first bytes and unpacked.
 *
 * @param path of the file; `-` is standard input
 * @throws AtlasError E_USAGE where there is no such file, E_BAD_INPUT where it cannot be read
 */
export async function openSource(path: string): Promise<ByteSource> {
  const name = path === '-' ? STDIN : path;
  let fd = 0;
  try {
    if (path !== '-') fd = openFile(path);
  } catch (error) {
    const what = systemErrorCode(error) === 'ENOENT' ? 'there is no such file' : messageOf(error);
    throw new AtlasError('E_USAGE', `${path} cannot be opened: ${what}`, { cause: error });
  }
  const stat = fstatSync(fd);
  if (stat.isDirectory()) {
    closeSync(fd);
    throw new AtlasError('E_USAGE', `${path} is a directory; name its files`);
  }
  if (stat.isFIFO() || stat.isSocket() || isatty(fd)) {
    const stream = streamOf(fd);
    return new UnpackingSource(new StreamSource(name, stream, { close: () => stream.destroy() }));
  }
  return new UnpackingSource(new FileSource(name, fd, stat.isFile() ? stat.size : undefined));
}
