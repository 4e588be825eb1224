/**
 * Tables whose header is a line that begins with `#`, a directive: W3C Extended Log Format
 * (https://www.w3.org/TR/WD-logfile.html; IIS, CloudFront) and the logs of Zeek (https://docs.zeek.org/en/master/log-formats.html).
 *
 * The header may come again, with other columns. So a chunk that has directives has them at its beginning, and they are handled
 * here; the kernel reads the records after them.
 *
 * In logs with known columns, such as those of AWS, a header is optional, and records may have more columns than are known.
 */
import { AtlasError, misuse } from '../../errors.js';
import { pathText } from '../field-path.js';
import { type Chunk, type Found, LineSplitter } from '../input/chunk-buffer.js';
import type { Slot } from '../kernel/kernel.js';
import type { TableShape } from '../kernel/layout.js';
import { DELIMITERS, type EnrichOptions, pathsOf, type TableInput, wantedPaths } from '../options.js';
import { columnsOf, separatorOf } from './headers.js';
import { UNSET, zeekType } from './results.js';
import { resultColumns, splitEnding } from './table.js';

const NEWLINE = 10;
const HASH = 35;
/** A byte order mark before `#`, as where files were joined. */
const MARK = Buffer.from('\ufeff');
const SPACE = ' ';
const TAB = '\t';

/** Returns whether a directive begins at an offset. */
function isDirective(input: Buffer, at: number): boolean {
  const start = MARK.equals(input.subarray(at, at + MARK.length)) ? at + MARK.length : at;
  return input[start] === HASH;
}

/** Splits lines, and before a directive that follows a record: directives are at the beginning of their chunk. */
export class DirectiveSplitter extends LineSplitter {
  override search(slot: Slot, from: number, to: number): Found {
    const found = super.search(slot, from, to);
    const lines = slot.input.subarray(0, found.end);
    for (let hash = lines.indexOf(HASH, from); hash >= 0; hash = lines.indexOf(HASH, hash + 1)) {
      const isMarked = MARK.equals(lines.subarray(Math.max(hash - MARK.length, 0), hash));
      const at = isMarked ? hash - MARK.length : hash;
      if (lines[at - 1] !== NEWLINE) continue;
      const lineBefore = lines.subarray(0, at - 1).lastIndexOf(NEWLINE) + 1;
      if (!isDirective(lines, lineBefore)) return { end: at, searched: at };
    }
    return found;
  }
}

export class DirectiveTable {
  /** The line ending of the last header. */
  newline = '\n';
  readonly #kind: Exclude<TableInput['directives'], undefined>;
  /** The columns of records before any header. */
  readonly #usualColumns: string[] | undefined;
  readonly #options: EnrichOptions;
  readonly #onShape: (shape: TableShape) => void;
  #name = 'the input';
  /** The columns of the last header, of this input; undefined before the first one. */
  #columns: string[] | undefined;
  /** For Zeek, what `#separator` says. */
  #separator = TAB;
  /** Whether a header of any input has named a field. */
  #hasField = false;
  /** Whether the shape must be set before the next record. */
  #isShapeDue = true;

  /** @param onShape receives the shape of the records before the first of them is processed */
  constructor(input: TableInput, options: EnrichOptions, onShape: (shape: TableShape) => void) {
    this.#kind = input.directives!;
    this.#usualColumns = input.columns;
    this.#options = options;
    this.#onShape = onShape;
  }

  /** Starts another input, which has a header of its own. */
  startInput(name: string): void {
    this.#name = name;
    this.#columns = this.#usualColumns;
    this.#separator = TAB;
    this.#isShapeDue = true;
  }

  /** Forgets the inputs so far. */
  restart(): void {
    this.newline = '\n';
    this.#hasField = false;
  }

  /** Returns whether the records of a chunk may have another shape than those before, which must be processed first. */
  mayChange({ slot, skip }: Chunk): boolean {
    return this.#isShapeDue || this.#isDirective(slot.input, skip);
  }

  /**
   * Reads the directives at the beginning of a chunk; adds the columns of the results to the header.
   *
   * @throws AtlasError E_USAGE if the first header names none of the fields, or a header already has a column of a result;
   *   E_BAD_INPUT for a header that cannot be read
   */
  prepare(chunk: Chunk): void {
    const { slot, piece, length } = chunk;
    const { input } = slot;
    if (piece !== undefined) {
      if (piece === 'first' && this.#isDirective(input, chunk.skip)) throw this.#error(chunk.problem!);
      return;
    }
    let at = chunk.skip;
    const texts: string[] = [];
    while (at < length && this.#isDirective(input, at)) {
      const end = endOfLine(input, at, length);
      texts.push(this.#readDirective(input.toString('latin1', at, end)));
      at = end;
    }
    if (texts.length > 0) {
      chunk.header = Buffer.concat([input.subarray(0, chunk.skip), Buffer.from(texts.join(''), 'latin1')]);
      chunk.skip = at;
    }
    if (!this.#isShapeDue) return;
    for (let end = at; at < length; at = end) {
      end = endOfLine(input, at, length);
      const record = input.toString('latin1', at, end);
      if (/^\r?\n$/.test(record)) continue;
      const header = this.#readUsualHeader(record);
      if (header !== undefined) {
        chunk.header = Buffer.concat([input.subarray(0, at), Buffer.from(header, 'latin1')]);
        chunk.skip = end;
      }
      this.#setShape(record);
      return;
    }
  }

  /** Returns what is wrong with a record that has a number of cells. */
  cellsProblem(cells: number): string {
    if (this.#columns === undefined) return 'there is no header before the record';
    return `the record has ${cells} cells, but the header ${this.#columns.length}`;
  }

  /** Returns whether a directive begins at an offset; where columns are known, lines that begin with `#` are records. */
  #isDirective(input: Buffer, at: number): boolean {
    return this.#kind !== 'columns' && isDirective(input, at);
  }

  get #fieldNames(): string[] {
    return this.#options.fields.flatMap(pathsOf).map(pathText);
  }

  /** Reads the first line of an input whose columns are known: it is a header if it names a field. Returns what is written. */
  #readUsualHeader(line: string): string | undefined {
    if (this.#usualColumns === undefined) return undefined;
    const [body, ending] = splitEnding(line);
    const names = body.split(SPACE);
    if (!this.#fieldNames.some((name) => names.includes(name))) return undefined;
    return [body, ...this.#readColumns(names)].join(SPACE) + ending;
  }

  #error(problem: string): AtlasError {
    return new AtlasError('E_BAD_INPUT', `${this.#name}: a line that begins with "#" ${problem}; convert the file`);
  }

  /** Returns a directive as it is written to the output. */
  #readDirective(line: string): string {
    const [body, ending] = splitEnding(line);
    const added = this.#kind === 'w3c' ? this.#readW3c(body) : this.#readZeek(body);
    if (added === undefined) return line;
    if (ending !== '') this.newline = ending;
    return body + Buffer.from(added).toString('latin1') + ending;
  }

  /** Reads a directive. Returns the text to append: the columns of the results, each after a separator. */
  #readW3c(body: string): string | undefined {
    const columns = columnsOf('w3c', body, TAB);
    if (columns === undefined) return undefined;
    const separator = /\S\t/.test(body) ? TAB : SPACE;
    const added = this.#readColumns(columns).map((name) => separator + name);
    // IIS 6 ends the line with a space.
    return added.join('').slice(/[ \t]$/.test(body) ? 1 : 0);
  }

  #readZeek(body: string): string | undefined {
    const separator = separatorOf(body);
    if (separator !== undefined) {
      if (!DELIMITERS.includes(separator))
        throw this.#error(`has the separator ${JSON.stringify(separator)}, which is not supported`);
      this.#separator = separator;
      return undefined;
    }
    const columns = columnsOf('zeek', body, this.#separator);
    const [name, value] = body.split(this.#separator);
    if (name === '#unset_field' && value !== undefined && value !== UNSET)
      throw this.#error(`has the value ${JSON.stringify(value)} for no value; it must be "-"`);
    if (columns === undefined && (name !== '#types' || value === undefined)) return undefined;
    const { query, fields, add } = this.#options;
    const types = query === undefined ? fields.flatMap(() => add.map(zeekType)) : [];
    const added = columns === undefined ? types : this.#readColumns(columns);
    return added.map((text) => this.#separator + text).join('');
  }

  /** Takes the columns of a header. Returns those of the results. */
  #readColumns(columns: string[]): string[] {
    const names = this.#fieldNames;
    this.#hasField ||= names.some((name) => columns.includes(name));
    if (!this.#hasField) {
      const missing = names.map((name) => JSON.stringify(name)).join(', ');
      throw misuse(
        `${this.#name} has no column ${missing}; its columns are ${columns.join(', ')}. Choose one with --field`,
      );
    }
    this.#columns = columns;
    this.#isShapeDue = true;
    return resultColumns(this.#options, columns, this.#name);
  }

  /** Sets the shape of the records from the first of them on. The lines of CloudFront have tabs, its header has spaces. */
  #setShape(record: string): void {
    const columns = this.#columns ?? [];
    const isTabbed = this.#kind === 'w3c' && record.includes(TAB);
    const delimiter = this.#kind === 'zeek' ? this.#separator : isTabbed ? TAB : SPACE;
    const fieldColumns = wantedPaths(this.#options).map((path) => columns.indexOf(pathText(path)));
    const columnCount = this.#kind === 'columns' ? Number.POSITIVE_INFINITY : columns.length;
    this.#onShape({ columnCount, fieldColumns, delimiter });
    this.#isShapeDue = false;
  }
}

/** Returns the end of the line that begins at an offset, after its newline. */
function endOfLine(input: Buffer, at: number, length: number): number {
  const newline = input.subarray(at, length).indexOf(NEWLINE);
  return newline < 0 ? length : at + newline + 1;
}
