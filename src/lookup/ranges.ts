/** The ranges of a compact form, as the columns that searches need. */
import type { DecodedPartition } from '../compact/partition.js';
import type { SearchColumns } from '../rangefile/search.js';

type Column = Uint16Array | Uint32Array;

export type Ranges<V extends Column> = SearchColumns & { record4: V; record6: V };

/**
 * Returns the columns of both families.
 *
 * @param v6 the ranges of IPv6, decoded for searches. They are best decoded first: V8 compiles the loop with what it has seen,
 *   and IPv4 has nothing that IPv6 has not
 * @param v4 those of IPv4
 */
export function searchable<V extends Column>(v6: DecodedPartition<V>, v4: DecodedPartition<V>): Ranges<V> {
  return {
    start4Low: new Uint16Array(v4.first.buffer),
    record4: v4.value,
    index4: v4.index,
    high6: v6.first.subarray(0, 2 * v6.count),
    low6: v6.first.subarray(2 * v6.count),
    record6: v6.value,
    index6: v6.index,
    divisions6: undefined,
  };
}
