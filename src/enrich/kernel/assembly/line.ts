/** What is done with a line that is a JSON object: its addresses are looked up and the answers spliced in. */
import { MAX_ADDRESS_LENGTH } from './address';
import { FOUND, fieldCount, fieldTargets, fragments, longestInsert, outcomes, recordCount } from './config';
import { findKey, isAnswerName } from './keys';
import { recordOf } from './lookup';
import {
  countFound,
  countInvalidAddress,
  countMissingField,
  countNoCountry,
  found,
  hasRoom,
  put,
  putByte,
  putInputTo,
  scratch,
  skipInputTo,
} from './slot';
import { closingQuote, unescape } from './text';

const QUOTE: u32 = 34;
const BACKSLASH: u32 = 92;
const COMMA: u8 = 44;

/** Whether a byte is blank to JSON; a newline never stands inside a line. */
@inline export function isBlank(byte: u32): bool {
  return byte == 32 || byte == 9 || byte == 13;
}

/** Where the first byte stands that is a quote or a backslash, at most 48 bytes on. */
@inline function firstSpecial(at: usize): usize {
  for (let i: usize = 0; i < 48; i += 16) {
    const bytes = v128.load(at + i);
    const special = v128.or(
      i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)),
      i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH)),
    );
    const mask = i8x16.bitmask(special);
    if (mask != 0) return at + i + ctz(mask);
  }
  return at + 48;
}

/** The record that answers the string whose first byte is at `from`, or -1 where it is no address. */
function recordOfString(from: usize): i32 {
  const end = firstSpecial(from);
  if (end - from > MAX_ADDRESS_LENGTH) return -1;
  if (load<u8>(end) == QUOTE) return recordOf(from, end);
  const plain = unescape(from, closingQuote(end), scratch, MAX_ADDRESS_LENGTH);
  return plain < 0 ? -1 : recordOf(scratch, scratch + plain);
}

/** The record that answers the value behind a colon; `recordCount` where nothing does. Counts what it was. */
function answerOf(colon: usize): u32 {
  if (colon == 0) {
    countMissingField();
    return recordCount;
  }
  let at = colon + 1;
  while (isBlank(load<u8>(at))) at++;
  const record = load<u8>(at) == QUOTE ? recordOfString(at + 1) : -1;
  if (record < 0) {
    countInvalidAddress();
    return recordCount;
  }
  if (load<u8>(outcomes + record) == FOUND) countFound();
  else countNoCountry();
  return record;
}

/** Puts the answers out, each as `,"name":…`; the first without its comma where nothing stands before it. */
function putAnswers(first: bool): void {
  for (let field: u32 = 0; field < fieldCount; field++) {
    const target = load<u32>(fieldTargets + (field << 2));
    const record = answerOf(load<u32>(found + (target << 2)));
    const fragment = fragments + <usize>((field * (recordCount + 1) + record) << 3);
    const skip: u32 = first && field == 0 ? 1 : 0;
    put(load<u32>(fragment) + skip, load<u32>(fragment, 4) - skip);
  }
}

/** The end of the member, or of the blanks, that begin at `at`: the comma behind it, or `end`. */
function memberEnd(at: usize, end: usize): usize {
  let depth: i32 = 0;
  while (at < end) {
    const byte: u32 = load<u8>(at);
    if (byte == QUOTE) {
      at = closingQuote(at + 1);
    } else if (byte == COMMA) {
      if (depth == 0) return at;
    } else {
      const bracket = byte | 32;
      if (bracket == 0x7b) depth++;
      else if (bracket == 0x7d) depth--;
    }
    at++;
  }
  return end;
}

/** Whether the member that begins at `at` has a name that an answer goes to. */
function isReplaced(at: usize, end: usize): bool {
  while (at < end && isBlank(load<u8>(at))) at++;
  if (at == end) return false; // the blanks of an empty object
  const close = closingQuote(at + 1);
  const node = findKey(0, at + 1, close - at - 1, true);
  return node >= 0 && isAnswerName(node);
}

/**
 * Puts out the members between `from` and `to` but those that are replaced. A member is all that stands between two commas,
 * blanks included; it goes with one of the two, and every other byte stays.
 *
 * @returns whether a member was left
 */
function putOtherMembers(from: usize, to: usize): bool {
  let left = false;
  let at = from;
  let end = at;
  do {
    end = memberEnd(at, to);
    if (!isReplaced(at, end)) {
      if (left) putByte(COMMA);
      put(at, end - at);
      left = true;
    }
    at = end + 1;
  } while (end != to);
  return left;
}

/**
 * Splices the answers into a line.
 *
 * @param open where its opening brace stands; @param close where the brace stands that closes it
 * @param empty whether nothing but blanks is between the two
 * @param replaces whether a member stands there that has the name of an answer
 */
@inline export function putLine(open: usize, close: usize, empty: bool, replaces: bool): void {
  if (replaces) {
    putInputTo(open + 1);
    const left = putOtherMembers(open + 1, close);
    skipInputTo(close);
    putAnswers(!left);
  } else {
    putInputTo(close);
    putAnswers(empty);
  }
}

/** Whether the line that ends at `end` fits into the output, its answers included. */
@inline export function lineFits(end: usize): bool {
  return hasRoom(end, longestInsert);
}
