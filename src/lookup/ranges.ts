/** The ranges of a compact form, as the columns that searches need. */
import type { PartitionReader } from '../compact/partition.js';
import { buildIndex, type SearchColumns } from '../rangefile/search.js';

/**
 * Reads the ranges of both families.
 *
 * @param column makes a column of so many records
 * @throws AtlasError E_DAMAGED if they are not as FORMAT.md of the compact form says
 */
export function readRanges<Column extends Uint16Array | Uint32Array>(
  ranges4: PartitionReader,
  ranges6: PartitionReader,
  column: (count: number) => Column,
): SearchColumns & { record4: Column; record6: Column } {
  const start4 = new Uint32Array(ranges4.count);
  const record4 = column(ranges4.count);
  for (let at = 0, length = ranges4.nextBlock(); length > 0; at += length, length = ranges4.nextBlock()) {
    start4.set(ranges4.first.subarray(0, length), at);
    record4.set(ranges4.records.subarray(0, length), at);
  }
  const high6 = new Uint32Array(2 * ranges6.count);
  const low6 = new Uint32Array(2 * ranges6.count);
  const record6 = column(ranges6.count);
  for (let at = 0, length = ranges6.nextBlock(); length > 0; at += length, length = ranges6.nextBlock()) {
    const { first } = ranges6;
    for (let i = 0; i < length; i++) {
      high6[2 * (at + i) + 1] = first[4 * i]!;
      high6[2 * (at + i)] = first[4 * i + 1]!;
      low6[2 * (at + i) + 1] = first[4 * i + 2]!;
      low6[2 * (at + i)] = first[4 * i + 3]!;
    }
    record6.set(ranges6.records.subarray(0, length), at);
  }
  return {
    start4Low: new Uint16Array(start4.buffer),
    record4,
    index4: buildIndex(start4.length, start4),
    high6,
    low6,
    record6,
    index6: buildIndex(record6.length, high6, 2, 1),
    divisions6: undefined,
  };
}
