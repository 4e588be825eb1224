/** Verifies that the mirror has the same ranges, records and countries as the range file. */
import type Sqlite from 'better-sqlite3';
import { AtlasError, causedError, damagedRelease, REBUILD } from '../errors.js';
import { COUNTRIES, OpenPartitions, type Partition } from '../rangefile/partitions.js';
import { type PartitionFile, type RangeFile, rangeColumns } from '../rangefile/reader.js';
import { ipv6Bounds } from './bounds.js';
import { openMirror } from './reader.js';
import { recordColumns, recordRows } from './writer.js';

/** Rows compared at a time. SQLite joins each of their columns into one text, which is many times as fast as reading single rows. */
const PAGE_ROWS = 2048;

/** One family: its table in the mirror, and its ranges in the range file. */
interface Family {
  name: string;
  /** Its table, and the column of that which says what the record is about. */
  table: string;
  subject: string;
  /** SQL expressions for the first and the last address, formatted as `bounds` does but in any case. */
  columns: readonly [first: string, last: string];
  count: number;
  record: Uint16Array | Uint32Array;
  /** Returns the first address of a range as a value of the column `first`. */
  first: (range: number) => number | Buffer;
  /** Joins with commas the first addresses of the ranges from `from` to below `to`, and the last addresses. */
  bounds: (from: number, to: number) => [first: string, last: string];
}

function ipv4Family({ count4, start4, record4 }: PartitionFile, { table, subject }: Partition): Family {
  const last = start4.map((_, range) => (range + 1 < count4 ? start4[range + 1]! - 1 : 0xffffffff));
  return {
    name: 'IPv4',
    table: `ipv4_${table}`,
    subject,
    columns: ['first', 'last'],
    count: count4,
    record: record4,
    first: (range) => start4[range]!,
    bounds: (from, to) => [start4.subarray(from, to).join(), last.subarray(from, to).join()],
  };
}

function ipv6Family(file: PartitionFile, { table, subject }: Partition): Family {
  const ranges = rangeColumns(file, 6);
  const joined = (addresses: Buffer): string => addresses.toString('hex').replace(/.{32}\B/g, '$&,');
  return {
    name: 'IPv6',
    table: `ipv6_${table}`,
    subject,
    columns: ['hex(first)', 'hex(last)'],
    count: file.count6,
    record: file.record6,
    first: (range) => ipv6Bounds(ranges, range, range + 1).first,
    bounds: (from, to) => {
      const { first, last } = ipv6Bounds(ranges, from, to);
      return [joined(first), joined(last)];
    },
  };
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
  family: Family,
  labels: readonly string[],
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const { name, table, subject, columns, count, record } = family;
  const [first, last] = columns;
  const label = `ifnull(${subject}, '') || '|' || ifnull(reason, '')`;
  const rowsFrom = `FROM (SELECT * FROM ${table} WHERE first >= ? ORDER BY first LIMIT ${pageRows})`;
  const page = database
    .prepare<[number | Buffer], (string | null)[]>(
      `SELECT lower(group_concat(${first})), lower(group_concat(${last})), group_concat(${label}) ${rowsFrom}`,
    )
    .raw();
  for (let from = 0; from < count; from += pageRows) {
    const to = Math.min(from + pageRows, count);
    const expected = [...family.bounds(from, to), Array.from(record.subarray(from, to), (id) => labels[id]).join()];
    const actual = page.get(family.first(from))!;
    // No value has a comma, so equal texts are of equal rows.
    if (expected.every((column, index) => column === actual[index])) continue;
    const [firsts, lasts, ends] = expected.map((column) => column.split(','));
    const row = `SELECT lower(${first} || '-' || ${last}) || '|' || ${label} ${rowsFrom}`;
    const rows = database.prepare<[number | Buffer], string>(row).pluck().all(family.first(from));
    const different = firsts!.findIndex((address, i) => rows[i] !== `${address}-${lasts![i]}|${ends![i]}`);
    if (different < 0) break; // There are more rows than ranges; the row count below reports it.
    const wanted = `${firsts![different]}-${lasts![different]}|${ends![different]}`;
    throw fail(`${name} range ${from + different} is ${rows[different] ?? 'missing'}, not ${wanted}`);
  }
  const rows = database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  if (rows !== count) throw fail(`${rows} ${name} ranges, not ${count}`);
}

/** Compares both families of a file with their tables. */
function compareRanges(
  database: Sqlite.Database,
  partition: Partition,
  file: PartitionFile,
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const labels = recordLabels(file);
  for (const family of [ipv4Family(file, partition), ipv6Family(file, partition)]) {
    compareFamily(database, family, labels, pageRows, fail);
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
