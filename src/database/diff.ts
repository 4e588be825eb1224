/**
 * What differs between two releases: one walk over both sorted lists of a family. The walk holds two positions and one
 * range, whatever the size of the lists.
 */

import type { Family } from '../address/parse.js';
import { addressBits, addressWords, compareAddresses, copyAddress, previousAddress } from '../address/words.js';
import { BLOCKS_SHOWN } from '../limits.js';
import { rangeToCidrs } from '../range/cidr.js';
import type { RangeColumns } from '../range/columns.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { type RangeFile, rangeColumns } from '../rangefile/reader.js';
import { grouped } from '../text-table.js';

/** One family of a range file with what each record answers; `value` is the record number. */
export interface RangeList extends RangeColumns {
  /** By record number, see {@link recordLabel}. */
  labels: readonly string[];
}

/** A range in which both lists have one answer each. */
export interface Segment {
  family: Family;
  /** First and last address, inclusive, in words; valid until the next segment is asked for. */
  first: Uint32Array;
  last: Uint32Array;
  /** Labels of what was answered and what is. */
  from: string;
  to: string;
}

/**
 * A record in a word. Countries are two capital letters (`DE`); a reason why there is none is lower case (`private`,
 * `unallocated`), as is a scheme whose embedded IPv4 address answers (`6to4`). So no two records of a file look alike.
 */
export function recordLabel(record: RangeRecord): string {
  if (record.kind === 'country') return record.code;
  return record.kind === 'none' ? record.reason : record.scheme;
}

/** Whether a label is that of a country. */
export function isCountryLabel(label: string): boolean {
  return label.charCodeAt(0) >= 65 && label.charCodeAt(0) <= 90;
}

/** Returns one family of a range file with its labels. */
export function rangeList(file: RangeFile, family: Family): RangeList {
  return { ...rangeColumns(file, family), labels: file.records.map(recordLabel) };
}

/**
 * Walks two lists side by side.
 *
 * @param before a list of one family
 * @param after a list of the same family
 * @returns the whole address space as segments, in order; one object, filled anew for each
 */
export function* segments(before: RangeList, after: RangeList): Generator<Segment> {
  const { family } = before;
  const words = addressWords(family);
  const segment: Segment = { family, first: new Uint32Array(words), last: new Uint32Array(words), from: '', to: '' };
  const { first, last } = segment;
  let i = 0;
  let j = 0;
  for (;;) {
    segment.from = before.labels[before.value[i]!]!;
    segment.to = after.labels[after.value[j]!]!;
    const moreBefore = i + 1 < before.count;
    const moreAfter = j + 1 < after.count;
    if (!moreBefore && !moreAfter) {
      last.fill(0xffffffff);
      yield segment;
      return;
    }
    // The segment ends where the nearer of the two next ranges begins; both step where they begin together.
    const order = !moreAfter ? -1 : !moreBefore ? 1 : compareAddresses(before.first, i + 1, after.first, j + 1, words);
    const [next, index] = order <= 0 ? [before.first, i + 1] : [after.first, j + 1];
    previousAddress(next, index, words, last);
    yield segment;
    copyAddress(next, index, words, first);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
}

/** What sizes of a family are told in, as a number of addresses: one (IPv4), a /48 (IPv6). */
export function sizeUnit(family: Family): bigint {
  return family === 4 ? 1n : 1n << 80n;
}

/**
 * A number of addresses for a person: IPv4 in addresses, IPv6 in /48 blocks, the size of one site (RFC 6177), as the number
 * of IPv6 addresses says nothing.
 */
export function formatSize(family: Family, addresses: bigint): string {
  if (family === 4) return grouped(addresses);
  const blocks = addresses >> 80n;
  if (blocks << 80n === addresses) return grouped(blocks);
  const exact = Number(addresses) / 2 ** 80;
  return exact < 0.001 ? '<0.001' : grouped(Number(exact.toFixed(3)));
}

/** What {@link formatSize} counts. */
export function formatSizeUnit(family: Family): string {
  return family === 4 ? 'addresses' : '/48s';
}

/** Addresses that went from one answer to another. */
export interface PairTotal {
  from: string;
  to: string;
  addresses: bigint;
  /** How many ranges they are. */
  ranges: number;
}

/** Adds up the segments whose answers differ, by pair of answers. */
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

  /** The one of most addresses first; equal ones in alphabetical order. */
  sorted(): PairTotal[] {
    return [...this.#totals.values()].sort((a, b) => {
      if (a.addresses !== b.addresses) return a.addresses > b.addresses ? -1 : 1;
      return `${a.from} ${a.to}` < `${b.from} ${b.to}` ? -1 : 1;
    });
  }
}

/** A CIDR block all of whose addresses went from one answer to another. */
export interface ChangedBlock {
  first: Uint32Array;
  prefix: number;
  from: string;
  to: string;
}

/** Keeps the largest blocks; of equal ones the first. */
export class LargestBlocks {
  readonly blocks: ChangedBlock[] = [];

  add({ family, first, last, from, to }: Segment, size: bigint): void {
    // Most changes are smaller than what is kept already, and need not be cut into blocks.
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

/** A country whose name or membership in the European Union differs: then so do the answers of all its addresses. */
export interface CountryChange {
  code: string;
  name: [before: string, after: string];
  is_eu: [before: boolean, after: boolean];
}

/** The countries in both files that are described differently, by code. */
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
