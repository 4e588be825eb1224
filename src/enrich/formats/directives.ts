/**
 * Tables whose header is a line that begins with `#`, a directive: W3C Extended Log Format
 * (https://www.w3.org/TR/WD-logfile.html; IIS, CloudFront) and the logs of Zeek (https://docs.zeek.org/en/master/log-formats.html).
 *
 * The header may come again, with other columns. So a chunk that has directives has them at its beginning, and they are handled
 * here; the kernel reads the records after them.
 *
 * In logs with known columns, such as those of AWS, a header is optional, and records may have more columns than are known.
 */
import { AtlasError } from '../../errors.js';
import { pathText } from '../field-path.js';
import type { Chunk } from '../input/chunk-buffer.js';
import { isDirective } from '../input/directive-splitter.js';
import type { TableShape } from '../kernel/layout.js';
import type { Addable } from '../members.js';
import { DELIMITERS, type EnrichOptions, type TableInput } from '../options.js';
import { UNSET, zeekType } from './results.js';

const NEWLINE = 10;
const SPACE = ' ';
const TAB = '\t';

/** The directives that a format has a meaning for, with a byte order mark before them where files were joined. */
const W3C_FIELDS = /^(?:\xef\xbb\xbf)?#Fields:/;
const ZEEK_SEPARATOR = /^(?:\xef\xbb\xbf)?#separator (.*)$/;
const ZEEK_LINE = /^#(fields|types|unset_field)/;

/** Returns the text of Zeek's directive `#separator`, in which bytes are written as `\x09`. */
function unescapeSeparator(text: string): string {
  return text.replaceAll(/\\x([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
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

  /** Reads the first line of an input whose columns are known: it is a header if it names a field. Returns what is written. */
  #readUsualHeader(line: string): string | undefined {
    if (this.#usualColumns === undefined) return undefined;
    const [, body, ending] = /^(.*?)(\r?\n|)$/s.exec(line) as unknown as [string, string, string];
    const names = body.split(SPACE);
    if (!this.#options.fields.some(({ path }) => names.includes(pathText(path)))) return undefined;
    return [body, ...this.#readColumns(names)].join(SPACE) + ending;
  }

  #error(problem: string): AtlasError {
    return new AtlasError('E_BAD_INPUT', `${this.#name}: a line that begins with "#" ${problem}`);
  }

  /** Returns a directive as it is written to the output. */
  #readDirective(line: string): string {
    const [, body, ending] = /^(.*?)(\r?\n|)$/s.exec(line) as unknown as [string, string, string];
    const columns = this.#kind === 'w3c' ? this.#readW3c(body) : this.#readZeek(body);
    if (columns === undefined) return line;
    if (ending !== '') this.newline = ending;
    return body + Buffer.from(columns).toString('latin1') + ending;
  }

  /** Reads a directive. Returns the text to append: the columns of the results, each after a separator. */
  #readW3c(body: string): string | undefined {
    if (!W3C_FIELDS.test(body)) return undefined;
    const separator = /\S\t/.test(body) ? TAB : SPACE;
    const added = this.#readColumns(
      body
        .replace(W3C_FIELDS, '')
        .split(/[ \t]+/)
        .filter((name) => name !== ''),
    );
    // IIS 6 ends the line with a space.
    const first = /[ \t]$/.test(body) ? '' : separator;
    return added.length === 0 ? '' : first + added.join(separator);
  }

  #readZeek(body: string): string | undefined {
    const separator = ZEEK_SEPARATOR.exec(body)?.[1];
    if (separator !== undefined) {
      this.#separator = unescapeSeparator(separator);
      if (DELIMITERS.includes(this.#separator)) return undefined;
      throw this.#error(`has the separator ${JSON.stringify(separator)}, which is not supported`);
    }
    const name = ZEEK_LINE.exec(body)?.[1];
    const cells = body.split(this.#separator);
    if (name === undefined || cells.length === 1 || cells[0] !== `#${name}`) return undefined;
    if (name === 'unset_field') {
      if (cells[1] !== UNSET)
        throw this.#error(`has the value ${JSON.stringify(cells[1])} for no value; it must be "-"`);
      return undefined;
    }
    const { query, fields, add } = this.#options;
    const types = query === undefined ? fields.flatMap(() => add.map(zeekType)) : [];
    const added = name === 'fields' ? this.#readColumns(cells.slice(1)) : types;
    return added.map((text) => this.#separator + text).join('');
  }

  /** Takes the columns of a header. Returns those of the results. */
  #readColumns(columns: string[]): string[] {
    const { query, fields, add } = this.#options;
    const names = fields.map(({ path }) => pathText(path));
    this.#hasField ||= names.some((name) => columns.includes(name));
    if (!this.#hasField) {
      const missing = names.map((name) => JSON.stringify(name)).join(', ');
      throw new AtlasError(
        'E_USAGE',
        `${this.#name} has no column ${missing}; its columns are ${columns.join(', ')}. Choose one with --field`,
      );
    }
    this.#columns = columns;
    this.#isShapeDue = true;
    if (query !== undefined) return [];
    const added = fields.flatMap(({ name }) => add.map((part: Addable) => `${name}_${part}`));
    const duplicate = added.find((name) => columns.includes(name));
    if (duplicate === undefined) return added;
    throw new AtlasError(
      'E_USAGE',
      `${this.#name} already has a column ${JSON.stringify(duplicate)}; choose another name with --field PATH=NAME`,
    );
  }

  /** Sets the shape of the records from the first of them on. The lines of CloudFront have tabs, its header has spaces. */
  #setShape(record: string): void {
    const columns = this.#columns ?? [];
    const isTabbed = this.#kind === 'w3c' && record.includes(TAB);
    const delimiter = this.#kind === 'zeek' ? this.#separator : isTabbed ? TAB : SPACE;
    const { fields, atField } = this.#options;
    const wanted = atField === undefined ? fields : [...fields, atField];
    const fieldColumns = wanted.map(({ path }) => columns.indexOf(pathText(path)));
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
