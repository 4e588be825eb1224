/**
 * The stage `publish`: a finished release becomes the current one.
 *
 * Everything is written and flushed under another name first; then one rename moves the folder and one rename replaces
 * the link. Killed between any two steps, `current` names a whole release: the old one or the new one.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  CURRENT_LINK,
  currentReleaseId,
  MANIFEST_FILE,
  REFUSED_DIR,
  RELEASES_DIR,
  readManifest,
  refusedIds,
  releaseIds,
} from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError } from '../../src/errors.js';
import { pruneCache } from '../fetching/cache.js';
import type { Stage } from '../stage.js';

/** What publish takes: a verified release, still in the work folder. */
export interface FinishedRelease {
  id: string;
  dir: string;
}

/** Flushes a file's or a folder's content to the disk. */
function flush(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Makes `current` name a release that is in place, in one step. */
export function switchCurrent(dataDir: string, id: string): void {
  const link = join(dataDir, CURRENT_LINK);
  const fresh = join(dataDir, `${CURRENT_LINK}.new`);
  rmSync(fresh, { force: true });
  symlinkSync(join(RELEASES_DIR, id), fresh);
  renameSync(fresh, link);
  flush(dataDir);
}

function isWhole(dir: string): boolean {
  try {
    verifyRelease(dir);
    return true;
  } catch (error) {
    if (error instanceof AtlasError) return false;
    throw error;
  }
}

/**
 * Moves the release's folder to its place. The same id means the same content: a whole one that is there may stay, but for
 * its manifest, which says who forced it.
 */
function moveIntoPlace(release: FinishedRelease, releases: string, workDir: string): void {
  for (const name of readdirSync(release.dir)) flush(join(release.dir, name));
  flush(release.dir);
  const place = join(releases, release.id);
  if (statSync(place, { throwIfNoEntry: false }) !== undefined) {
    if (isWhole(place)) {
      renameSync(join(release.dir, MANIFEST_FILE), join(place, MANIFEST_FILE));
      flush(place);
      return;
    }
    renameSync(place, join(workDir, 'damaged'));
  }
  renameSync(release.dir, place);
  flush(releases);
}

/** Removes all but the newest releases. The current one is always kept. */
function removeOldReleases(dataDir: string, keep: number): number {
  const current = currentReleaseId(dataDir);
  const others = releaseIds(dataDir).filter((id) => id !== current);
  const old = others.slice(Math.max(0, keep - 1));
  for (const id of old) rmSync(join(dataDir, RELEASES_DIR, id), { recursive: true });
  return old.length;
}

/**
 * Removes from the cache what no release refers to any more; those that are kept stay explainable, refused ones included.
 *
 * @returns how many files were removed
 */
export async function pruneStored(dataDir: string): Promise<number> {
  const dirs = [
    ...releaseIds(dataDir).map((id) => join(dataDir, RELEASES_DIR, id)),
    ...refusedIds(dataDir).map((id) => join(dataDir, RELEASES_DIR, REFUSED_DIR, id)),
  ];
  const hashes = new Set<string>();
  for (const dir of dirs) {
    try {
      const { inputs, overrides } = readManifest(dir);
      for (const { sha256 } of inputs.flatMap(({ files }) => files)) hashes.add(sha256);
      if (overrides !== undefined) hashes.add(overrides.sha256);
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error; // a damaged release cannot be explained anyway
    }
  }
  return (await pruneCache(dataDir, hashes)).removed;
}

/** @param keep how many releases stay, the current one included */
export function publishStage(keep: number): Stage<FinishedRelease, string> {
  return {
    name: 'publish',
    run: async (release, { dataDir, workDir }) => {
      const releases = join(dataDir, RELEASES_DIR);
      mkdirSync(releases, { recursive: true });
      moveIntoPlace(release, releases, workDir);
      switchCurrent(dataDir, release.id);
      // It may have been refused before, and forced now.
      rmSync(join(releases, REFUSED_DIR, release.id), { recursive: true, force: true });
      const removed = removeOldReleases(dataDir, keep);
      const removedFromCache = await pruneStored(dataDir);
      return { output: release.id, counts: { release: release.id, removed, removed_from_cache: removedFromCache } };
    },
  };
}
