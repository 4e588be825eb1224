/** Adds publications to the archive of a data directory, see src/history. */
import { join } from 'node:path';
import { CHANGE_FILE } from '../../src/database/age.js';
import { currentReleaseId, RELEASES_DIR, readManifest } from '../../src/database/release.js';
import { openReleasePartition, openReleaseRanges } from '../../src/database/release-files.js';
import { DAY_MS, dayOf, startOfDay, today } from '../../src/day.js';
import { AtlasError } from '../../src/errors.js';
import { replaceFile } from '../../src/files.js';
import { type Archive, isOfFuture, openArchive } from '../../src/history/archive.js';
import { measureChange } from '../../src/history/change.js';
import type { Answers, EntryAbout } from '../../src/history/entry.js';
import { answersOf, prepareEntry, pruneHistory, removeOfFuture, settlePublication } from '../../src/history/write.js';
import { archivedPartitions, COUNTRIES } from '../../src/rangefile/partitions.js';
import { withDataDir } from './data-dir.js';

/** How a publication enters the archive. */
export interface PublicationHistory {
  event: Exclude<EntryAbout['event'], 'import'>;
  /** Days of own publications to keep; 0 for no history. */
  days: number;
  /** The day that it counts from, instead of today; `YYYY-MM-DD`. A later one counts as today. */
  asOf?: string | undefined;
}

/**
 * Makes a release the current one and adds its answers to the archive. If the process is killed, both have happened or
 * neither.
 *
 * @param dir of the release
 * @param switchTo makes it the current one, in one step
 * @returns what `switchTo` returns
 * @throws AtlasError E_DAMAGED for a build or pull if the last entry is of the future: this one would have to follow it
 */
export function recordPublication<Result>(
  dataDir: string,
  dir: string,
  { event, days, asOf }: PublicationHistory,
  switchTo: () => Result,
): Result {
  const present = Date.now();
  const now = asOf === undefined ? present : Math.min(present, startOfDay(asOf) + (present % DAY_MS));
  settlePublication(dataDir);
  const last = openArchive(dataDir).entries.at(-1);
  if (event !== 'rollback' && days > 0 && last !== undefined && isOfFuture(last)) {
    throw new AtlasError(
      'E_DAMAGED',
      `the last entry in the history of ${dataDir} is of ${dayOf(last.time)}, and the clock says ${today()}; set the clock if it is wrong, else remove what is of the future with "ipatlas history repair"`,
    );
  }
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
  settlePublication(dataDir);
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

/**
 * Removes the entries of the future. The current release then counts from today on, if its entry was one of them.
 *
 * @returns the days of the removed entries, the earliest first
 */
export function repairHistory(dataDir: string): Promise<string[]> {
  return withDataDir(dataDir, async () => {
    settlePublication(dataDir);
    const removed = archivedPartitions().flatMap((partition) => removeOfFuture(openArchive(dataDir, partition)));
    const current = currentReleaseId(dataDir);
    if (current !== undefined && removed.some(({ origin, kind }) => origin === 'own' && kind !== 'gap')) {
      const days = Number.POSITIVE_INFINITY;
      recordPublication(dataDir, join(dataDir, RELEASES_DIR, current), { event: 'build', days }, () => {});
    }
    return [...new Set(removed.map(({ time }) => dayOf(time)))].sort();
  });
}
