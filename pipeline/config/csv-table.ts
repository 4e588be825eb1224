/**
 * Tables that people write by hand: the CSV files of `data/reference/` and `overrides.csv`. All errors of a file are
 * reported together, with file and line.
 */
import { readFileSync, statSync } from 'node:fs';
import { CsvError, parse } from 'csv-parse/sync';
import { AtlasError, configError, orThrow } from '../../src/errors.js';
import { MAX_CSV_ROW_BYTES } from '../../src/limits.js';

/** One row: its cells by column, trimmed. */
export interface ConfigRow<Column extends string> {
  /** Line of the file, from 1, that the row ends on. */
  line: number;
  cells: Record<Column, string>;
}

/** A table, and the errors found in it so far. */
export interface ConfigTable<Column extends string> {
  path: string;
  rows: ConfigRow<Column>[];
  problems: string[];
}

/** Adds an error on a line of the table; `refuseProblems` reports it. */
export function addProblem(table: ConfigTable<string>, line: number, text: string): void {
  table.problems.push(`${table.path}:${line}: ${text}`);
}

/**
 * Throws if tables have errors.
 *
 * @throws AtlasError E_CONFIG with the first `MAX_REPORTED_PROBLEMS` errors, each on a line of its own
 */
export function refuseProblems(tables: readonly ConfigTable<string>[]): void {
  const problems = tables.flatMap((table) => table.problems);
  if (problems.length > 0) throw configError(problems);
}

/** Reads UTF-8 text without a byte order mark. Line ends become line feeds, because csv-parse miscounts mixed line ends. */
function readText(path: string): string {
  const read = (): Buffer => {
    if (!statSync(path).isFile()) throw new Error('not a regular file');
    return readFileSync(path);
  };
  const bytes = orThrow(read, 'E_CONFIG', `${path}: cannot be read`, 'fix its path or permissions');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r\n?/g, '\n');
  } catch (error) {
    throw new AtlasError('E_CONFIG', `${path}: not UTF-8 text; save it as CSV in UTF-8`, { cause: error });
  }
}

/** Parses the records of a CSV text, each with the line that it ends on. */
function parseRecords(path: string, text: string): { record: string[]; info: { lines: number } }[] {
  try {
    return parse(text, {
      comment: '#',
      comment_no_infix: true,
      info: true,
      max_record_size: MAX_CSV_ROW_BYTES,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    }) as unknown as { record: string[]; info: { lines: number } }[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { lines } = error as CsvError & { lines?: number };
    throw new AtlasError('E_CONFIG', `${path}:${lines ?? '?'}: ${error.message}; fix that line`, { cause: error });
  }
}

/**
 * Reads a table: CSV in UTF-8. The first row names the columns, in any order; `#` begins a comment line.
 *
 * @param path the file
 * @param required columns that the table must have
 * @param optional columns that may be missing; their cells are then empty
 * @returns the rows; a row with a wrong number of cells is left out and added to the errors
 * @throws AtlasError E_CONFIG if the file cannot be read, is not CSV, or has other columns
 */
export function readConfigTable<Column extends string>(
  path: string,
  required: readonly Column[],
  optional: readonly Column[] = [],
): ConfigTable<Column> {
  const [head, ...records] = parseRecords(path, readText(path));
  const known = [...required, ...optional];
  const wanted = `its first row must name the columns ${required.join(', ')}${optional.map((column) => ` [, ${column}]`).join('')}`;
  if (head === undefined) throw new AtlasError('E_CONFIG', `${path}: empty; ${wanted}`);
  const columns = head.record as Column[];
  const complete = required.every((column) => columns.includes(column));
  const clean = columns.every((column, i) => known.includes(column) && columns.indexOf(column) === i);
  if (!complete || !clean) throw new AtlasError('E_CONFIG', `${path}:${head.info.lines}: ${wanted}`);

  const table: ConfigTable<Column> = { path, rows: [], problems: [] };
  for (const { record, info } of records) {
    if (record.length !== columns.length) {
      addProblem(table, info.lines, `${record.length} cells under ${columns.length} columns`);
      continue;
    }
    const cells = Object.fromEntries(known.map((column) => [column, record[columns.indexOf(column)] ?? '']));
    table.rows.push({ line: info.lines, cells: cells as Record<Column, string> });
  }
  return table;
}
