/**
 * Rows of a CSV file, each with its position in the file. Lines are split at the delimiter as long as there is one way only to read
 * them; from the first other line on csv-parse reads the file, which takes several times as long.
 */
import { isAscii } from 'node:buffer';
import { createReadStream } from 'node:fs';
import type { TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, Parser } from 'csv-parse';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_CSV_ROW_BYTES } from '../../src/limits.js';

/** How the fields of a file are separated. */
export interface Dialect {
  /** One character. */
  delimiter: string;
  /** One character, or null if fields are never quoted. */
  quote: string | null;
  /** First character of comment lines; null if there are none. */
  comment: string | null;
}

/** Whole rows of a file that are next to each other. */
export interface FilePart {
  /** Offset in bytes of their beginning. */
  from: number;
  /** Offset in bytes after them. */
  to: number;
  /** Number of lines before them. */
  line: number;
}

/** Position of a row. One object is reused for all rows: copy what must outlive the call. */
export interface RowPosition {
  /** The line that the row before it ends on, 0 for the first row. */
  previousLine: number;
  /** The line that the row ends on, from 1. */
  line: number;
  /** Line breaks inside the row: not 0 if a quote is closed on a later line. */
  breaks: number;
  /** Offset in bytes of the end of the previous row; blank and comment lines may follow it. */
  from: number;
  /** Offset in bytes after this row and its line end. */
  to: number;
}

/** Receives each row; the position is valid only during the call. */
type RowListener = (row: string[], position: Readonly<RowPosition>) => void;

/** Bytes read at a time. */
const CHUNK_BYTES = 262_144;

/**
 * Reads a CSV file row by row. Blank lines and comment lines are skipped; rows may differ in their number of fields.
 *
 * A quote in the middle of a field counts as text, so that it damages its own row only and not the rest of the file.
 *
 * @param path the file, UTF-8, with or without a byte order mark; lines end in LF or CRLF
 * @param name the file's name for messages
 * @param dialect how its fields are separated
 * @param onRow receives each row. An error that it throws ends the reading
 * @param part what to read; default: the whole file
 * @throws AtlasError E_FETCH if the file cannot be read, E_BAD_INPUT if a row is longer than MAX_CSV_ROW_BYTES or a quote
 *   is still open at the end of the file
 */
export async function readRows(
  path: string,
  name: string,
  dialect: Dialect,
  onRow: RowListener,
  part: FilePart = { from: 0, to: Number.POSITIVE_INFINITY, line: 0 },
): Promise<void> {
  const open = (from: number) => createReadStream(path, { start: from, end: part.to - 1, highWaterMark: CHUNK_BYTES });
  const plain = new PlainRows(dialect, onRow, part);
  let parser: RowParser | undefined;
  try {
    if (await plain.read(open(part.from))) return;
    const { to, line } = plain.position;
    parser = new RowParser(dialect, onRow, { from: to, line });
    parser.resume(); // Rows go to `onRow`; the stream itself only reports its end.
    await pipeline(open(to), parser);
  } catch (error) {
    if (error instanceof CsvError) throw badRow(name, parser!.position.line, error);
    if (error instanceof Error && 'syscall' in error) {
      throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
    }
    throw error;
  }
}

/** Splits lines for as long as each line is one row whatever is in the lines after it. */
class PlainRows {
  /** Of the last row. */
  readonly position: RowPosition;
  readonly #dialect: Dialect;
  readonly #onRow: RowListener;
  readonly #split: (line: string) => string[] | undefined;
  /** Lines and bytes so far. */
  #lines: number;
  #bytes: number;

  constructor(dialect: Dialect, onRow: RowListener, { from, line }: Pick<FilePart, 'from' | 'line'>) {
    this.position = { previousLine: line, line, breaks: 0, from, to: from };
    this.#dialect = dialect;
    this.#onRow = onRow;
    this.#split = lineSplitter(dialect);
    this.#lines = line;
    this.#bytes = from;
  }

  /** Returns false if the rows after the last one need csv-parse. */
  async read(file: AsyncIterable<Buffer>): Promise<boolean> {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of file) {
      const bytes = Buffer.concat([rest, chunk]);
      const end = bytes.lastIndexOf('\n') + 1;
      if (!this.#addLines(bytes.subarray(0, end))) return false;
      rest = bytes.subarray(end);
      if (rest.length > MAX_CSV_ROW_BYTES) return false;
    }
    return this.#addLines(rest);
  }

  #addLines(bytes: Buffer): boolean {
    const { position } = this;
    const { comment } = this.#dialect;
    // One character is one byte, so that positions are those of the file.
    const text = bytes.toString('latin1');
    const mayHaveMark = this.#bytes === 0 && bytes[0]! >= 0xef;
    if (mayHaveMark || text.includes('\r')) return false;
    const decoded = isAscii(bytes) ? text : undefined;
    for (let from = 0, to = 0; from < text.length; from = to + 1) {
      to = text.indexOf('\n', from);
      if (to < 0) to = text.length;
      if (to - from > MAX_CSV_ROW_BYTES) return false;
      this.#lines++;
      const line = decoded?.slice(from, to) ?? bytes.toString('utf8', from, to);
      if (line === '' || (comment !== null && line.startsWith(comment))) continue;
      const row = this.#split(line);
      if (row === undefined) return false;
      position.previousLine = position.line;
      position.line = this.#lines;
      position.from = position.to;
      position.to = this.#bytes + Math.min(to + 1, text.length);
      this.#onRow(row, position);
    }
    this.#bytes += bytes.length;
    return true;
  }
}

/**
 * Returns a function that splits a line into its cells. It returns undefined for a line with a quote that does not begin or end a
 * cell.
 */
function lineSplitter({ delimiter, quote }: Dialect): (line: string) => string[] | undefined {
  if (quote === null) return (line) => line.split(delimiter);
  const [q, d] = [quote, delimiter].map((character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
  /** A cell, as its text or what is between its quotes, and what ends it. */
  const cell = new RegExp(`(?:([^${q}${d}]*)|${q}((?:[^${q}]|${q}${q})*)${q})(${d}|$)`, 'uy');
  return (line) => {
    if (!line.includes(quote)) return line.split(delimiter);
    const row: string[] = [];
    cell.lastIndex = 0;
    for (let end = delimiter; end !== ''; ) {
      const match = cell.exec(line);
      if (match === null) return undefined;
      row.push(match[1] ?? match[2]!.replaceAll(quote + quote, quote));
      end = match[3]!;
    }
    return row;
  };
}

/** Returns the error for a row whose end csv-parse cannot find. */
function badRow(name: string, lastLine: number, error: CsvError): AtlasError {
  const why =
    error.code === 'CSV_MAX_RECORD_SIZE'
      ? `is longer than ${MAX_CSV_ROW_BYTES} bytes: a quote is not closed, or the file is not CSV`
      : error.code === 'CSV_QUOTE_NOT_CLOSED'
        ? 'has a quote that is not closed'
        : `cannot be read (${error.message})`;
  return new AtlasError('E_BAD_INPUT', `${name}: the row after line ${lastLine} ${why}`, { cause: error });
}

/**
 * csv-parse with rows delivered at once instead of through the stream's buffer, so that the parser's counters belong to
 * the row being delivered. The documented ways to get positions, `info` and `on_record`, take 2.5 times the processor time.
 */
class RowParser extends Parser {
  readonly position: RowPosition = { previousLine: 0, line: 0, breaks: 0, from: 0, to: 0 };
  readonly #part: Pick<FilePart, 'from' | 'line'>;
  readonly #onRow: RowListener;
  /** Lines of rows so far as csv-parse counts them: a lone CR ends a line, too. */
  #parserLines = 0;
  /** Lines of rows so far, of which only LF and CRLF end one. */
  #rowLines = 0;
  /** Bytes since the last line end, counted in whole chunks. */
  #bytesOfLine = 0;

  constructor(dialect: Dialect, onRow: RowListener, part: Pick<FilePart, 'from' | 'line'>) {
    super({
      bom: part.from === 0,
      comment: dialect.comment,
      comment_no_infix: true,
      delimiter: dialect.delimiter,
      escape: dialect.quote ?? false,
      max_record_size: MAX_CSV_ROW_BYTES,
      quote: dialect.quote ?? false,
      record_delimiter: ['\n', '\r\n'],
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
    });
    this.#onRow = onRow;
    this.#part = part;
    this.position.line = part.line;
    this.position.to = part.from;
  }

  override push(row: string[] | null): boolean {
    if (row === null) return super.push(null);
    if (this.destroyed) return false; // the rest of a chunk whose reading was ended
    const { info, position } = this;
    // csv-parse expects all records to have as many fields as the first. For every other record it makes an error object,
    // which takes 40 µs, even with `relax_column_count`. With a count of 0 it takes each record for the first one.
    (info as { records: number }).records = 0;
    const otherLines = info.comment_lines + info.empty_lines;
    const parserLines = info.lines - otherLines;
    position.breaks = parserLines === this.#parserLines + 1 ? 0 : countBreaks(row);
    this.#parserLines = parserLines;
    this.#rowLines += 1 + position.breaks;
    position.previousLine = position.line;
    position.line = this.#part.line + this.#rowLines + otherLines;
    position.from = position.to;
    position.to = this.#part.from + info.bytes;
    try {
      this.#onRow(row, position);
    } catch (error) {
      this.destroy(error as Error);
    }
    return true;
  }

  /** Refuses a line that is too long. csv-parse limits records only, and counts neither delimiters nor comments. */
  override _transform(chunk: Buffer, encoding: BufferEncoding, callback: TransformCallback): void {
    const lines = this.info.lines;
    super._transform(chunk, encoding, (error) => {
      this.#bytesOfLine = this.info.lines === lines ? this.#bytesOfLine + chunk.length : 0;
      callback(error ?? (this.#bytesOfLine > MAX_CSV_ROW_BYTES ? tooLong() : undefined));
    });
  }
}

function tooLong(): CsvError {
  return new CsvError('CSV_MAX_RECORD_SIZE', 'line too long');
}

function countBreaks(row: readonly string[]): number {
  let breaks = 0;
  for (const field of row) breaks += field.split('\n').length - 1;
  return breaks;
}
