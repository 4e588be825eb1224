/** Where an export goes: a file that is there whole or not at all, or a stream that may be slower than we are. */
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { AtlasError, messageOf } from '../errors.js';

export type Pieces = Iterable<string | Uint8Array>;

/** Writes to a stream, waiting where its reader is slower. */
export async function writeToStream(pieces: Pieces, stream: Writable): Promise<void> {
  for (const piece of pieces) if (!stream.write(piece)) await once(stream, 'drain');
}

/** Writes all of a buffer; the system may take a part at a time. */
function writeAll(handle: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
}

function writePieces(handle: number, pieces: Pieces): number {
  let total = 0;
  for (const piece of pieces) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece, 'utf8') : piece;
    writeAll(handle, bytes);
    total += bytes.length;
  }
  return total;
}

/** Writes under another name beside the file, flushes, and renames: a reader sees the old file or the new one. */
function replaceFile(path: string, pieces: Pieces): number {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
  const handle = openSync(temporary, 'w');
  try {
    const total = writePieces(handle, pieces);
    fsyncSync(handle);
    closeSync(handle);
    renameSync(temporary, path);
    return total;
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Writes to what is no plain file, such as a device or a named pipe. It must not be replaced. */
function writeInPlace(path: string, pieces: Pieces): number {
  const handle = openSync(path, 'w');
  try {
    return writePieces(handle, pieces);
  } finally {
    closeSync(handle);
  }
}

/**
 * Writes a file. What is there is replaced in one step; where it is a symbolic link, the file it names is.
 *
 * @returns bytes written
 * @throws AtlasError E_USAGE where it cannot be written
 */
export function writeFile(path: string, pieces: Pieces): number {
  try {
    const there = statSync(path, { throwIfNoEntry: false });
    if (there === undefined) return replaceFile(path, pieces);
    return there.isFile() ? replaceFile(realpathSync(path), pieces) : writeInPlace(path, pieces);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_USAGE', `${path} cannot be written: ${messageOf(error)}`, { cause: error });
  }
}
