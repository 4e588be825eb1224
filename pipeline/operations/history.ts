/** Adds publications to the archive of a data directory, see src/history. */
import { join } from 'node:path';
import { CHANGE_FILE } from '../../src/database/age.js';
import { readManifest } from '../../src/database/release.js';
import { openReleasePartition, openReleaseRanges } from '../../src/database/release-files.js';
import { AtlasError } from '../../src/errors.js';
import { replaceFile } from '../../src/files.js';
import { type Archive, openArchive } from '../../src/history/archive.js';
import { measureChange } from '../../src/history/change.js';
import type { Answers, EntryAbout } from '../../src/history/entry.js';
import { answersOf, prepareEntry, pruneHistory, settle } from '../../src/history/write.js';
import { archivedPartitions, COUNTRIES } from '../../src/rangefile/partitions.js';

/** How a publication enters the archive. */
export interface PublicationHistory {
  event: Exclude<EntryAbout['event'], 'import'>;
  /** Days of own publications to keep; 0 for no history. */
  days: number;
}

/**
 * Makes a release the current one and adds its answers to the archive. If the process is killed, both have happened or
 * neither.
 *
 * @param dir of the release
 * @param switchTo makes it the current one, in one step
 * @returns what `switchTo` returns
 */
export function recordPublication<Result>(
  dataDir: string,
  dir: string,
  { event, days }: PublicationHistory,
  switchTo: () => Result,
): Result {
  const now = Date.now();
  settle(dataDir);
  const manifest = readManifest(dir);
  const { id, forced, data_date } = manifest;
  const publication = {
    about: { release: id, event, ...(forced && { forced: true }), ...(data_date !== undefined && { data_date }) },
    days,
    now,
  };
  const countries = days === 0 ? undefined : answersOf(openReleaseRanges(dir).file);
  prepareEntry(dataDir, COUNTRIES, { ...publication, answers: countries });
  for (const partition of archivedPartitions()) {
    if (partition === COUNTRIES) continue;
    const file = days === 0 ? undefined : openReleasePartition(dir, manifest, partition);
    prepareEntry(dataDir, partition, { ...publication, answers: file && answersOf(file) });
  }
  if (countries !== undefined) writeChange(dir, openArchive(dataDir), countries, now);
  const result = switchTo();
  settle(dataDir);
  if (days > 0) {
    for (const partition of archivedPartitions()) pruneHistory(openArchive(dataDir, partition), days, now);
  }
  return result;
}

/** Writes how much has changed into the directory of a release, so that nothing needs the archive to tell what its age means. */
function writeChange(dir: string, archive: Archive, countries: Answers, now: number): void {
  try {
    const change = measureChange(archive, countries, now);
    if (change !== undefined) replaceFile(join(dir, CHANGE_FILE), [Buffer.from(`${JSON.stringify(change)}\n`)]);
  } catch (error) {
    // "ipatlas verify" tells of a damaged entry; a publication does not wait for that.
    if (!(error instanceof AtlasError && error.code === 'E_DAMAGED')) throw error;
  }
}

/** Returns whether the last publication of a data directory was added to its archive. */
export function keepsHistory(dataDir: string): boolean {
  const last = openArchive(dataDir).entries.at(-1);
  return last !== undefined && last.origin === 'own' && last.kind !== 'gap';
}
