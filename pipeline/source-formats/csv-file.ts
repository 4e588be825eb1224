/** A CSV file, read by csv-parse as a stream. */
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { finished } from 'node:stream/promises';
import { TextDecoder } from 'node:util';
import { CsvError, type Options, parse } from 'csv-parse';
import { parse as parseText } from 'csv-parse/sync';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_CSV_ROW_BYTES } from '../../src/limits.js';

/** Number of rows at the beginning of a file that tell how many fields most rows have. */
const HEAD_ROWS = 50;

/** How the fields of a file are separated. */
export interface Dialect {
  /** One character. */
  delimiter: string;
  /** One character, or null if fields are never quoted. */
  quote: string | null;
  /** First character of comment lines; null if there are none. */
  comment: string | null;
}

/** Where a row is in its file. */
export interface RowLocation {
  /** The line that the row ends on, from 1. */
  line: number;
  /** The row as written, without its line end. */
  text: string;
}

/**
 * The rows of a file are numbered from 1. Blank lines and comment lines are no rows. csv-parse tells the line of each row
 * only at twice the time, so lines and texts are looked up later, for the few rows that they are needed of.
 */
export class CsvFile {
  readonly #path: string;
  readonly #name: string;
  readonly #dialect: Dialect;
  /** Number of line breaks in each row that has any: a quote is closed on a later line. */
  readonly breaks: Map<number, number>;

  /**
   * @param path the file: UTF-8, or UTF-16LE with a byte order mark; lines end in LF or CRLF
   * @param name the file's name for messages
   * @param dialect how its fields are separated
   * @param breaks if it was read before, what `breaks` was then
   */
  constructor(path: string, name: string, dialect: Dialect, breaks: ReadonlyMap<number, number> = new Map()) {
    this.#path = path;
    this.#name = name;
    this.#dialect = dialect;
    this.breaks = new Map(breaks);
  }

  /**
   * Reads the rows, which may differ in their number of fields. A quote in the middle of a field counts as text, so that it
   * damages its own row only and not the rest of the file.
   *
   * @param onRow receives each row, its number, and the number of line breaks in it. An error that it throws ends the reading
   * @throws AtlasError E_FETCH if the file cannot be read, E_BAD_INPUT if a row is longer than MAX_CSV_ROW_BYTES or a quote
   *   is still open at the end of the file
   */
  async read(onRow: (cells: string[], row: number, breaks: number) => void): Promise<void> {
    let row = 0;
    const add = (cells: string[]): void => {
      row++;
      const breaks = this.#dialect.quote === null ? 0 : breaksIn(cells);
      if (breaks > 0) this.breaks.set(row, breaks);
      onRow(cells, row, breaks);
    };
    let head = 0;
    try {
      const { rows, bytes } = await this.#readHead();
      head = rows.length;
      rows.forEach(add);
      const parser = parse(this.#options());
      // By events: a loop that awaits each row takes half as long again.
      parser.on('data', (cells: string[]) => {
        try {
          add(cells);
        } catch (error) {
          parser.destroy(error as Error);
        }
      });
      pipeline(createReadStream(this.#path, { start: bytes }), parser, () => {}); // The parser gets the errors.
      await finished(parser);
    } catch (error) {
      if (error instanceof CsvError) throw await this.#badRow(error, head);
      throw this.#asFetchError(error);
    }
  }

  #options(): Options {
    const { delimiter, quote, comment } = this.#dialect;
    return {
      bom: true,
      comment,
      comment_no_infix: true,
      delimiter,
      escape: quote,
      max_record_size: MAX_CSV_ROW_BYTES,
      quote,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: quote !== null,
      skip_empty_lines: true,
    };
  }

  /**
   * Reads the rows before the first one that has as many fields as most of the beginning: titles, version and summary lines.
   * csv-parse makes an error object, which takes 40 µs, for each row that has not as many fields as the first one that it
   * reads, even with `relax_column_count`.
   *
   * @returns the rows, and the number of bytes that they take
   */
  async #readHead(): Promise<{ rows: string[][]; bytes: number }> {
    let records: { record: string[]; info: { bytes: number } }[] = [];
    for await (const chunk of createReadStream(this.#path, { end: MAX_CSV_ROW_BYTES })) {
      try {
        // The rest of a file in UTF-16 has no byte order mark.
        if (!isUtf16(chunk as Buffer)) {
          records = parseText(chunk as Buffer, { ...this.#options(), info: true, to: HEAD_ROWS }) as never;
        }
      } catch (error) {
        if (!(error instanceof CsvError)) throw error; // What is wrong is found again in the whole file.
      }
      break;
    }
    const count = (length: number): number => records.filter(({ record }) => record.length === length).length;
    const most = Math.max(0, ...records.map(({ record }) => count(record.length)));
    const first = records.findIndex(({ record }) => count(record.length) === most);
    const before = records.slice(0, Math.max(0, first));
    return { rows: before.map(({ record }) => record), bytes: before.at(-1)?.info.bytes ?? 0 };
  }

  /** Returns where rows are that have been read. */
  async locate(rows: Iterable<number>): Promise<Map<number, RowLocation>> {
    const { comment } = this.#dialect;
    const wanted = new Set(rows);
    const found = new Map<number, RowLocation>();
    let row = 0;
    let line = 0;
    /** Lines of the current row that are still to come, and its text so far. */
    let toCome = 0;
    let text = '';
    const add = (next: string): void => {
      line++;
      if (toCome > 0) {
        toCome--;
        text += `\n${next}`;
      } else if (next === '' || (comment !== null && next.startsWith(comment))) {
        return;
      } else {
        text = next;
        toCome = this.breaks.get(++row) ?? 0;
      }
      if (toCome === 0 && wanted.delete(row)) found.set(row, { line, text });
    };
    try {
      let decoder: TextDecoder | undefined;
      let rest = '';
      for await (const bytes of createReadStream(this.#path)) {
        const chunk = bytes as Buffer;
        decoder ??= new TextDecoder(isUtf16(chunk) ? 'utf-16le' : 'utf-8');
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop()!.slice(0, MAX_CSV_ROW_BYTES);
        for (const each of lines) add(each.endsWith('\r') ? each.slice(0, -1) : each);
        if (wanted.size === 0) return found;
      }
      add(rest);
    } catch (error) {
      throw this.#asFetchError(error);
    }
    return found;
  }

  /** Returns the error for a file in which no row can be read any more. @param head number of rows that were read apart */
  async #badRow(error: CsvError, head: number): Promise<Error> {
    const last = head + (error as CsvError & { records: number }).records;
    const line = (await this.locate([last])).get(last)?.line ?? 0;
    const problem =
      error.code === 'CSV_QUOTE_NOT_CLOSED'
        ? 'has a quote that is not closed'
        : `is longer than ${MAX_CSV_ROW_BYTES} bytes: a quote is not closed, or the file is not CSV`;
    return new AtlasError('E_BAD_INPUT', `${this.#name}: the row after line ${line} ${problem}`, { cause: error });
  }

  #asFetchError(error: unknown): unknown {
    if (!(error instanceof Error && 'syscall' in error)) return error;
    return new AtlasError('E_FETCH', `cannot read ${this.#name}: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether a file begins with the byte order mark of UTF-16LE. */
function isUtf16(bytes: Buffer): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xfe;
}

/** Counts the line breaks in the cells of a row. */
function breaksIn(cells: readonly string[]): number {
  let breaks = 0;
  for (const cell of cells) if (cell.includes('\n')) breaks += cell.split('\n').length - 1;
  return breaks;
}
