/** Opens the range file of a release, or the answers of past days, for an enrichment. */
import { dirname } from 'node:path';
import type { Database } from '../database/database.js';
import { openPartition, openRanges } from '../database/origin.js';
import { currentReleaseId, releaseDir } from '../database/release.js';
import { openReleaseRanges } from '../database/release-files.js';
import { misuse } from '../errors.js';
import { openArchive } from '../history/archive.js';
import { partitionAt, rangesAt } from '../history/day.js';
import type { Answers } from '../history/entry.js';
import { answersOverTime } from '../history/over-time.js';
import { answersOf } from '../history/write.js';
import { withConfidence } from '../rangefile/confidence.js';
import { LABELS, OpenPartitions } from '../rangefile/partitions.js';
import type { RangeFile } from '../rangefile/reader.js';
import { type Addable, addError, isLabel, otherPartitionsOf } from './members.js';
import type { EnrichOptions } from './options.js';
import { queriedMembers } from './query.js';
import type { DayRanges, EnrichRanges } from './ranges.js';

/**
 * Opens the range file of a release.
 *
 * @param dir of the release, or the path of the seed
 * @param options with what is added to the records, or the query
 * @param allocate returns the memory to read the file into, see {@link openRanges}
 * @throws AtlasError E_USAGE if the confidence or a label is added and the release has none; the errors of opening a release
 */
export function openForResults(
  dir: string,
  { add, query }: Pick<EnrichOptions, 'add' | 'query'>,
  allocate?: (bytes: number) => Buffer,
): DayRanges {
  const { manifest, file } = openRanges(dir, allocate);
  const wantsConfidence = add.includes('confidence');
  if (wantsConfidence) file.unread?.read();
  const ranges = wantsConfidence ? { ...withConfidence(file), unread: undefined } : file;
  const queried = queriedMembers(query);
  const others = new OpenPartitions();
  const labels = LABELS.columns!(manifest);
  if (query === undefined) checkLabels(add.filter(isLabel), labels);
  for (const partition of otherPartitionsOf(query === undefined ? add : queried, labels)) {
    // What a query has counted is looked up in the file at the end.
    others.set(partition, openPartition(dir, manifest, partition, query === undefined ? allocate : undefined));
  }
  return { ...ranges, others };
}

/** Refuses labels that a release does not have. @throws AtlasError E_USAGE */
function checkLabels(asked: readonly Addable[], labels: readonly string[] = []): void {
  if (!asked.every((name) => labels.includes(name))) throw addError(asked, labels);
}

/**
 * Opens the answers of the days that options ask for.
 *
 * @returns undefined if they ask for those of the release
 * @throws AtlasError E_USAGE for a day that is not kept, E_DAMAGED for a damaged entry
 */
export function openPast(
  dataDir: string,
  { at, atField, add, query }: Pick<EnrichOptions, 'at' | 'atField' | 'add' | 'query'>,
): EnrichRanges | undefined {
  if (at !== undefined) {
    const { file, date } = rangesAt(dataDir, at);
    const others = new OpenPartitions();
    for (const partition of otherPartitionsOf([...add, ...queriedMembers(query)])) {
      others.set(partition, partitionAt(dataDir, at, partition));
    }
    return { ...file, dates: [date], others };
  }
  if (atField === undefined) return undefined;
  const hasRelease = currentReleaseId(dataDir) !== undefined;
  const current = (): Answers => answersOf(openReleaseRanges(releaseDir(dataDir)).file);
  return answersOverTime(openArchive(dataDir), hasRelease ? current : undefined);
}

/** What was opened of a database for its enrichers; a database that follows its directory changes its release. */
interface Opened {
  dir: string;
  /** Of the release, and of past days by the day, or by `all`, and the partitions that are asked for. */
  file?: RangeFile;
  /** The labels that were asked for, and that a release had: a later one may lack them, and they are null. */
  known: Set<string>;
  past: Map<string, EnrichRanges>;
}
const opened = new WeakMap<Database, Opened>();

/**
 * Opens what options ask for, once for all enrichers of a database. The database may be closed. Throws as {@link openForResults}
 * and {@link openPast}.
 */
export function rangesOfDatabase(
  database: Database,
  options: Pick<EnrichOptions, 'add' | 'at' | 'atField'>,
): EnrichRanges {
  const { dir } = database;
  let entry = opened.get(database);
  if (entry?.dir !== dir) {
    entry = { dir, known: entry?.known ?? new Set(), past: new Map() };
    opened.set(database, entry);
  }
  const { add, at, atField } = options;
  if ((at ?? atField) !== undefined) {
    if (database.isSeed)
      throw misuse('the database that comes with ipatlas has no history; "ipatlas build" begins one');
    const key = [at ?? 'all', ...otherPartitionsOf(add).map(({ name }) => name)].join(' ');
    const past = entry.past.get(key) ?? openPast(dirname(dirname(dir)), options)!;
    entry.past.set(key, past);
    return past;
  }
  entry.file ??= openForResults(dir, { add: [] });
  const ranges = add.includes('confidence') ? withConfidence(entry.file) : entry.file;
  const asked = add.filter(isLabel);
  const { known } = entry;
  checkLabels(
    asked.filter((name) => !known.has(name)),
    database.labelNames,
  );
  for (const name of asked) known.add(name);
  const others = new OpenPartitions();
  for (const partition of otherPartitionsOf(add, database.labelNames)) {
    others.set(partition, database.partition(partition));
  }
  return { ...ranges, others };
}
