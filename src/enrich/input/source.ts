/** Sources of bytes: files, pipes and standard input. */
import { closeSync, constants, createReadStream, openSync, read, readSync, statSync } from 'node:fs';
import type { ConnectOpts, Socket, SocketConstructorOpts } from 'node:net';
import { net, tty } from '../../builtins.js';
import { AtlasError, causedError, fileAdvice, messageOf, misuse, systemErrorCode } from '../../errors.js';
import { type FilePart, readPart } from '../../file-part.js';
import { inputName, isTerminal, STANDARD_FD, standardStat } from '../../standard-streams.js';

/** Bytes that the caller reads into its own memory. */
export interface ByteSource {
  /** Name in messages: the path, or `standard input`. */
  readonly name: string;
  /** Size of the input in bytes before decompression, if known (a file's size). */
  readonly size: number | undefined;
  /** Bytes read so far, before decompression. */
  readonly bytesRead: number;
  /**
   * Reads the bytes that are available, and waits for at least one.
   *
   * @param target receives the bytes at its start; at least one byte long
   * @returns number of bytes, 0 at the end
   * @throws AtlasError E_BAD_INPUT if the bytes cannot be read or decompressed
   */
  read(target: Uint8Array): Promise<number>;
  /**
   * Takes the next lines of a regular file without reading them, so that another thread can.
   *
   * @param unread number of bytes that were read last, and are taken as well
   * @param maxBytes most bytes to take
   * @returns where they are; undefined if the next bytes must be read, as at the end of the file
   * @throws AtlasError E_BAD_INPUT as `read` does
   */
  takeLines?(unread: number, maxBytes: number): Promise<FilePart | undefined>;
  close(): Promise<void>;
}

function readError(name: string, error: unknown): AtlasError {
  if (error instanceof AtlasError) return error;
  return causedError('E_BAD_INPUT', `${name} cannot be read`, error, 'repair it, or get it again');
}

/**
 * Reads lines that `takeLines` returned.
 *
 * @param name of the input
 * @throws AtlasError E_BAD_INPUT if they cannot be read, or the file has become shorter
 */
export function readStretch(name: string, part: FilePart, target: Uint8Array): void {
  try {
    if (!readPart(part, target)) throw new Error('it has become shorter while it was read');
  } catch (error) {
    throw readError(name, error);
  }
}

/** Where the last newline of a stretch is searched: a line that is longer is read as usual. */
const TAIL_BYTES = 4096;
const NEWLINE = 10;

/** Bytes of a regular file read before signals and timers are handled: a few milliseconds' work. */
const BYTES_PER_TURN = 1_048_576;

/** A file whose reads always complete: a regular file, or a device such as /dev/zero. */
class FileSource implements ByteSource {
  readonly name: string;
  readonly size: number | undefined;
  bytesRead = 0;
  /** Number of bytes after which signals and timers are handled. */
  #nextTurn = 0;
  #isClosed = false;
  readonly #fd: number;
  /** The last bytes of a stretch. */
  #tail: Buffer | undefined;

  constructor(name: string, fd: number, size: number | undefined) {
    this.name = name;
    this.#fd = fd;
    this.size = size;
  }

  async read(target: Uint8Array): Promise<number> {
    await this.#giveTurn();
    // The descriptor may belong to another file by now.
    if (this.#isClosed) return 0;
    try {
      // A regular file is read in this thread, which takes a tenth of the time of a read in the thread pool.
      const bytes =
        this.size === undefined
          ? await this.#readInThreadPool(target)
          : readSync(this.#fd, target, 0, target.length, this.#isOpenedHere ? this.bytesRead : null);
      this.bytesRead += bytes;
      return bytes;
    } catch (error) {
      throw readError(this.name, error);
    }
  }

  async takeLines(unread: number, maxBytes: number): Promise<FilePart | undefined> {
    const position = this.bytesRead - unread;
    const isInside = this.size !== undefined && position + maxBytes <= this.size;
    if (!this.#isOpenedHere || !isInside) return undefined;
    await this.#giveTurn();
    if (this.#isClosed) return undefined;
    this.#tail ??= Buffer.allocUnsafeSlow(TAIL_BYTES);
    const length = Math.min(TAIL_BYTES, maxBytes);
    const tailAt = position + maxBytes - length;
    try {
      if (!readPart({ fd: this.#fd, position: tailAt, length }, this.#tail)) return undefined;
    } catch (error) {
      throw readError(this.name, error);
    }
    const newline = this.#tail.subarray(0, length).lastIndexOf(NEWLINE);
    if (newline < 0) return undefined;
    this.bytesRead = tailAt + newline + 1;
    return { fd: this.#fd, position, length: this.bytesRead - position };
  }

  /** Whether this source opened the file, at its beginning. Standard input may be anywhere in its file. */
  get #isOpenedHere(): boolean {
    return this.#fd !== STANDARD_FD.input;
  }

  /** Lets signals and timers be handled from time to time. */
  async #giveTurn(): Promise<void> {
    if (this.bytesRead < this.#nextTurn) return;
    this.#nextTurn = this.bytesRead + BYTES_PER_TURN;
    await new Promise(setImmediate);
  }

  #readInThreadPool(target: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      read(this.#fd, target, 0, target.length, null, (error, bytes) =>
        error === null ? resolve(bytes) : reject(error),
      );
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // Descriptor 0 must stay open: the next file that is opened would get its number.
    if (this.#isOpenedHere) closeSync(this.#fd);
  }
}

/** A stream of chunks, such as a terminal or the output of decompression. */
class StreamSource implements ByteSource {
  readonly name: string;
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** The source that the chunks are derived from, if any. */
  readonly #origin: ByteSource | undefined;
  readonly #close: () => Promise<void> | void;
  #bytesRead = 0;
  /** The rest of the last chunk. */
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(
    name: string,
    chunks: AsyncIterable<Uint8Array>,
    origin?: ByteSource,
    close: () => Promise<void> | void = () => {},
  ) {
    this.name = name;
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#origin = origin;
    this.#close = close;
  }

  get size(): number | undefined {
    return this.#origin?.size;
  }

  get bytesRead(): number {
    return this.#origin?.bytesRead ?? this.#bytesRead;
  }

  async read(target: Uint8Array): Promise<number> {
    while (this.#chunk.length === 0) {
      let next: IteratorResult<Uint8Array>;
      try {
        next = await this.#chunks.next();
      } catch (error) {
        throw readError(this.name, error);
      }
      if (next.done === true) return 0;
      this.#chunk = next.value;
    }
    const bytes = Math.min(target.length, this.#chunk.length);
    target.set(this.#chunk.subarray(0, bytes));
    this.#chunk = this.#chunk.subarray(bytes);
    this.#bytesRead += bytes;
    return bytes;
  }

  async close(): Promise<void> {
    await this.#close();
  }
}

/** Creates a source of chunks from anywhere. */
export function streamSource(name: string, chunks: AsyncIterable<Uint8Array>): ByteSource {
  return new StreamSource(name, chunks);
}

/** Creates a source of chunks derived from another source, such as its decompressed bytes. Closing it closes the other. */
export function derivedSource(origin: ByteSource, chunks: AsyncIterable<Uint8Array>): ByteSource {
  return new StreamSource(origin.name, chunks, origin, () => origin.close());
}

/** Yields the bytes of a source in chunks of at most `chunkBytes`. */
export async function* chunksOf(source: ByteSource, chunkBytes: number): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafeSlow(chunkBytes);
    const bytes = await source.read(chunk);
    if (bytes === 0) return;
    yield chunk.subarray(0, bytes);
  }
}

/** Bytes read from a pipe at once: as many as a pipe of Linux holds (pipe(7)). */
const PIPE_BYTES = 65_536;

/**
 * A pipe or socket. It is read into one buffer again and again: a stream would allocate a buffer for each read, of which 20 MB
 * pile up before they are collected. It is not read in the thread pool, where a waiting read would keep the process alive.
 */
class PipeSource implements ByteSource {
  readonly name: string;
  readonly size = undefined;
  bytesRead = 0;
  readonly #buffer = Buffer.allocUnsafeSlow(PIPE_BYTES);
  readonly #socket: Socket;
  /** The bytes in the buffer that were not returned yet. */
  #rest = this.#buffer.subarray(0, 0);
  #hasEnded = false;
  #error: Error | undefined;
  /** Called when bytes, the end or an error arrive. */
  #onChange: () => void = () => {};

  constructor(name: string, fd: number) {
    this.name = name;
    // The types of Node 20 have `onread` among the options of `connect` only.
    const options: SocketConstructorOpts & ConnectOpts = {
      fd,
      readable: true,
      writable: false,
      onread: {
        buffer: this.#buffer,
        callback: (bytes) => {
          this.#rest = this.#buffer.subarray(0, bytes);
          this.#onChange();
          // Pauses the socket until the buffer is free.
          return false;
        },
      },
    };
    this.#socket = new (net().Socket)(options);
    this.#socket.on('error', (error) => {
      this.#error = error;
    });
    // After an error, and after the end, too.
    this.#socket.on('close', () => {
      this.#hasEnded = true;
      this.#onChange();
    });
  }

  async read(target: Uint8Array): Promise<number> {
    while (this.#rest.length === 0) {
      if (this.#error !== undefined) throw readError(this.name, this.#error);
      if (this.#hasEnded) return 0;
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
        this.#socket.resume();
      });
    }
    const bytes = Math.min(target.length, this.#rest.length);
    target.set(this.#rest.subarray(0, bytes));
    this.#rest = this.#rest.subarray(bytes);
    this.bytesRead += bytes;
    return bytes;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
  }
}

/** Opens a file. A named pipe is opened without waiting for its writer, which would block this thread; reads wait. */
function openFile(path: string): number {
  const { O_RDONLY, O_NONBLOCK } = constants;
  return openSync(path, statSync(path).isFIFO() ? O_RDONLY | O_NONBLOCK : O_RDONLY);
}

/** Returns the error for an input that cannot be opened. */
export function openError(path: string, error: unknown): AtlasError {
  const reason = systemErrorCode(error) === 'ENOENT' ? 'the file does not exist' : messageOf(error);
  return new AtlasError('E_USAGE', `${path} cannot be read: ${reason}; ${fileAdvice(error)}`, { cause: error });
}

/**
 * Opens a file or standard input for reading.
 *
 * @param path a file; `-` is standard input
 * @throws AtlasError E_USAGE if the file does not exist or cannot be opened
 */
export function openSource(path: string): ByteSource {
  const name = inputName(path);
  let fd = STANDARD_FD.input;
  try {
    if (path !== '-') fd = openFile(path);
  } catch (error) {
    throw openError(path, error);
  }
  const stat = standardStat(fd);
  if (stat?.isDirectory()) {
    closeSync(fd);
    throw misuse(`${path} is a directory; name its files`);
  }
  if (isTerminal(fd)) {
    const stream = fd === 0 ? process.stdin : new (tty().ReadStream)(fd);
    return new StreamSource(name, stream, undefined, () => void stream.destroy());
  }
  if (stat?.isFIFO() || stat?.isSocket()) {
    // Bun's Socket takes no descriptor, and would end at once without an error.
    return process.versions.bun === undefined
      ? new PipeSource(name, fd)
      : streamSource(name, createReadStream('', { fd }));
  }
  return new FileSource(name, fd, stat?.isFile() ? stat.size : undefined);
}
