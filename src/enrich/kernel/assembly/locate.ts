/**
 * Locates the addresses of records: those that are looked up, and in text all, each with its place in the input and its role. They are put
 * out in place of the records, see `LOCATED_…` in ../abi.ts.
 */
import {
  FORMAT_TEXT,
  KEPT_FROM,
  KEPT_TO,
  LINE_BYTES,
  LOCATED_BYTES,
  LOCATED_COUNTS,
  LOCATED_FLAGS,
  LOCATED_FROM,
  LOCATED_IS_INVALID,
  LOCATED_RECORD,
  LOCATED_ROLE,
  LOCATED_TO,
  ROLE_UNNAMED,
} from '../abi';
import { textEnd, textStart } from './address';
import { countResult } from './batch';
import { keptOfValue } from './lookup';
import { grammarOf, programOf, roleOf } from './roles';
import { fieldCount, format, hasRoles, lines, recordCount, valueCount, values } from './settings';
import { countLine, hasRoom, outputEnd, setOutputEnd, skipInputTo, takeOutput } from './slot';
import { findAddress } from './text';
import { LINE_CLOSE, LINE_END, LINE_START, lookUpValues } from './values';

/** The record whose addresses are located; whether there was no room for all. */
let record: usize = 0;
let isFull: bool = false;

function startRecord(start: usize): void {
  skipInputTo(start);
  record = start;
  isFull = false;
}

/** Puts out an address, or that there is none, which has no length. */
function putLocated(from: usize, to: usize, role: u32, flags: u32): void {
  if (!hasRoom(record, LOCATED_BYTES)) {
    isFull = true;
    return;
  }
  const entry = takeOutput(LOCATED_BYTES);
  store<u32>(entry, <u32>record, LOCATED_RECORD);
  store<u32>(entry, <u32>from, LOCATED_FROM);
  store<u32>(entry, <u32>to, LOCATED_TO);
  store<u8>(entry, <u8>role, LOCATED_ROLE);
  store<u8>(entry, <u8>flags, LOCATED_FLAGS);
}

/** Puts out a record that is not valid. Returns whether there was room. */
export function putInvalid(start: usize, end: usize): bool {
  startRecord(start);
  putLocated(start, start, ROLE_UNNAMED, LOCATED_IS_INVALID);
  skipInputTo(end);
  return !isFull;
}

/** Puts out the addresses of a text. @param counting where the one that is looked up begins, or 0 */
function locateText(start: usize, close: usize, counting: usize): void {
  const grammar = hasRoles ? grammarOf(programOf(start, close), close) : 0;
  for (let end = findAddress(start, start, close); end != 0; end = findAddress(start, end, close)) {
    const from = textStart;
    const to = textEnd;
    putLocated(from, to, hasRoles ? roleOf(from, to, start, grammar) : ROLE_UNNAMED, from == counting ? LOCATED_COUNTS : 0);
  }
}

/** Puts out the addresses of a line. @param first the first of its values */
function locateLine(line: usize, first: usize): void {
  for (let field: u32 = 0; field < fieldCount; field++) {
    const value = first + (<usize>field << 2);
    const kept = load<u32>(value) < recordCount ? keptOfValue(value) : 0;
    countResult(load<u32>(value));
    if (format == FORMAT_TEXT) locateText(load<u32>(line, LINE_START), load<u32>(line, LINE_CLOSE), kept == 0 ? 0 : load<u32>(kept, KEPT_FROM));
    else if (kept != 0) putLocated(load<u32>(kept, KEPT_FROM), load<u32>(kept, KEPT_TO), ROLE_UNNAMED, LOCATED_COUNTS);
  }
}

/** Puts out the addresses of the lines of a batch. Returns 0, or the first byte of the first line for which there was no room. */
export function locateBatch(count: u32): usize {
  lookUpValues(count);
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const start: usize = load<u32>(line, LINE_START);
    const before = outputEnd();
    startRecord(start);
    locateLine(line, values + (<usize>(i * valueCount) << 2));
    if (outputEnd() == before) putLocated(start, start, ROLE_UNNAMED, 0);
    if (isFull) {
      setOutputEnd(before);
      return start;
    }
    skipInputTo(load<u32>(line, LINE_END));
    countLine();
  }
  return 0;
}
