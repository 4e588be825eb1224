/** Rows of a CSV file, streamed by csv-parse, each with its position in the file. */
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

/** Position of a row. One object is reused for all rows: copy what must outlive the call. */
export interface RowPosition {
  /** The line that the row ends on, from 1. */
  line: number;
  /** Line breaks inside the row: not 0 if a quote is closed on a later line. */
  breaks: number;
  /** Offset in bytes of the end of the previous row; blank and comment lines may follow it. */
  from: number;
  /** Offset in bytes after this row and its line end. */
  to: number;
}

/**
 * Reads a CSV file row by row. Blank lines and comment lines are skipped; rows may differ in their number of fields.
 *
 * A quote in the middle of a field counts as text, so that it damages its own row only and not the rest of the file.
 *
 * @param path the file, UTF-8, with or without a byte order mark; lines end in LF or CRLF
 * @param name the file's name for messages
 * @param dialect how its fields are separated
 * @param onRow receives each row; the position is valid only during the call. An error that it throws ends the reading
 * @throws AtlasError E_FETCH if the file cannot be read, E_BAD_INPUT if a row is longer than MAX_CSV_ROW_BYTES or a quote
 *   is still open at the end of the file
 */
export async function readRows(
  path: string,
  name: string,
  dialect: Dialect,
  onRow: (row: string[], position: Readonly<RowPosition>) => void,
): Promise<void> {
  const parser = new RowParser(dialect, onRow);
  parser.resume(); // Rows go to `onRow`; the stream itself only reports its end.
  try {
    await pipeline(createReadStream(path), parser);
  } catch (error) {
    if (error instanceof CsvError) throw badRow(name, parser.position.line, error);
    if (error instanceof Error && 'syscall' in error) {
      throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
    }
    throw error;
  }
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
  readonly position: RowPosition = { line: 0, breaks: 0, from: 0, to: 0 };
  readonly #onRow: (row: string[], position: Readonly<RowPosition>) => void;
  /** Lines of rows so far as csv-parse counts them: a lone CR ends a line, too. */
  #parserLines = 0;
  /** Lines of rows so far, of which only LF and CRLF end one. */
  #rowLines = 0;
  /** Bytes since the last line end, counted in whole chunks. */
  #bytesOfLine = 0;

  constructor(dialect: Dialect, onRow: (row: string[], position: Readonly<RowPosition>) => void) {
    super({
      bom: true,
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
    position.line = this.#rowLines + otherLines;
    position.from = position.to;
    position.to = info.bytes;
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
