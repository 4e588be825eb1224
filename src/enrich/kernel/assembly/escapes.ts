/** The escapes in strings, a vector at a time or one (RFC 8259, section 7). */
import { isHex } from './address';
import { bits, equal, escapeCarry, escapedBytes, inRange } from './masks';
import { BACKSLASH, LETTER_U } from './ascii';

/** For each low half of a byte: the high halves, as bits of `HIGH_HALVES`, with which it may follow a backslash. */
const LOW_HALVES = i8x16(0, 0, 13, 0, 8, 8, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1);
/** The bits of the high halves 2 (`"` `/`), 5 (`\`), 6 (`b` `f` `n`) and 7 (`r` `t` `u`). */
const HIGH_HALVES = i8x16(0, 0, 1, 0, 0, 2, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0);

/** Where the backslashes of the last vector are. */
export let backslashes: u64 = 0;
/** Where the last vector breaks the rules. */
export let escapeErrors: u64 = 0;
/** Whether an escape goes on in the next vector. */
export let escapeOpen: bool = false;
/** Bytes at the beginning of the next vector that must be hexadecimal digits. */
let digitsDue: u64 = 0;

/** Forgets an escape that a line ended with. */
@inline export function resetEscapes(): void {
  escapeOpen = false;
}

/** Returns all ones for the bytes that must not follow a backslash. */
@inline function isNotEscape(bytes: v128): v128 {
  const low = i8x16.swizzle(LOW_HALVES, v128.and(bytes, i8x16.splat(15)));
  const high = i8x16.swizzle(HIGH_HALVES, i8x16.shr_u(bytes, 4));
  return i8x16.eq(v128.and(low, high), i8x16.splat(0));
}

/** Returns the end of the escape at a backslash, or 0 if JSON does not have it. */
@inline export function escapeEnd(at: usize): usize {
  const bytes = v128.load(at, 1);
  if ((i8x16.bitmask(isNotEscape(bytes)) & 1) != 0) return 0;
  if (<u32>load<u8>(at, 1) != LETTER_U) return at + 2;
  return (i8x16.bitmask(isHex(bytes)) & 30) == 30 ? at + 6 : 0;
}

/**
 * Finds and checks the escapes of a vector that has backslashes or follows one that ended within an escape.
 *
 * @returns the escaped bytes other than backslashes; `backslashes` and `escapeErrors` are set
 */
export function findEscapes(vector: usize): u64 {
  const a = v128.load(vector);
  const b = v128.load(vector, 16);
  const c = v128.load(vector, 32);
  const d = v128.load(vector, 48);
  const due = escapeOpen ? digitsDue : 0;
  backslashes = equal(a, b, c, d, BACKSLASH);
  const escaped = escapedBytes(backslashes, escapeOpen ? escapeCarry : 0);
  escapeErrors = escaped & bits(isNotEscape(a), isNotEscape(b), isNotEscape(c), isNotEscape(d));
  digitsDue = 0;
  const unicode = escaped & equal(a, b, c, d, LETTER_U);
  if ((unicode | due) != 0) {
    const bit = i8x16.splat(32);
    const hexadecimal =
      inRange(a, b, c, d, 48, 10) | inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), 97, 6);
    escapeErrors |= ((unicode << 1) | (unicode << 2) | (unicode << 3) | (unicode << 4) | due) & ~hexadecimal;
    digitsDue = (unicode >> 63) | (unicode >> 62) | (unicode >> 61) | (unicode >> 60);
  }
  escapeOpen = (escapeCarry | digitsDue) != 0;
  return escaped;
}
