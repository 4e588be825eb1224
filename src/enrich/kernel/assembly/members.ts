/** The members of a valid line of which some are replaced. */
import { CASE_BIT, CLOSING_BRACE, COMMA, isBlank, OPENING_BRACE, QUOTE } from './ascii';
import { findEscapedKey, isResultKey } from './keys';
import { put, putByte, putInputTo, skipInputTo } from './slot';
import { closingQuote } from './strings';

/** Returns the first quote, comma, bracket or brace at an address or after it. */
@inline function structureFrom(at: usize): usize {
  while (true) {
    const bytes = v128.load(at);
    const lower = v128.or(bytes, i8x16.splat(<i8>CASE_BIT));
    const mask = i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>COMMA))),
        v128.or(i8x16.eq(lower, i8x16.splat(<i8>OPENING_BRACE)), i8x16.eq(lower, i8x16.splat(<i8>CLOSING_BRACE))),
      ),
    );
    if (mask != 0) return at + ctz(mask);
    at += 16;
  }
}

/** Returns the end of the member or element that `at` is in, outside of its strings: the comma, or the closing bracket or brace. */
export function memberEnd(at: usize): usize {
  let depth: u32 = 0;
  while (true) {
    at = structureFrom(at);
    const byte: u32 = load<u8>(at);
    if (byte == QUOTE) at = closingQuote(at + 1);
    else if (byte == COMMA) {
      if (depth == 0) return at;
    } else if ((byte | CASE_BIT) == OPENING_BRACE) depth++;
    else if (depth == 0) return at;
    else depth--;
    at++;
  }
}

/** Returns whether the member that begins at an address has the key of a result. */
function isReplaced(at: usize): bool {
  while (isBlank(load<u8>(at))) at++;
  const node = findEscapedKey(0, at, closingQuote(at + 1));
  return node >= 0 && isResultKey(node);
}

/**
 * Puts out a line's members except those that are replaced. A member is everything between two commas, blanks included. It is
 * left out together with one of the two; every other byte stays.
 *
 * @param open the object's opening brace; @param close its closing brace
 * @param first the opening quote of the first member that is replaced; @param count how many are
 * @returns whether a member is left
 */
export function putKeptMembers(open: usize, close: usize, first: usize, count: u32): bool {
  let from = first;
  while (isBlank(load<u8>(from - 1))) from--;
  let left = from != open + 1;
  putInputTo(left ? from - 1 : from);
  while (count > 0) {
    const end = memberEnd(from);
    if (isReplaced(from)) count--;
    else {
      if (left) putByte(<u8>COMMA);
      put(from, end - from);
      left = true;
    }
    from = end + 1;
  }
  // `from` is after the comma or the closing brace that follows the last replaced member.
  if (from <= close) {
    skipInputTo(left ? from - 1 : from);
    putInputTo(close);
    return true;
  }
  skipInputTo(close);
  return left;
}
