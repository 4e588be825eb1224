/** The answers of a day as a range file in memory, for look-ups, enrichment and exports. */
import { isEuMember } from '../country/country.js';
import { readMemberships } from '../country/memberships.js';
import { BinaryEngine } from '../database/binary-engine.js';
import { Lookups } from '../database/lookups.js';
import { releaseDir } from '../database/release.js';
import { openReleaseRanges } from '../database/release-files.js';
import { AtlasError } from '../errors.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { rangeFileInMemory } from '../rangefile/memory.js';
import type { RangeFile } from '../rangefile/reader.js';
import { type Archive, dayOf, type Entry, openArchive } from './archive.js';
import type { Layer } from './changes.js';

/** The answers of a day. */
export interface Day {
  day: string;
  /** The publication that was current at its end. */
  entry: Entry;
  file: RangeFile;
}

/**
 * Opens the answers of a UTC day: those of the release that was current at its end, and the membership of that day.
 *
 * @param day `YYYY-MM-DD`
 * @throws AtlasError E_USAGE for a day that is not kept; it names the days that are. E_DAMAGED if an entry is damaged
 */
export function openDay(archive: Archive, day: string): Day {
  const coverage = archive.at(day);
  if ('missing' in coverage) {
    const { span } = archive;
    const kept = span === undefined ? '' : `; history has ${span.from} to ${span.to}`;
    throw new AtlasError('E_USAGE', `there are no answers of ${day}: ${coverage.missing}${kept}`);
  }
  const { entry } = coverage;
  const { records, v4, v6 } = archive.answers(entry);
  const columns = ({ family, count, first, value }: Layer) => ({
    ...{ family, count, first },
    value: Uint16Array.from(value, (number) => number - 1),
  });
  const memberships = readMemberships();
  const asOfDay = (record: RangeRecord): RangeRecord =>
    record.kind === 'country' ? { ...record, isEu: isEuMember(memberships, record.code, day) } : record;
  const content = {
    asOf: day,
    v4: columns(v4),
    v6: columns(v6),
    records: records.map(asOfDay),
  };
  return { day, entry, file: rangeFileInMemory(content, entry.path) };
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
  if (day === dayOf(Date.now())) {
    const coverage = archive.at(day);
    const date = 'entry' in coverage ? dayOf(coverage.entry.time) : day;
    return { file: openReleaseRanges(releaseDir(dataDir)).file, date };
  }
  const { file, entry } = openDay(archive, day);
  return { file, date: dayOf(entry.time) };
}

/** Opens the answers of a UTC day for lookups, as {@link rangesAt}. */
export function lookupsAt(dataDir: string, day: string): Lookups {
  return new Lookups(new BinaryEngine(rangesAt(dataDir, day).file));
}
