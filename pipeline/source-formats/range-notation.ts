/** The range of a row, in each way that sources write one. */

import { type Family, isMapped, parseIPv4, parseIPv6 } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { parseCidr } from '../../src/range/cidr.js';
import { parseDecimal } from './decimal.js';
import type { RangeNotation } from './formats.js';

/** A range, filled anew for each row. */
export interface Range {
  family: Family;
  /** First address, one word (IPv4) or four, most significant first; room for four. */
  readonly first: Uint32Array;
  /** Last address, likewise. */
  readonly last: Uint32Array;
}

/** Reads a row's range into `range`. Returns nothing, or the reason why the row holds none. */
export type RangeReader = (row: readonly string[], range: Range) => string | undefined;

export function emptyRange(): Range {
  return { family: 4, first: new Uint32Array(4), last: new Uint32Array(4) };
}

/**
 * The reader for a notation.
 *
 * @param notation how the range is written
 * @param columns the columns that `notationColumns` names, as numbers; the reader's rows have them all
 */
export function rangeReader(notation: RangeNotation, columns: readonly number[]): RangeReader {
  const a = columns[0]!;
  const b = columns[1] ?? a;
  if ('text' in notation) return (row, range) => readText(row[a]!, row[b]!, range);
  if ('decimal' in notation) {
    const { family } = notation.decimal;
    return (row, range) => readDecimal(row[a]!, row[b]!, family, range);
  }
  if ('cidr' in notation) return (row, range) => readCidr(row[a]!, range);
  if ('count' in notation) return (row, range) => readCount(row[a]!, row[b]!, range);
  if ('prefix' in notation) return (row, range) => readCidr(`${row[a]}/${row[b]}`, range);
  return (row, range) =>
    row[a]!.includes(':') ? readCidr(`${row[a]}/${row[b]}`, range) : readCount(row[a]!, row[b]!, range);
}

function readText(first: string, last: string, range: Range): string | undefined {
  const firstFamily = parseEither(first, range.first);
  if (firstFamily === 0) return 'the first address cannot be read';
  const lastFamily = parseEither(last, range.last);
  if (lastFamily === 0) return 'the last address cannot be read';
  return settle(range, firstFamily, lastFamily);
}

function readDecimal(first: string, last: string, family: Family | undefined, range: Range): string | undefined {
  if (!parseDecimal(first, range.first)) return 'the first address is no decimal number of up to 128 bits';
  if (!parseDecimal(last, range.last)) return 'the last address is no decimal number of up to 128 bits';
  if (family === 6 || (family === undefined && !fitsIPv4(range.last))) return settle(range, 6, 6);
  if (!fitsIPv4(range.last) || !fitsIPv4(range.first)) return 'the number is above the last IPv4 address';
  range.first[0] = range.first[3]!;
  range.last[0] = range.last[3]!;
  return settle(range, 4, 4);
}

function readCidr(text: string, range: Range): string | undefined {
  const block = parseCidr(text, range.first, range.last);
  if (block === undefined) return 'the CIDR block cannot be read';
  // A block of the vendor's would end elsewhere than its neighbors expect: one of the two numbers is wrong.
  if (block.hostBitsSet) return `the CIDR block has bits set behind its ${block.prefix} bits of prefix`;
  return settle(range, block.family, block.family);
}

function readCount(start: string, count: string, range: Range): string | undefined {
  const family = parseEither(start, range.first);
  if (family === 0) return 'the first address cannot be read';
  if (!parseDecimal(count, range.last) || isZero(range.last)) return 'the count is no number of addresses';
  if (!addCount(range, family)) return 'the range runs past the last address there is';
  return settle(range, family, family);
}

/** An address in the family it is written in: an IPv4-mapped one stays IPv6. Returns 0 where it cannot be read. */
function parseEither(text: string, words: Uint32Array): Family | 0 {
  const v4 = parseIPv4(text);
  if (v4 < 0) return parseIPv6(text, words) ? 6 : 0;
  words[0] = v4;
  return 4;
}

/** Whether four words hold a number below 2^32. */
function fitsIPv4(words: Uint32Array): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0;
}

function isZero(words: Uint32Array): boolean {
  return fitsIPv4(words) && words[3] === 0;
}

/** Turns the count in `last`, 128 bits, into the last address: first + count - 1. Returns whether there is such an address. */
function addCount({ first, last }: Range, family: Family): boolean {
  const above = 4 - addressWords(family); // words that the count has above those of the address
  let carry = -1;
  for (let i = 3; i >= 0; i--) {
    const sum = last[i]! + (i < above ? 0 : first[i - above]!) + carry;
    last[i] = sum; // modulo 2^32
    carry = Math.floor(sum / 0x1_0000_0000);
  }
  if (carry !== 0 || family === 6) return carry === 0;
  const fits = fitsIPv4(last);
  last[0] = last[3]!;
  return fits;
}

/**
 * Brings both ends into one family and compares them. A range that lies in the IPv4-mapped block is an IPv4 range; one that
 * only reaches into it stays IPv6.
 */
function settle(range: Range, firstFamily: Family, lastFamily: Family): string | undefined {
  const { first, last } = range;
  let a = firstFamily;
  let b = lastFamily;
  if (a === 6 && isMapped(first) && (b === 4 || isMapped(last))) {
    first[0] = first[3]!;
    a = 4;
  }
  if (b === 6 && a === 4 && isMapped(last)) {
    last[0] = last[3]!;
    b = 4;
  }
  if (a !== b) return 'one address is IPv4, the other IPv6';
  range.family = a;
  const width = addressWords(a);
  for (let i = 0; i < width; i++) {
    if (first[i]! < last[i]!) return undefined;
    if (first[i]! > last[i]!) return 'the last address is below the first';
  }
  return undefined;
}
