/** The search in a range file: which range, and so which record, an address belongs to. */
import type { RangeFile } from './reader.js';

/**
 * The range that an IPv4 address lies in.
 *
 * @param address 0 to 2^32 - 1
 * @returns index of the range
 */
export function findIPv4(file: RangeFile, address: number): number {
  const { start4, index4 } = file;
  const bucket = address >>> 16;
  let low = index4[bucket]!;
  let high = index4[bucket + 1]!;
  // The first range of [low, high) that begins above the address; the answer is the one before it.
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (start4[middle]! <= address) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The range that an IPv6 address lies in.
 *
 * @param w0 bits 127–96 of the address; @param w1 bits 95–64; @param w2 bits 63–32; @param w3 bits 31–0
 * @returns index of the range
 */
export function findIPv6(file: RangeFile, w0: number, w1: number, w2: number, w3: number): number {
  const { high6, low6, index6 } = file;
  const bucket = w0 >>> 16;
  let low = index6[bucket]!;
  let high = index6[bucket + 1]!;
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
