/** The slot that is being processed: its output and counts. One thread at a time uses a slot. */
import {
  HIDE_EXTRACT,
  POLICY_FAIL,
  POLICY_KEEP,
  SLOT_CELLS,
  SLOT_COPIED,
  SLOT_FOUND,
  SLOT_HIDDEN,
  SLOT_INVALID_ADDRESS,
  SLOT_INVALID_LINE,
  SLOT_LINES,
  SLOT_DAMAGED_HISTORY,
  SLOT_MISSING_DATE,
  SLOT_MISSING_FIELD,
  SLOT_NEXT,
  SLOT_NO_COUNTRY,
  SLOT_OTHERS,
  SLOT_OUTPUT,
  SLOT_OUTPUT_END,
  SLOT_REJECTS,
  SLOT_SEARCHED,
  SLOT_STOPPED_AT_INVALID,
} from '../abi';
import { isBlank, NEWLINE } from './ascii';
import { gapAt, putGaps, putTextTo, startHiding } from './hide';
import { decimals, growth, hides, isSequence, keepsRejects, policy } from './settings';

/** The next byte of output, and the end of the room for it. */
let out: usize = 0;
let outEnd: usize = 0;
/** Input before this address is in the output. The rest up to the current line is copied together with it. */
export let copied: usize = 0;
/** The next byte of rejected lines. */
let rejects: usize = 0;

let lineCount: u32 = 0;
let foundCount: u32 = 0;
let noCountryCount: u32 = 0;
let invalidAddressCount: u32 = 0;
let missingFieldCount: u32 = 0;
let invalidLineCount: u32 = 0;
let missingDateCount: u32 = 0;
let damagedHistoryCount: u32 = 0;
let hiddenCount: u32 = 0;
let searchedCount: u32 = 0;
let otherCount: u32 = 0;
/** What is wrong with the line at which the run stopped, or 0. */
let stoppedAtInvalid: u32 = 0;
/** The number of cells of the last record that has another number than the table has columns. */
let cells: u32 = 0;

/** Reads the header of a slot, see `SLOT_…` in ../abi.ts, and resets the counts. */
export function openSlot(slot: usize): void {
  copied = load<u32>(slot, SLOT_COPIED);
  out = load<u32>(slot, SLOT_OUTPUT);
  outEnd = load<u32>(slot, SLOT_OUTPUT_END);
  rejects = load<u32>(slot, SLOT_REJECTS);
  lineCount = 0;
  foundCount = 0;
  noCountryCount = 0;
  invalidAddressCount = 0;
  missingFieldCount = 0;
  invalidLineCount = 0;
  missingDateCount = 0;
  damagedHistoryCount = 0;
  stoppedAtInvalid = 0;
  hiddenCount = 0;
  searchedCount = 0;
  otherCount = 0;
  if (HIDING && hides != 0) startHiding(copied);
}

/** Writes the header of a slot; `next` is the first line that was not processed. */
export function closeSlot(slot: usize, next: usize): void {
  store<u32>(slot, <u32>copied, SLOT_COPIED);
  store<u32>(slot, <u32>next, SLOT_NEXT);
  store<u32>(slot, <u32>out, SLOT_OUTPUT);
  store<u32>(slot, <u32>rejects, SLOT_REJECTS);
  store<u32>(slot, lineCount, SLOT_LINES);
  store<u32>(slot, foundCount, SLOT_FOUND);
  store<u32>(slot, noCountryCount, SLOT_NO_COUNTRY);
  store<u32>(slot, invalidAddressCount, SLOT_INVALID_ADDRESS);
  store<u32>(slot, missingFieldCount, SLOT_MISSING_FIELD);
  store<u32>(slot, invalidLineCount, SLOT_INVALID_LINE);
  store<u32>(slot, missingDateCount, SLOT_MISSING_DATE);
  store<u32>(slot, damagedHistoryCount, SLOT_DAMAGED_HISTORY);
  store<u32>(slot, stoppedAtInvalid, SLOT_STOPPED_AT_INVALID);
  store<u32>(slot, cells, SLOT_CELLS);
  store<u32>(slot, hiddenCount, SLOT_HIDDEN);
  store<u32>(slot, searchedCount, SLOT_SEARCHED);
  store<u32>(slot, otherCount, SLOT_OTHERS);
}

/** Puts out a part of the input of a slot as text without its addresses. The slot's input stays as it is. */
export function hideInput(slot: usize, from: usize, to: usize): void {
  if (!HIDING) return;
  const next = load<u32>(slot, SLOT_NEXT);
  const copiedTo = load<u32>(slot, SLOT_COPIED);
  openSlot(slot);
  copied = from;
  startHiding(from);
  putInputTo(to);
  copied = copiedTo;
  closeSlot(slot, next);
}

/** Notes the number of cells of a record that is not valid. */
export function setCells(count: u32): void {
  cells = count;
}

@inline export function countLine(): void {
  lineCount++;
}
@inline export function countFound(): void {
  foundCount++;
}
@inline export function countNoCountry(): void {
  noCountryCount++;
}
@inline export function countInvalidAddress(): void {
  invalidAddressCount++;
}
@inline export function countMissingField(): void {
  missingFieldCount++;
}
@inline export function countMissingDate(): void {
  missingDateCount++;
}
@inline export function countDamagedHistory(): void {
  damagedHistoryCount++;
}

@inline export function countHidden(): void {
  hiddenCount++;
}
export function countSearched(hasOther: bool): void {
  searchedCount++;
  otherCount += u32(hasOther);
}

/** Bytes from which on the engine's own copy is faster than a loop, in spite of the call. */
const LONG_COPY: usize = 512;

/**
 * Copies 32 bytes at a time. Reads and writes up to 31 bytes past the end: every area has slack, and the next write to the
 * output replaces what was written past its end.
 */
@inline function copy(to: usize, from: usize, length: usize): void {
  if (length >= LONG_COPY) {
    memory.copy(to, from, length);
    return;
  }
  const end = to + length;
  while (to < end) {
    v128.store(to, v128.load(from));
    v128.store(to, v128.load(from, 16), 16);
    to += 32;
    from += 32;
  }
}

/** Returns the end of the output so far. */
export function outputEnd(): usize {
  return out;
}

/** Appends bytes to the output. */
@inline export function put(from: usize, length: usize): void {
  copy(out, from, length);
  out += length;
}

/** Returns room for bytes at the end of the output, which are part of it. */
export function takeOutput(length: usize): usize {
  out += length;
  return out - length;
}

/** Sets the end of the output: some was written after it, or is taken back. */
export function setOutputEnd(end: usize): void {
  out = end;
}

/** Appends one byte to the output. */
@inline export function putByte(byte: u8): void {
  store<u8>(out, byte);
  out++;
}

/** Appends a number up to 999 in decimal. */
@inline export function putDecimal(number: u32): void {
  const digits = load<u32>(decimals + (<usize>number << 2));
  store<u32>(out, digits);
  out += digits >> 24;
}

/** Appends any number in decimal. */
export function putNumber(number: u32): void {
  if (number < 1000) {
    putDecimal(number);
    return;
  }
  const thousands = number / 1000;
  putNumber(thousands);
  const rest = number - 1000 * thousands;
  store<u8>(out, <u8>(48 + rest / 100));
  store<u8>(out, <u8>(48 + (rest / 10) % 10), 1);
  store<u8>(out, <u8>(48 + rest % 10), 2);
  out += 3;
}

/** Appends the input that has not been copied, up to an address, and a text of at most 16 bytes. */
@inline export function putInputAndText(end: usize, text: usize, length: usize): void {
  const to = out + (end - copied);
  copy(out, copied, end - copied);
  v128.store(to, v128.load(text));
  out = to + length;
}

/** Appends the input that has not been copied, up to an address. */
@inline export function putInputTo(end: usize): void {
  if (HIDING && gapAt < end) putGaps(end);
  put(copied, end - copied);
  copied = end;
}

/** Removes white space of JSON from the end of the output. */
export function trimOutput(): void {
  while (isBlank(load<u8>(out - 1))) out--;
}

/** Leaves out the input up to an address. */
@inline export function skipInputTo(at: usize): void {
  copied = at;
}

/** Returns whether the output has room for the input up to an address and a number of bytes more. */
@inline export function hasRoom(end: usize, more: usize): bool {
  return out + (end - copied) * growth + more <= outEnd;
}

/** Leaves a line out of the output. */
export function dropLine(start: usize, end: usize): void {
  putInputTo(start);
  skipInputTo(end);
}

/** Copies an invalid line as text without addresses to the rejects, and if it is kept, to the output. */
function putRejected(start: usize, end: usize): void {
  putInputTo(start);
  if (keepsRejects) {
    const output = out;
    const count = hiddenCount;
    out = rejects;
    putTextTo(end);
    rejects = out;
    out = output;
    copied = start;
    hiddenCount = count;
  }
  if (policy == POLICY_KEEP) putTextTo(end);
}

/**
 * Handles an invalid line by the policy.
 *
 * @param problem `NOT_A_RECORD` or `OBJECT_MISSING`
 * @returns whether to go on, which is false under `POLICY_FAIL`
 */
export function rejectLine(start: usize, end: usize, problem: u32): bool {
  lineCount++;
  invalidLineCount++;
  if (HIDING && hides != 0 && hides != HIDE_EXTRACT) putRejected(start, end);
  else if (keepsRejects) {
    copy(rejects, start, end - start);
    rejects += end - start;
  }
  if (keepsRejects && isSequence && load<u8>(end - 1) != <u8>NEWLINE) store<u8>(rejects++, <u8>NEWLINE);
  if (policy == POLICY_FAIL) {
    stoppedAtInvalid = problem;
    return false;
  }
  if (policy != POLICY_KEEP) {
    putInputTo(start);
    skipInputTo(end);
  }
  return true;
}
