/**
 * Tables with a header line: CSV and TSV as in RFC 4180, with `\n` or `\r\n`; a quote inside an unquoted cell is literal.
 * This file has what concerns the header. The kernel reads the records, and appends the cells of the results.
 */
import { createRequire } from 'node:module';
import type { parse as Parse } from 'csv-parse/sync';
import { AtlasError, misuse } from '../../errors.js';
import type { EnrichCounts } from '../counts.js';
import { pathText } from '../field-path.js';
import type { Chunk } from '../input/chunk-buffer.js';
import type { TableShape } from '../kernel/layout.js';
import { type EnrichOptions, pathsOf, type TableInput, wantedPaths } from '../options.js';
import { passesOthers } from '../query.js';
import { cellText } from './results.js';

const NEWLINE = 10;

/**
 * Returns the wanted columns of a table with a header, -1 for one that it does not have. In a table, the dots and brackets of a path are
 * part of the name.
 *
 * @throws AtlasError E_USAGE if it has none of the columns of a field, or two of one name
 */
function namedColumns(options: EnrichOptions, header: readonly string[], input: string): number[] {
  const { fields, atField } = options;
  const groups = [...fields.map(pathsOf), ...(atField === undefined ? [] : [[atField.path]])];
  for (const names of groups.map((paths) => paths.map(pathText))) {
    const present = names.filter((name) => header.includes(name));
    const double = present.find((name) => header.indexOf(name) !== header.lastIndexOf(name));
    if (present.length > 0 && double === undefined) continue;
    const problem = double === undefined ? 'has no column' : 'has more than one column';
    const hint =
      header.length === 1 && /[,;\t|]/.test(header[0]!)
        ? 'If these are several columns, name the character between them with --delimiter'
        : 'Choose one with --field';
    const name = JSON.stringify(double ?? names.join('|'));
    throw misuse(`${input} ${problem} ${name}; its columns are ${header.join(', ')}. ${hint}`);
  }
  return wantedPaths(options).map((path) => header.indexOf(pathText(path)));
}

/** Returns the wanted columns, which are given as numbers from 1. */
function numberedColumns(options: EnrichOptions, columns: readonly string[], input: string): number[] {
  const numbers = wantedPaths(options).map((path) => Number(pathText(path)));
  const number = numbers.find((one) => one > columns.length);
  if (number === undefined) return numbers.map((one) => one - 1);
  throw misuse(`${input} has ${columns.length} columns, so there is no column ${number}; choose another with --field`);
}

/** Splits a record before its line ending. */
export function splitEnding(record: string): [body: string, ending: string] {
  if (!record.endsWith('\n')) return [record, ''];
  const at = record.length - (record.endsWith('\r\n') ? 2 : 1);
  return [record.slice(0, at), record.slice(at)];
}

/** Returns the first record of a part of a table, with its line ending, and its cells. */
function firstRecord(bytes: Uint8Array, delimiter: string): { cells: string[]; length: number } {
  // Not imported: other formats do not need it, and its files take as long to load as half of this program.
  const { parse } = createRequire(import.meta.url)('csv-parse/sync') as { parse: typeof Parse };
  const [first] = parse(bytes, {
    delimiter,
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    relax_quotes: true,
    to: 1,
    info: true,
  }) as unknown as { record: string[]; info: { bytes: number } }[];
  return { cells: first!.record, length: first!.info.bytes };
}

/**
 * Returns the names of the columns that the results get; none for a query.
 *
 * @param columns those of the input
 * @throws AtlasError E_USAGE if one of them has the name of a result
 */
export function resultColumns(
  { query, fields, add }: EnrichOptions,
  columns: readonly string[],
  input: string,
): string[] {
  if (query !== undefined) return [];
  const added = fields.flatMap(({ name }) => add.map((part) => `${name}_${part}`));
  const duplicate = added.find((name) => columns.includes(name));
  if (duplicate === undefined) return added;
  throw misuse(
    `${input} already has a column ${JSON.stringify(duplicate)}; choose another name with --field PATH=NAME`,
  );
}

/**
 * The header of a table. All inputs are one table: the header of the first input is written, those of the others must be equal
 * and are left out. Without a header, the first record of the first input determines the number of columns.
 */
export class Table {
  /** The line ending of the header, to be added to an input that lacks its last one if another input follows. */
  newline = '\n';
  readonly #input: TableInput;
  readonly #options: EnrichOptions;
  readonly #counts: EnrichCounts;
  readonly #onShape: (shape: TableShape) => void;
  /** The cells of the first record of the first input. */
  #columns: string[] | undefined;
  /** Name of the current input, and whether its first record has not been read. */
  #name = 'the input';
  #isAtStart = true;
  /** Lines of the current input before the header. */
  #line = 1;

  /** @param onShape receives the shape before the first record is processed */
  constructor(input: TableInput, options: EnrichOptions, counts: EnrichCounts, onShape: (shape: TableShape) => void) {
    this.#input = input;
    this.#options = options;
    this.#counts = counts;
    this.#onShape = onShape;
  }

  /** Starts another input. */
  startInput(name: string): void {
    this.#name = name;
    this.#isAtStart = true;
    this.#line = 1;
  }

  /** Makes the next input another table, with a header of its own. */
  restart(): void {
    this.#columns = undefined;
    this.newline = '\n';
  }

  /** Returns false: all records have the shape of the first one. */
  mayChange(): boolean {
    return false;
  }

  /**
   * Looks for the first record of the input in a chunk, and if it is a header, replaces it with the header of the output. Blank
   * lines and comments before it are passed on.
   *
   * @throws AtlasError E_USAGE if a field is not a column, or the table already has a column of a result; E_BAD_INPUT if the
   *   header cannot be read or differs from that of the first input
   */
  prepare(chunk: Chunk): void {
    if (!this.#isAtStart) return;
    if (chunk.piece !== undefined) {
      if (!this.#input.hasHeader) return;
      throw new AtlasError(
        'E_BAD_INPUT',
        `${this.#name}, line ${this.#line}: ${chunk.problem}, so there is no header; repair it, or name a column with --no-header --field N`,
      );
    }
    const text = chunk.slot.input.subarray(0, chunk.length);
    let at = chunk.skip;
    let linesBefore = 0;
    for (let length = this.#lengthBefore(text, at); length > 0; linesBefore++) {
      at += length;
      length = this.#lengthBefore(text, at);
    }
    this.#line += linesBefore;
    const isFirst = this.#columns === undefined;
    this.#isAtStart = at === chunk.length;
    const record = this.#isAtStart ? undefined : firstRecord(text.subarray(at), this.#input.delimiter);
    if (this.#input.hasHeader) {
      const end = at + (record?.length ?? 0);
      const header = record === undefined ? '' : this.#headerText(record.cells, text.toString('latin1', at, end));
      this.#replaceStart(chunk, [at, end], linesBefore, isFirst, header);
    } else if (isFirst && record !== undefined) {
      this.#setShape(record.cells, numberedColumns);
    }
  }

  /**
   * Returns the number of bytes of the line at an offset, if it is blank, or if it is a comment before a header: it begins with `#`, and
   * names no column of a field. Returns 0 for other lines.
   */
  #lengthBefore(text: Buffer, at: number): number {
    const end = text.indexOf(NEWLINE, at) + 1;
    if (end === 0) return 0;
    const line = text.toString('utf8', at, end);
    const cells = line
      .trimEnd()
      .split(this.#input.delimiter)
      .map((cell) => cell.replace(/^"(.*)"$/, '$1'));
    const isNamed = wantedPaths(this.#options).some((path) => cells.includes(pathText(path)));
    const isComment = this.#input.hasHeader && line.startsWith('#') && !isNamed;
    return isComment || /^\r?\n$/.test(line) ? end - at : 0;
  }

  /** Returns what is wrong with a record that has a number of cells. */
  cellsProblem(cells: number): string {
    const expected = this.#input.hasHeader ? 'the header' : 'the first record';
    return `the record has ${cells} cells, but ${expected} ${this.#columns!.length}`;
  }

  #setShape(columns: string[], columnsOf: typeof namedColumns): void {
    const fieldColumns = columnsOf(this.#options, columns, this.#name);
    this.#columns = columns;
    this.#onShape({ columnCount: columns.length, fieldColumns, delimiter: this.#input.delimiter });
  }

  /** Replaces what is before the records. @param place of the header; a byte order mark, blank lines and comments are before it */
  #replaceStart(
    chunk: Chunk,
    [at, end]: [number, number],
    linesBefore: number,
    isFirst: boolean,
    header: string,
  ): void {
    const { query } = this.#options;
    const passesLines = query === undefined || passesOthers(query);
    this.#counts.lines += linesBefore;
    // A byte order mark goes with the first line that is written.
    const from = passesLines ? 0 : at;
    const mark = chunk.slot.input.subarray(0, !passesLines && isFirst ? chunk.skip : 0);
    const lines = chunk.slot.input.subarray(isFirst || linesBefore > 0 ? from : at, at);
    chunk.header = Buffer.concat([mark, lines, Buffer.from(header, 'latin1')]);
    chunk.skip = end;
  }

  #headerText(cells: string[], record: string): string {
    if (this.#columns === undefined) {
      this.#setShape(cells, namedColumns);
      const [body, ending] = splitEnding(record);
      if (ending !== '') this.newline = ending;
      const { delimiter } = this.#input;
      const added = resultColumns(this.#options, cells, this.#name).map(
        (name) => delimiter + cellText(name, delimiter),
      );
      return body + Buffer.from(added.join('')).toString('latin1') + ending;
    }
    const columns = this.#columns;
    if (JSON.stringify(cells) !== JSON.stringify(columns)) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${this.#name} has the columns ${cells.join(', ')}, but the input before it ${columns.join(', ')}; ` +
          'the inputs of one run must have the same columns; enrich them one by one',
      );
    }
    return '';
  }
}
