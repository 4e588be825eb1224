/**
 * Locates the addresses of records: for the fields, all elements of lists and all addresses of text, each with its place in the input, its
 * role, and whether it is the one that is looked up. They are put out in place of the records, see `LOCATED_…` in ../abi.ts.
 */
import {
  FORMAT_JSON,
  FORMAT_TEXT,
  KEPT_FROM,
  LINE_BYTES,
  LOCATED_BYTES,
  LOCATED_COUNTS,
  LOCATED_FAMILY,
  LOCATED_FIELD,
  LOCATED_FLAGS,
  LOCATED_FROM,
  LOCATED_IS_INVALID,
  LOCATED_RECORD,
  LOCATED_ROLE,
  LOCATED_TO,
  ROLE_UNNAMED,
} from '../abi';
import { NO_ADDRESS, textEnd, textStart } from './address';
import { skipBlanks } from './ascii';
import { countResult } from './batch';
import { hasStepsInto, locateElements } from './elements';
import { elementEnd, longestText, parseText } from './lenient';
import { keptOfValue } from './lookup';
import { fieldCount, format, hasSteps, isLenient, lines, others, recordCount, scratch, searchesStrings, valueCount, values } from './settings';
import { countLine, hasRoom, outputEnd, skipInputTo, setOutputEnd, takeOutput } from './slot';
import { inputPosition } from './strings';
import { locateText } from './text';
import { LINE_CLOSE, LINE_END, LINE_FIRST_REPLACED, LINE_START, lookUpValues, MISSING, readString, text, textLength } from './values';

/** The record, and the field, whose addresses are located; whether there was no room for all. */
let record: usize = 0;
let fieldOfText: u32 = 0;
let isFull: bool = false;

/** Puts out an address. */
export function putLocated(family: u32, role: u32, from: usize, to: usize, flags: u32): void {
  if (!hasRoom(record, LOCATED_BYTES)) {
    isFull = true;
    return;
  }
  const entry = takeOutput(LOCATED_BYTES);
  store<u32>(entry, <u32>record, LOCATED_RECORD);
  store<u32>(entry, <u32>inputPosition(from), LOCATED_FROM);
  store<u32>(entry, <u32>inputPosition(to), LOCATED_TO);
  store<u8>(entry, <u8>family, LOCATED_FAMILY);
  store<u8>(entry, <u8>role, LOCATED_ROLE);
  store<u8>(entry, <u8>fieldOfText, LOCATED_FIELD);
  store<u8>(entry, <u8>flags, LOCATED_FLAGS);
}

/** Puts out a record that is not valid. Returns whether there was room. */
export function putInvalid(start: usize, end: usize): bool {
  skipInputTo(start);
  record = start;
  isFull = false;
  putLocated(NO_ADDRESS, ROLE_UNNAMED, start, start, LOCATED_IS_INVALID);
  skipInputTo(end);
  return !isFull;
}

/** Locates the addresses of a list, of which one may be all. */
function locateList(from: usize, to: usize): void {
  if (to - from > longestText()) return;
  for (let at = from; at <= to; at = elementEnd + 1) {
    const family = parseText(at, to);
    if (family == NO_ADDRESS) return;
    putLocated(family, ROLE_UNNAMED, textStart, textEnd, 0);
    // The whole text is an address.
    if (!isLenient || (at == from && textStart == from && textEnd == to)) return;
  }
}

/** Locates the addresses of a value of JSON, if it is a string. */
export function locateString(at: usize): void {
  const close = readString(at);
  if (close == 0) return;
  if (searchesStrings) locateText(scratch, close);
  else locateList(scratch, close);
}

/** Locates the addresses of a field at one of its places. */
function locateValue(place: u32, from: usize, close: usize): void {
  if (format == FORMAT_JSON) {
    if (from == 0) return;
    if (hasSteps && hasStepsInto(place)) {
      locateElements(place, from);
      return;
    }
    locateString(skipBlanks(from + 1));
    return;
  }
  const length = textLength(from, close);
  if (length == MISSING || length > longestText()) return;
  if (searchesStrings) locateText(text, text + length);
  else locateList(text, text + length);
}

/** Locates the addresses of a line. @param first the first of its values */
function locateLine(start: usize, close: usize, first: usize): void {
  record = start;
  isFull = false;
  fieldOfText = 0;
  if (format == FORMAT_TEXT) {
    locateText(start, close);
    return;
  }
  for (let field: u32 = 0; field < fieldCount; field++) {
    fieldOfText = field;
    locateValue(field, load<u32>(first + (<usize>field << 2)), close);
    if (others == 0) continue;
    const range = others + (<usize>field << 3);
    for (let other = load<u32>(range); other < load<u32>(range, 4); other++)
      locateValue(other, load<u32>(first + (<usize>other << 2)), close);
  }
}

/** Marks the addresses of a line that count. @param entries, entriesEnd those of the line; @param first the first of its values */
function markLine(entries: usize, entriesEnd: usize, first: usize): void {
  for (let field: u32 = 0; field < fieldCount; field++) {
    const value = first + (<usize>field << 2);
    countResult(load<u32>(value));
    if (load<u32>(value) >= recordCount) continue;
    const from = load<u32>(keptOfValue(value), KEPT_FROM);
    for (let entry = entries; entry < entriesEnd; entry += LOCATED_BYTES) {
      if (load<u32>(entry, LOCATED_FROM) != from || <u32>load<u8>(entry, LOCATED_FIELD) != field) continue;
      store<u8>(entry, load<u8>(entry, LOCATED_FLAGS) | <u8>LOCATED_COUNTS, LOCATED_FLAGS);
      break;
    }
  }
}

/** Puts out the addresses of the lines of a batch. Returns 0, or the first byte of the first line for which there was no room. */
export function locateBatch(count: u32): usize {
  const linesEnd = lines + <usize>count * LINE_BYTES;
  const valueBytes = <usize>valueCount << 2;
  let full: usize = 0;
  let fit: u32 = 0;
  let value = values;
  for (let line = lines; line < linesEnd && full == 0; line += LINE_BYTES) {
    const start: usize = load<u32>(line, LINE_START);
    const before = outputEnd();
    skipInputTo(start);
    locateLine(start, load<u32>(line, LINE_CLOSE), value);
    if (outputEnd() == before) {
      fieldOfText = 0;
      putLocated(NO_ADDRESS, ROLE_UNNAMED, start, start, 0);
    }
    if (isFull) {
      setOutputEnd(before);
      full = start;
      break;
    }
    store<u32>(line, <u32>before, LINE_FIRST_REPLACED);
    skipInputTo(load<u32>(line, LINE_END));
    countLine();
    value += valueBytes;
    fit++;
  }
  lookUpValues(fit);
  value = values;
  for (let i: u32 = 0; i < fit; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const end = i + 1 < fit ? <usize>load<u32>(line + LINE_BYTES, LINE_FIRST_REPLACED) : outputEnd();
    markLine(load<u32>(line, LINE_FIRST_REPLACED), end, value);
    value += valueBytes;
  }
  return full;
}
