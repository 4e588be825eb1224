/**
 * Masks over a vector of 64 bytes: bit n of a mask belongs to byte n. Adding masks carries a bit through a run of ones to the
 * first zero after it, which finds the end of a string, of white space or of digits without a loop.
 */
import { CARRIAGE_RETURN, OPENING_BRACE, SPACE, TAB } from './ascii';
import { extraBlank } from './settings';

/** Bytes in a vector: four registers of 128 bits. */
export const VECTOR: usize = 64;

/** Bits 0, 2, 4, … */
const EVEN: u64 = 0x5555_5555_5555_5555;

/** Returns the mask of four vectors whose bytes are all ones or all zeros. */
@inline export function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16)) |
    (<u64>(<u32>i8x16.bitmask(c) | (<u32>i8x16.bitmask(d) << 16)) << 32)
  );
}

/** Returns where a byte is. */
@inline export function equal(a: v128, b: v128, c: v128, d: v128, byte: u32): u64 {
  const all = i8x16.splat(<i8>byte);
  return bits(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all));
}

/** Returns where a byte is, in either case: letters, or brackets and braces. `byte` has the case bit. */
@inline export function equalEitherCase(a: v128, b: v128, c: v128, d: v128, byte: u32): u64 {
  const bit = i8x16.splat(<i8>SPACE);
  return equal(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), byte);
}

/** Returns where bytes are at most `limit`, unsigned. */
@inline export function atMost(a: v128, b: v128, c: v128, d: v128, limit: u32): u64 {
  const all = i8x16.splat(<i8>limit);
  return bits(i8x16.le_u(a, all), i8x16.le_u(b, all), i8x16.le_u(c, all), i8x16.le_u(d, all));
}

/** Returns all ones for bytes in `first … first + count - 1`. */
@inline export function isWithin(bytes: v128, first: u32, count: u32): v128 {
  // Adding moves the range to the greatest signed numbers.
  return i8x16.gt_s(i8x16.add(bytes, i8x16.splat(<i8>(128 - first - count))), i8x16.splat(<i8>(127 - count)));
}

/** Returns where bytes are in `first … first + count - 1`. */
@inline export function inRange(a: v128, b: v128, c: v128, d: v128, first: u32, count: u32): u64 {
  return bits(isWithin(a, first, count), isWithin(b, first, count), isWithin(c, first, count), isWithin(d, first, count));
}

/** Returns whether a byte is in the vector. */
@inline export function hasByte(a: v128, b: v128, c: v128, d: v128, byte: u32): bool {
  const all = i8x16.splat(<i8>byte);
  return v128.any_true(
    v128.or(v128.or(i8x16.eq(a, all), i8x16.eq(b, all)), v128.or(i8x16.eq(c, all), i8x16.eq(d, all))),
  );
}

/** Returns whether a control character is in the vector: a byte below 32. */
@inline export function hasControl(a: v128, b: v128, c: v128, d: v128): bool {
  const least = i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d));
  return v128.any_true(i8x16.le_u(least, i8x16.splat(31)));
}

/** Returns where brackets and braces are, and two bytes between them that have no place outside of strings: `|` and backslash. */
@inline export function nearBrackets(a: v128, b: v128, c: v128, d: v128): u64 {
  const bit = i8x16.splat(<i8>SPACE);
  return inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), OPENING_BRACE, 3);
}

/** Returns each bit as the exclusive or of itself and all below. */
@inline export function prefixXor(mask: u64): u64 {
  mask ^= mask << 1;
  mask ^= mask << 2;
  mask ^= mask << 4;
  mask ^= mask << 8;
  mask ^= mask << 16;
  return mask ^ (mask << 32);
}

/** Returns a mask of all ones or all zeros, like the topmost bit. */
@inline export function spread(mask: u64): u64 {
  return <u64>(<i64>mask >> 63);
}

/** Returns the bits of a mask moved to the next byte, with the bit carried from the vector before. */
@inline export function next(mask: u64, carry: u64): u64 {
  return (mask << 1) | carry;
}

/** Returns a mask whose bits at the beginning of a run of blanks are moved past the run. */
@inline export function pastBlanks(mask: u64, blanks: u64): u64 {
  return (mask | ((mask & blanks) + blanks)) & ~blanks;
}

/** Returns 1 if `pastBlanks` moves a bit into the next vector. */
@inline export function overBlanks(mask: u64, blanks: u64): u64 {
  return u64((mask & blanks) + blanks < blanks);
}

/** Whether the first byte of the next vector is escaped; set by `escapedBytes`. */
export let escapeCarry: u64 = 0;

/**
 * Returns the bytes that are escaped by a backslash and are not backslashes themselves: those after a run of backslashes of
 * odd length.
 *
 * @param backslashes where backslashes are
 * @param carry 1 if the first byte is escaped
 */
@inline export function escapedBytes(backslashes: u64, carry: u64): u64 {
  const runs = backslashes & ~carry;
  const starts = runs & ~(runs << 1);
  const evenEnds = runs + (starts & EVEN);
  const oddEnds = runs + (starts & ~EVEN);
  escapeCarry = u64(oddEnds < runs);
  return (((evenEnds & ~EVEN) | (oddEnds & EVEN)) & ~runs) | carry;
}

/** Returns the blank bytes of a vector of JSON, see `isBlank`. */
@inline export function blankBytes(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    equal(a, b, c, d, SPACE) |
    equal(a, b, c, d, TAB) |
    equal(a, b, c, d, CARRIAGE_RETURN) |
    equal(a, b, c, d, extraBlank)
  );
}
