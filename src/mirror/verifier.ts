/** Holds the mirror against the range file: the same ranges, answers and countries, no more and no less. */
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../errors.js';
import type { RangeFile } from '../rangefile/reader.js';
import { openMirror } from './reader.js';

/**
 * Rows compared at a time. SQLite joins them into one text, which is compared with the one they should make: handing rows
 * over one by one takes six times as long.
 */
const PAGE_ROWS = 16_384;

/** One family of ranges: in the mirror, and as the range file has it. */
interface Family {
  name: string;
  table: string;
  /** SQL for the first and the last address in the spelling of `spell`. */
  columns: readonly [first: string, last: string];
  count: number;
  record: Uint16Array;
  /** A range's first address as the mirror's column holds it. */
  first: (range: number) => number | Buffer;
  /** First and last addresses of ranges, one after the other. */
  spell: (from: number, to: number) => string[];
}

function ipv4Family({ count4, start4, record4 }: RangeFile): Family {
  const last = (range: number): number => (range + 1 < count4 ? start4[range + 1]! - 1 : 0xffffffff);
  return {
    name: 'IPv4',
    table: 'ipv4_range',
    columns: ['first', 'last'],
    count: count4,
    record: record4,
    first: (range) => start4[range]!,
    spell: (from, to) =>
      Array.from({ length: to - from }, (_, index) => `${start4[from + index]}-${last(from + index)}`),
  };
}

/** The first addresses of the IPv6 ranges, 16 bytes each, network order. */
function ipv6Firsts({ count6, high6, low6 }: RangeFile): Buffer {
  const bytes = Buffer.allocUnsafe(16 * count6);
  for (let range = 0; range < count6; range++) {
    const at = 16 * range;
    bytes.writeUInt32BE(high6[2 * range + 1]!, at);
    bytes.writeUInt32BE(high6[2 * range]!, at + 4);
    bytes.writeUInt32BE(low6[2 * range + 1]!, at + 8);
    bytes.writeUInt32BE(low6[2 * range]!, at + 12);
  }
  return bytes;
}

/** Each 16-byte address less one, modulo 2^128. */
function oneLess(addresses: Buffer): Buffer {
  const bytes = Buffer.from(addresses);
  for (let end = 16; end <= bytes.length; end += 16) {
    let at = end - 1;
    while (at > end - 16 && bytes[at] === 0) bytes[at--] = 0xff;
    bytes[at] = bytes[at]! - 1;
  }
  return bytes;
}

function ipv6Family(file: RangeFile): Family {
  const firsts = ipv6Firsts(file);
  // A range ends before the next one begins; the last of all before the space wraps around to zero.
  const lasts = oneLess(Buffer.concat([firsts.subarray(16), firsts.subarray(0, 16)]));
  return {
    name: 'IPv6',
    table: 'ipv6_range',
    columns: ['lower(hex(first))', 'lower(hex(last))'],
    count: file.count6,
    record: file.record6,
    first: (range) => firsts.subarray(16 * range, 16 * range + 16),
    spell: (from, to) => {
      // One text of all and its parts: half the time of a text for each.
      const [first, last] = [firsts, lasts].map((addresses) => addresses.toString('hex', 16 * from, 16 * to)) as [
        string,
        string,
      ];
      return Array.from(
        { length: to - from },
        (_, index) => `${first.slice(32 * index, 32 * index + 32)}-${last.slice(32 * index, 32 * index + 32)}`,
      );
    },
  };
}

/** What the mirror's columns `country_code` and `reason` must hold for each record of the range file. */
function recordLabels(file: RangeFile): string[] {
  return file.records.map((record) => {
    if (record.kind === 'country') return `|${record.code}|`;
    return `||${record.kind === 'none' ? record.reason : record.scheme}`;
  });
}

function compareFamily(
  database: Sqlite.Database,
  family: Family,
  labels: readonly string[],
  pageRows: number,
  fail: (what: string) => AtlasError,
): void {
  const { name, table, columns, count, record } = family;
  const page = database
    .prepare<[number | Buffer], string | null>(
      `SELECT group_concat(line, char(10)) FROM (
         SELECT ${columns[0]} || '-' || ${columns[1]} || '|' || ifnull(country_code, '') || '|' || ifnull(reason, '') AS line
         FROM ${table} WHERE first >= ? ORDER BY first LIMIT ${pageRows}
       )`,
    )
    .pluck();
  for (let from = 0; from < count; from += pageRows) {
    const to = Math.min(from + pageRows, count);
    const expected = family.spell(from, to).map((addresses, index) => addresses + labels[record[from + index]!]!);
    const actual = page.get(family.first(from)) ?? '';
    if (actual === expected.join('\n')) continue;
    const lines = actual.split('\n');
    const different = expected.findIndex((line, index) => line !== lines[index]);
    if (different < 0) break; // More rows than ranges: their number says so.
    throw fail(`${name} range ${from + different} is ${lines[different] || 'missing'}, not ${expected[different]}`);
  }
  const rows = database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  if (rows !== count) throw fail(`${rows} ${name} ranges, not ${count}`);
}

/** Names and EU membership in the mirror are those of the range file. */
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

/**
 * Verifies that a mirror holds what the range file holds.
 *
 * @param path of the mirror
 * @param file the range file, itself verified
 * @throws AtlasError E_DAMAGED, naming the first difference; E_NO_DATABASE where the mirror cannot be opened
 */
export function verifyMirror(path: string, file: RangeFile, pageRows: number = PAGE_ROWS): void {
  const fail = (what: string): AtlasError =>
    new AtlasError('E_DAMAGED', `${path} differs from ${file.path}: ${what}; build the release again or roll back`);
  const database = openMirror(path);
  try {
    const labels = recordLabels(file);
    for (const family of [ipv4Family(file), ipv6Family(file)]) compareFamily(database, family, labels, pageRows, fail);
    compareCountries(database, file, fail);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_DAMAGED', `${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    database.close();
  }
}
