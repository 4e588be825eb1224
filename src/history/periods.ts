/** The history of one address: which answers it had, and from when to when. */
import { embeddedIPv4 } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import { isMember } from '../country/country.js';
import { membershipDays, readMemberships } from '../country/memberships.js';
import { shiftedDay } from '../day.js';
import { type Cell, cellsOf, type FileRecord } from '../rangefile/layout.js';
import type { Partition } from '../rangefile/partitions.js';
import type { Archive } from './archive.js';
import { UNCHANGED } from './changes.js';

/** Days with one answer. They are UTC days, `YYYY-MM-DD`. */
interface KnownPeriod {
  from: string;
  /** The last day; null if the period goes on. */
  to: string | null;
  /** The release that began it. */
  release: string;
}

export interface Period extends KnownPeriod {
  country: string | null;
  country_code: string | null;
  is_eu: boolean;
}

/** A period with the members of another partition than the countries. */
export type MemberPeriod = KnownPeriod & Record<string, Cell | number>;

/** A period of which nothing is known, and why. */
export interface UnknownPeriod {
  from: string;
  to: string | null;
  error: string;
}

/** What an address has after an entry, and the release that the entry is of; or why that is not known. */
type State<Rec> = { record: Rec; release: string } | { error: string };

/** An address as the archive is asked for it. */
export interface ArchiveAddress {
  family: Family;
  /** As many words as the family has, most significant first. */
  words: Uint32Array;
}

/** Returns, for each entry, the state of an address; that of an embedded IPv4 address if the record says so. */
function statesOf<Rec extends FileRecord>(archive: Archive<Rec>, address: ArchiveAddress): State<Rec>[] {
  let last: Rec | undefined;
  const records = archive.walk((file, known): Rec => {
    const value = file.valueAt(address.family, known.length, address.words);
    if (value !== UNCHANGED) last = known[value - 1]!;
    return last!;
  });
  const states = Array.from(records, (step): State<Rec> => {
    if (step.unknown === undefined) return { record: step.result, release: step.about.release };
    return { error: step.unknown === 'before' ? 'an entry before it is damaged or lost' : step.problem };
  });
  const scheme = states.flatMap((state) =>
    'record' in state && state.record.kind === 'embedded' ? [state.record.scheme] : [],
  )[0];
  if (scheme === undefined) return states;
  const words = Uint32Array.of(embeddedIPv4(scheme, address.words));
  const inner = statesOf(archive, { family: 4, words });
  return states.map((state, index) => ('record' in state && state.record.kind === 'embedded' ? inner[index]! : state));
}

/** Splits a period at the days on which the country joined or left the Union. */
function byMembership(period: Period): Period[] {
  const { country_code: code, from, to } = period;
  if (code === null) return [period];
  const changes = membershipDays(code)
    .filter((day) => day > from && (to === null || day <= to))
    .sort();
  const starts = [from, ...changes];
  return starts.map((start, index) => ({
    ...period,
    from: start,
    to: index + 1 < starts.length ? shiftedDay(starts[index + 1]!, -1) : to,
    is_eu: isMember(readMemberships(), code, start),
  }));
}

/** Returns whether two periods have the same answer. */
function isSame(a: KnownPeriod | UnknownPeriod, b: KnownPeriod | UnknownPeriod): boolean {
  const [first, second] = [a, b].map((period) => JSON.stringify({ ...period, from: '', to: '', release: '' }));
  return first === second;
}

/**
 * Returns the history of an address, the oldest period first. The answer of a day is that of the last publication of the day.
 *
 * @param describe returns the periods of the days that have a record
 */
function historyOf<Rec extends FileRecord, P extends KnownPeriod>(
  archive: Archive<Rec>,
  address: ArchiveAddress,
  describe: (record: Rec, days: KnownPeriod) => P[],
): (P | UnknownPeriod)[] {
  const states = statesOf(archive, address);
  const spans = archive.spans();
  const periods = spans.flatMap((span, index): (P | UnknownPeriod)[] => {
    const { from } = span;
    const to = index + 1 < spans.length ? span.to : null;
    if ('missing' in span) return [{ from, to, error: span.missing }];
    const state = states[archive.entries.indexOf(span.entry)]!;
    if ('error' in state) return [{ from, to, error: state.error }];
    return describe(state.record, { from, to, release: state.release });
  });
  const merged: (P | UnknownPeriod)[] = [];
  for (const period of periods) {
    const last = merged.at(-1);
    if (last !== undefined && isSame(last, period)) last.to = period.to;
    else merged.push(period);
  }
  return merged;
}

/**
 * Returns the countries of an address over time.
 *
 * @throws a system error if an entry cannot be read
 */
export function periodsOf(archive: Archive, address: ArchiveAddress): (Period | UnknownPeriod)[] {
  return historyOf(archive, address, (record, { from, to, release }) => {
    const country = record.kind === 'country' ? record : undefined;
    return byMembership({
      ...{ from, to, country: country?.name ?? null, country_code: country?.code ?? null, is_eu: false },
      release,
    });
  });
}

/** Returns the members of another partition for an address over time; throws as {@link periodsOf}. */
export function memberPeriodsOf(
  archive: Archive<FileRecord>,
  address: ArchiveAddress,
  { members }: Partition,
): (MemberPeriod | UnknownPeriod)[] {
  const valuesOf = (record: FileRecord): readonly (Cell | number)[] => {
    if (record.kind === 'network') return [record.asn, record.name === '' ? null : record.name];
    return record.kind === 'label' ? cellsOf(record) : [];
  };
  return historyOf(archive, address, (record, { from, to, release }): MemberPeriod[] => {
    const values = valuesOf(record);
    return [{ from, to, ...Object.fromEntries(members.map((name, at) => [name, values[at] ?? null])), release }];
  });
}
