/** Files of ranges that are in memory only. */
import type { RangeColumns } from '../range/columns.js';
import { type FileRecord, type RangeRecord, recordMembers } from './layout.js';
import type { PartitionFile, RangeFile } from './reader.js';
import { buildIndex } from './search.js';

export interface RangeFileContent<Rec extends FileRecord = RangeRecord> {
  /** `YYYY-MM-DD`. */
  asOf: string;
  /** IPv4 ranges; `value` is an index into `records`, as in `v6`. */
  v4: RangeColumns;
  v6: RangeColumns;
  records: readonly Rec[];
  /** Confidence of each range, in percent, if the sources voted. */
  confidence?: { v4: Uint8Array; v6: Uint8Array } | undefined;
}

/** Splits IPv6 first addresses into two columns of 64-bit numbers, each with the low word first (little-endian). */
export function splitIPv6(count: number, first: Uint32Array): { high: Uint32Array; low: Uint32Array } {
  const high = new Uint32Array(2 * count);
  const low = new Uint32Array(2 * count);
  for (let i = 0; i < count; i++) {
    high[2 * i + 1] = first[4 * i]!;
    high[2 * i] = first[4 * i + 1]!;
    low[2 * i + 1] = first[4 * i + 2]!;
    low[2 * i] = first[4 * i + 3]!;
  }
  return { high, low };
}

/**
 * Makes a range file that is in memory only, for answers that are not those of a release: in far less time than encoding
 * and decoding one takes.
 *
 * @param content the ranges of both families, and their records. The columns are used, not copied
 * @param path what messages call the file
 * @returns the file, without `bytes`, which only checks of a file on disk need
 */
export function rangeFileInMemory(
  { confidence, ...content }: RangeFileContent & { v4: { value: Uint16Array }; v6: { value: Uint16Array } },
  path: string,
): RangeFile {
  return {
    ...partitionInMemory(content, path),
    record4: content.v4.value,
    record6: content.v6.value,
    confidence4: confidence?.v4,
    confidence6: confidence?.v6,
  };
}

/** Makes a file of any records that is in memory only; see {@link rangeFileInMemory}. */
export function partitionInMemory<Rec extends FileRecord>(
  { asOf, v4, v6, records }: Omit<RangeFileContent<Rec>, 'confidence'>,
  path: string,
): PartitionFile<Rec> {
  const { high, low } = splitIPv6(v6.count, v6.first);
  return {
    path,
    bytes: new Uint8Array(0),
    headEnd: 0,
    asOf,
    ...recordMembers([...records]),
    count4: v4.count,
    start4: v4.first,
    start4Low: new Uint16Array(v4.first.buffer, v4.first.byteOffset, 2 * v4.count),
    record4: v4.value,
    index4: buildIndex(v4.count, v4.first),
    count6: v6.count,
    high6: high,
    low6: low,
    record6: v6.value,
    index6: buildIndex(v6.count, v6.first, 4),
    divisions6: undefined,
  };
}
