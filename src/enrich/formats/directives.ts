/**
 * Tables whose header is a line that begins with `#`, a directive: W3C Extended Log Format
 * (https://www.w3.org/TR/WD-logfile.html; IIS, CloudFront) and the logs of Zeek (https://docs.zeek.org/en/master/log-formats.html).
 *
 * The header may come again, with other columns. The directives are passages of a chunk, which are handled here; the kernel reads the
 * records between them.
 *
 * In logs with known columns, such as those of AWS, a header is optional, and records may have more columns than are known.
 */
import { AtlasError, misuse } from '../../errors.js';
import { pathText } from '../field-path.js';
import { type Chunk, type Found, LineSplitter, type Passage } from '../input/chunk-buffer.js';
import type { Slot } from '../kernel/kernel.js';
import type { TableShape } from '../kernel/layout.js';
import { DELIMITERS, type EnrichOptions, pathsOf, type TableInput, wantedPaths } from '../options.js';
import { UNSET, zeekType } from './results.js';
import { resultColumns, splitEnding } from './table.js';

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const HASH = 35;
/** A byte order mark before `#`, as where files were joined. */
const MARK = Buffer.from('\ufeff');
const SPACE = ' ';
const TAB = '\t';

/** The headers may have a byte order mark before them, too. */
const W3C_FIELDS = /^\ufeff?#Fields:/;
const ZEEK_SEPARATOR = /^\ufeff?#separator (.*)$/;

/** Returns what Zeek's directive `#separator` says, in which bytes are written as `\x09`; undefined for another line. */
function separatorOf(line: string): string | undefined {
  return ZEEK_SEPARATOR.exec(line)?.[1]?.replaceAll(/\\x([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/** Returns the columns that a line names; undefined if it is not a header. @param separator for Zeek, what is between them */
function columnsOf(kind: 'w3c' | 'zeek', line: string, separator: string): string[] | undefined {
  if (kind === 'w3c') return W3C_FIELDS.test(line) ? (line.replace(W3C_FIELDS, '').match(/[^ \t]+/g) ?? []) : undefined;
  const [name, ...columns] = line.split(separator);
  return name === '#fields' && columns.length > 0 ? columns : undefined;
}

/** Returns whether a directive begins at an offset. */
function isDirective(input: Buffer, at: number): boolean {
  const start = MARK.equals(input.subarray(at, at + MARK.length)) ? at + MARK.length : at;
  return input[start] === HASH;
}

/** Splits lines, and finds the directives among them. */
export class DirectiveSplitter extends LineSplitter {
  override search(slot: Slot, start: number, from: number, to: number): Found {
    const found = super.search(slot, start, from, to);
    const lines = slot.input.subarray(0, found.end);
    const passages: Passage[] = [];
    for (let hash = lines.indexOf(HASH, start); hash >= 0; hash = lines.indexOf(HASH, hash + 1)) {
      const isMarked = MARK.equals(lines.subarray(Math.max(hash - MARK.length, start), hash));
      const at = isMarked ? hash - MARK.length : hash;
      if (at > start && lines[at - 1] !== NEWLINE) continue;
      hash = lines.indexOf(NEWLINE, hash);
      passages.push({ from: at, to: hash + 1, kind: 'directive' });
    }
    return { ...found, passages };
  }
}

export class DirectiveTable {
  /** The line ending of the last header. */
  newline = '\n';
  readonly #kind: Exclude<TableInput['directives'], undefined>;
  /** The columns of records before any header. */
  readonly #usualColumns: string[] | undefined;
  readonly #options: EnrichOptions;
  #name = 'the input';
  /** The columns of the last header, of this input; undefined before the first one. */
  #columns: string[] | undefined;
  /** For Zeek, what `#separator` says. */
  #separator = TAB;
  /** The last header, and what was written for it: it often comes again. */
  #header: { line: Buffer; output: Buffer } | undefined;
  /** Whether a header of any input has named a field. */
  #hasField = false;
  /** Whether the shape of the records must be said before the next one, as at the start of an input. */
  #isShapeDue = true;
  #isAtStart = true;
  /** Whether the last chunk changes the shape: it must be processed before those after it. */
  isUnsettled = false;

  constructor(input: TableInput, options: EnrichOptions) {
    this.#kind = input.directives!;
    this.#usualColumns = input.columns;
    this.#options = options;
  }

  /** Starts another input, which has a header of its own. */
  startInput(name: string): void {
    this.#name = name;
    this.#columns = this.#usualColumns;
    this.#separator = TAB;
    this.#header = undefined;
    this.#isShapeDue = true;
    this.#isAtStart = true;
  }

  /** Forgets the inputs so far. */
  restart(): void {
    this.newline = '\n';
    this.#hasField = false;
  }

  /**
   * Reads the directives of a chunk; adds the columns of the results to the headers.
   *
   * @throws AtlasError E_USAGE if the first header names none of the fields, or a header already has a column of a result;
   *   E_BAD_INPUT for a header that cannot be read
   */
  prepare(chunk: Chunk): void {
    const { passages, slot, length } = chunk;
    const { input } = slot;
    this.#addLastLine(chunk);
    if (this.#isShapeDue) passages.unshift({ from: 0, to: 0, kind: 'text', shape: this.#takeShape() });
    if (this.#isAtStart && this.#usualColumns !== undefined) this.#readUsualHeader(chunk);
    for (const passage of passages) {
      const { kind, from, to, problem } = passage;
      if (kind === 'first' && this.#kind !== 'columns' && isDirective(input, from)) throw this.#error(problem!);
      if (kind !== 'directive') continue;
      passage.output = this.#readDirective(input.subarray(from, to));
      if (this.#isShapeDue) passage.shape = this.#takeShape();
    }
    this.#isAtStart &&= length === 0;
    this.isUnsettled = passages.some(({ shape }) => shape !== undefined);
  }

  /** Adds the last line of an input, if it is a directive without a newline. */
  #addLastLine({ passages, slot: { input }, length }: Chunk): void {
    const start = Math.max(input.subarray(0, length).lastIndexOf(NEWLINE) + 1, passages.at(-1)?.to ?? 0);
    if (start < length && this.#kind !== 'columns' && isDirective(input, start))
      passages.push({ from: start, to: length, kind: 'directive' });
  }

  /** Returns what is wrong with a record that has a number of cells. */
  cellsProblem(cells: number): string {
    if (this.#columns === undefined) return 'there is no header before the record';
    return `the record has ${cells} cells, but the header ${this.#columns.length}`;
  }

  get #fieldNames(): string[] {
    return this.#options.fields.flatMap(pathsOf).map(pathText);
  }

  /** Reads the first line of an input whose columns are known: it is a header if it names a field. */
  #readUsualHeader({ passages, slot: { input }, length }: Chunk): void {
    let at = passages.find(({ to }) => to > 0)?.from === 0 ? passages.find(({ to }) => to > 0)!.to : 0;
    while (at < length && isBlankLine(input, at)) at = input.indexOf(NEWLINE, at) + 1;
    const newline = input.subarray(at, length).indexOf(NEWLINE);
    const line = input.subarray(at, newline < 0 ? length : at + newline + 1);
    const [body, ending] = splitEnding(line);
    const names = body.toString().split(SPACE);
    if (!this.#fieldNames.some((name) => names.includes(name))) return;
    const added = this.#readColumns(names).map((name) => SPACE + name);
    const output = Buffer.concat([body, Buffer.from(added.join('')), ending]);
    const next = passages.findIndex(({ from, to }) => from >= at && to > 0);
    passages.splice(next < 0 ? passages.length : next, 0, {
      ...{ from: at, to: at + line.length, kind: 'text', output },
      shape: this.#takeShape(),
    });
  }

  #error(problem: string): AtlasError {
    return new AtlasError('E_BAD_INPUT', `${this.#name}: a line that begins with "#" ${problem}; convert the file`);
  }

  /** Returns a directive as it is written to the output. */
  #readDirective(line: Buffer): Buffer {
    if (this.#header?.line.equals(line) === true) return this.#header.output;
    const [body, ending] = splitEnding(line);
    const isHeader = this.#isShapeDue;
    const added = this.#kind === 'w3c' ? this.#readW3c(body.toString()) : this.#readZeek(body.toString());
    if (added === undefined) return line;
    if (ending.length > 0) this.newline = ending.toString();
    const output = Buffer.concat([body, Buffer.from(added.join('')), ending]);
    if (!isHeader && this.#isShapeDue) this.#header = { line: Buffer.from(line), output };
    return output;
  }

  /** Reads a directive. Returns the texts to append: the columns of the results, each after a separator. */
  #readW3c(body: string): string[] | undefined {
    const columns = columnsOf('w3c', body, TAB);
    if (columns === undefined) return undefined;
    const separator = /\S\t/.test(body) ? TAB : SPACE;
    const added = this.#readColumns(columns);
    // IIS 6 ends the line with a space.
    return added.map((name, at) => (at === 0 && /[ \t]$/.test(body) ? name : separator + name));
  }

  #readZeek(body: string): string[] | undefined {
    const separator = separatorOf(body);
    if (separator !== undefined) {
      if (!DELIMITERS.includes(separator))
        throw this.#error(`has the separator ${JSON.stringify(separator)}, which is not supported`);
      if (separator !== this.#separator) this.#header = undefined;
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
    const wrong = added.find((text) => text.includes(this.#separator));
    if (wrong !== undefined)
      throw misuse(
        `the column ${JSON.stringify(wrong)} would have the separator of ${this.#name}; choose another target`,
      );
    return added.map((text) => this.#separator + text);
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

  /** Returns the shape of the records that follow. The lines of CloudFront have tabs, its header has spaces. */
  #takeShape(): TableShape {
    const columns = this.#columns ?? [];
    this.#isShapeDue = false;
    return {
      columnCount: this.#kind === 'columns' ? Number.POSITIVE_INFINITY : columns.length,
      fieldColumns: wantedPaths(this.#options).map((path) => columns.indexOf(pathText(path))),
      delimiter: this.#kind === 'zeek' ? this.#separator : SPACE,
      mayHaveTabs: this.#kind === 'w3c',
    };
  }
}

/** Returns whether the line at an offset, which ends with a newline, is blank. */
function isBlankLine(input: Buffer, at: number): boolean {
  return input[at] === NEWLINE || (input[at] === CARRIAGE_RETURN && input[at + 1] === NEWLINE);
}
