/** Reads the records of a table and finds the wanted cells. cells.ts finds the separators. */
import { ANY_COLUMNS, INSERT_BYTES, NO_COLUMN, SHAPE_COLUMNS, SHAPE_DELIMITER, SHAPE_STYLE, SHAPE_TARGET_COUNT, SHAPE_TARGETS } from '../abi';
import { CARRIAGE_RETURN } from './ascii';
import { addPlainLine, endOtherLine, flushBatch } from './batch';
import { brokenEnd, recordEnds, separatorsOf, startCells } from './cells';
import { VECTOR } from './masks';
import { fieldCount, setDelimiter, shape, valueOffsets } from './settings';
import { setCells } from './slot';

/** The number of wanted columns; the columns, 4 bytes each. */
let wantedCount: u32 = 0;
let wantedColumns: usize = 0;
/** The number of the wanted column that comes next, in `wantedColumns`, and that column. */
let target: u32 = 0;
let wanted: u32 = 0;

@inline function wantedColumn(): u32 {
  return target < wantedCount ? load<u32>(wantedColumns + (<usize>target << 2)) : <u32>NO_COLUMN;
}

/** Notes that a wanted cell begins at an address. */
@inline function noteCell(at: usize): void {
  store<u32>(valueOffsets + (<usize>target << 2), <u32>at);
  target++;
  wanted = wantedColumn();
}

/** Starts a record: it has no value of the one before. */
@inline function startRecord(at: usize): void {
  for (target = 0; target < wantedCount; target++) store<u32>(valueOffsets + (<usize>target << 2), 0);
  target = 0;
  wanted = wantedColumn();
  if (wanted == 0) noteCell(at);
}

/**
 * Notes the wanted cells among those that begin after some delimiters of a vector.
 *
 * @param column number of delimiters in the record before these
 */
@inline function noteCells(vector: usize, delimiters: u64, column: u32): void {
  const end = column + <u32>popcnt(delimiters);
  while (wanted <= end) {
    for (; column + 1 < wanted; column++) delimiters &= delimiters - 1;
    noteCell(vector + <usize>ctz(delimiters) + 1);
  }
}

/**
 * Processes records, the first of which begins at `from`.
 *
 * @param end after the last newline; @param inputEnd the end of the input: one byte less if the last newline is not part of it
 * @returns `end`, or the first byte of the first record that was not processed: the output is full, or the policy is to fail
 */
export function processRecords(from: usize, end: usize, inputEnd: usize): usize {
  const columnCount = load<u32>(shape, SHAPE_COLUMNS);
  wantedCount = load<u32>(shape, SHAPE_TARGET_COUNT);
  wantedColumns = shape + SHAPE_TARGETS;
  const style = <usize>(load<u32>(shape, SHAPE_STYLE) * fieldCount) * INSERT_BYTES;
  setDelimiter(load<u32>(shape, SHAPE_DELIMITER));
  startCells();
  startRecord(from);
  let start = from;
  // The delimiters of the record so far.
  let column: u32 = 0;
  for (let vector = from; vector < end; ) {
    let separators = separatorsOf(vector, min(end - vector, VECTOR));
    for (let ends = recordEnds; ends != 0; ends &= ends - 1) {
      const newline = ends & (0 - ends);
      const delimiters = separators & (newline - 1);
      separators &= ~((newline << 1) - 1);
      noteCells(vector, delimiters, column);
      column += <u32>popcnt(delimiters);

      const at = vector + <usize>ctz(newline);
      // Only a newline of the input makes a carriage return part of the line ending.
      const isCrLf = at > start && at < inputEnd && load<u8>(at - 1) == <u8>CARRIAGE_RETURN;
      const close = at - usize(isCrLf);
      const after = min(at + 1, inputEnd);
      let full: usize = 0;
      if (close == start) full = endOtherLine(start, after, true);
      else if (column + 1 == columnCount || columnCount == ANY_COLUMNS) full = addPlainLine(start, close, after, style);
      else {
        setCells(column + 1);
        full = endOtherLine(start, after, false);
      }
      if (full != 0) return full;
      start = at + 1;
      column = 0;
      startRecord(start);
    }
    if (brokenEnd != 0) {
      const lineEnd = vector + <usize>ctz(brokenEnd) + 1;
      vector = start;
      column = 0;
      startCells(lineEnd);
      startRecord(start);
      continue;
    }
    noteCells(vector, separators, column);
    column += <u32>popcnt(separators);
    vector += VECTOR;
  }
  const full = flushBatch();
  return full != 0 ? full : end;
}
