/**
 * Reads files of labels: CSV in UTF-8 whose first row names the columns. The first cell of a row is a range as in `overrides.csv`; the
 * others are values. An empty cell is no value. `#` begins a comment line.
 */

import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Family } from '../../src/address/parse.js';
import { isTaken, LABEL_NAME } from '../../src/database/fields.js';
import type { LabelInputs } from '../../src/database/release.js';
import { dayOf } from '../../src/day.js';
import { AtlasError, causedError, systemErrorCode } from '../../src/errors.js';
import {
  MAX_LABEL_COLUMNS,
  MAX_LABEL_LENGTH,
  MAX_LABEL_ROWS,
  MAX_LABEL_TEXT,
  MAX_REPORTED_PROBLEMS,
} from '../../src/limits.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { parseRange } from '../config/overrides.js';
import { storeObject } from '../fetching/cache.js';
import type { FetchedFile, LabelTable } from '../stage.js';
import { CsvFile, type Dialect } from './csv-file.js';

/** A row of labels. */
export interface LabelRow {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  /** In the order of the columns; null for an empty cell. */
  values: (string | null)[];
  /** Number of the row in the file. */
  row: number;
}

/** The files of labels in the cache, and the day on which the last of them was written, `YYYY-MM-DD`. */
export interface LabelFiles extends Pick<LabelInputs, 'date'> {
  files: FetchedFile[];
}

/**
 * Copies the files of labels into the cache, so that `explain` can show their rows later.
 *
 * @throws AtlasError E_CONFIG if one cannot be read
 */
export async function storeLabels(dataDir: string, paths: readonly string[]): Promise<LabelFiles> {
  const files: FetchedFile[] = [];
  let changed = 0;
  for (const path of paths) {
    try {
      const stats = statSync(path);
      // A named pipe may never have a writer, and a device may never end.
      if (!stats.isFile()) throw new AtlasError('E_CONFIG', `${path}: not a regular file; name a CSV file`);
      changed = Math.max(changed, stats.mtimeMs);
      files.push(await storeObject(dataDir, basename(path), () => [createReadStream(path)]));
    } catch (error) {
      if (systemErrorCode(error) === undefined) throw error;
      throw causedError('E_CONFIG', `${path}: cannot be read`, error, 'fix its path or permissions');
    }
  }
  return { files, date: dayOf(changed) };
}

/** Characters that a value must not have: controls, which could end a line, and what is not text. */
const NOT_TEXT = /[\p{Cc}\u2028\u2029\ufffd\uffff]/u;

/** Returns the beginning of a text that may be of any length, for a message. */
function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** Returns what is wrong with the names of the columns. */
function headerProblem([first = '', ...columns]: readonly string[]): string | undefined {
  if (typeof parseRange(first) === 'object')
    return `the first row must name the columns, but begins with ${shown(first)}`;
  if (columns.length === 0) return 'there is no column after that of the ranges';
  for (const [index, name] of columns.entries()) {
    const at = `column ${index + 2}: the name ${shown(name)}`;
    if (!LABEL_NAME.test(name)) return `${at} must be a lower-case letter, and letters, digits or "_" after it`;
    if (isTaken(name) === true) return `${at} has another meaning; choose another one`;
    if (columns.indexOf(name) !== index) return `${at} occurs twice`;
  }
  return undefined;
}

function valueProblem(value: string): string | undefined {
  if (value.length > MAX_LABEL_LENGTH) return `${value.length} characters; a label has at most ${MAX_LABEL_LENGTH}`;
  return NOT_TEXT.test(value) ? `${shown(value)} has control characters, or is not UTF-8` : undefined;
}

/** How files of labels are written. */
const DIALECT: Dialect = { delimiter: ',', quote: '"', comment: '#' };

/** Returns a file of labels, whose rows can be read or looked up. */
export function labelFile({ path, name }: FetchedFile): CsvFile {
  return new CsvFile(path, name, DIALECT);
}

/**
 * Reads a file of labels.
 *
 * @param onRow receives each row; returns a problem with it if the rows after it are not worth reading
 * @returns the names of the columns, without that of the ranges
 * @throws AtlasError E_CONFIG with line and column of the first MAX_REPORTED_PROBLEMS errors; E_BAD_INPUT if it is not CSV
 */
export async function readLabelRows(
  csv: CsvFile,
  name: string,
  onRow: (row: LabelRow) => string | undefined,
): Promise<string[]> {
  let columns: string[] | undefined;
  const problems: { row: number; text: string }[] = [];
  const enough = new Error('enough problems');
  const fail = (row: number, text: string, isLast = false): void => {
    if (problems.push({ row, text }) === MAX_REPORTED_PROBLEMS || isLast) throw enough;
  };
  const add = (cells: string[], row: number): void => {
    const [text = '', ...values] = cells.map((cell) => cell.trim());
    if (columns === undefined) {
      const problem = headerProblem([text, ...values]);
      if (problem !== undefined) fail(row, problem, true);
      columns = values;
      return;
    }
    if (values.length !== columns.length) {
      fail(row, `${values.length + 1} cells under ${columns.length + 1} columns`);
      return;
    }
    const range = text.length > MAX_LABEL_LENGTH ? 'the range is too long' : parseRange(text);
    if (typeof range === 'string') fail(row, `column 1: ${range}`);
    const before = problems.length;
    values.forEach((value, index) => {
      const problem = valueProblem(value);
      if (problem !== undefined) fail(row, `column ${columns![index]}: ${problem}`);
    });
    if (typeof range === 'string' || problems.length > before) return;
    const problem = onRow({ ...range, values: values.map((value) => (value === '' ? null : value)), row });
    if (problem !== undefined) fail(row, problem, true);
  };
  await csv.read(add).catch((error: unknown) => {
    if (error !== enough) throw error;
  });
  if (problems.length > 0) {
    const locations = await csv.locate(problems.map(({ row }) => row));
    const texts = problems.map(({ row, text }) => `${name}:${locations.get(row)!.line}: ${text}`);
    throw new AtlasError('E_CONFIG', texts.join('\n'));
  }
  if (columns === undefined) throw new AtlasError('E_CONFIG', `${name}: empty; the first row must name the columns`);
  return columns;
}

/**
 * Reads all files of labels.
 *
 * @param maxRows of all files; only tests change it
 * @throws AtlasError E_CONFIG as {@link readLabelRows} does, and for too many columns, rows, or too much text in all of them
 */
export async function readLabels(files: readonly FetchedFile[], maxRows = MAX_LABEL_ROWS): Promise<LabelTable[]> {
  const names = new Set<string>();
  const tables: LabelTable[] = [];
  let rows = 0;
  let characters = 0;
  for (const file of files) {
    const ranges = { 4: new RangeBuilder(4), 6: new RangeBuilder(6) };
    const known = new Map<string, number>();
    const columns = await readLabelRows(labelFile(file), file.name, ({ family, first, last, values }) => {
      const row = JSON.stringify(values);
      const index = known.get(row) ?? known.size;
      if (index === known.size) {
        known.set(row, index);
        characters += row.length;
      }
      if (++rows > maxRows) return `more than ${maxRows} rows of labels; remove some`;
      if (characters > MAX_LABEL_TEXT) return 'too much text in labels; shorten it';
      ranges[family].add(first, last, 0, index);
      return undefined;
    });
    for (const column of columns) names.add(column);
    if (names.size > MAX_LABEL_COLUMNS) {
      const more = `${names.size} columns of labels; there can be at most ${MAX_LABEL_COLUMNS}`;
      throw new AtlasError('E_CONFIG', `${file.name}:1: ${more}`);
    }
    const values = [...known.keys()].map((row) => JSON.parse(row) as (string | null)[]);
    tables.push({ columns, v4: ranges[4].finish(), v6: ranges[6].finish(), values });
  }
  return tables;
}
