/**
 * The lines, of any format, that wait for their results. Some dozens are processed at a time, step by step: all addresses are
 * parsed (values.ts), then all are looked up (lookup.ts), then all lines are put out. A lookup mostly waits for memory, and
 * this way many wait together.
 */
import { FORMAT_JSON, HIDE_EXTRACT, HIDE_INLINE, INSERT_BYTES, KEPT_ROW, LINE_BYTES, NOT_A_RECORD, OBJECT_MISSING, ROW_NETWORK } from '../abi';
import { isBlank, NEWLINE } from './ascii';
import { hasRequiredObjects, putObject } from './inner';
import { locateBatch, putInvalid } from './locate';
import { isCountry, keptOfValue } from './lookup';
import { putInsert, putKeptMembers, putMembers } from './members';
import {
  batchValues,
  createsObjects,
  fieldCount,
  fieldTargets,
  format,
  hides,
  inserts,
  lines,
  locates,
  longestInsert,
  networkCounts,
  passesOthers,
  recordCount,
  recordCounts,
  requiresObjects,
  results,
  rows4,
  selected,
  selectedNetworks,
  terminator,
  valueCount,
  valueOffsets,
  values,
} from './settings';
import {
  countFound,
  countInvalidAddress,
  countLine,
  countDamagedHistory,
  countMissingDate,
  countMissingField,
  countNoCountry,
  dropLine,
  hasRoom,
  putInputTo,
  rejectLine,
} from './slot';
import {
  FORGOTTEN,
  LINE_CLOSE,
  LINE_END,
  LINE_FIRST_REPLACED,
  LINE_OPEN,
  LINE_REPLACED_COUNT,
  LINE_START,
  lookUpValues,
} from './values';

/** The number of lines that wait. */
let lineCount: u32 = 0;

/** Whether the last flush left lines: they do not fit into the output, or the policy is to fail. */
export let isOutputFull: bool = false;

/** Discards the lines of an earlier run. */
export function startBatch(): void {
  lineCount = 0;
  isOutputFull = false;
}

/** Returns whether the batch must be flushed. It has room for the lines of one more vector than this allows. */
@inline export function isBatchFull(): bool {
  return lineCount * fieldCount >= batchValues;
}

/**
 * Adds a line; the offsets of its values are in `valueOffsets`. The caller must flush the batch if it is full.
 *
 * @param start its first byte; @param open, close its braces, or the beginning and end of its text
 * @param end the end of its input, after its terminator if it has one
 * @param firstReplaced the opening quote of the first member that is replaced, or 0; @param replacedCount how many are
 */
@inline export function addLine(
  start: usize,
  open: usize,
  close: usize,
  end: usize,
  firstReplaced: usize,
  replacedCount: u32,
): void {
  const line = lines + <usize>lineCount * LINE_BYTES;
  store<u32>(line, <u32>start, LINE_START);
  store<u32>(line, <u32>open, LINE_OPEN);
  store<u32>(line, <u32>close, LINE_CLOSE);
  store<u32>(line, <u32>end, LINE_END);
  store<u32>(line, <u32>firstReplaced, LINE_FIRST_REPLACED);
  store<u32>(line, replacedCount, LINE_REPLACED_COUNT);
  let value = values + (<usize>(lineCount * valueCount) << 2);
  for (let field: u32 = 0; field < valueCount; field++) {
    store<u32>(value, load<u32>(valueOffsets + (<usize>load<u32>(fieldTargets + (<usize>field << 2)) << 2)));
    value += 4;
  }
  lineCount++;
}

/**
 * Adds a line of a format without objects, and flushes the batch if it is full.
 *
 * @param style the offset of the texts to insert; it is kept in the place of the first member that is replaced
 * @returns 0, or the first byte of the first line that does not fit into the output
 */
@inline export function addPlainLine(start: usize, close: usize, end: usize, style: usize = 0): usize {
  addLine(start, start, close, end, style, 0);
  return isBatchFull() ? flushBatch() : 0;
}

/**
 * Drops the lines that close at an address or after it.
 *
 * @returns the first byte of the first of them, or 0
 */
export function dropLines(from: usize): usize {
  let start: usize = 0;
  while (lineCount > 0) {
    const line = lines + <usize>(lineCount - 1) * LINE_BYTES;
    if (<usize>load<u32>(line, LINE_CLOSE) < from) break;
    start = load<u32>(line, LINE_START);
    lineCount--;
  }
  return start;
}

/** Returns whether the last line begins at an address, and no members of it are replaced. */
export function isLastLine(start: usize): bool {
  if (lineCount == 0) return false;
  const line = lines + <usize>(lineCount - 1) * LINE_BYTES;
  return <usize>load<u32>(line, LINE_START) == start && load<u32>(line, LINE_REPLACED_COUNT) == 0;
}

/** Returns the offset of a value in the last line, or 0 if the value is missing. There must be a line. */
export function lastLineValue(field: u32): usize {
  return load<u32>(values + (<usize>((lineCount - 1) * valueCount + field) << 2));
}

/** Counts a value by its record. */
@inline export function countResult(record: u32): void {
  if (isCountry(record)) countFound();
  else if (record < recordCount) countNoCountry();
  else if (record == recordCount) countInvalidAddress();
  else if (record == recordCount + 1) countMissingField();
  else if (record == recordCount + 2) countMissingDate();
  else countDamagedHistory();
}

/** Counts the network of a row, if networks are counted; returns whether the query selects it. */
function queryNetwork(row: usize): bool {
  const network: usize = load<u32>(row, ROW_NETWORK);
  if (networkCounts != 0) {
    const count = networkCounts + (network << 3);
    store<u64>(count, load<u64>(count) + 1);
  }
  return selectedNetworks != 0 && load<u8>(selectedNetworks + network) != 0;
}

/** Applies the query to a line: counts its results, and leaves it out of the output unless the query passes it on. */
function queryLine(value: usize, start: usize, end: usize): void {
  let isSelected = false;
  for (let field: u32 = 0; field < fieldCount; field++) {
    const record = load<u32>(value + (<usize>field << 2));
    countResult(record);
    if (load<u8>(selected + record) != 0) isSelected = true;
    if (record < recordCount) {
      const count = recordCounts + (<usize>record << 3);
      store<u64>(count, load<u64>(count) + 1);
      if (rows4 != 0 && queryNetwork(load<u32>(keptOfValue(value + (<usize>field << 2)), KEPT_ROW))) isSelected = true;
    }
  }
  if (isSelected == passesOthers) dropLine(start, end);
}

/** Returns the fields of a line that have a result, one bit each. There are at most 64 (MAX_FIELDS). */
function resultFields(value: usize): u64 {
  let fields: u64 = 0;
  for (let field: u32 = 0; field < fieldCount; field++) {
    if (load<u32>(value + (<usize>field << 2)) < recordCount) fields |= (<u64>1) << <u64>field;
  }
  return fields;
}

/** Returns whether an object has members. */
@inline function hasMembers(open: usize, close: usize): bool {
  let last = close - 1;
  while (isBlank(load<u8>(last))) last--;
  return last != open;
}

/**
 * Ends a line that a query decides on, or whose results do not just follow its text: they go into objects in it, replace members, or
 * are indented.
 *
 * @returns whether to go on, which is false at an invalid line under `POLICY_FAIL`
 */
function endSpecialLine(line: usize, value: usize): bool {
  const start: usize = load<u32>(line, LINE_START);
  const open: usize = load<u32>(line, LINE_OPEN);
  const close: usize = load<u32>(line, LINE_CLOSE);
  const end: usize = load<u32>(line, LINE_END);
  if (requiresObjects && !hasRequiredObjects(results, open, resultFields(value))) {
    return rejectLine(start, end, OBJECT_MISSING);
  }
  countLine();
  if (selected != 0) {
    queryLine(value, start, end);
    if (HIDING && hides == HIDE_EXTRACT) putInputTo(end);
    return true;
  }
  for (let field: u32 = 0; field < fieldCount; field++) countResult(load<u32>(value + (<usize>field << 2)));
  const replaced = load<u32>(line, LINE_REPLACED_COUNT) & ~FORGOTTEN;
  const allFields = ~(<u64>0) >> (64 - <u64>fieldCount);
  if (results != 0) {
    putObject(results, open, createsObjects ? resultFields(value) : allFields, value);
  } else if (replaced == 0) {
    putInputTo(close);
    putMembers(open, close, hasMembers(open, close), allFields, value);
  } else {
    const hasMember = putKeptMembers(open, close, load<u32>(line, LINE_FIRST_REPLACED), replaced);
    putMembers(open, close, hasMember, allFields, value);
  }
  return true;
}

/**
 * Looks up the addresses of the batch and puts out its lines.
 *
 * @returns 0, or the first byte of the first line that does not fit into the output; that line and those after it are discarded
 */
export function flushBatch(): usize {
  const count = lineCount;
  lineCount = 0;
  if (locates) {
    const full = locateBatch(count);
    isOutputFull = full != 0;
    return full;
  }
  const isInline = hides == HIDE_INLINE;
  const fit = lookUpValues(count);
  const isSpecial = selected != 0 || results != 0 || terminator != NEWLINE;
  const linesEnd = lines + <usize>fit * LINE_BYTES;
  const valueBytes = <usize>valueCount << 2;
  let value = values - valueBytes;
  for (let line = lines; line < linesEnd; line += LINE_BYTES) {
    value += valueBytes;
    const isLast = !hasRoom(load<u32>(line, LINE_END), longestInsert);
    if (isLast || isSpecial || load<u32>(line, LINE_REPLACED_COUNT) != 0) {
      if (!isLast && endSpecialLine(line, value)) continue;
      isOutputFull = true;
      return load<u32>(line, LINE_START);
    }
    countLine();
    const close: usize = load<u32>(line, LINE_CLOSE);
    putInputTo(close);
    // The results are in the text.
    if (isInline) continue;
    let skip = u32(format == FORMAT_JSON && !hasMembers(load<u32>(line, LINE_OPEN), close));
    let insert = inserts + <usize>load<u32>(line, LINE_FIRST_REPLACED);
    const valuesEnd = value + (<usize>fieldCount << 2);
    for (let at = value; at < valuesEnd; at += 4) {
      countResult(load<u32>(at));
      putInsert(insert, at, skip);
      insert += INSERT_BYTES;
      skip = 0;
    }
  }
  // There was no room for the addresses of the next line.
  isOutputFull = fit < count;
  return isOutputFull ? <usize>load<u32>(linesEnd, LINE_START) : 0;
}

/**
 * Handles a line that is blank or not a record of the format. All lines before it are put out first.
 *
 * @param end the end of its input
 * @returns 0, or the first byte of the first line that could not be processed
 */
export function endOtherLine(start: usize, end: usize, isBlank: bool): usize {
  const full = flushBatch();
  if (full != 0) return full;
  if (!hasRoom(end, 0)) return start;
  if (!isBlank) {
    if (hides == HIDE_EXTRACT) putInputTo(end);
    if (locates && !putInvalid(start, end)) return start;
    return rejectLine(start, end, NOT_A_RECORD) ? 0 : start;
  }
  countLine();
  if (selected != 0 && !passesOthers) dropLine(start, end);
  return 0;
}
