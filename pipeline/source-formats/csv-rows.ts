/** Rows of a CSV file, streamed by csv-parse, each with the place it has in the file. */
import { createReadStream } from 'node:fs';
import type { TransformCallback } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, Parser } from 'csv-parse';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_CSV_ROW_BYTES } from '../../src/limits.js';

/** How the fields of a file are set apart. */
export interface Dialect {
  /** One character. */
  delimiter: string;
  /** One character, or null where fields are never quoted. */
  quote: string | null;
  /** A line that begins with it is no row; null where there are no such lines. */
  comment: string | null;
}

/** Where a row stands. One object is filled anew for each row: copy what you keep. */
export interface RowPlace {
  /** The line that the row ends in, from 1. */
  line: number;
  /** Line breaks inside the row: 0, or a quote was not closed where it should have been. */
  breaks: number;
  /** Offset in bytes behind the row before; blank and comment lines may follow it. */
  from: number;
  /** Offset in bytes behind this row and its line end. */
  to: number;
}

/**
 * Reads a CSV file row by row. Blank lines and comment lines are passed over; rows may differ in their number of fields.
 *
 * A quote sign that stands where none belongs counts as text, so that it spoils its own row and not the file.
 *
 * @param path the file, UTF-8, with or without a byte order mark; lines end in LF or CRLF
 * @param name the file's name for messages
 * @param dialect how its fields are set apart
 * @param visit gets each row; the place is valid during the call only. What it throws ends the reading and is thrown here
 * @throws AtlasError E_FETCH where the file cannot be read, E_BAD_INPUT where it falls into no rows: one that is longer than
 *   MAX_CSV_ROW_BYTES, or a quote that is open at the end
 */
export async function readRows(
  path: string,
  name: string,
  dialect: Dialect,
  visit: (row: string[], place: Readonly<RowPlace>) => void,
): Promise<void> {
  const parser = new RowParser(dialect, visit);
  parser.resume(); // Rows go to `visit`, so nothing but the end comes out of the stream.
  try {
    await pipeline(createReadStream(path), parser);
  } catch (error) {
    if (error instanceof CsvError) throw badRow(name, parser.place.line, error);
    if (error instanceof Error && 'syscall' in error) {
      throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
    }
    throw error;
  }
}

/** The error for a row that csv-parse cannot find the end of. */
function badRow(name: string, lastLine: number, error: CsvError): AtlasError {
  const why =
    error.code === 'CSV_MAX_RECORD_SIZE'
      ? `is longer than ${MAX_CSV_ROW_BYTES} bytes: a quote that is not closed, or no CSV file`
      : error.code === 'CSV_QUOTE_NOT_CLOSED'
        ? 'has a quote that is not closed'
        : `cannot be read (${error.message})`;
  return new AtlasError('E_BAD_INPUT', `${name}: the row behind line ${lastLine} ${why}`, { cause: error });
}

/**
 * csv-parse with the rows handed over on the spot, not through the stream's buffer: then the parser's counters tell where
 * each row stands. Its own ways to learn that, `info` and `on_record`, take twice the time.
 */
class RowParser extends Parser {
  readonly place: RowPlace = { line: 0, breaks: 0, from: 0, to: 0 };
  readonly #visit: (row: string[], place: Readonly<RowPlace>) => void;
  /** Lines that rows take up so far, as csv-parse counts lines: a lone CR ends one too. */
  #parserLines = 0;
  /** The same, as everyone else counts. */
  #rowLines = 0;
  /** Bytes since the last line end, in whole chunks. */
  #bytesOfLine = 0;

  constructor(dialect: Dialect, visit: (row: string[], place: Readonly<RowPlace>) => void) {
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
    this.#visit = visit;
  }

  override push(row: string[] | null): boolean {
    if (row === null) return super.push(null);
    if (this.destroyed) return false; // the rest of a chunk whose reading was ended
    const { info, place } = this;
    // csv-parse takes the length of its first record as that of all, and makes an error object, at 40 µs, of every other
    // one, even where lengths may differ. To a parser that has seen no record every record is the first.
    (info as { records: number }).records = 0;
    const otherLines = info.comment_lines + info.empty_lines;
    const parserLines = info.lines - otherLines;
    place.breaks = parserLines === this.#parserLines + 1 ? 0 : countBreaks(row);
    this.#parserLines = parserLines;
    this.#rowLines += 1 + place.breaks;
    place.line = this.#rowLines + otherLines;
    place.from = place.to;
    place.to = info.bytes;
    try {
      this.#visit(row, place);
    } catch (error) {
      this.destroy(error as Error);
    }
    return true;
  }

  /** Ends a line without end that csv-parse would go on with: it counts neither delimiters nor comments. */
  override _transform(chunk: Buffer, encoding: BufferEncoding, callback: TransformCallback): void {
    const lines = this.info.lines;
    super._transform(chunk, encoding, (error) => {
      this.#bytesOfLine = this.info.lines === lines ? this.#bytesOfLine + chunk.length : 0;
      callback(error ?? (this.#bytesOfLine > MAX_CSV_ROW_BYTES ? tooLong() : undefined));
    });
  }
}

function tooLong(): CsvError {
  return new CsvError('CSV_MAX_RECORD_SIZE', 'a line without end');
}

function countBreaks(row: readonly string[]): number {
  let breaks = 0;
  for (const field of row) breaks += field.split('\n').length - 1;
  return breaks;
}
