/** Files of ranges that are in memory only. */
import type { RangeColumns } from '../range/columns.js';
import { type FileRecord, type RangeRecord, recordMembers } from './layout.js';
import type { PartitionContent, PartitionFile, RangeFile } from './partitions.js';
import { buildIndex } from './search.js';

export interface RangeFileContent<Rec extends FileRecord = RangeRecord> extends PartitionContent<Rec> {
  /** `YYYY-MM-DD`. */
  asOf: string;
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

type ColumnsOf<Value> = Omit<RangeColumns, 'value'> & { value: Value };

/** Returns IPv4 ranges as the columns of a file. */
export function columns4<Value>({ count, first, value }: ColumnsOf<Value>) {
  const start4Low = new Uint16Array(first.buffer, first.byteOffset, 2 * count);
  return { count4: count, start4: first, start4Low, record4: value, index4: buildIndex(count, first) };
}

/** Returns IPv6 ranges as the columns of a file. */
export function columns6<Value>({ count, first, value }: ColumnsOf<Value>) {
  const { high, low } = splitIPv6(count, first);
  return { count6: count, high6: high, low6: low, record6: value, index6: buildIndex(count, first, 4) };
}

/** Returns the members of a file in memory that are not columns; `bytes` is only for checks of a file on disk. */
function otherMembers<Rec extends FileRecord>(asOf: string, records: readonly Rec[], path: string) {
  return { path, bytes: new Uint8Array(0), headEnd: 0, asOf, ...recordMembers([...records]), divisions6: undefined };
}

/** Answers of a day. The functions return the ranges of a family, whose columns are used, not copied. */
export type DayContent = Pick<RangeFileContent, 'asOf' | 'records'> & Record<'v4' | 'v6', () => ColumnsOf<Uint16Array>>;

/** Adds members that are made together when one of them is first read. */
function addLazily<Members extends object>(file: object, names: readonly (keyof Members)[], make: () => Members): void {
  let made: Members | undefined;
  const members = (): Members => {
    made ??= make();
    return made;
  };
  for (const name of names) Object.defineProperty(file, name, { enumerable: true, get: () => members()[name] });
}

/**
 * Makes a range file that is in memory only, for answers that are not those of a release: in far less time than encoding
 * and decoding one takes. The columns of a family are made when one of them is first read.
 *
 * @param path what messages call the file
 */
export function rangeFileInMemory({ asOf, records, v4, v6 }: DayContent, path: string): RangeFile {
  const file = { ...otherMembers(asOf, records, path), confidence4: undefined, confidence6: undefined };
  addLazily(file, ['count4', 'start4', 'start4Low', 'record4', 'index4'], () => columns4(v4()));
  addLazily(file, ['count6', 'high6', 'low6', 'record6', 'index6'], () => columns6(v6()));
  return file as unknown as RangeFile;
}

/** Makes a file of any records that is in memory only; see {@link rangeFileInMemory}. */
export function partitionInMemory<Rec extends FileRecord>(
  { asOf, v4, v6, records }: Omit<RangeFileContent<Rec>, 'confidence'>,
  path: string,
): PartitionFile<Rec> {
  return { ...otherMembers(asOf, records, path), ...columns4(v4), ...columns6(v6) };
}
