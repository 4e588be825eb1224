/** The thread's working areas, and the slot being worked on: where its output goes and what was counted. One slot is worked
 * on by one thread at a time. */
import { FAIL, KEEP, keepsRejects, policy } from './config';

/** For each target, 4 bytes: where the colon before its value stands in this line, or 0. */
export let found: usize = 0;
/** Room for one key or address with its escapes undone. */
export let scratch: usize = 0;
/** Two bytes a level of nesting, see walk.ts. */
export let stack: usize = 0;
/** Room for the addresses of separators, 4 bytes each. */
export let index: usize = 0;
export let indexEntries: u32 = 0;
/** Room for the values of an address's digits. */
export let digits: usize = 0;

/** Room for lines that wait for their answers, see pending.ts; for the answers, 4 bytes each; and for what is asked, see
 * lookup.ts. */
export let pending: usize = 0;
export let answers: usize = 0;
export let queries4: usize = 0;
export let queries6: usize = 0;

/** Where the next byte of output goes, and where output has to end. */
let out: usize = 0;
let outEnd: usize = 0;
/** Input below this address has been put out. What lies between here and the line at hand goes out with it, in one copy. */
let copied: usize = 0;
/** Where the next refused line goes. */
let rejects: usize = 0;

let lines: u32 = 0;
let foundCount: u32 = 0;
let noCountryCount: u32 = 0;
let invalidAddressCount: u32 = 0;
let missingFieldCount: u32 = 0;
let invalidLineCount: u32 = 0;
/** Whether the work stopped at a line that is no JSON object. */
let refused: bool = false;

/** Takes up the thread's working areas; their numbers are `AREA_FIELDS` in `../layout.ts`. */
export function takeAreas(areas: usize): void {
  found = load<u32>(areas, 0);
  scratch = load<u32>(areas, 4);
  stack = load<u32>(areas, 8);
  index = load<u32>(areas, 12);
  indexEntries = load<u32>(areas, 16);
  digits = load<u32>(areas, 20);
  pending = load<u32>(areas, 24);
  answers = load<u32>(areas, 28);
  queries4 = load<u32>(areas, 32);
  queries6 = load<u32>(areas, 36);
}

/** Takes up a slot; its numbers are `SLOT_FIELDS` in `../layout.ts`. */
export function openSlot(slot: usize): void {
  copied = load<u32>(slot, 0);
  out = load<u32>(slot, 12);
  outEnd = load<u32>(slot, 16);
  rejects = load<u32>(slot, 20);
  lines = 0;
  foundCount = 0;
  noCountryCount = 0;
  invalidAddressCount = 0;
  missingFieldCount = 0;
  invalidLineCount = 0;
  refused = false;
}

/** Writes down how far the work went. */
export function closeSlot(slot: usize, next: usize): void {
  store<u32>(slot, <u32>copied, 0);
  store<u32>(slot, <u32>next, 4);
  store<u32>(slot, <u32>out, 12);
  store<u32>(slot, <u32>rejects, 20);
  store<u32>(slot, lines, 24);
  store<u32>(slot, foundCount, 28);
  store<u32>(slot, noCountryCount, 32);
  store<u32>(slot, invalidAddressCount, 36);
  store<u32>(slot, missingFieldCount, 40);
  store<u32>(slot, invalidLineCount, 44);
  store<u32>(slot, refused, 48);
}

@inline export function countLine(): void {
  lines++;
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

/** From this many bytes on, the engine's own copy is worth its call. */
const LONG_COPY: usize = 512;

/**
 * Copies 16 bytes at a time. Reads and writes up to 15 bytes past the end: every area has that much room behind it, and
 * what is written past the end is written over next.
 */
@inline function copy(to: usize, from: usize, length: usize): void {
  if (length >= LONG_COPY) {
    memory.copy(to, from, length);
    return;
  }
  const end = to + length;
  while (to < end) {
    v128.store(to, v128.load(from));
    to += 16;
    from += 16;
  }
}

/** Puts bytes out. */
@inline export function put(from: usize, length: usize): void {
  copy(out, from, length);
  out += length;
}

/** Puts one byte out. */
@inline export function putByte(byte: u8): void {
  store<u8>(out, byte);
  out++;
}

/** Puts out the input that has not been, up to an address. */
@inline export function putInputTo(end: usize): void {
  put(copied, end - copied);
  copied = end;
}

/** Leaves out the input up to an address. */
@inline export function skipInputTo(at: usize): void {
  copied = at;
}

/** Whether the pending input up to an address fits into the output, and `more` bytes besides. */
@inline export function hasRoom(end: usize, more: usize): bool {
  return out + (end - copied) + more <= outEnd;
}

/**
 * Deals with a line that is no JSON object.
 *
 * @returns whether to go on; not under the policy `fail`
 */
export function refuseLine(start: usize, end: usize): bool {
  lines++;
  invalidLineCount++;
  if (keepsRejects) {
    copy(rejects, start, end - start);
    rejects += end - start;
  }
  if (policy == FAIL) {
    refused = true;
    return false;
  }
  if (policy != KEEP) {
    putInputTo(start);
    skipInputTo(end);
  }
  return true;
}
