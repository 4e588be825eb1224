/** Writes the SQLite mirror; schemas/mirror.sql is its specification. */

import { readFileSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { packageFile } from '../package-root.js';
import type { MergedRanges, RangeColumns } from '../range/columns.js';
import type { FileRecord, RangeRecord } from '../rangefile/layout.js';
import { type LabelFile, type NetworkFile, type PartitionFile, rangeColumns } from '../rangefile/reader.js';
import { sqlite } from '../sqlite.js';
import { ipv6Bounds } from './bounds.js';

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
  /** Undefined if the release has none. */
  networks?: NetworkFile | undefined;
  labels?: LabelFile | undefined;
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

/** Returns the columns `country_code`, `asn` or `label`, and `reason`, of a record. */
function recordColumns(record: FileRecord, index: number): [string | number | null, string | null] {
  if (record.kind === 'country') return [record.code, null];
  if (record.kind === 'network') return [record.asn, null];
  if (record.kind === 'label') return [index, null];
  return [null, record.kind === 'none' ? record.reason : record.scheme];
}

/** Writes the ranges on which the lineages disagree; schemas/mirror-confidence.sql is the specification. */
function writeConfidence(database: Sqlite.Database, { v4, v6 }: MirrorContent, first6: Buffer): void {
  database.exec(readFileSync(packageFile('schemas/mirror-confidence.sql'), 'utf8'));
  const insert4 = database.prepare('INSERT INTO ipv4_confidence VALUES (?, ?)');
  for (let i = 0; i < v4.count; i++) if (v4.confidence[i]! < 100) insert4.run(v4.first[i]!, v4.confidence[i]!);
  const insert6 = database.prepare('INSERT INTO ipv6_confidence VALUES (?, ?)');
  for (let i = 0; i < v6.count; i++) {
    if (v6.confidence[i]! < 100) insert6.run(first6.subarray(16 * i, 16 * i + 16), v6.confidence[i]!);
  }
}

/** Writes the networks; schemas/mirror-networks.sql is the specification. */
function writeNetworks(database: Sqlite.Database, file: NetworkFile): void {
  database.exec(readFileSync(packageFile('schemas/mirror-networks.sql'), 'utf8'));
  const { records } = file;
  const networks = records.filter((record) => record.kind === 'network');
  insertRows(database, 'network', 2, networks.length, (i, values) => {
    values.push(networks[i]!.asn, networks[i]!.name || null);
  });
  writePartition(database, 'network', file);
}

/** Writes the labels; schemas/mirror-labels.sql is the specification. */
function writeLabels(database: Sqlite.Database, file: LabelFile): void {
  const names = file.columns.map((column) => `"${column}" TEXT`);
  database.exec(`CREATE TABLE label (label INTEGER PRIMARY KEY, ${names.join(', ')}) STRICT`);
  database.exec(readFileSync(packageFile('schemas/mirror-labels.sql'), 'utf8'));
  const rows = file.records.flatMap((record, label) => (record.kind === 'label' ? [{ label, row: record.row }] : []));
  insertRows(database, 'label', 1 + names.length, rows.length, (i, values) => {
    values.push(rows[i]!.label, ...(JSON.parse(rows[i]!.row) as (string | null)[]));
  });
  writePartition(database, 'label', file);
}

/** Writes the ranges of both families into the tables `ipv4_…` and `ipv6_…`. */
function writePartition(database: Sqlite.Database, table: string, file: PartitionFile): void {
  const [v4, v6] = [rangeColumns(file, 4), rangeColumns(file, 6)];
  const columns = file.records.map(recordColumns);
  insertRows(database, `ipv4_${table}`, 4, v4.count, (i, values) => {
    const last = i + 1 < v4.count ? v4.first[i + 1]! - 1 : 0xffffffff;
    values.push(v4.first[i]!, last, ...columns[v4.value[i]!]!);
  });
  const { first, last } = ipv6Bounds(v6);
  insertRows(database, `ipv6_${table}`, 4, v6.count, (i, values) => {
    const at = 16 * i;
    values.push(first.subarray(at, at + 16), last.subarray(at, at + 16), ...columns[v6.value[i]!]!);
  });
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

    const columns = content.records.map(recordColumns);
    const { v4, v6 } = content;
    insertRows(database, 'ipv4_range', 5, v4.count, (i, values) => {
      const last = i + 1 < v4.count ? v4.first[i + 1]! - 1 : 0xffffffff;
      values.push(v4.first[i]!, last, ...columns[v4.value[i]!]!, v4.layers[i]!);
    });
    const { first, last } = ipv6Bounds(v6);
    insertRows(database, 'ipv6_range', 5, v6.count, (i, values) => {
      const at = 16 * i;
      values.push(first.subarray(at, at + 16), last.subarray(at, at + 16), ...columns[v6.value[i]!]!, v6.layers[i]!);
    });
    if (content.hasConfidence === true) writeConfidence(database, content, first);
    if (content.networks !== undefined) writeNetworks(database, content.networks);
    if (content.labels !== undefined) writeLabels(database, content.labels);
    database.exec('COMMIT');
  } finally {
    database.close();
  }
}
