/** Finds the range of a range file that contains an address. */
import { DENSE_STRIDE, denseIndex, type RangeFile } from './reader.js';

/**
 * Finds the range that contains an IPv4 address.
 *
 * @param address as a 32-bit integer, signed or unsigned. V8 needs no heap number for a signed one
 * @returns index of the range
 */
export function findIPv4(file: RangeFile, address: number): number {
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
export function findIPv6(file: RangeFile, words: Uint32Array): number {
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
