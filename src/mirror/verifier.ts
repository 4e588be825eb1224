/** Verifies that the mirror has the same ranges, records and countries as the range file. */
import type Sqlite from 'better-sqlite3';
import { AtlasError, causedError, damagedRelease, REBUILD } from '../errors.js';
import {
  type LabelFile,
  type NetworkFile,
  type PartitionFile,
  type RangeFile,
  rangeColumns,
} from '../rangefile/reader.js';
import { ipv6Bounds } from './bounds.js';
import { openMirror } from './reader.js';

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

function ipv4Family({ count4, start4, record4 }: PartitionFile, table: string, subject: string): Family {
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

function ipv6Family(file: PartitionFile, table: string, subject: string): Family {
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

/** Returns the expected columns `country_code`, `asn` or `label`, and `reason`, by record number. */
function recordLabels(file: PartitionFile): string[] {
  return file.records.map((record, index) => {
    if (record.kind === 'country') return `${record.code}|`;
    if (record.kind === 'network') return `${record.asn}|`;
    if (record.kind === 'label') return `${index}|`;
    return `|${record.kind === 'none' ? record.reason : record.scheme}`;
  });
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

/**
 * Compares both families of a file with their tables.
 *
 * @param table the end of the names of the tables
 * @param subject the column with what a record is about
 */
function compareRanges(
  database: Sqlite.Database,
  file: PartitionFile,
  table: string,
  subject: string,
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const labels = recordLabels(file);
  for (const family of [ipv4Family(file, table, subject), ipv6Family(file, table, subject)]) {
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

/** Compares the names of networks. */
function compareNetworks(
  database: Sqlite.Database,
  { records }: NetworkFile,
  fail: (what: string) => AtlasError,
): void {
  const networks = records.filter((record) => record.kind === 'network');
  const count = database.prepare<[], number>('SELECT count(*) FROM network').pluck().get();
  if (count !== networks.length) throw fail(`${count} networks, not ${networks.length}`);
  const rows = database.prepare<[], { asn: number; name: string | null }>('SELECT asn, name FROM network ORDER BY asn');
  let next = 0;
  for (const { asn, name } of rows.iterate()) {
    const network = networks[next++]!;
    if (network.asn !== asn || network.name !== (name ?? '')) throw fail(`network AS${network.asn}`);
  }
}

/** Compares the values of labels. */
function compareLabels(
  database: Sqlite.Database,
  { records, columns }: LabelFile,
  fail: (what: string) => AtlasError,
): void {
  const rows = database
    .prepare<[], [number, ...(string | null)[]]>(`SELECT label, "${columns.join('", "')}" FROM label ORDER BY label`)
    .raw()
    .all();
  const labels = records.flatMap((record, label) => (record.kind === 'label' ? [{ label, row: record.row }] : []));
  if (rows.length !== labels.length) throw fail(`${rows.length} labels, not ${labels.length}`);
  const wrong = labels.findIndex(({ label, row }, i) => {
    const [id, ...values] = rows[i]!;
    return id !== label || JSON.stringify(values) !== row;
  });
  if (wrong >= 0) throw fail(`label ${labels[wrong]!.row}`);
}

/**
 * Verifies that a mirror agrees with the range file.
 *
 * @param path of the mirror
 * @param file the range file, already verified
 * @param networks the networks, already verified; undefined if the release has none
 * @param labels the labels, likewise
 * @param pageRows rows compared at a time
 * @throws AtlasError E_DAMAGED with the first difference; E_NO_DATABASE if the mirror cannot be opened
 */
export function verifyMirror(
  path: string,
  file: RangeFile,
  networks?: NetworkFile,
  labels?: LabelFile,
  pageRows: number = PAGE_ROWS,
): void {
  const failure =
    (other: PartitionFile) =>
    (what: string): AtlasError =>
      damagedRelease(`${path} differs from ${other.path}: ${what}`);
  const database = openMirror(path);
  try {
    compareRanges(database, file, 'range', 'country_code', pageRows, failure(file));
    compareCountries(database, file, failure(file));
    if (networks !== undefined) {
      compareRanges(database, networks, 'network', 'asn', pageRows, failure(networks));
      compareNetworks(database, networks, failure(networks));
    }
    if (labels !== undefined) {
      compareRanges(database, labels, 'label', 'label', pageRows, failure(labels));
      compareLabels(database, labels, failure(labels));
    }
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError('E_DAMAGED', `${path}`, error, REBUILD);
  } finally {
    database.close();
  }
}
