/** Verifies that the mirror has the same ranges, records and countries as the range file. */
import type Sqlite from 'better-sqlite3';
import type { Family } from '../address/parse.js';
import { networkBytes } from '../address/words.js';
import { AtlasError, causedError, damagedRelease, REBUILD } from '../errors.js';
import type { RangeColumns } from '../range/columns.js';
import { COUNTRIES, OpenPartitions, type Partition } from '../rangefile/partitions.js';
import { type PartitionFile, type RangeFile, rangeColumns } from '../rangefile/reader.js';
import { openMirror } from './reader.js';
import { ipv6Bounds, recordColumns, recordRows } from './writer.js';

/** Rows compared at a time. SQLite joins each of their columns into one text, which is many times as fast as reading single rows. */
const PAGE_ROWS = 2048;

/** One family: its table in the mirror, and its ranges in the range file. */
interface FamilyTable {
  family: Family;
  table: string;
  /** The column that says what the record is about. */
  subject: string;
  ranges: RangeColumns;
}

/** SQL expressions for the first and the last address, formatted as {@link boundsText} does but in any case. */
const ADDRESS_COLUMNS = { 4: ['first', 'last'], 6: ['hex(first)', 'hex(last)'] } as const;

/** Returns the first address of a range as a value of the column `first`. */
function firstOf({ family, first }: RangeColumns, range: number): number | Buffer {
  return family === 4 ? first[range]! : networkBytes(first.subarray(4 * range, 4 * range + 4));
}

/** Joins with commas the first addresses of the ranges from `from` to below `to`, and the last addresses. */
function boundsText(ranges: RangeColumns, from: number, to: number): [first: string, last: string] {
  if (ranges.family === 4) {
    const { first, count } = ranges;
    const last = first.subarray(from, to).map((_, i) => first[(from + i + 1) % count]! - 1);
    return [first.subarray(from, to).join(), last.join()];
  }
  const joined = (addresses: Buffer): string => addresses.toString('hex').replace(/.{32}\B/g, '$&,');
  const { first, last } = ipv6Bounds(ranges, from, to);
  return [joined(first), joined(last)];
}

/** Returns the expected columns of what ranges are about and of the reasons, by record number. */
function recordLabels({ records }: PartitionFile): string[] {
  return records.map((record, index) =>
    recordColumns(record, index)
      .map((cell) => cell ?? '')
      .join('|'),
  );
}

function compareFamily(
  database: Sqlite.Database,
  { family, table, subject, ranges }: FamilyTable,
  labels: readonly string[],
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const { count } = ranges;
  const [first, last] = ADDRESS_COLUMNS[family];
  const label = `ifnull(${subject}, '') || '|' || ifnull(reason, '')`;
  const rowsFrom = `FROM (SELECT * FROM ${table} WHERE first >= ? ORDER BY first LIMIT ${pageRows})`;
  const page = database
    .prepare<[number | Buffer], (string | null)[]>(
      `SELECT lower(group_concat(${first})), lower(group_concat(${last})), group_concat(${label}) ${rowsFrom}`,
    )
    .raw();
  for (let from = 0; from < count; from += pageRows) {
    const to = Math.min(from + pageRows, count);
    const labelText = Array.from(ranges.value.subarray(from, to), (id) => labels[id]).join();
    const expected = [...boundsText(ranges, from, to), labelText];
    const actual = page.get(firstOf(ranges, from))!;
    // No value has a comma, so equal texts are of equal rows.
    if (expected.every((column, index) => column === actual[index])) continue;
    const [firsts, lasts, ends] = expected.map((column) => column.split(','));
    const row = `SELECT lower(${first} || '-' || ${last}) || '|' || ${label} ${rowsFrom}`;
    const rows = database.prepare<[number | Buffer], string>(row).pluck().all(firstOf(ranges, from));
    const different = firsts!.findIndex((address, i) => rows[i] !== `${address}-${lasts![i]}|${ends![i]}`);
    if (different < 0) break; // There are more rows than ranges; the row count below reports it.
    const wanted = `${firsts![different]}-${lasts![different]}|${ends![different]}`;
    throw fail(`IPv${family} range ${from + different} is ${rows[different] ?? 'missing'}, not ${wanted}`);
  }
  const rows = database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  if (rows !== count) throw fail(`${rows} IPv${family} ranges, not ${count}`);
}

/** Compares both families of a file with their tables. */
function compareRanges(
  database: Sqlite.Database,
  { table, subject }: Partition,
  file: PartitionFile,
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const labels = recordLabels(file);
  for (const family of [4, 6] as const) {
    const own = { family, table: `ipv${family}_${table}`, subject, ranges: rangeColumns(file, family) };
    compareFamily(database, own, labels, pageRows, fail);
  }
}

/** Compares names and EU membership. */
function compareCountries(database: Sqlite.Database, file: RangeFile, fail: (what: string) => AtlasError): void {
  const find = database.prepare<[string], { name: string; is_eu: number }>(
    'SELECT name, is_eu FROM country WHERE code = ?',
  );
  for (const record of file.records) {
    if (record.kind !== 'country') continue;
    const row = find.get(record.code);
    if (row?.name !== record.name || (row.is_eu === 1) !== record.isEu) throw fail(`country ${record.code}`);
  }
}

/** Compares the records of a partition besides the countries. */
function compareRecords(
  database: Sqlite.Database,
  { table, subject }: Partition,
  file: PartitionFile,
  fail: (what: string) => AtlasError,
): void {
  const expected = recordRows(file);
  const count = database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  if (count !== expected.length) throw fail(`${count} rows of ${table}, not ${expected.length}`);
  const rows = database.prepare<[], (string | number | null)[]>(`SELECT * FROM ${table} ORDER BY ${subject}`).raw();
  let next = 0;
  for (const row of rows.iterate()) {
    const wanted = expected[next++]!;
    if (row.length === wanted.length && row.every((cell, i) => cell === wanted[i])) continue;
    throw fail(`${table} ${JSON.stringify(row)}, not ${JSON.stringify(wanted)}`);
  }
}

/**
 * Verifies that a mirror agrees with the range file.
 *
 * @param path of the mirror
 * @param file the range file, already verified
 * @param others what the release has besides the countries, already verified
 * @param pageRows rows compared at a time
 * @throws AtlasError E_DAMAGED with the first difference; E_NO_DATABASE if the mirror cannot be opened
 */
export function verifyMirror(
  path: string,
  file: RangeFile,
  others = new OpenPartitions(),
  pageRows: number = PAGE_ROWS,
): void {
  const failure =
    (other: PartitionFile) =>
    (what: string): AtlasError =>
      damagedRelease(`${path} differs from ${other.path}: ${what}`);
  const database = openMirror(path);
  try {
    compareRanges(database, COUNTRIES, file, pageRows, failure(file));
    compareCountries(database, file, failure(file));
    for (const [partition, other] of others.entries()) {
      compareRanges(database, partition, other, pageRows, failure(other));
      compareRecords(database, partition, other, failure(other));
    }
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError('E_DAMAGED', `${path}`, error, REBUILD);
  } finally {
    database.close();
  }
}
