/** IPv6 ranges as the columns `first` and `last` of the mirror. */
import { networkBytes, previousAddress } from '../address/words.js';
import type { RangeColumns } from '../range/columns.js';

/**
 * Returns the first and the last addresses of IPv6 ranges, 16 bytes each, in network order.
 *
 * @param ranges a partition of the address space
 */
export function ipv6Bounds({ count, first }: RangeColumns): { first: Buffer; last: Buffer } {
  const last = new Uint32Array(first.length);
  // A range ends before the next one begins; before the first range, at zero, is the last address of all.
  for (let range = 0; range < count; range++) {
    previousAddress(first, (range + 1) % count, 4, last.subarray(4 * range));
  }
  return { first: networkBytes(first), last: networkBytes(last) };
}
