/** Parses the range of a row, in each notation that sources use. */
import { type Family, isMapped, parseIPv4, parseIPv6 } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { parseCidr } from '../../src/range/cidr.js';
import { parseDecimal } from './decimal.js';
import type { RangeNotation } from './formats.js';

/** A range; one object is reused for all rows. */
export interface Range {
  family: Family;
  /** First address: one word (IPv4) or four, most significant first, in an array of four. */
  readonly first: Uint32Array;
  /** Last address, inclusive, in the same form. */
  readonly last: Uint32Array;
}

/** Parses a row's range into `range`. Returns undefined, or the reason why the row has no valid range. */
export type RangeParser = (row: readonly string[], range: Range) => string | undefined;

export function emptyRange(): Range {
  return { family: 4, first: new Uint32Array(4), last: new Uint32Array(4) };
}

/**
 * Returns the parser for a notation.
 *
 * @param columns the columns that `notationColumns` returns, as numbers; every row must have them
 */
export function rangeParser(notation: RangeNotation, columns: readonly number[]): RangeParser {
  const a = columns[0]!;
  const b = columns[1] ?? a;
  if ('text' in notation) return (row, range) => parseTextRange(row[a]!, row[b]!, range);
  if ('decimal' in notation) {
    const { family } = notation.decimal;
    return (row, range) => parseDecimalRange(row[a]!, row[b]!, family, range);
  }
  if ('cidr' in notation) return (row, range) => parseCidrRange(row[a]!, range);
  if ('count' in notation) return (row, range) => parseCountRange(row[a]!, row[b]!, range);
  if ('prefix' in notation) return (row, range) => parseCidrRange(`${row[a]}/${row[b]}`, range);
  return (row, range) => parseRirRange(row[a]!, row[b]!, range);
}

/**
 * Parses a delegation in the RIR statistics exchange format. Returns undefined, or the reason why it is not valid.
 *
 * @param start first address
 * @param value prefix length of an IPv6 delegation, number of addresses of an IPv4 delegation
 */
export function parseRirRange(start: string, value: string, range: Range): string | undefined {
  return start.includes(':') ? parseCidrRange(`${start}/${value}`, range) : parseCountRange(start, value, range);
}

function parseTextRange(first: string, last: string, range: Range): string | undefined {
  const firstFamily = parseAsWritten(first, range.first);
  if (firstFamily === 0) return 'the first address cannot be read';
  const lastFamily = parseAsWritten(last, range.last);
  if (lastFamily === 0) return 'the last address cannot be read';
  return toOneFamily(range, firstFamily, lastFamily);
}

function parseDecimalRange(first: string, last: string, family: Family | undefined, range: Range): string | undefined {
  if (!parseDecimal(first, range.first)) return 'the first address is not a decimal number of up to 128 bits';
  if (!parseDecimal(last, range.last)) return 'the last address is not a decimal number of up to 128 bits';
  if (family === 6 || (family === undefined && !fitsIPv4(range.last))) return toOneFamily(range, 6, 6);
  if (!fitsIPv4(range.last) || !fitsIPv4(range.first)) return 'the number is above the last IPv4 address';
  range.first[0] = range.first[3]!;
  range.last[0] = range.last[3]!;
  return toOneFamily(range, 4, 4);
}

/** Parses a CIDR block or a single address. Returns undefined, or the reason why it is not valid. */
export function parseCidrRange(text: string, range: Range): string | undefined {
  const block = parseCidr(text, range.first, range.last);
  if (block === undefined) return 'the CIDR block cannot be read';
  // Either the address or the prefix length is wrong, and nobody can tell which.
  if (block.hostBitsSet) return `the CIDR block has bits set after its ${block.prefix}-bit prefix`;
  return toOneFamily(range, block.family, block.family);
}

function parseCountRange(start: string, count: string, range: Range): string | undefined {
  const family = parseAsWritten(start, range.first);
  if (family === 0) return 'the first address cannot be read';
  if (!parseDecimal(count, range.last) || isZero(range.last)) return 'the count is not a number of addresses';
  if (!addCount(range, family)) return 'the range runs past the last address of its family';
  return toOneFamily(range, family, family);
}

/** Parses an address in the family it is written in: an IPv4-mapped one stays IPv6. Returns 0 if it is not valid. */
function parseAsWritten(text: string, words: Uint32Array): Family | 0 {
  const v4 = parseIPv4(text);
  if (v4 < 0) return parseIPv6(text, words) ? 6 : 0;
  words[0] = v4;
  return 4;
}

/** Returns whether four words hold a number below 2^32. */
function fitsIPv4(words: Uint32Array): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0;
}

function isZero(words: Uint32Array): boolean {
  return fitsIPv4(words) && words[3] === 0;
}

/** Replaces the 128-bit count in `last` by the last address, first + count - 1. Returns false if there is no such address. */
function addCount({ first, last }: Range, family: Family): boolean {
  const above = 4 - addressWords(family); // words that the count has more than the address, at its top
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
 * Brings both ends into one family and checks their order. A range inside the IPv4-mapped block becomes an IPv4 range;
 * one that only reaches into the block stays IPv6.
 *
 * @returns undefined, or the reason why the range is not valid
 */
function toOneFamily(range: Range, firstFamily: Family, lastFamily: Family): string | undefined {
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
  return compareAddresses(first, 0, last, 0, addressWords(a)) > 0 ? 'the last address is below the first' : undefined;
}
