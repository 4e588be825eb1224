/** The ranges of a release that an export writes: those of the chosen countries, in ascending order. */

import { EMBEDDED_LAYOUT, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import { addressWords, isNextAddress, previousAddress } from '../address/words.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { firstIPv6, type RangeFile } from '../rangefile/reader.js';
import { findIPv4 } from '../rangefile/search.js';

/** What is to be exported. */
export interface Selection {
  file: RangeFile;
  families: readonly Family[];
  /** Country codes, upper case; undefined for all. */
  countries: ReadonlySet<string> | undefined;
  /** Whether 6to4, NAT64 and Teredo addresses are exported with the country of the IPv4 address inside. */
  embedded: boolean;
}

export type CountryRecord = Extract<RangeRecord, { kind: 'country' }>;

/** A range of one record. Whoever yields ranges reuses the object: it holds until the next one is asked for. */
export interface ExportedRange {
  /** One word (IPv4) or four, most significant first; so is `last`, which is inclusive. */
  first: Uint32Array;
  last: Uint32Array;
  /** Record number in the range file; it is that of a chosen country. */
  record: number;
}

/** By record number: the country, where it is one that the selection takes. */
export function chosenCountries({ file, countries }: Selection): (CountryRecord | undefined)[] {
  return file.records.map((record) => {
    if (record.kind !== 'country') return undefined;
    return countries === undefined || countries.has(record.code) ? record : undefined;
  });
}

/**
 * The ranges of the chosen countries in one family.
 *
 * @returns disjoint ranges in ascending order. Two that meet have different records, so each is as wide as it can be
 */
export function exportedRanges(selection: Selection, family: Family): Iterable<ExportedRange> {
  const isChosen = chosenCountries(selection).map((country) => country !== undefined);
  if (family === 4) return rangesIPv4(selection.file, isChosen, 0, 0xffffffff);
  return mergeNeighbors(rangesIPv6(selection, isChosen), (a, b) => a === b);
}

/**
 * Joins ranges that meet.
 *
 * @param ranges disjoint, in ascending order
 * @param mayJoin whether ranges of these two records become one, which has the first record
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

/** The chosen IPv4 ranges that begin in or reach into `from` to `to`, whole. */
function* rangesIPv4(
  file: RangeFile,
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
    const isCarrier = embedded && record.kind === 'embedded';
    if (!isChosen[range.record] && !isCarrier) continue;
    boundsIPv6(file, i, range);
    if (isCarrier) yield* carriedRanges(file, record.scheme, range, isChosen);
    else yield range;
  }
}

/** Writes the first and last address of an IPv6 range. */
function boundsIPv6(file: RangeFile, index: number, { first, last }: ExportedRange): void {
  firstIPv6(file, index, first);
  if (index + 1 === file.count6) {
    last.fill(0xffffffff);
    return;
  }
  firstIPv6(file, index + 1, last);
  previousAddress(last, 0, 4, last); // the next range does not begin at zero
}

/**
 * The chosen IPv4 ranges that lie inside a range of a scheme, as IPv6 ranges.
 *
 * The range lies within one prefix of the scheme, as reference data has it. Teredo gives none: the 64 bits before its
 * IPv4 address are free, so each IPv4 range would be 2^64 ranges.
 */
function* carriedRanges(
  file: RangeFile,
  scheme: EmbeddedScheme,
  carrier: ExportedRange,
  isChosen: readonly boolean[],
): Generator<ExportedRange> {
  if (EMBEDDED_LAYOUT[scheme].inverted) return;
  const range = emptyRange(6);
  const from = embeddedIPv4(scheme, carrier.first);
  const to = embeddedIPv4(scheme, carrier.last);
  for (const { first, last, record } of rangesIPv4(file, isChosen, from, to)) {
    range.record = record;
    // At its ends the carrier may hold but a part of an IPv4 range, and but a part of what one IPv4 address has.
    if (first[0]! > from) embedIPv4(scheme, first[0]!, 0, carrier.first, range.first);
    else range.first.set(carrier.first);
    if (last[0]! < to) embedIPv4(scheme, last[0]!, 0xffffffff, carrier.first, range.last);
    else range.last.set(carrier.last);
    yield range;
  }
}

/** Writes an IPv6 address: the prefix of `prefix`, the IPv4 address, and behind it the bits of `fill`. */
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
