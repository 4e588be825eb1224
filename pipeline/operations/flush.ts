/** Flushes files and folders to disk. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Flushes the content of a file, or the names in a folder, to the disk. */
export function flush(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
