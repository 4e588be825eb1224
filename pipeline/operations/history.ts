/** Adds publications to the archive of a data directory, see src/history. */
import { readManifest } from '../../src/database/release.js';
import { openReleaseNetworks, openReleaseRanges } from '../../src/database/release-files.js';
import { openArchive } from '../../src/history/archive.js';
import type { EntryAbout } from '../../src/history/entry.js';
import { COUNTRIES, NETWORKS } from '../../src/history/partition.js';
import { answersOf, prepareEntry, pruneHistory, settle } from '../../src/history/write.js';

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
  const networks = days === 0 ? undefined : openReleaseNetworks(dir, manifest);
  const countries = days === 0 ? undefined : openReleaseRanges(dir).file;
  prepareEntry(dataDir, COUNTRIES, { ...publication, answers: countries && answersOf(countries) });
  prepareEntry(dataDir, NETWORKS, { ...publication, answers: networks && answersOf(networks) });
  const result = switchTo();
  settle(dataDir);
  if (days > 0) {
    pruneHistory(openArchive(dataDir), days, now);
    pruneHistory(openArchive(dataDir, NETWORKS), days, now);
  }
  return result;
}

/** Returns whether the last publication of a data directory was added to its archive. */
export function keepsHistory(dataDir: string): boolean {
  const last = openArchive(dataDir).entries.at(-1);
  return last !== undefined && last.origin === 'own' && last.kind !== 'gap';
}
