/** IPv6 ranges as the columns `first` and `last` of the mirror. */
import { networkBytes, previousAddress } from '../address/words.js';
import type { RangeColumns } from '../range/columns.js';

/**
 * Returns the first and the last addresses of IPv6 ranges, 16 bytes each, in network order.
 *
 * @param ranges a partition of the address space
 * @param from the first of the ranges that are wanted
 * @param to the one after the last of them
 */
export function ipv6Bounds({ count, first }: RangeColumns, from = 0, to = count): { first: Buffer; last: Buffer } {
  const last = new Uint32Array(4 * (to - from));
  // A range ends before the next one begins; before the first range, at zero, is the last address of all.
  for (let range = from; range < to; range++) {
    previousAddress(first, (range + 1) % count, 4, last.subarray(4 * (range - from)));
  }
  return { first: networkBytes(first.subarray(4 * from, 4 * to)), last: networkBytes(last) };
}
