/** Opens the range file of a release for an enrichment. */
import type { Database } from '../database/database.js';
import { openRanges } from '../database/origin.js';
import { withConfidence } from '../rangefile/confidence.js';
import type { RangeFile } from '../rangefile/reader.js';
import type { Addable } from './members.js';

/**
 * Opens the range file of a release.
 *
 * @param dir of the release, or the path of the seed
 * @param add what is added to the records
 * @param allocate returns the memory to read the file into, see {@link openRanges}
 * @throws AtlasError E_USAGE if the confidence is added and the release has none; the errors of opening a release
 */
export function openForResults(dir: string, add: readonly Addable[], allocate?: (bytes: number) => Buffer): RangeFile {
  const { file } = openRanges(dir, allocate);
  return add.includes('confidence') ? withConfidence(file) : file;
}

/** The range file of each database that has enrichers; a database that follows its directory changes its release. */
const opened = new WeakMap<Database, { dir: string; file: RangeFile }>();

/** Opens the range file of a database once for all of its enrichers. The database may be closed. Throws as {@link openForResults}. */
export function rangesOfDatabase(database: Database, add: readonly Addable[]): RangeFile {
  const { dir } = database;
  let entry = opened.get(database);
  if (entry?.dir !== dir) {
    entry = { dir, file: openForResults(dir, []) };
    opened.set(database, entry);
  }
  return add.includes('confidence') ? withConfidence(entry.file) : entry.file;
}
