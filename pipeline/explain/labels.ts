/** Explains the labels of an address: the rows of the user's files that cover it. */
import { formatAddress } from '../../src/address/format.js';
import { rangeContains, rangeSize } from '../../src/address/words.js';
import type { Database } from '../../src/database/database.js';
import { type LabelRow, labelFile, readLabelRows } from '../source-formats/labels.js';
import { cachedInput, type Target } from './covering-rows.js';

/** A row that covers the address. A name here is a key of `ipatlas explain --json`. */
export interface ExplainedLabelRow {
  file: string;
  line: number;
  first: string;
  last: string;
  /** Its values by column. */
  labels: Record<string, string | null>;
  /** The columns that have their value from this row. */
  decides: string[];
}

/** A name here is a key of `ipatlas explain --json`. */
export interface ExplainedLabels {
  /** The address, or the IPv4 address inside it if that one decides. */
  address: string;
  labels: Record<string, unknown>;
  /** The row that takes precedence first. */
  rows: ExplainedLabelRow[];
}

/**
 * Explains the labels of an address.
 *
 * @param dataDir the data directory, whose cache has the files
 * @param target the address, or the IPv4 address inside it if that one decides
 * @param note reports that rows are no longer available
 * @returns null if the release has no labels
 */
export async function explainLabels(
  dataDir: string,
  database: Database,
  { family, words }: Target,
  note: (text: string) => void,
): Promise<ExplainedLabels | null> {
  const { manifest, labelNames } = database;
  if (manifest.labels === undefined) return null;
  const text = (address: Uint32Array): string => formatAddress(family, address);
  const { ip: _ip, ...labels } = database.fields(labelNames)(text(words))!;
  const found: (ExplainedLabelRow & { size: bigint })[] = [];
  const files = cachedInput(dataDir, manifest.labels.files);
  if (typeof files === 'string') note(`${files} is no longer in the cache, so the rows of the labels cannot be shown`);
  for (const each of typeof files === 'string' ? [] : files) {
    const csv = labelFile(each);
    const rows: LabelRow[] = [];
    const columns = await readLabelRows(csv, each.name, (label) => {
      if (label.family === family && rangeContains(label.first, label.last, words)) rows.push(label);
      return undefined;
    });
    const locations = await csv.locate(rows.map(({ row }) => row));
    for (const { row, first, last, values } of rows) {
      const { line } = locations.get(row)!;
      const named = Object.fromEntries(columns.map((column, index) => [column, values[index]!]));
      const size = rangeSize(first, last);
      found.push({ file: each.name, line, first: text(first), last: text(last), labels: named, decides: [], size });
    }
  }
  // Of equally wide rows the later one.
  found.reverse().sort((a, b) => (a.size < b.size ? -1 : a.size > b.size ? 1 : 0));
  for (const column of labelNames) {
    const winner = found.find((row) => column in row.labels);
    if (winner !== undefined && winner.labels[column] === labels[column]) winner.decides.push(column);
  }
  return { address: text(words), labels, rows: found.map(({ size: _size, ...row }) => row) };
}
