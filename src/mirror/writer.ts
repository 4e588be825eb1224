/** Writes the SQLite mirror; schemas/mirror.sql is its specification. */

import { readFileSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { networkBytes, previousAddress } from '../address/words.js';
import { packageFile } from '../package-root.js';
import type { MergedRanges, RangeColumns } from '../range/columns.js';
import { type Cell, cellsOf, type FileRecord, type RangeRecord } from '../rangefile/layout.js';
import { COUNTRIES, type OpenPartitions, type Partition, type PartitionContent } from '../rangefile/partitions.js';
import { contentOf, type PartitionFile } from '../rangefile/reader.js';
import { sqlite } from '../sqlite.js';

/** A row of the table `source`. */
export interface MirrorSource {
  /** Bit number in the column `sources`. */
  layer: number;
  id: string;
  version: string;
  license: string;
  attribution: string;
}

/** Ranges of a family, with the columns that only the mirror has. */
export type MirroredRanges = RangeColumns & Pick<MergedRanges, 'layers' | 'confidence'>;

/** The ranges of a release. */
export interface MirrorRanges {
  v4: MirroredRanges;
  v6: MirroredRanges;
  /** By the values of the ranges. */
  records: readonly RangeRecord[];
  /** What the release has besides the countries. */
  others?: OpenPartitions | undefined;
}

export interface MirrorContent extends MirrorRanges {
  meta: Record<string, string>;
  sources: readonly MirrorSource[];
  /** Whether the sources voted, so that the confidence of the ranges is written. */
  hasConfidence?: boolean;
}

/** Rows in one INSERT, to call the native module less often. 50 rows of 5 values are well below SQLite's limit of 32,766. */
const ROWS_PER_INSERT = 50;

/** Inserts rows of some values; `row(i, values)` appends the values of row `i`. */
function insertRows(
  database: Sqlite.Database,
  table: string,
  columns: number,
  count: number,
  row: (index: number, values: unknown[]) => void,
): void {
  const tuple = `(${Array(columns).fill('?').join(',')})`;
  const prepare = (rows: number): Sqlite.Statement<unknown[]> =>
    database.prepare(`INSERT INTO ${table} VALUES ${Array(rows).fill(tuple).join(',')}`);
  const full = prepare(ROWS_PER_INSERT);
  for (let start = 0; start < count; start += ROWS_PER_INSERT) {
    const end = Math.min(count, start + ROWS_PER_INSERT);
    const values: unknown[] = [];
    for (let i = start; i < end; i++) row(i, values);
    (end - start === ROWS_PER_INSERT ? full : prepare(end - start)).run(values);
  }
}

/** Returns the column that says what a range is about, such as `country_code`, and the column `reason`, of a record. */
export function recordColumns(record: FileRecord, index: number): [string | number | null, string | null] {
  if (record.kind === 'country') return [record.code, null];
  if (record.kind === 'network') return [record.asn, null];
  if (record.kind === 'label') return [index, null];
  return [null, record.kind === 'none' ? record.reason : record.scheme];
}

/** Returns a value as the mirror has it: it has no booleans. */
function sqlValue(cell: Cell): string | number | null {
  return typeof cell === 'boolean' ? Number(cell) : cell;
}

/** Returns the rows of the table of the records of a partition: networks, or rows of values. */
export function recordRows({ records }: PartitionFile): (string | number | null)[][] {
  return records.flatMap((record, index) => {
    if (record.kind === 'network') return [[record.asn, record.name || null]];
    return record.kind === 'label' ? [[index, ...cellsOf(record).map(sqlValue)]] : [];
  });
}

/** Writes the ranges on which the lineages disagree; schemas/mirror-confidence.sql is the specification. */
function writeConfidence(database: Sqlite.Database, { v4, v6 }: MirrorContent): void {
  database.exec(readFileSync(packageFile('schemas/mirror-confidence.sql'), 'utf8'));
  const insert4 = database.prepare('INSERT INTO ipv4_confidence VALUES (?, ?)');
  for (let i = 0; i < v4.count; i++) if (v4.confidence[i]! < 100) insert4.run(v4.first[i]!, v4.confidence[i]!);
  const insert6 = database.prepare('INSERT INTO ipv6_confidence VALUES (?, ?)');
  for (let i = 0; i < v6.count; i++) {
    if (v6.confidence[i]! < 100) insert6.run(networkBytes(v6.first.subarray(4 * i, 4 * i + 4)), v6.confidence[i]!);
  }
}

/**
 * Returns the first and the last addresses of IPv6 ranges as the mirror has them, 16 bytes each, in network order.
 *
 * @param ranges a partition of the address space
 * @param from the first of the ranges that are wanted
 * @param to the one after the last of them
 */
export function ipv6Bounds({ count, first }: RangeColumns, from = 0, to = count): { first: Buffer; last: Buffer } {
  const last = new Uint32Array(4 * (to - from));
  // A range ends before the next one begins; before the first range, at zero, is the last address of all.
  for (let range = from; range < to; range++) {
    previousAddress(first, (range + 1) % count, 4, last.subarray(4 * (range - from)));
  }
  return { first: networkBytes(first.subarray(4 * from, 4 * to)), last: networkBytes(last) };
}

/** Writes the ranges of both families into the tables whose names end so; `more` returns the values of columns after the usual four. */
function insertRanges(
  database: Sqlite.Database,
  table: string,
  { v4, v6, records }: PartitionContent,
  more: (family: 'v4' | 'v6', range: number) => number[] = () => [],
): void {
  const columns = records.map(recordColumns);
  const count = 4 + more('v4', 0).length;
  insertRows(database, `ipv4_${table}`, count, v4.count, (i, values) => {
    const last = i + 1 < v4.count ? v4.first[i + 1]! - 1 : 0xffffffff;
    values.push(v4.first[i]!, last, ...columns[v4.value[i]!]!, ...more('v4', i));
  });
  const { first, last } = ipv6Bounds(v6);
  insertRows(database, `ipv6_${table}`, count, v6.count, (i, values) => {
    const at = 16 * i;
    values.push(first.subarray(at, at + 16), last.subarray(at, at + 16), ...columns[v6.value[i]!]!, ...more('v6', i));
  });
}

/** Writes the records and the ranges of a partition besides the countries; schemas/mirror-partition.sql is the specification. */
function writePartition(
  database: Sqlite.Database,
  { table, subject, flags = [] }: Partition,
  file: PartitionFile,
): void {
  const names = file.columns?.map((column) => `"${column}" ${flags.includes(column) ? 'INTEGER' : 'TEXT'}`);
  database.exec(
    names === undefined
      ? readFileSync(packageFile('schemas/mirror-networks.sql'), 'utf8')
      : `CREATE TABLE ${table} (${subject} INTEGER PRIMARY KEY, ${names.join(', ')}) STRICT`,
  );
  const schema = readFileSync(packageFile('schemas/mirror-partition.sql'), 'utf8');
  database.exec(
    schema
      .replaceAll('$table', table)
      .replaceAll('$subject INTEGER', `${subject.padEnd(6)} INTEGER`)
      .replaceAll('$subject', subject),
  );
  const rows = recordRows(file);
  insertRows(database, table, rows[0]?.length ?? 1, rows.length, (i, values) => {
    values.push(...rows[i]!);
  });
  insertRanges(database, table, contentOf(file));
}

/**
 * Writes a mirror. The same content gives the same bytes, with the same version of SQLite.
 *
 * @param path of the new file; must not exist
 * @param content the ranges and records that the range file is made from
 */
export function writeMirror(path: string, content: MirrorContent): void {
  const database = new (sqlite())(path);
  try {
    // The file is new and is discarded if anything fails, so it needs no journal. The stage that publishes it flushes it.
    database.pragma('journal_mode = OFF');
    database.pragma('synchronous = OFF');
    database.pragma('locking_mode = EXCLUSIVE');
    // The stage that verifies compares each reference with the records, and for each row SQLite would search the other table.
    database.pragma('foreign_keys = OFF');
    database.exec(readFileSync(packageFile('schemas/mirror.sql'), 'utf8'));
    database.exec('BEGIN');
    const meta = database.prepare('INSERT INTO meta VALUES (?, ?)');
    for (const [key, value] of Object.entries(content.meta)) meta.run(key, value);
    const source = database.prepare('INSERT INTO source VALUES (@layer, @id, @version, @license, @attribution)');
    for (const row of content.sources) source.run(row);
    const country = database.prepare('INSERT INTO country VALUES (?, ?, ?)');
    const countries = content.records.filter((record) => record.kind === 'country');
    countries.sort((a, b) => (a.code < b.code ? -1 : 1));
    for (const { code, name, isEu } of countries) country.run(code, name, isEu ? 1 : 0);
    insertRanges(database, COUNTRIES.table, content, (family, i) => [content[family].layers[i]!]);
    if (content.hasConfidence === true) writeConfidence(database, content);
    for (const [partition, file] of content.others?.entries() ?? []) writePartition(database, partition, file);
    database.exec('COMMIT');
  } finally {
    database.close();
  }
}
