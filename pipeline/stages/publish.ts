/**
 * Stage `publish`: makes a finished release the current one.
 *
 * Everything is written and flushed under another name first. Then one rename moves the folder, and one rename replaces
 * the link, or the file that takes its place on Windows. If the process is killed between any two steps, `current` names a
 * complete release: the old or the new one.
 */
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  currentReleaseId,
  MANIFEST_FILE,
  type Manifest,
  MIRROR_FILE,
  REFUSED_DIR,
  RELEASES_DIR,
  REPORT_FILE,
  readManifest,
} from '../../src/database/release.js';
import { verifyWithReport } from '../../src/database/verify.js';
import { isAtlasError, orElse } from '../../src/errors.js';
import { flush, makeFolder, rename } from '../../src/files.js';
import { switchCurrent } from '../operations/current-link.js';
import { type PublicationHistory, recordPublication } from '../operations/history.js';
import { removeOldReleases, removeUnusedFiles } from '../operations/prune.js';
import type { FinishedRelease, StageContext, StageResult } from '../stage.js';

/** Returns the manifest of a release, or undefined if the release is damaged. */
function verifiedManifest(dir: string): Manifest | undefined {
  return orElse(() => verifyWithReport(dir).manifest, isAtlasError, undefined);
}

/** Returns the files of a release with their hashes, but for the mirror: another version of SQLite writes other bytes for the same content. */
function contentOf({ outputs }: Manifest): string {
  return JSON.stringify(outputs.map(({ name, sha256 }) => (name === MIRROR_FILE ? name : [name, sha256])).sort());
}

/**
 * Moves the release to its folder in `releases/`.
 *
 * If the folder has a whole release of the same id and content, its files are kept, because a folder cannot be replaced in one step
 * and `current` may name it: only its manifest, which tells who forced the release, and its report are replaced, and the mirror is
 * listed as it is. If it is current, its report stays, which compares it with the release before. A release that was pulled before its labels were published gets the other files as well, the manifest last; if
 * the process is killed meanwhile, the next pull finds the mirror damaged and replaces it.
 */
function moveIntoPlace(release: FinishedRelease, releases: string, workDir: string): void {
  const target = join(releases, release.id);
  if (statSync(target, { throwIfNoEntry: false }) !== undefined) {
    const present = verifiedManifest(target);
    if (present !== undefined) {
      const manifest = readManifest(release.dir);
      let names = [REPORT_FILE, MANIFEST_FILE];
      if (contentOf(present) === contentOf(manifest)) {
        const { outputs, forced = manifest.forced } = present;
        const isCurrent = currentReleaseId(dirname(releases)) === release.id;
        const kept = { ...manifest, outputs, ...(isCurrent && forced && { forced }) };
        writeFileSync(join(release.dir, MANIFEST_FILE), `${JSON.stringify(kept, null, 2)}\n`);
        if (isCurrent) names = [MANIFEST_FILE];
      } else names = [...manifest.outputs.map(({ name }) => name), ...names];
      for (const name of names) {
        const path = join(release.dir, name);
        if (!existsSync(path)) continue;
        flush(path);
        rename(path, join(target, name));
      }
      const listed = manifest.outputs.map(({ name }) => name);
      for (const { name } of present.outputs) if (!listed.includes(name)) rmSync(join(target, name), { force: true });
      flush(target);
      return;
    }
    rename(target, join(workDir, 'damaged'));
  }
  for (const name of readdirSync(release.dir)) flush(join(release.dir, name));
  flush(release.dir);
  rename(release.dir, target);
  flush(releases);
}

/**
 * The stage.
 *
 * @param keep number of releases to keep, the current one included
 * @param history how the publication enters the archive
 */
export async function publish(
  release: FinishedRelease,
  { dataDir, workDir, note }: StageContext,
  keep: number,
  history: PublicationHistory,
): Promise<StageResult<string>> {
  const releases = join(dataDir, RELEASES_DIR);
  makeFolder(releases);
  moveIntoPlace(release, releases, workDir);
  const dir = join(releases, release.id);
  const aside = recordPublication(dataDir, dir, history, () => switchCurrent(dataDir, release.id));
  if (aside !== undefined) note(`"current" was no symbolic link to a release; what it was is now ${aside}`);
  // A release that was refused before may be published by force now.
  rmSync(join(releases, REFUSED_DIR, release.id), { recursive: true, force: true });
  const removed = removeOldReleases(dataDir, workDir, keep);
  const removedFromCache = await removeUnusedFiles(dataDir);
  return { output: release.id, counts: { release: release.id, removed, removed_from_cache: removedFromCache } };
}
