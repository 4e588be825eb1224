/**
 * Valid lines that wait for their results. They are processed some dozens at a time, step by step: all addresses are parsed,
 * then all are looked up, then all lines are put out. A lookup mostly waits for memory, and this way many wait together.
 */
import { BATCH_VALUES, FORMAT_JSON_ITEMS, FRAGMENT_BYTES, LINE_BYTES, OUTCOME_COUNTRY } from '../abi';
import { COMMA, isBlank, QUOTE } from './ascii';
import {
  fieldCount,
  fieldTargets,
  format,
  fragments,
  hasInnerResults,
  hasSteps,
  longestInsert,
  outcomes,
  passesOthers,
  recordCount,
  selected,
} from './config';
import { findElement, hasSeveralValues, hasStepsInto, lookUpElements } from './elements';
import { putInnerResults } from './inner';
import { answerQueries, queryString, startQueries } from './lookup';
import { putKeptMembers } from './members';
import {
  countFound,
  countInvalidAddress,
  countLine,
  countMissingField,
  countNoCountry,
  dropLine,
  hasRoom,
  lines,
  put,
  putByte,
  putInputTo,
  recordCounts,
  skipInputTo,
  uncountLine,
  valueOffsets,
  values,
} from './slot';

// What is kept of a line: its first byte, its braces, the end of its input, and which members are replaced.
const LINE_START: usize = 0;
const LINE_OPEN: usize = 4;
const LINE_CLOSE: usize = 8;
const LINE_END: usize = 12;
const LINE_FIRST_REPLACED: usize = 16;
const LINE_REPLACED_COUNT: usize = 20;

/** The number of lines that wait. */
let lineCount: u32 = 0;

/** Whether the last flush left lines that do not fit into the output. */
export let isOutputFull: bool = false;

/** Discards the lines of an earlier run. */
export function startBatch(): void {
  lineCount = 0;
  isOutputFull = false;
}

/**
 * Adds a line; the offsets of its values are in `valueOffsets`.
 *
 * @param start its first byte; @param open its opening brace; @param close its closing brace
 * @param end the end of its input, after its newline if it has one
 * @param firstReplaced the opening quote of the first member that is replaced; @param replacedCount how many are
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
  let value = values + (<usize>(lineCount * fieldCount) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    store<u32>(value, load<u32>(valueOffsets + (<usize>load<u32>(fieldTargets + (<usize>field << 2)) << 2)));
    value += 4;
  }
  lineCount++;
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

/** Returns the value offset of a field in the last line, or 0 if the value is missing. There must be a line. */
export function lastLineValue(field: u32): usize {
  return load<u32>(values + (<usize>((lineCount - 1) * fieldCount + field) << 2));
}

/** Returns whether the batch must be flushed. It has room for the lines of one more block than this allows. */
@inline export function isBatchFull(): bool {
  return lineCount * fieldCount >= <u32>BATCH_VALUES;
}

/** Replaces each value offset with a lookup query. A missing value becomes record `recordCount` + 1, an invalid one `recordCount`. */
function queryValues(): void {
  startQueries();
  const end = values + (<usize>(lineCount * fieldCount) << 2);
  let field: u32 = 0;
  for (let value = values; value < end; value += 4) {
    const current = field;
    field = current + 1 == fieldCount ? 0 : current + 1;
    let at: usize = load<u32>(value);
    if (at == 0) {
      store<u32>(value, recordCount + 1);
      continue;
    }
    if (hasSteps && hasStepsInto(current)) {
      if (hasSeveralValues(current)) continue;
      at = findElement(current, at);
      if (at == 0) {
        store<u32>(value, recordCount + 1);
        continue;
      }
    } else {
      do at++;
      while (isBlank(load<u8>(at)));
    }
    if (load<u8>(at) != <u8>QUOTE || !queryString(value, at + 1)) store<u32>(value, recordCount);
  }
}

/** Replaces the value offsets of fields with several values, which `queryValues` leaves as they are, with their records. */
function lookUpSteps(): void {
  for (let field: u32 = 0; field < fieldCount; field++) {
    if (!hasSeveralValues(field)) continue;
    for (let line: u32 = 0; line < lineCount; line++) {
      const value = values + (<usize>(line * fieldCount + field) << 2);
      // A missing value is a record already.
      const at: usize = load<u32>(value);
      if (at > <usize>recordCount + 1) store<u32>(value, lookUpElements(field, at));
    }
  }
}

/** Counts a value by its record. */
@inline export function countResult(record: u32): void {
  if (record > recordCount) countMissingField();
  else if (record == recordCount) countInvalidAddress();
  else if (load<u8>(outcomes + record) == <u8>OUTCOME_COUNTRY) countFound();
  else countNoCountry();
}

/** Puts out a line's results, each as `,"name":…`; the first without its comma if no member is before it. */
@inline function putResults(line: u32, hasMembers: bool): void {
  const value = values + (<usize>(line * fieldCount) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    const record = load<u32>(value + (<usize>field << 2));
    countResult(record);
    const fragment = fragments + <usize>(field * (recordCount + 1) + min(record, recordCount)) * FRAGMENT_BYTES;
    const skip: u32 = hasMembers || field != 0 ? 0 : 1;
    put(load<u32>(fragment) + skip, load<u32>(fragment, 4) - skip);
  }
}

/** Applies the query to a line: counts its results, and leaves it out of the output unless the query passes it on. */
@inline export function queryLine(value: usize, start: usize, end: usize): void {
  let isSelected = false;
  for (let field: u32 = 0; field < fieldCount; field++) {
    const record = load<u32>(value + (<usize>field << 2));
    countResult(record);
    if (load<u8>(selected + record) != 0) isSelected = true;
    if (record < recordCount) {
      const count = recordCounts + (<usize>record << 3);
      store<u64>(count, load<u64>(count) + 1);
    }
  }
  if (isSelected == passesOthers) dropLine(start, end);
}

/** Returns whether an object has members. */
@inline function hasMembers(open: usize, close: usize): bool {
  let last = close - 1;
  while (isBlank(load<u8>(last))) last--;
  return last != open;
}

/**
 * Puts out an item of a document with its results after its last member, each after the blanks that are before the first member,
 * so that an indented object stays indented.
 *
 * @returns false if the output has no room
 */
function putItem(line: u32, open: usize, close: usize): bool {
  const lead = open + 1;
  let first = lead;
  while (isBlank(load<u8>(first))) first++;
  const isEmpty = first == close;
  const leadLength = first - lead;
  if (!hasRoom(close, longestInsert + fieldCount * (<u32>leadLength + 1))) {
    uncountLine();
    return false;
  }
  let last = isEmpty ? lead : close;
  while (!isEmpty && isBlank(load<u8>(last - 1))) last--;
  putInputTo(last);
  if (isEmpty) skipInputTo(close);
  const value = values + (<usize>(line * fieldCount) << 2);
  for (let field: u32 = 0; field < fieldCount; field++) {
    const record = load<u32>(value + (<usize>field << 2));
    countResult(record);
    if (!isEmpty || field != 0) putByte(<u8>COMMA);
    put(lead, leadLength);
    const fragment = fragments + <usize>(field * (recordCount + 1) + min(record, recordCount)) * FRAGMENT_BYTES;
    put(load<u32>(fragment) + 1, load<u32>(fragment, 4) - 1);
  }
  return true;
}

/**
 * Looks up the addresses of the batch and puts out its lines.
 *
 * @returns 0, or the first byte of the first line that does not fit into the output; that line and those after it are discarded
 */
export function flushBatch(): usize {
  queryValues();
  answerQueries();
  if (hasSteps) lookUpSteps();
  const count = lineCount;
  lineCount = 0;
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    if (!hasRoom(load<u32>(line, LINE_END), longestInsert)) {
      isOutputFull = true;
      return load<u32>(line, LINE_START);
    }
    const open: usize = load<u32>(line, LINE_OPEN);
    const close: usize = load<u32>(line, LINE_CLOSE);
    const replaced = load<u32>(line, LINE_REPLACED_COUNT);
    countLine();
    if (selected != 0) {
      queryLine(values + (<usize>(i * fieldCount) << 2), load<u32>(line, LINE_START), load<u32>(line, LINE_END));
      continue;
    }
    if (format == FORMAT_JSON_ITEMS) {
      // An item of which members are replaced is left to the host, which notices that it has no results.
      if (replaced == 0 && !putItem(i, open, close)) {
        isOutputFull = true;
        return load<u32>(line, LINE_START);
      }
    } else if (hasInnerResults) {
      const value = values + (<usize>(i * fieldCount) << 2);
      for (let field: u32 = 0; field < fieldCount; field++) countResult(load<u32>(value + (<usize>field << 2)));
      putInnerResults(open, value);
    } else if (replaced == 0) {
      putInputTo(close);
      putResults(i, hasMembers(open, close));
    } else {
      putResults(i, putKeptMembers(open, close, load<u32>(line, LINE_FIRST_REPLACED), replaced));
    }
  }
  return 0;
}
