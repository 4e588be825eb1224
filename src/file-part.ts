/** A part of a regular file. Threads can read and write different parts at the same time. */
import { readSync, writeSync } from 'node:fs';

export interface FilePart {
  fd: number;
  /** Offset and length in bytes. */
  position: number;
  length: number;
}

/**
 * Reads a part of a file to the start of `target`.
 *
 * @returns whether the file has all bytes of the part
 * @throws system errors
 */
export function readPart({ fd, position, length }: FilePart, target: Uint8Array): boolean {
  for (let done = 0; done < length; ) {
    const bytes = readSync(fd, target, done, length - done, position + done);
    if (bytes === 0) return false;
    done += bytes;
  }
  return true;
}

/** Writes the start of `bytes` as a part of a file. Throws system errors. */
export function writePart({ fd, position, length }: FilePart, bytes: Uint8Array): void {
  for (let done = 0; done < length; ) done += writeSync(fd, bytes, done, length - done, position + done);
}
