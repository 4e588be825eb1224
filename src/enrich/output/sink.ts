/** Writes bytes to files, pipes and terminals. */
import { write, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { net } from '../../builtins.js';
import { systemErrorCode } from '../../errors.js';
import { type FilePart, writePart } from '../../file-part.js';
import { isTerminal, standardStat } from '../../standard-streams.js';

/** Receives bytes in order. */
export interface ByteSink {
  /**
   * @param bytes must not change until the promise resolves; then all of them are written
   * @throws system errors, such as `EPIPE` if the reader of a pipe has closed it
   */
  write(bytes: Uint8Array): Promise<void> | void;
  /** Reserves the place of the next bytes in a regular file, so that another thread can write them there. */
  place?: ((bytes: Uint8Array) => PlacedBytes) | undefined;
}

export interface PlacedBytes extends FilePart {
  /** Writes the bytes in this thread, if the other one could not. Throws as `write` does. */
  writeHere(): void;
}

/** Writes in libuv's thread pool. Returns the number of bytes written, undefined if a non-blocking descriptor is full. */
function writeSome(fd: number, bytes: Uint8Array): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, bytes.length, null, (error, written) => {
      if (error === null) resolve(written);
      else if (systemErrorCode(error) === 'EAGAIN') resolve(undefined);
      else reject(error);
    });
  });
}

function writeToStream(stream: Writable, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function streamOf(fd: number): Writable {
  const stream = fd === 1 ? process.stdout : new (net().Socket)({ fd, readable: false, writable: true });
  return stream.on('error', () => {}); // each write reports its error
}

/** Creates a sink for a regular file that nothing was written to. The descriptor is not closed. */
export function newFileSink(fd: number): ByteSink & Required<Pick<ByteSink, 'place'>> {
  let position = 0;
  function place(bytes: Uint8Array): PlacedBytes {
    const part = { fd, position, length: bytes.length };
    position += bytes.length;
    return { ...part, writeHere: () => writePart(part, bytes) };
  }
  return { place, write: (bytes) => place(bytes).writeHere() };
}

/**
 * Creates a sink for an open file, pipe, socket or terminal. The descriptor is not closed.
 *
 * A pipe blocks a thread of the pool until its reader takes the bytes; meanwhile this thread goes on. A stream would write
 * only when the event loop is free, which keeps a fast reader waiting. Only if another process made the descriptor
 * non-blocking, a stream waits until it can be written.
 */
export function fileSink(fd: number): ByteSink {
  const stat = standardStat(fd);
  // Does not wait for a reader, so it is written in this thread: another one would take longer.
  const isImmediate = stat?.isFile() === true || (stat?.isCharacterDevice() === true && !isTerminal(fd));
  let stream: Writable | undefined;
  return {
    async write(bytes) {
      for (let done = 0; done < bytes.length; ) {
        const rest = bytes.subarray(done);
        if (isImmediate) {
          done += writeSync(fd, rest);
          continue;
        }
        const written = stream === undefined ? await writeSome(fd, rest) : undefined;
        if (written === undefined) {
          stream ??= streamOf(fd);
          await writeToStream(stream, rest);
          return;
        }
        done += written;
      }
    },
  };
}
