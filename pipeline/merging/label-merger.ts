/** Merges the labels of files into one list of ranges for each family, with the algebra of the countries. */
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareSizes } from '../../src/address/words.js';
import type { RangeColumns } from '../../src/range/columns.js';
import { mergeRows } from '../../src/range/merge.js';
import { type LabelRecord, UNLABELED } from '../../src/rangefile/layout.js';
import type { PartitionContent } from '../../src/rangefile/partitions.js';
import type { Reference } from '../config/reference.js';
import type { LabelTable } from '../stage.js';
import { addSpecialRanges, CandidateBuilder, LAYERS } from './candidates.js';

/** The layer of the first file. */
const FIRST_LAYER = LAYERS.embedded + 1;

/** Number of the record of addresses without a label. */
const NONE = 0;

/** Merged labels, with the names of their columns. */
type MergedLabels = PartitionContent<LabelRecord> & { columns: string[] };

/**
 * Merges the labels of files. The value of a column is that of the narrowest row that covers the address, among the rows of the files
 * that have the column; of equally narrow ones, that of the later file, and in a file the later row. An address with an IPv4 address
 * inside has the labels of that one.
 *
 * @param tables in the order of sources.json
 */
export function mergeLabels(tables: readonly LabelTable[], { special }: Pick<Reference, 'special'>): MergedLabels {
  const columns = [...new Set(tables.flatMap((table) => table.columns))];
  const records: LabelRecord[] = [{ kind: 'none', reason: UNLABELED }];
  const builders = { 4: new CandidateBuilder(4, 0, special), 6: new CandidateBuilder(6, 0, special) };
  for (const [position, { v4, v6 }] of tables.entries()) {
    for (const { family, count, first, last, value } of [v4, v6]) {
      for (let i = 0; i < count; i++) {
        builders[family].add(first, last, i, value[i]!, FIRST_LAYER + position);
      }
    }
  }
  // Other special-purpose ranges, such as private networks, have labels.
  addSpecialRanges(
    builders,
    special.filter(({ result }) => result.kind === 'embedded'),
    records,
    NONE,
  );

  const byRow = new Map<string, number>();
  /** Returns the record of rows of several files, each as the positions of its file and of its values; the first one wins. */
  const recordOf = (rows: readonly [file: number, values: number][]): number => {
    const values = columns.map((column) => {
      const [file, index] = rows.find(([at]) => tables[at]!.columns.includes(column)) ?? [];
      return file === undefined ? null : tables[file]!.values[index!]![tables[file]!.columns.indexOf(column)]!;
    });
    if (values.every((value) => value === null)) return NONE;
    const row = JSON.stringify(values);
    const known = byRow.get(row) ?? records.push({ kind: 'label', row }) - 1;
    byRow.set(row, known);
    return known;
  };
  const byKey = new Map<string, number>();
  const merge = (family: Family): RangeColumns => {
    const candidates = builders[family].finish();
    const { first, last, value } = candidates;
    const words = addressWords(family);
    const layers = tables.map((_table, position) => FIRST_LAYER + position);
    return mergeRows(candidates, layers, ({ rows, other }) => {
      const files = [...rows.keys()].filter((file) => rows[file]! >= 0);
      if (other >= 0 || files.length === 0) return other < 0 ? NONE : value[other]!;
      // The narrowest row first, of equally narrow ones that of the later file.
      if (files.length > 1) files.sort((a, b) => compareSizes(first, last, rows[a]!, rows[b]!, words) || b - a);
      const covering = files.map((file): [number, number] => [file, value[rows[file]!]!]);
      const key = covering.join();
      const record = byKey.get(key) ?? recordOf(covering);
      byKey.set(key, record);
      return record;
    });
  };
  return { v4: merge(4), v6: merge(6), records, columns };
}
