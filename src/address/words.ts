/**
 * Arithmetic on addresses as 32-bit words, most significant first: one word for an IPv4 address, four for an IPv6
 * address. A column holds the words of many addresses one after another, so an address is a column and an index.
 */
import type { Family } from './parse.js';

/** Bits in an address of the family. */
export function addressBits(family: Family): 32 | 128 {
  return family === 4 ? 32 : 128;
}

/** 32-bit words in an address of the family. */
export function addressWords(family: Family): 1 | 4 {
  return family === 4 ? 1 : 4;
}

/**
 * Compares address `i` of column `a` with address `j` of column `b`.
 *
 * @param words words per address
 * @returns negative, zero or positive, as `Array.prototype.sort` expects
 */
export function compareAddresses(a: Uint32Array, i: number, b: Uint32Array, j: number, words: number): number {
  let x = i * words;
  let y = j * words;
  for (const end = x + words; x < end; x++, y++) {
    const difference = a[x]! - b[y]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Whether `address` is in the range from `first` to `last`, inclusive. All three have the same number of words. */
export function rangeContains(first: Uint32Array, last: Uint32Array, address: Uint32Array): boolean {
  const words = address.length;
  return compareAddresses(first, 0, address, 0, words) <= 0 && compareAddresses(address, 0, last, 0, words) <= 0;
}

/** Copies address `index` of a column into `target`. */
export function copyAddress(column: Uint32Array, index: number, words: number, target: Uint32Array): void {
  for (let k = 0; k < words; k++) target[k] = column[index * words + k]!;
}

/**
 * Writes the address after address `index` of a column into `target`.
 *
 * @returns false if there is none: the address is the last of its family, and `target` is zero
 */
export function nextAddress(column: Uint32Array, index: number, words: number, target: Uint32Array): boolean {
  let carry = 1;
  for (let k = words - 1; k >= 0; k--) {
    const sum = column[index * words + k]! + carry;
    carry = sum > 0xffffffff ? 1 : 0;
    target[k] = sum; // modulo 2^32
  }
  return carry === 0;
}

/**
 * Writes the address before address `index` of a column into `target`.
 *
 * @returns false if there is none: the address is zero, and `target` is the last address of its family. So the last address of a
 *   range is the one before the first of the next range, and after the last range comes the first, at zero
 */
export function previousAddress(column: Uint32Array, index: number, words: number, target: Uint32Array): boolean {
  let borrow = 1;
  for (let k = words - 1; k >= 0; k--) {
    const difference = column[index * words + k]! - borrow;
    borrow = difference < 0 ? 1 : 0;
    target[k] = difference; // modulo 2^32
  }
  return borrow === 0;
}

/** Whether `next` is the address right after `address`. */
export function isNextAddress(address: Uint32Array, next: Uint32Array): boolean {
  let carry = 1;
  for (let k = address.length - 1; k >= 0; k--) {
    const sum = address[k]! + carry;
    carry = sum > 0xffffffff ? 1 : 0;
    if (next[k] !== sum >>> 0) return false;
  }
  return carry === 0;
}

/** Returns the number of addresses in a range; both ends are inclusive. */
export function rangeSize(first: Uint32Array, last: Uint32Array): bigint {
  if (first.length === 1) return BigInt(last[0]! - first[0]! + 1);
  let size = 0n;
  for (let k = 0; k < first.length; k++) size = (size << 32n) + BigInt(last[k]! - first[k]!);
  return size + 1n;
}

/**
 * Returns whether a range, given by columns of first and last addresses, has at least as many addresses as a prefix.
 *
 * @param words words per address
 * @param length of the prefix in bits, at least 1
 */
export function isAsWideAs(
  first: Uint32Array,
  last: Uint32Array,
  index: number,
  words: number,
  length: number,
): boolean {
  // The size, last - first + 1, is computed from its last word on. It has the bit of the prefix's size, or a higher one, or not.
  const place = (length - 1) >> 5;
  const bit = 2 ** (31 - ((length - 1) & 31));
  let carry = 1;
  for (let k = words - 1; k >= 0; k--) {
    const sum = last[index * words + k]! - first[index * words + k]! + carry;
    carry = Math.floor(sum / 2 ** 32);
    if (k <= place && sum - carry * 2 ** 32 >= (k === place ? bit : 1)) return true;
  }
  return carry > 0;
}

/**
 * Returns whether a range, given by columns of first and last addresses, begins and ends with a prefix of a length.
 *
 * @param words words per address
 * @param length in bits
 */
export function isOnBoundaries(
  first: Uint32Array,
  last: Uint32Array,
  index: number,
  words: number,
  length: number,
): boolean {
  for (let k = length >>> 5; k < words; k++) {
    const mask = hostMask(length, k);
    const at = index * words + k;
    if ((first[at]! & mask) !== 0 || (~last[at]! & mask) !== 0) return false;
  }
  return true;
}

/**
 * Returns how many bits two addresses, each at an index of a column, have in common from the most significant one.
 *
 * @param words words per address
 */
export function commonBits(a: Uint32Array, i: number, b: Uint32Array, j: number, words: number): number {
  for (let k = 0; k < words; k++) {
    const differing = a[i * words + k]! ^ b[j * words + k]!;
    if (differing !== 0) return 32 * k + Math.clz32(differing);
  }
  return 32 * words;
}

/**
 * Compares the sizes of the ranges `i` and `j`, given by columns of first and last addresses.
 *
 * @param words words per address
 * @returns negative, zero or positive
 */
export function compareSizes(first: Uint32Array, last: Uint32Array, i: number, j: number, words: number): number {
  // Long subtraction from the least significant word: the last difference found is that of the most significant word.
  let order = 0;
  let borrowI = 0;
  let borrowJ = 0;
  for (let k = words - 1; k >= 0; k--) {
    const differenceI = last[i * words + k]! - first[i * words + k]! - borrowI;
    const differenceJ = last[j * words + k]! - first[j * words + k]! - borrowJ;
    borrowI = differenceI < 0 ? 1 : 0;
    borrowJ = differenceJ < 0 ? 1 : 0;
    const wordI = differenceI >>> 0;
    const wordJ = differenceJ >>> 0;
    if (wordI !== wordJ) order = wordI - wordJ;
  }
  return order;
}

/**
 * Returns addresses as bytes in network order, 4 for each word.
 *
 * @param words addresses of either family, one after another; not changed
 */
export function networkBytes(words: Uint32Array): Buffer {
  // Words are little-endian in memory: the range file can be read on little-endian machines only.
  return Buffer.from(words.slice().buffer).swap32();
}

/** Returns the mask of the host bits in word `index` of an address with a prefix of `prefix` bits: 1 for each host bit. */
export function hostMask(prefix: number, index: number): number {
  const bits = Math.min(32, Math.max(0, prefix - 32 * index));
  return bits === 32 ? 0 : 0xffffffff >>> bits;
}
