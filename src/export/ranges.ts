/** Selects the ranges of a release that an export writes: those of the chosen countries, in ascending order. */

import { EMBEDDED_LAYOUT, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import { addressWords, isNextAddress, previousAddress } from '../address/words.js';
import type { Cell, FileRecord, NetworkRecord, RangeRecord } from '../rangefile/layout.js';
import { firstIPv6, type PartitionFile } from '../rangefile/reader.js';
import { findIPv4 } from '../rangefile/search.js';

/** Columns of another partition. */
export interface RowColumns {
  names: readonly string[];
  /** Those whose values are true, false or null. */
  flags: readonly string[];
  /** The values of each record of the file, in the order of the names. */
  values: readonly (readonly Cell[])[];
}

/** What to export. */
export interface Selection {
  /** The countries of a release, its networks, or both together. */
  file: PartitionFile;
  /** Whether the file has both, so that tables have the columns of both. */
  hasBoth?: boolean | undefined;
  /** What else is said of the ranges of each record. */
  rows?: RowColumns | undefined;
  families: readonly Family[];
  /** Country codes, upper case; undefined for all. */
  countries: ReadonlySet<string> | undefined;
  /** AS numbers, if the file has networks; undefined for all. */
  asns?: ReadonlySet<number> | undefined;
  /** Schemes whose addresses are exported with the country of the embedded IPv4 address; those of others have no country. */
  embedded: ReadonlySet<EmbeddedScheme>;
  /** The ranges to export instead, by family: those of limited.ts. */
  limited?: ReadonlyMap<Family, readonly ExportedRange[]> | undefined;
}

export type CountryRecord = Extract<RangeRecord, { kind: 'country' }>;
export type OperatorRecord = Extract<NetworkRecord, { kind: 'network' }>;

/** A record of countries and networks together: a country with its network, one of them, or neither. */
export type JointRecord = RangeRecord | NetworkRecord | (CountryRecord & { network: OperatorRecord });

/** A range of one record. Generators reuse the object: it is valid until the next one is requested. */
export interface ExportedRange {
  /** First address, one word (IPv4) or four, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  /** Record number in the range file, of a chosen country. */
  record: number;
}

/** Returns the countries of the selection by record number; undefined for all other records. */
export function chosenCountries({ file, countries }: Selection): (CountryRecord | undefined)[] {
  return file.records.map((record) => {
    if (record.kind !== 'country') return undefined;
    return countries === undefined || countries.has(record.code) ? record : undefined;
  });
}

/** Returns the networks of the selection by record number; undefined for all other records. */
export function chosenNetworks({ file, countries, asns }: Selection): (OperatorRecord | undefined)[] {
  return file.records.map((record: FileRecord | JointRecord) => {
    if (record.kind === 'country') {
      const isChosen = countries === undefined || countries.has(record.code);
      return isChosen && 'network' in record ? record.network : undefined;
    }
    if (record.kind !== 'network' || countries !== undefined) return undefined;
    return asns === undefined || asns.has(record.asn) ? record : undefined;
  });
}

/** Returns whether each record is chosen. */
export function isChosenRecord(selection: Selection): boolean[] {
  const networks = chosenNetworks(selection);
  return chosenCountries(selection).map((country, record) => (country ?? networks[record]) !== undefined);
}

/**
 * Returns the ranges of the chosen countries or networks in one family.
 *
 * @param isChosen whether each record is
 * @returns disjoint ranges in ascending order. Adjacent ranges have different records
 */
export function exportedRanges(
  selection: Selection,
  family: Family,
  isChosen = isChosenRecord(selection),
): Iterable<ExportedRange> {
  const limited = selection.limited?.get(family);
  if (limited !== undefined) return limited;
  if (family === 4) return rangesIPv4(selection.file, isChosen, 0, 0xffffffff);
  return mergeNeighbors(rangesIPv6(selection, isChosen), (a, b) => a === b);
}

/**
 * Joins adjacent ranges.
 *
 * @param ranges disjoint, in ascending order
 * @param mayJoin whether adjacent ranges of these two records become one, with the first record
 */
export function* mergeNeighbors(
  ranges: Iterable<ExportedRange>,
  mayJoin: (record: number, next: number) => boolean,
): Generator<ExportedRange> {
  let open: ExportedRange | undefined;
  for (const { first, last, record } of ranges) {
    if (open !== undefined && mayJoin(open.record, record) && isNextAddress(open.last, first)) {
      open.last.set(last);
      continue;
    }
    if (open === undefined) {
      open = { first: first.slice(), last: last.slice(), record };
      continue;
    }
    yield open;
    open.first.set(first);
    open.last.set(last);
    open.record = record;
  }
  if (open !== undefined) yield open;
}

function emptyRange(family: Family): ExportedRange {
  return { first: new Uint32Array(addressWords(family)), last: new Uint32Array(addressWords(family)), record: 0 };
}

/** Yields the chosen IPv4 ranges that overlap the range from `from` to `to`, in full. */
function* rangesIPv4(
  file: PartitionFile,
  isChosen: readonly boolean[],
  from: number,
  to: number,
): Generator<ExportedRange> {
  const { start4, record4, count4 } = file;
  const range = emptyRange(4);
  for (let i = findIPv4(file, from); i < count4 && start4[i]! <= to; i++) {
    range.record = record4[i]!;
    if (!isChosen[range.record]) continue;
    range.first[0] = start4[i]!;
    range.last[0] = i + 1 < count4 ? start4[i + 1]! - 1 : 0xffffffff;
    yield range;
  }
}

function* rangesIPv6(selection: Selection, isChosen: readonly boolean[]): Generator<ExportedRange> {
  const { file, embedded } = selection;
  const range = emptyRange(6);
  for (let i = 0; i < file.count6; i++) {
    range.record = file.record6[i]!;
    const record = file.records[range.record]!;
    const scheme = record.kind === 'embedded' && embedded.has(record.scheme) ? record.scheme : undefined;
    if (!isChosen[range.record] && scheme === undefined) continue;
    boundsIPv6(file, i, range);
    if (scheme !== undefined) yield* embeddedRanges(file, scheme, range, isChosen);
    else yield range;
  }
}

/** Writes the first and last address of an IPv6 range. */
function boundsIPv6(file: PartitionFile, index: number, { first, last }: ExportedRange): void {
  firstIPv6(file, index, first);
  firstIPv6(file, (index + 1) % file.count6, last);
  previousAddress(last, 0, 4, last);
}

/**
 * Yields the chosen IPv4 ranges that a range of a scheme embeds, as IPv6 ranges.
 *
 * The range is within one prefix of the scheme, as the reference data defines it. Teredo yields nothing: the 64 bits before
 * its IPv4 address vary freely, so each IPv4 range would be 2^64 ranges.
 */
function* embeddedRanges(
  file: PartitionFile,
  scheme: EmbeddedScheme,
  prefix: ExportedRange,
  isChosen: readonly boolean[],
): Generator<ExportedRange> {
  if (EMBEDDED_LAYOUT[scheme].inverted) return;
  const range = emptyRange(6);
  const from = embeddedIPv4(scheme, prefix.first);
  const to = embeddedIPv4(scheme, prefix.last);
  for (const { first, last, record } of rangesIPv4(file, isChosen, from, to)) {
    range.record = record;
    // The range may begin or end within an IPv4 range, and within the addresses that embed one IPv4 address.
    if (first[0]! > from) embedIPv4(scheme, first[0]!, 0, prefix.first, range.first);
    else range.first.set(prefix.first);
    if (last[0]! < to) embedIPv4(scheme, last[0]!, 0xffffffff, prefix.first, range.last);
    else range.last.set(prefix.last);
    yield range;
  }
}

/** Writes an IPv6 address: the bits of `prefix`, the IPv4 address, and after it the bits of `fill`. */
function embedIPv4(scheme: EmbeddedScheme, address: number, fill: number, prefix: Uint32Array, into: Uint32Array) {
  into.set(prefix);
  if (EMBEDDED_LAYOUT[scheme].offset === 96) {
    into[3] = address;
    return;
  }
  into[0] = (prefix[0]! & 0xffff0000) | (address >>> 16);
  into[1] = (address << 16) | (fill & 0xffff);
  into[2] = fill;
  into[3] = fill;
}
