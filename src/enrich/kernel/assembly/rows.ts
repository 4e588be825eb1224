/**
 * The rows of tables, lists and access logs that wait for their results. As in batch.ts, some dozens are looked up together;
 * then each row is put out with its results after its last cell.
 */
import {
  BATCH_VALUES,
  FORMAT_COMBINED,
  FORMAT_TABLE,
  FRAGMENT_BYTES,
  ROW_BYTES,
} from '../abi';
import { NEWLINE, QUOTE, SPACE } from './ascii';
import { countResult, queryLine } from './batch';
import {
  delimiter,
  fieldCount,
  fieldTargets,
  format,
  fragments,
  isLenient,
  longestInsert,
  passesOthers,
  recordCount,
  selected,
} from './config';
import { longestText, parseText } from './lenient';
import { addQuery, answerQueries, startQueries } from './lookup';
import { countLine, dropLine, hasRoom, lines, put, putInputTo, rejectLine, scratch, valueOffsets, values } from './slot';

// What is kept of a row: its first byte, the end of its text, the end of its input.
const ROW_START: usize = 0;
const ROW_CLOSE: usize = 4;
const ROW_END: usize = 8;

/** The number of rows that wait. */
let rowCount: u32 = 0;

/** Discards the rows of an earlier run. */
export function startRows(): void {
  rowCount = 0;
}

/**
 * Adds a row; the offsets of its values are in `valueOffsets`.
 *
 * @param start its first byte; @param close the end of its text; @param end the end of its input, with its line ending
 * @returns 0, or the first byte of the first row that does not fit into the output
 */
@inline export function addRow(start: usize, close: usize, end: usize): usize {
  const row = lines + <usize>rowCount * ROW_BYTES;
  store<u32>(row, <u32>start, ROW_START);
  store<u32>(row, <u32>close, ROW_CLOSE);
  store<u32>(row, <u32>end, ROW_END);
  let value = values + (<usize>(rowCount * fieldCount) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    store<u32>(value, load<u32>(valueOffsets + (<usize>load<u32>(fieldTargets + (<usize>field << 2)) << 2)));
    value += 4;
  }
  rowCount++;
  return rowCount * fieldCount >= <u32>BATCH_VALUES ? flushRows() : 0;
}

/** Returns the number of bytes before the first of two bytes, or a number above that of any text with an address. */
@inline function lengthTo(from: usize, byte: u32, other: u32): usize {
  const a = i8x16.splat(<i8>byte);
  const b = i8x16.splat(<i8>other);
  let length: usize = 0;
  do {
    const text = v128.load(from + length);
    const mask = i8x16.bitmask(v128.or(i8x16.eq(text, a), i8x16.eq(text, b)));
    if (mask != 0) return length + ctz(mask);
    length += 16;
  } while (length <= longestText());
  return length;
}

/** Stores what a value without an address counts as, or adds a query for its address. */
@inline function queryText(value: usize, from: usize, length: usize): void {
  if (length > longestText() || !addQuery(value, parseText(from, from + length))) store<u32>(value, recordCount);
}

/**
 * Copies the text of a quoted cell to `scratch` as csv-parse reads it with `relax_quotes`. If text follows the quotation, the
 * quotes around the quotation are text as well.
 *
 * @param close the end of the record's text
 * @returns the length, or a number above that of any text with an address
 */
function unquote(from: usize, close: usize): usize {
  let at = from + 1;
  // The first byte is for the opening quote.
  let to = scratch + 1;
  const limit = to + longestText();
  for (; at < close && to <= limit; at++) {
    if (load<u8>(at) == <u8>QUOTE && (++at == close || load<u8>(at) != <u8>QUOTE)) break;
    store<u8>(to++, load<u8>(at));
  }
  if (to > limit) return to - scratch;
  if (at == close || load<u8>(at) == <u8>delimiter) {
    memory.copy(scratch, scratch + 1, to - scratch - 1);
    return to - scratch - 1;
  }
  store<u8>(scratch, <u8>QUOTE);
  for (at--; at < close && load<u8>(at) != <u8>delimiter && to <= limit; at++) store<u8>(to++, load<u8>(at));
  return to - scratch;
}

/**
 * Replaces the offset of a cell with a query for its address. An empty cell is a missing value. A quoted cell is exactly an
 * address only if its first quote after the opening one closes it, because no address has a quote in it.
 */
@inline function queryCell(value: usize, close: usize): void {
  const from: usize = load<u32>(value);
  if (from < close && load<u8>(from) == <u8>QUOTE) {
    const length = lengthTo(from + 1, QUOTE, QUOTE);
    const after = from + length + 2;
    if (after > close || (after < close && load<u8>(after) != <u8>delimiter)) {
      if (isLenient) queryText(value, scratch, unquote(from, close));
      else store<u32>(value, recordCount);
    } else if (length == 0) store<u32>(value, recordCount + 1);
    else queryText(value, from + 1, length);
    return;
  }
  const length = min(lengthTo(from, delimiter, NEWLINE), close - from);
  if (length == 0) store<u32>(value, recordCount + 1);
  else queryText(value, from, length);
}

/** Replaces the value offsets with lookup queries. A missing value becomes record `recordCount` + 1, an invalid one `recordCount`. */
function queryValues(): void {
  startQueries();
  let value = values;
  for (let i: u32 = 0; i < rowCount; i++) {
    const close: usize = load<u32>(lines + <usize>i * ROW_BYTES, ROW_CLOSE);
    for (let field: u32 = 0; field < fieldCount; field++) {
      const from: usize = load<u32>(value);
      if (format == FORMAT_TABLE) queryCell(value, close);
      else if (format == FORMAT_COMBINED) queryText(value, from, min(lengthTo(from, SPACE, NEWLINE), close - from));
      else queryText(value, from, close - from);
      value += 4;
    }
  }
}

/** Puts out the text of a field's result: the one for no result if the value is missing or not an address. */
@inline export function putFragment(field: u32, record: u32): void {
  const fragment = fragments + <usize>(field * (recordCount + 1) + min(record, recordCount)) * FRAGMENT_BYTES;
  put(load<u32>(fragment), load<u32>(fragment, 4));
}

/**
 * Looks up the addresses of the rows that wait, and puts the rows out.
 *
 * @returns 0, or the first byte of the first row that does not fit into the output; that row and those after it are discarded
 */
export function flushRows(): usize {
  queryValues();
  answerQueries();
  const count = rowCount;
  rowCount = 0;
  let value = values;
  for (let i: u32 = 0; i < count; i++) {
    const row = lines + <usize>i * ROW_BYTES;
    const start: usize = load<u32>(row, ROW_START);
    const end: usize = load<u32>(row, ROW_END);
    if (!hasRoom(end, longestInsert)) return start;
    countLine();
    if (selected != 0) {
      queryLine(value, start, end);
      value += <usize>fieldCount << 2;
      continue;
    }
    putInputTo(load<u32>(row, ROW_CLOSE));
    for (let field: u32 = 0; field < fieldCount; field++) {
      const record = load<u32>(value);
      value += 4;
      countResult(record);
      putFragment(field, record);
    }
  }
  return 0;
}

/**
 * Handles a row that is blank or not a record of the table. All rows before it are put out first.
 *
 * @returns 0, or the first byte of the first row that could not be processed
 */
export function endOtherRow(start: usize, end: usize, isBlank: bool): usize {
  const full = flushRows();
  if (full != 0) return full;
  if (!hasRoom(end, 0)) return start;
  if (!isBlank) return rejectLine(start, end) ? 0 : start;
  countLine();
  if (selected != 0 && !passesOthers) dropLine(start, end);
  return 0;
}
