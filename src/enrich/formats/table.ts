/**
 * Tables with a header line: CSV and TSV as in RFC 4180, with `\n` or `\r\n`; a quote inside an unquoted cell is literal.
 * This file has what concerns the header. The kernel reads the records, and appends the cells of the results.
 */
import { parseAddress } from '../../address/parse.js';
import { AtlasError, misuse } from '../../errors.js';
import type { EnrichCounts } from '../counts.js';
import { pathText } from '../field-path.js';
import type { Chunk, Passage } from '../input/chunk-buffer.js';
import type { TableShape } from '../kernel/layout.js';
import { type EnrichOptions, pathsOf, type TableInput, wantedPaths } from '../options.js';
import { passesOthers } from '../query.js';
import { cellsOf, MAX_TITLES } from '../table-text.js';
import { cellText } from './results.js';

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const HASH = 35;
const QUOTE = 34;
const NO_BYTES = new Uint8Array(0);

/**
 * Returns the wanted columns of a table with a header, -1 for one that it does not have. In a table, the dots and brackets of a path are
 * part of the name.
 *
 * @throws AtlasError E_USAGE if it has none of the columns of a field, or two of one name
 */
function namedColumns(options: EnrichOptions, header: readonly string[], input: string): number[] {
  const { fields, atField } = options;
  const groups = fields.map((field) => ({ flag: '--field', paths: pathsOf(field) }));
  if (atField !== undefined) groups.push({ flag: '--at-field', paths: [atField.path] });
  for (const { flag, paths } of groups) {
    const names = paths.map(pathText);
    const present = names.filter((name) => header.includes(name));
    const double = present.find((name) => header.indexOf(name) !== header.lastIndexOf(name));
    if (present.length > 0 && double === undefined) continue;
    const problem = double === undefined ? 'has no column' : 'has more than one column';
    const hint =
      header.length === 1 && /[,;\t|]/.test(header[0]!)
        ? 'If these are several columns, name the character between them with --delimiter'
        : `Choose one with ${flag}`;
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

/** Returns the lines from an offset on, at most a number of them. */
function nextLines(text: Buffer, from: number, most: number): string[] {
  const lines: string[] = [];
  for (let at = from; lines.length < most && at < text.length; ) {
    const end = text.indexOf(NEWLINE, at) + 1 || text.length;
    lines.push(text.toString('utf8', at, end));
    at = end;
  }
  return lines;
}

/** Splits a record before its line ending. */
export function splitEnding(record: Buffer): [body: Buffer, ending: Buffer] {
  const isEnded = record.at(-1) === NEWLINE;
  const at = record.length - (isEnded ? (record.at(-2) === CARRIAGE_RETURN ? 2 : 1) : 0);
  return [record.subarray(0, at), record.subarray(at)];
}

/** Returns the end of the first record of a part of a table: a newline outside of quotes ends it. */
function recordEnd(bytes: Buffer, delimiter: number): number {
  /** Of the cell: whether it began with a quote; whether the last one opened a quotation. */
  let isQuoted: boolean | undefined;
  let isOpen = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isOpen) isOpen = byte !== QUOTE;
    else if (byte === NEWLINE) return at + 1;
    else if (byte === delimiter) isQuoted = undefined;
    else if (byte === QUOTE && isQuoted !== false) isQuoted = isOpen = true;
    else isQuoted ??= false;
  }
  return bytes.length;
}

/** Returns the first record of a part of a table, with its line ending, and its cells. */
function firstRecord(bytes: Buffer, delimiter: string): { cells: string[]; length: number } {
  const length = recordEnd(bytes, delimiter.charCodeAt(0));
  const [body] = splitEnding(bytes.subarray(0, length));
  return { cells: cellsOf(body.toString(), delimiter).cells, length };
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
  /** All records have the shape of the first one. */
  readonly isUnsettled = false;
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

  /**
   * Looks for the first record of the input in a chunk, and if it is a header, replaces it with the header of the output. Blank
   * lines and comments before it are passed on.
   *
   * @throws AtlasError E_USAGE if a field is not a column, or the table already has a column of a result; E_BAD_INPUT if the
   *   header cannot be read or differs from that of the first input
   */
  prepare(chunk: Chunk): void {
    if (!this.#isAtStart) return;
    const { passages, length } = chunk;
    const text = chunk.slot.input.subarray(0, length);
    const mark = passages[0]?.kind === 'text' ? passages[0].to : 0;
    const comments: Passage[] = [];
    let linesBefore = 0;
    let at = mark;
    for (let end = at; at < length; at = end) {
      const skipped = passages.find(({ from, to }) => from === at && to > at);
      if (skipped !== undefined) {
        if (this.#input.hasHeader) throw this.#noHeader(this.#line + linesBefore, skipped.problem);
        end = skipped.to;
        continue;
      }
      end = at + this.#lengthBefore(text, at);
      if (end === at) break;
      linesBefore++;
      if (text[at] === HASH)
        comments.push({ from: at, to: end, kind: 'text', output: this.#passed(text.subarray(at, end)) });
    }
    this.#line += linesBefore;
    const isFirst = this.#columns === undefined;
    this.#isAtStart = at === length;
    const record = this.#isAtStart ? undefined : firstRecord(text.subarray(at), this.#input.delimiter);
    if (!this.#input.hasHeader) {
      passages.push(...comments);
      passages.sort((a, b) => a.from - b.from);
      this.#counts.lines += comments.length;
      if (isFirst && record !== undefined) this.#setShape(record.cells, numberedColumns);
      return;
    }
    this.#counts.lines += linesBefore;
    const to = at + (record?.length ?? 0);
    const header = record === undefined ? NO_BYTES : this.#headerText(record.cells, text.subarray(at, to));
    // A byte order mark goes with the first line that is written.
    const before = isFirst || linesBefore > 0 ? this.#passed(text.subarray(0, at), isFirst ? mark : 0) : NO_BYTES;
    const output = Buffer.concat([before, header]);
    passages.splice(0, mark > 0 ? 1 : 0, { from: 0, to, kind: 'text', output });
  }

  /** Returns what is written of lines before the records: all, or the first bytes if a query leaves them out. */
  #passed(lines: Buffer, least = 0): Buffer {
    const { query } = this.#options;
    return query === undefined || passesOthers(query) ? lines : lines.subarray(0, least);
  }

  #noHeader(line: number, problem: string | undefined): AtlasError {
    return new AtlasError(
      'E_BAD_INPUT',
      `${this.#name}, line ${line}: ${problem}, so there is no header; repair it, or name a column with --no-header --field N`,
    );
  }

  /**
   * Returns the number of bytes of the line at an offset, if it is blank, or if it is a comment or a title before a table: it names no
   * column of a field, or has no address in one, and it begins with `#`, or a line soon after it is the header. Returns 0 for other lines.
   */
  #lengthBefore(text: Buffer, at: number): number {
    const end = text.indexOf(NEWLINE, at) + 1;
    if (end === 0) return 0;
    const line = text.toString('utf8', at, end);
    if (/^\r?\n$/.test(line)) return end - at;
    const names = wantedPaths(this.#options).map(pathText);
    const cellsOfLine = (one: string): string[] =>
      one
        .trimEnd()
        .split(this.#input.delimiter)
        .map((cell) => cell.replace(/^"(.*)"$/, '$1'));
    const isHeader = (one: string): boolean => names.some((name) => cellsOfLine(one).includes(name));
    if (this.#input.hasHeader) {
      const isBefore = line.startsWith('#') || nextLines(text, end, MAX_TITLES).some(isHeader);
      return isBefore && !isHeader(line) ? end - at : 0;
    }
    const cells = cellsOfLine(line);
    const isUsed = names.some((name) => parseAddress(cells[Number(name) - 1] ?? '', new Uint32Array(4)) !== 0);
    return line.startsWith('#') && !isUsed ? end - at : 0;
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

  #headerText(cells: string[], record: Buffer): Uint8Array {
    if (this.#columns === undefined) {
      this.#setShape(cells, namedColumns);
      const [body, ending] = splitEnding(record);
      if (ending.length > 0) this.newline = ending.toString();
      const { delimiter } = this.#input;
      const added = resultColumns(this.#options, cells, this.#name).map(
        (name) => delimiter + cellText(name, delimiter),
      );
      return Buffer.concat([body, Buffer.from(added.join('')), ending]);
    }
    const columns = this.#columns;
    if (JSON.stringify(cells) !== JSON.stringify(columns)) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `${this.#name} has the columns ${cells.join(', ')}, but the input before it ${columns.join(', ')}; ` +
          'the inputs of one run must have the same columns; enrich them one by one',
      );
    }
    return NO_BYTES;
  }
}
