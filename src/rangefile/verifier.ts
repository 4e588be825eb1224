/** Verifies a whole range file: everything that opening does not check. */
import type { Family } from '../address/parse.js';
import { addressWords, compareAddresses } from '../address/words.js';
import { crypto } from '../builtins.js';
import { type AtlasError, damagedRelease } from '../errors.js';
import {
  cellsOf,
  ENTRY,
  ENTRY_BYTES,
  HEADER,
  HEADER_BYTES,
  type LabelRecord,
  MAX_CONFIDENCE,
  recordKey,
} from './layout.js';
import type { Partition } from './partitions.js';
import { type PartitionFile, type RangeFile, rangeColumns } from './reader.js';
import { buildIndex } from './search.js';

const damaged = ({ path }: PartitionFile, what: string): AtlasError => damagedRelease(`${path}: ${what}`);

function checkSum(file: PartitionFile): void {
  const stored = file.bytes.subarray(HEADER.sha256, HEADER.sha256 + 32);
  const actual = crypto().createHash('sha256').update(file.bytes.subarray(file.headEnd)).digest();
  if (!actual.equals(stored)) throw damaged(file, 'its content does not match its SHA-256');
}

/** Checks that bytes outside all sections are zero, so that the same content gives the same file. */
function checkPadding(file: PartitionFile): void {
  const view = new DataView(file.bytes.buffer, file.bytes.byteOffset, file.bytes.byteLength);
  let end = file.headEnd;
  for (let entry = HEADER_BYTES; entry < file.headEnd; entry += ENTRY_BYTES) {
    const offset = Number(view.getBigUint64(entry + ENTRY.offset, true));
    if (offset < end) throw damaged(file, `two sections overlap at byte ${offset}`);
    for (let at = end; at < offset; at++) {
      if (file.bytes[at] !== 0) throw damaged(file, `byte ${at}, between two sections, is not zero`);
    }
    end = offset + Number(view.getBigUint64(entry + ENTRY.length, true));
  }
  if (end !== file.bytes.length) throw damaged(file, `${file.bytes.length - end} bytes follow its last section`);
  for (let at = HEADER.sha256 + 32; at < HEADER_BYTES; at++) {
    if (file.bytes[at] !== 0) throw damaged(file, `byte ${at} of its header is not zero`);
  }
}

function checkRecords(file: PartitionFile): void {
  // Opening checked that every record number exists.
  const used = new Uint8Array(file.records.length);
  for (const id of file.record4) used[id] = 1;
  for (const id of file.record6) used[id] = 1;
  file.records.forEach((record, index) => {
    if (used[index] === 0) throw damaged(file, `record ${index} is used by no range`);
    if (record.kind === 'country' && !/^[A-Z]{2}$/.test(record.code)) {
      throw damaged(file, `record ${index} has the country code ${JSON.stringify(record.code)}`);
    }
    const before = file.records[index - 1];
    if (before !== undefined && recordKey(before) >= recordKey(record)) {
      throw damaged(file, `records ${index - 1} and ${index} are out of order`);
    }
  });
}

function checkColumn(file: PartitionFile, family: Family): void {
  const { count, first, value: record } = rangeColumns(file, family);
  const words = addressWords(family);
  for (let i = 1; i < count; i++) {
    if (compareAddresses(first, i, first, i - 1, words) <= 0) {
      throw damaged(file, `IPv${family} ranges ${i - 1} and ${i} are out of order`);
    }
    if (record[i] === record[i - 1]) throw damaged(file, `IPv${family} ranges ${i - 1} and ${i} have the same record`);
  }
  if (family === 4 && record.some((id) => file.records[id]!.kind === 'embedded')) {
    throw damaged(file, 'an IPv4 range refers to an embedded IPv4 address');
  }
  const expected = buildIndex(count, first, words);
  const stored = family === 4 ? file.index4 : file.index6;
  const wrong = expected.findIndex((value, bucket) => stored[bucket] !== value);
  if (wrong >= 0) throw damaged(file, `entry ${wrong} of the IPv${family} index is wrong`);
}

function checkConfidence(file: PartitionFile & Partial<RangeFile>): void {
  for (const [family, column] of [
    [4, file.confidence4],
    [6, file.confidence6],
  ] as const) {
    const wrong = column?.findIndex((percent) => percent > MAX_CONFIDENCE) ?? -1;
    if (wrong >= 0) throw damaged(file, `IPv${family} range ${wrong} has a confidence above ${MAX_CONFIDENCE} %`);
  }
}

/** Checks that records are rows with a value for each column. */
function checkRows(file: PartitionFile, flags: readonly string[]): void {
  const { columns } = file;
  if (columns === undefined) return;
  const types = columns.map((column) => (flags.includes(column) ? 'boolean' : 'string'));
  file.records.forEach((record, index) => {
    if (record.kind === 'label' && !isRow(record, types)) {
      throw damaged(file, `record ${index} is not a row of ${columns.length} values`);
    }
  });
}

/**
 * Verifies an open range file of any partition: checksum, padding, order of ranges, merged neighbors, indexes, and records.
 *
 * @param partition whose file it is, if its records are rows of values
 * @throws AtlasError E_DAMAGED, with what is wrong and its position
 */
export function verifyRangeFile(file: PartitionFile, { flags = [] }: Pick<Partition, 'flags'> = {}): void {
  checkSum(file);
  checkPadding(file);
  checkColumn(file, 4);
  checkColumn(file, 6);
  checkRecords(file);
  checkConfidence(file as PartitionFile & Partial<RangeFile>);
  checkRows(file, flags);
}

/** Returns whether a row is a JSON array of values of these types and nulls. */
function isRow(record: LabelRecord & { kind: 'label' }, types: readonly string[]): boolean {
  try {
    const row: unknown = cellsOf(record);
    const isValid = Array.isArray(row) && row.length === types.length;
    return isValid && row.every((value, index) => value === null || typeof value === types[index]);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
