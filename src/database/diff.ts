/**
 * Parts of a comparison of two releases: the segments in which each has one range, totals by pair of results, and the largest
 * changed blocks. The figures of the gates, made of these, are in delta.ts.
 */

import type { Family } from '../address/parse.js';
import { addressBits, addressWords } from '../address/words.js';
import { BLOCKS_SHOWN } from '../limits.js';
import { rangeToCidrs } from '../range/cidr.js';
import { copyBounds, type RangeColumns } from '../range/columns.js';
import { combine, Pairs } from '../range/cut.js';
import { cellsOf, type FileRecord } from '../rangefile/layout.js';
import { type PartitionFile, type RangeFile, rangeColumns } from '../rangefile/reader.js';
import { grouped } from '../text-table.js';

/** One family of a range file, with a label for each record; `value` is the record number. */
export interface RangeList extends RangeColumns {
  /** By record number, see {@link recordLabel}. */
  labels: readonly string[];
}

/** A range in which each of the two lists has one record. */
export interface Segment {
  family: Family;
  /** First address, in words; valid until the next segment is requested. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  /** Labels of the records before and after. */
  from: string;
  to: string;
}

/**
 * Returns a word for a record, different for every record of a file: a country code (`DE`) or an AS number (`AS15169`), or a
 * reason (`private`, `unallocated`) or scheme (`6to4`) in lower case; the labels of a row as JSON, by name.
 *
 * @param columns names of the labels
 */
export function recordLabel(record: FileRecord, columns: readonly string[] = []): string {
  if (record.kind === 'country') return record.code;
  if (record.kind === 'network') return `AS${record.asn}`;
  if (record.kind === 'label') {
    // By name, because files may have other columns in another release.
    const row = cellsOf(record);
    const labels = columns.flatMap((column, i) => (row[i] === null ? [] : [[column, row[i]] as const]));
    return JSON.stringify(Object.fromEntries(labels.sort(([a], [b]) => (a < b ? -1 : 1))));
  }
  return record.kind === 'none' ? record.reason : record.scheme;
}

/** Whether a label is that of a country or a network. */
export function isCountryLabel(label: string): boolean {
  return label.charCodeAt(0) >= 65 && label.charCodeAt(0) <= 90;
}

/** Returns one family of a range file with its labels. */
export function rangeList(file: PartitionFile, family: Family): RangeList {
  return { ...rangeColumns(file, family), labels: file.records.map((record) => recordLabel(record, file.columns)) };
}

/**
 * Splits the address space at the range boundaries of two lists.
 *
 * @param before a list of one family
 * @param after a list of the same family
 * @returns the whole address space as segments, in ascending order; the same object each time
 */
export function* segments(before: RangeList, after: RangeList): Generator<Segment> {
  const { family } = before;
  const pairs = new Pairs();
  const ranges = combine(before, after, pairs.numberOf);
  const words = addressWords(family);
  const segment: Segment = { family, first: new Uint32Array(words), last: new Uint32Array(words), from: '', to: '' };
  for (let range = 0; range < ranges.count; range++) {
    copyBounds(ranges, range, segment.first, segment.last);
    const pair = ranges.value[range]!;
    segment.from = before.labels[pairs.first[pair]!]!;
    segment.to = after.labels[pairs.second[pair]!]!;
    yield segment;
  }
}

/** Returns the unit of sizes in a family, in addresses: one for IPv4, a /48 for IPv6. */
export function sizeUnit(family: Family): bigint {
  return family === 4 ? 1n : 1n << 80n;
}

/**
 * Formats a number of addresses: IPv4 in addresses, IPv6 in /48 blocks, the size of one site (RFC 6177).
 */
export function formatSize(family: Family, addresses: bigint): string {
  if (family === 4) return grouped(addresses);
  const blocks = addresses >> 80n;
  if (blocks << 80n === addresses) return grouped(blocks);
  const exact = Number(addresses) / 2 ** 80;
  return exact < 0.001 ? '<0.001' : grouped(Number(exact.toFixed(3)));
}

/** Returns the name of the unit of {@link formatSize}. */
export function formatSizeUnit(family: Family): string {
  return family === 4 ? 'addresses' : '/48s';
}

/** Addresses that changed from one record to another. */
export interface PairTotal {
  from: string;
  to: string;
  addresses: bigint;
  /** Number of ranges with these addresses. */
  ranges: number;
}

/** Adds up changed segments by pair of labels. */
export class PairTotals {
  readonly #totals = new Map<string, PairTotal>();

  add({ from, to }: Segment, addresses: bigint): void {
    const key = `${from} ${to}`;
    const total = this.#totals.get(key);
    if (total === undefined) this.#totals.set(key, { from, to, addresses, ranges: 1 });
    else {
      total.addresses += addresses;
      total.ranges++;
    }
  }

  /** Returns the pairs by descending number of addresses, then in alphabetical order. */
  sorted(): PairTotal[] {
    return [...this.#totals.values()].sort((a, b) => {
      if (a.addresses !== b.addresses) return a.addresses > b.addresses ? -1 : 1;
      return `${a.from} ${a.to}` < `${b.from} ${b.to}` ? -1 : 1;
    });
  }
}

/** A CIDR block of addresses that all changed from one record to another. */
export interface ChangedBlock {
  first: Uint32Array;
  prefix: number;
  from: string;
  to: string;
}

/** Keeps the largest blocks; of equally large ones the first. */
export class LargestBlocks {
  readonly blocks: ChangedBlock[] = [];

  add({ family, first, last, from, to }: Segment, size: bigint): void {
    // Most changes are smaller than the blocks kept so far, and need not be split.
    const smallest = this.blocks[BLOCKS_SHOWN - 1];
    if (smallest !== undefined && size <= 1n << BigInt(addressBits(family) - smallest.prefix)) return;
    rangeToCidrs(family, first, last, (block, prefix) => {
      const at = this.blocks.findIndex((other) => prefix < other.prefix);
      if (at < 0 && this.blocks.length === BLOCKS_SHOWN) return;
      this.blocks.splice(at < 0 ? this.blocks.length : at, 0, { first: block.slice(), prefix, from, to });
      this.blocks.length = Math.min(this.blocks.length, BLOCKS_SHOWN);
    });
  }
}

/** A country whose name or EU membership changed, so that the results of all its addresses changed. */
export interface CountryChange {
  code: string;
  name: [before: string, after: string];
  is_eu: [before: boolean, after: boolean];
}

/** Returns the countries of both files whose name or EU membership differs, by code. */
export function countryChanges(before: RangeFile, after: RangeFile): CountryChange[] {
  const countries = (file: RangeFile) => file.records.filter((record) => record.kind === 'country');
  const earlier = new Map(countries(before).map((record) => [record.code, record]));
  return countries(after)
    .flatMap(({ code, name, isEu }): CountryChange[] => {
      const old = earlier.get(code);
      if (old === undefined || (old.name === name && old.isEu === isEu)) return [];
      return [{ code, name: [old.name, name], is_eu: [old.isEu, isEu] }];
    })
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}
