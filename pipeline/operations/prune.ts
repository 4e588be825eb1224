/** Removes old releases, and cached files that no release needs. */
import { join } from 'node:path';
import {
  currentReleaseId,
  keptReleaseDirs,
  RELEASES_DIR,
  readManifest,
  releaseIds,
} from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { rename } from '../../src/files.js';
import { isHeld } from '../../src/system.js';
import { pruneCache } from '../fetching/cache.js';
import { rowsKey } from '../source-formats/stored-rows.js';

/**
 * Removes all but the newest releases. The current one is always kept.
 *
 * @param workDir on the same file system, removed later
 * @param keep number of releases to keep, the current one included
 * @returns the number of removed releases. On Windows, one of which a reader has a file open stays until a later build
 */
export function removeOldReleases(dataDir: string, workDir: string, keep: number): number {
  const current = currentReleaseId(dataDir);
  const others = releaseIds(dataDir).filter((id) => id !== current);
  const old = others.slice(Math.max(0, keep - 1));
  // Moved first: a process that is killed must not leave half a release among the intact ones.
  const removed = old.filter((id) => {
    try {
      rename(join(dataDir, RELEASES_DIR, id), join(workDir, `old-${id}`));
      return true;
    } catch (error) {
      if (isHeld(error)) return false;
      throw error;
    }
  });
  return removed.length;
}

/**
 * Removes the cached files that no release refers to. Releases that are kept, refused ones included, can still be
 * explained afterwards.
 *
 * @returns the number of removed files
 */
export async function removeUnusedFiles(dataDir: string): Promise<number> {
  const hashes = new Set<string>();
  const rows = new Set<string>();
  for (const dir of keptReleaseDirs(dataDir)) {
    try {
      const { inputs, overrides, labels } = readManifest(dir);
      for (const { sha256 } of [...inputs, ...(labels ? [labels] : [])].flatMap(({ files }) => files))
        hashes.add(sha256);
      if (overrides !== undefined) hashes.add(overrides.sha256);
      for (const input of inputs) rows.add(rowsKey(input));
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error; // a damaged release cannot be explained anyway
    }
  }
  return (await pruneCache(dataDir, hashes, rows)).removed;
}
