/** Finds the range that contains an address: in a range file, or in columns of the same form. Nothing here needs Node. */
import { INDEX_ENTRIES } from './layout.js';

/** The columns of a range file that a search needs; see FORMAT.md. */
export interface SearchColumns {
  /** Low 16 bits of the first address of IPv4 range `i`: element `2 * i`. The element after it has the high 16 bits. */
  start4Low: Uint16Array;
  index4: Uint32Array;
  /** Two 32-bit words per IPv6 range, the less significant first. */
  high6: Uint32Array;
  low6: Uint32Array;
  index6: Uint32Array;
  /** A finer index of the crowded buckets, once a search has built it. */
  dense6: DenseIndex | undefined;
}

/**
 * Returns, for each value of the top 16 bits of an address, how many ranges begin below it.
 *
 * @param count number of ranges
 * @param starts where they begin: the most significant word of range `i` is element `stride * i + top`
 */
export function buildIndex(count: number, starts: Uint32Array, stride = 1, top = 0): Uint32Array {
  const index = new Uint32Array(INDEX_ENTRIES);
  let bucket = 0;
  for (let range = 0; range < count; range++) {
    const last = starts[stride * range + top]! >>> 16;
    while (bucket <= last) index[bucket++] = range;
  }
  index.fill(count, bucket);
  return index;
}

/**
 * A finer index of IPv6. Only few blocks of the address space are in use: 46 of the 65,536 buckets hold nearly all ranges, up
 * to 40,000 each. In these, the next eight bits of the address narrow down the search.
 */
export interface DenseIndex {
  /** By bucket: its number among the crowded buckets, from 1; 0 for all others. */
  number: Uint16Array;
  /**
   * {@link DENSE_STRIDE} elements per crowded bucket: element k is the number of ranges that begin below part k of the
   * bucket, and the last element the number of ranges that begin below the next bucket.
   */
  below: Uint32Array;
}

/** Elements per crowded bucket: one for each of 256 parts, and one for the end. */
const DENSE_STRIDE = 257;

/** A bucket with more ranges is crowded: a binary search in it takes seven steps or more. */
const CROWDED = 64;

function buildDenseIndex({ high6, index6 }: SearchColumns): DenseIndex {
  const number = new Uint16Array(INDEX_ENTRIES - 1);
  let crowded = 0;
  for (let bucket = 0; bucket < number.length; bucket++) {
    if (index6[bucket + 1]! - index6[bucket]! > CROWDED) number[bucket] = ++crowded;
  }
  const below = new Uint32Array((crowded + 1) * DENSE_STRIDE);
  for (let bucket = 0; bucket < number.length; bucket++) {
    if (number[bucket] === 0) continue;
    const end = index6[bucket + 1]!;
    let range = index6[bucket]!;
    for (let part = 0; part < DENSE_STRIDE; part++) {
      while (range < end && ((high6[2 * range + 1]! >>> 8) & 0xff) < part) range++;
      below[number[bucket]! * DENSE_STRIDE + part] = range;
    }
  }
  return { number, below };
}

/** Returns the finer index of a file. It is built on first use, because not every user of the file needs it. */
function denseIndex(file: SearchColumns): DenseIndex {
  file.dense6 ??= buildDenseIndex(file);
  return file.dense6;
}

/**
 * Finds the range that contains an IPv4 address.
 *
 * @param address as a 32-bit integer, signed or unsigned. V8 needs no heap number for a signed one
 * @returns index of the range
 */
export function findIPv4(file: SearchColumns, address: number): number {
  const { start4Low, index4 } = file;
  const bucket = address >>> 16;
  const above = (address & 0xffff) + 1;
  // The last range that is known to begin at or below the address, and the number of ranges after it that may do so.
  let range = index4[bucket]! - 1;
  let left = index4[bucket + 1]! - 1 - range;
  while (left > 0) {
    const half = (left + 1) >> 1;
    // Within a bucket, the low 16 bits decide. The difference is negative if the range begins at or below the address. Its
    // sign, extended to all bits, selects the step or zero: the processor would mispredict every other branch here.
    range += half & ((start4Low[2 * (range + half)]! - above) >> 31);
    left -= half;
  }
  return range;
}

/**
 * Finds the range that contains an IPv6 address.
 *
 * @param words the address, four 32-bit words, most significant first
 * @returns index of the range
 */
export function findIPv6(file: SearchColumns, words: Uint32Array): number {
  const { high6, low6, index6 } = file;
  const dense6 = file.dense6 ?? denseIndex(file);
  const w0 = words[0]!;
  const w1 = words[1]!;
  const w2 = words[2]!;
  const w3 = words[3]!;
  const bucket = w0 >>> 16;
  const crowded = dense6.number[bucket]!;
  const part = crowded * DENSE_STRIDE + ((w0 >>> 8) & 0xff);
  // Finds the first range of [low, high) that begins above the address; the result is the one before it.
  let low = crowded === 0 ? index6[bucket]! : dense6.below[part]!;
  let high = crowded === 0 ? index6[bucket + 1]! : dense6.below[part + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const at = 2 * middle;
    const word0 = high6[at + 1]!;
    let startsAbove = word0 > w0;
    if (word0 === w0) {
      const word1 = high6[at]!;
      startsAbove = word1 > w1;
      if (word1 === w1) {
        const word2 = low6[at + 1]!;
        startsAbove = word2 > w2 || (word2 === w2 && low6[at]! > w3);
      }
    }
    if (startsAbove) high = middle;
    else low = middle + 1;
  }
  return low - 1;
}
