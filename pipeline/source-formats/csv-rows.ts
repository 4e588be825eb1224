/** Rows of a CSV file, streamed. csv-parse reads the same rows, but takes four times as long. */
import { createReadStream } from 'node:fs';
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
  /** The row as written, without its line end. */
  text: string;
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
  { delimiter, quote, comment }: Dialect,
  onRow: (row: string[], position: Readonly<RowPosition>) => void,
): Promise<void> {
  const position: RowPosition = { line: 0, breaks: 0, text: '' };
  const badRow = (why: string): AtlasError =>
    new AtlasError('E_BAD_INPUT', `${name}: the row after line ${position.line} ${why}`);
  let lines = 0;
  /** Passes on the rows of a text. Returns the rest, which is not a whole row unless it is the end of the file. */
  const read = (text: string, isEnd: boolean): string => {
    let at = 0;
    while (at < text.length) {
      let end = text.indexOf('\n', at);
      if (end < 0 && !isEnd) break;
      if (end < 0) end = text.length;
      let line = text.slice(at, isLineEnd(text, end - 1) ? Math.max(at, end - 1) : end);
      const isRow = line !== '' && (comment === null || !line.startsWith(comment));
      let cells: string[] = [];
      position.breaks = 0;
      if (isRow && (quote === null || !line.includes(quote))) cells = line.split(delimiter);
      else if (isRow) {
        const row = splitQuoted(text, at, delimiter, quote!);
        if (row === undefined && isEnd) throw badRow('has a quote that is not closed');
        if (row === undefined || (row.end === text.length && !isEnd)) break;
        cells = row.cells;
        line = text.slice(at, row.end);
        end = text.indexOf('\n', row.end);
        if (end < 0) end = text.length;
        for (const sign of line) if (sign === '\n') position.breaks++;
      }
      if (line.length > MAX_CSV_ROW_BYTES) break;
      lines += 1 + position.breaks;
      at = end + 1;
      if (!isRow) continue;
      position.line = lines;
      position.text = line;
      onRow(cells, position);
    }
    if (text.length - at > MAX_CSV_ROW_BYTES) {
      throw badRow(`is longer than ${MAX_CSV_ROW_BYTES} bytes: a quote is not closed, or the file is not CSV`);
    }
    return text.slice(at);
  };
  try {
    let rest = '';
    let isStart = true;
    for await (const chunk of createReadStream(path, 'utf8')) {
      rest = read(rest + (isStart ? (chunk as string).replace(/^\ufeff/, '') : chunk), false);
      isStart = false;
    }
    read(rest, true);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) {
      throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
    }
    throw error;
  }
}

/** Whether a line end, LF or CRLF, begins here. */
function isLineEnd(text: string, at: number): boolean {
  return text[at] === '\n' || (text[at] === '\r' && text[at + 1] === '\n');
}

/**
 * Splits a row that has quotes. If text follows a closing quote, both quotes are part of the cell.
 *
 * @returns the cells, and where the row ends, before its line end; undefined if a quote is not closed
 */
function splitQuoted(
  text: string,
  start: number,
  delimiter: string,
  quote: string,
): { cells: string[]; end: number } | undefined {
  const cells: string[] = [];
  for (let at = start; ; at++) {
    let cell = '';
    const isEnd = (): boolean => at >= text.length || text[at] === delimiter || isLineEnd(text, at);
    if (text[at] === quote) {
      let close = text.indexOf(quote, at + 1);
      for (at++; text[close + 1] === quote && close >= 0; close = text.indexOf(quote, at)) {
        cell += text.slice(at, close + 1);
        at = close + 2;
      }
      if (close < 0) return undefined;
      cell += text.slice(at, close);
      at = close + 1;
      if (!isEnd()) cell = `${quote}${cell}${quote}`;
    }
    const rest = at;
    while (!isEnd()) at++;
    cells.push(cell + text.slice(rest, at));
    if (text[at] !== delimiter) return { cells, end: at };
  }
}
