/** Writes an export to a file. */
import { writeError } from '../errors.js';
import { type Pieces, replaceFile } from '../files.js';

/**
 * Writes a file atomically; a device or a named pipe is written in place.
 *
 * @returns bytes written
 * @throws AtlasError E_OUTPUT if the path cannot be written, E_DISK if the disk is full or fails
 */
export function writeFile(path: string, pieces: Pieces): number {
  try {
    return replaceFile(path, pieces);
  } catch (error) {
    throw writeError(path, error);
  }
}
