/** The members of a line's object, where one of them is to be replaced. */
import { findKey, isAnswerName } from './keys';
import { put, putByte } from './slot';
import { closingQuote } from './text';

const QUOTE: u32 = 34;
const COMMA: u8 = 44;

/** Whether a byte is blank to JSON; a newline never stands inside a line. */
@inline export function isBlank(byte: u32): bool {
  return byte == 32 || byte == 9 || byte == 13;
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
export function putOtherMembers(from: usize, to: usize): bool {
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
