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
  /** Finer parts of the crowded buckets, once a search needs them. */
  divisions6: Divisions | undefined;
}

/** Entries of an index up to which a loop is faster than a fill. */
const FEW_BUCKETS = 16;

/**
 * Returns, for each value of the top 16 bits of an address, how many ranges begin below it.
 *
 * @param count number of ranges
 * @param starts where they begin: the most significant word of range `i` is element `stride * i + top`
 */
export function buildIndex(count: number, starts: Uint32Array, stride = 1, top = 0): Uint32Array {
  const index = new Uint32Array(INDEX_ENTRIES);
  let last = -1;
  for (let range = 0; range < count; range++) {
    const bucket = starts[stride * range + top]! >>> 16;
    // A file of few ranges is made before the loop is compiled.
    if (bucket - last > FEW_BUCKETS) index.fill(range, last + 1, bucket + 1);
    else while (last < bucket) index[++last] = range;
    last = bucket;
  }
  return index.fill(count, last + 1);
}

/**
 * Finer parts of IPv6. Only few blocks of the address space are in use: 46 of the 65,536 buckets hold nearly all ranges, up
 * to 40,000 each. A crowded bucket is divided by the next eight bits of the address, a crowded part by the eight bits after
 * them, and so on. A division is made when a search first needs it, because most users look up few addresses.
 */
export interface Divisions {
  /** The number of the division of each bucket, from 1; 0 if it has none yet. */
  ofBucket: Uint16Array;
  /** For each division, how many ranges begin below each of its parts, and below its end: {@link STRIDE} elements each. */
  below: Uint32Array;
  /** The number of the division of each part; 0 if it has none yet. In the same places as `below`. */
  ofPart: Uint16Array;
  count: number;
}

/** Elements of a division: one for each of 256 parts, and one for the end. Those of number 0 are not used. */
const STRIDE = 257;

/** A bucket or part with more ranges is crowded: a binary search in it takes seven steps or more. */
const CROWDED = 64;

/** Divisions of divisions that the first 64 bits of an address can have. */
const MAX_DEPTH = 6;

/** Most divisions: numbers of 16 bits are searched faster. The countries of the world need 1,213. */
const MAX_DIVISIONS = 65_535;

function noDivisions(): Divisions {
  const ofBucket = new Uint16Array(INDEX_ENTRIES - 1);
  return { ofBucket, below: new Uint32Array(0), ofPart: new Uint16Array(0), count: 0 };
}

/** Makes room for one more division: twice as much each time. */
function grow(divisions: Divisions): void {
  const length = (divisions.count + 2) * STRIDE;
  if (length <= divisions.below.length) return;
  const { below, ofPart } = divisions;
  divisions.below = new Uint32Array(2 * length);
  divisions.below.set(below);
  divisions.ofPart = new Uint16Array(2 * length);
  divisions.ofPart.set(ofPart);
}

/**
 * Divides the crowded bucket or part that an address is in.
 *
 * @param from place of the part in `below`; 0 for the bucket
 * @param low the first of its ranges; @param high the one after the last
 * @param depth how many times the address space was divided there
 * @returns false if there are too many divisions
 */
function divide(file: SearchColumns, bucket: number, from: number, low: number, high: number, depth: number): boolean {
  const { high6 } = file;
  const divisions = file.divisions6!;
  if (divisions.count === MAX_DIVISIONS) return false;
  grow(divisions);
  const number = ++divisions.count;
  const at = number * STRIDE;
  if (from === 0) divisions.ofBucket[bucket] = number;
  else divisions.ofPart[from] = number;
  const bits = 16 + 8 * depth;
  const word = bits < 32 ? 1 : 0;
  const shift = 24 - (bits & 31);
  let range = low;
  for (let part = 0; part < STRIDE - 1; part++) {
    while (range < high && ((high6[2 * range + word]! >>> shift) & 0xff) < part) range++;
    divisions.below[at + part] = range;
  }
  divisions.below[at + STRIDE - 1] = high;
  return true;
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
  file.divisions6 ??= noDivisions();
  const { ofBucket, below, ofPart } = file.divisions6;
  const w0 = words[0]!;
  const w1 = words[1]!;
  const w2 = words[2]!;
  const w3 = words[3]!;
  const bucket = w0 >>> 16;
  // Finds the first range of [low, high) that begins above the address; the result is the one before it.
  let low = index6[bucket]!;
  let high = index6[bucket + 1]!;
  // The bits after those of the bucket: the upper eight of `next` choose the part.
  let next = (w0 << 16) | (w1 >>> 16);
  let rest = w1 << 16;
  let at = 0;
  let depth = 0;
  for (let division = ofBucket[bucket]!; division !== 0; division = ofPart[at]!) {
    at = division * STRIDE + (next >>> 24);
    low = below[at]!;
    high = below[at + 1]!;
    next = (next << 8) | (rest >>> 24);
    rest <<= 8;
    depth++;
  }
  if (high - low > CROWDED && depth < MAX_DEPTH) {
    if (divide(file, bucket, at, low, high, depth)) return findIPv6(file, words);
  }
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
