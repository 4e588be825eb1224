/** The answers of a day as a range file in memory, for look-ups, enrichment and exports. */
import { isMember } from '../country/country.js';
import { readMemberships } from '../country/memberships.js';
import { namedRelease, readManifest, releaseDir, releaseIds } from '../database/release.js';
import { openReleasePartition, openReleaseRanges } from '../database/release-files.js';
import { dayOf, today } from '../day.js';
import { AtlasError, misuse, RESTORE_DAYS } from '../errors.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { rangeFileInMemory } from '../rangefile/memory.js';
import type { Partition } from '../rangefile/partitions.js';
import { decodeFile, type PartitionFile, type RangeFile } from '../rangefile/reader.js';
import { encodeFile } from '../rangefile/writer.js';
import { type Archive, type Entry, openArchive } from './archive.js';
import type { Values } from './changes.js';

/** Returns the numbers of records, which are one less than the values of a layer. */
function recordNumbers<Numbers extends Uint16Array | Uint32Array>(value: Uint32Array, numbers: Numbers): Numbers {
  for (let i = 0; i < value.length; i++) numbers[i] = value[i]! - 1;
  return numbers;
}

/** The answers of a day. */
export interface Day {
  day: string;
  /** The publication that was current at its end. */
  entry: Entry;
  file: RangeFile;
}

/**
 * Opens the answers of a UTC day: those of the release that was current at its end, and the membership of that day. The columns of
 * a family are made when they are first used.
 *
 * @param day `YYYY-MM-DD`
 * @throws AtlasError E_USAGE for a day that is not kept; it names the days that are. E_DAMAGED if an entry is damaged
 */
export function openDay(archive: Archive, day: string): Day {
  const coverage = archive.at(day);
  if ('missing' in coverage) {
    const { span } = archive;
    const kept =
      span === undefined
        ? '; "ipatlas build" begins one'
        : `; history has ${span.from} to ${span.to}; choose one of these`;
    throw misuse(`there are no answers of ${day}: ${coverage.missing}${kept}`);
  }
  const { entry } = coverage;
  const { records, layer } = archive.families(entry);
  const columns = ({ value, ...layer }: Values) => ({
    ...layer,
    value: recordNumbers(value, new Uint16Array(value.length)),
  });
  const memberships = readMemberships();
  const asOfDay = (record: RangeRecord): RangeRecord =>
    record.kind === 'country' ? { ...record, isEu: isMember(memberships, record.code, day) } : record;
  const content = {
    asOf: day,
    v4: () => columns(layer(4)),
    v6: () => columns(layer(6)),
    records: records.map(asOfDay),
  };
  return { day, entry, file: rangeFileInMemory(content, entry.path) };
}

/** Returns the answers of a UTC day and the release that they are of; its directory only if it is still there. Throws as {@link openDay}. */
export function releaseOfDay(dataDir: string, day: string) {
  const archive = openArchive(dataDir);
  const { file, entry } = openDay(archive, day);
  const { release, event } = archive.read(entry).about;
  const dir = releaseIds(dataDir).includes(release) ? namedRelease(dataDir, release) : undefined;
  return { file, release, event, dir };
}

/**
 * Returns the answers of a UTC day, and the day of the publication that they are of. Those of today are those of the current
 * release.
 *
 * @param day `YYYY-MM-DD`
 * @throws AtlasError as {@link openDay}; E_NO_DATABASE or E_DAMAGED for today as `openDatabase`
 */
export function rangesAt(dataDir: string, day: string): { file: RangeFile; date: string } {
  const archive = openArchive(dataDir);
  if (day === today()) {
    const coverage = archive.at(day);
    const date = 'entry' in coverage ? dayOf(coverage.entry.time) : day;
    return { file: openReleaseRanges(releaseDir(dataDir)).file, date };
  }
  const { file, entry } = openDay(archive, day);
  return { file, date: dayOf(entry.time) };
}

/**
 * Returns another partition of a UTC day, as {@link rangesAt} returns its countries.
 *
 * @param day `YYYY-MM-DD`
 * @returns undefined if the release of that day had none, or none was kept
 * @throws AtlasError E_DAMAGED if it is damaged or lost
 */
export function partitionAt<File extends PartitionFile>(
  dataDir: string,
  day: string,
  partition: Partition<File>,
): File | undefined {
  if (partition.history === undefined) return undefined;
  if (day === today()) {
    const dir = releaseDir(dataDir);
    return openReleasePartition(dir, readManifest(dir), partition);
  }
  const archive = openArchive(dataDir, partition as Partition);
  const coverage = archive.at(day);
  if ('missing' in coverage) {
    if (coverage.isGap === true) return undefined;
    throw new AtlasError('E_DAMAGED', `the ${partition.name} of ${day} are lost: ${coverage.missing}; ${RESTORE_DAYS}`);
  }
  const { records, v4, v6 } = archive.answers(coverage.entry);
  const columns = (layer: Values) => ({ ...layer, value: recordNumbers(layer.value, layer.value) });
  const { path } = coverage.entry;
  const bytes = encodeFile(partition, { asOf: day, v4: columns(v4), v6: columns(v6), records });
  return decodeFile(partition, bytes, path, true, partition.columns?.({}));
}
