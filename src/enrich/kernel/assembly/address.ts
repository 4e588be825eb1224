/**
 * Parses addresses from bytes. src/address/parse.ts, which parses them from text, says what is accepted and why; a test
 * compares the two.
 */
import { IPV4_FORM_BYTES, IPV4_FORM_LEAST } from '../abi';
import { COLON, DOT, hexNumber } from './ascii';
import { ipv4Forms, maxAddressLength } from './settings';

/** Results of `parseAddress`. */
export const NO_ADDRESS: u32 = 0;
export const IPV4: u32 = 4;
export const IPV6: u32 = 6;

/** The address that was parsed last. An IPv4 address is in the last 32 bits of `low`. */
export let high: u64 = 0;
export let low: u64 = 0;

/** Its text. */
export let textStart: usize = 0;
export let textEnd: usize = 0;

/** If it is in dotted decimals only and addresses can be hidden, the byte after its last dot; otherwise 0. */
export let lastPart: usize = 0;

// A span of the input that is an address: its first byte and its end; the text that hide.ts puts in its place, or 0 if that is made of
// the address: of its family and its halves.
export const SPAN_START: usize = 0;
export const SPAN_END: usize = 4;
export const SPAN_TEXT: usize = 8;
export const SPAN_FAMILY: usize = 12;
export const SPAN_HIGH: usize = 16;
export const SPAN_LOW: usize = 24;

/** Writes a span with the address that was parsed last. */
@inline export function storeSpan(span: usize, start: usize, end: usize, family: u32): void {
  store<u32>(span, <u32>start, SPAN_START);
  store<u32>(span, <u32>end, SPAN_END);
  store<u32>(span, family, SPAN_FAMILY);
  store<u64>(span, high, SPAN_HIGH);
  store<u64>(span, low, SPAN_LOW);
}

/** Makes the address of a span the one that was parsed last. Returns its family. */
export function parseSpan(span: usize): u32 {
  textStart = load<u32>(span, SPAN_START);
  textEnd = load<u32>(span, SPAN_END);
  high = load<u64>(span, SPAN_HIGH);
  low = load<u64>(span, SPAN_LOW);
  return load<u32>(span, SPAN_FAMILY);
}

/**
 * Returns the IPv4 address in `from … to`, or -1. The positions of the dots select a digit arrangement (../ipv4-forms.ts)
 * that moves the digits of all four numbers to fixed places at once.
 */
function parseIPv4(from: usize, to: usize): i64 {
  const length = <u32>(to - from);
  if (length < 7 || length > 15) return -1;
  const all = ((<u32>1) << length) - 1;
  const text = v128.load(from);
  const isDigit = i8x16.le_u(i8x16.sub(text, i8x16.splat(48)), i8x16.splat(9));
  const dots = <u32>i8x16.bitmask(i8x16.eq(text, i8x16.splat(<i8>DOT))) & all;
  if (((<u32>i8x16.bitmask(isDigit) & all) | dots) != all || popcnt(dots) != 3) return -1;

  // The digits of each number, less one. If there are none, that is a very large unsigned number.
  const dot1: u32 = ctz(dots);
  const dot2: u32 = ctz(dots & (dots - 1));
  const dot3: u32 = 31 - clz(dots);
  if (HIDING) lastPart = from + dot3 + 1;
  const a: u32 = dot1 - 1;
  const b: u32 = dot2 - dot1 - 2;
  const c: u32 = dot3 - dot2 - 2;
  const d: u32 = length - dot3 - 2;
  if (a > 2 || b > 2 || c > 2 || d > 2) return -1;
  const form = ipv4Forms + <usize>(27 * a + 9 * b + 3 * c + d) * IPV4_FORM_BYTES;

  // Four hundreds, four tens, four ones; zeros where a number has fewer digits.
  const digit = i8x16.sub_sat_u(i8x16.swizzle(text, v128.load(form)), i8x16.splat(48));
  const weighted = i16x8.mul(i16x8.extend_low_i8x16_u(digit), i16x8(100, 100, 100, 100, 10, 10, 10, 10));
  const tens = i64x2.shuffle(weighted, weighted, 1, 0);
  const numbers = i16x8.add(i16x8.add(weighted, tens), i16x8.extend_high_i8x16_u(digit));
  // A number that is too small for its digits has a leading zero.
  const wrong = v128.or(
    i16x8.gt_u(numbers, i16x8.splat(255)),
    i16x8.lt_u(numbers, v128.load(form, IPV4_FORM_LEAST)),
  );
  if ((i16x8.bitmask(wrong) & 15) != 0) return -1;
  return <i64>(<u32>i32x4.extract_lane(i8x16.narrow_i16x8_u(numbers, numbers), 0));
}

/** Returns where a byte is in 48 bytes. */
@inline function positions(a: v128, b: v128, c: v128, byte: u32): u64 {
  const all = i8x16.splat(<i8>byte);
  return bits(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all));
}

@inline function bits(a: v128, b: v128, c: v128): u64 {
  return (
    <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16)) | (<u64>(<u32>i8x16.bitmask(c)) << 32)
  );
}

/** Returns all ones for hexadecimal digits. */
@inline export function isHex(text: v128): v128 {
  const digit = i8x16.le_u(i8x16.sub(text, i8x16.splat(48)), i8x16.splat(9));
  return v128.or(digit, isLetter(text));
}

@inline function isLetter(text: v128): v128 {
  return i8x16.le_u(i8x16.sub(v128.or(text, i8x16.splat(32)), i8x16.splat(97)), i8x16.splat(5));
}

/**
 * Parses `from … to` as an IPv6 address into `high` and `low`.
 */
function parseIPv6(from: usize, to: usize): bool {
  const length = to - from;
  if (length < 2 || length > maxAddressLength) return false;
  const a = v128.load(from);
  const b = v128.load(from, 16);
  const c = v128.load(from, 32);
  const all = ((<u64>1) << length) - 1;
  const colons = positions(a, b, c, COLON) & all;
  const dots = positions(a, b, c, DOT) & all;
  // Dots are after the last colon.
  if (colons == 0 || (dots != 0 && ctz(dots) < 64 - clz(colons))) return false;
  const hex = bits(isHex(a), isHex(b), isHex(c)) & all;
  if ((hex | colons | dots) != all) return false;
  // `::`, of which there is at most one, and groups of up to four digits.
  const gap = colons & (colons >> 1);
  const pairs = hex & (hex >> 1);
  if ((gap & (gap - 1)) != 0 || (pairs & (pairs >> 2) & (hex >> 4)) != 0) return false;
  // No other colon is at the beginning or the end.
  if ((colons & ~(gap | (gap << 1)) & (1 | ((<u64>1) << (length - 1)))) != 0) return false;

  let ends = (colons | (all + 1)) & (hex << 1);
  let count = <u32>popcnt(ends);
  let tail: i64 = 0;
  if (dots != 0) {
    // A dotted-decimal tail is the last two groups.
    tail = parseIPv4(from + 64 - <usize>clz(colons), to);
    if (tail < 0) return false;
    ends &= all;
    count++;
  }
  // `::` means one or more groups of zeros (RFC 4291, section 2.2).
  if (gap == 0 ? count != 8 : count > 7) return false;

  let first: u64 = 0;
  let last = <u64>tail;
  const afterGap = 16 * (8 - count);
  for (let place: u32 = 112; ends != 0; place -= 16, ends &= ends - 1) {
    const at = <u64>ctz(ends);
    const size = <u32>clz(~(hex << (64 - at)));
    // Up to three bytes before the text are read.
    const text = load<u32>(from + <usize>at - 4) & (0xffff_ffff << (32 - 8 * size));
    const shift = place - (at > <u64>ctz(gap) ? afterGap : 0);
    const group = <u64>hexNumber(text) << (shift & 63);
    first |= shift < 64 ? 0 : group;
    last |= shift < 64 ? group : 0;
  }
  high = first;
  low = last;
  return true;
}

/**
 * Parses the text `from … to`; reads 48 bytes from `from` on. An IPv4-mapped IPv6 address is that IPv4 address.
 *
 * @returns `NO_ADDRESS`, `IPV4` or `IPV6`; the address is in `high` and `low`, its text from `textStart` to `textEnd`
 */
export function parseAddress(from: usize, to: usize): u32 {
  textStart = from;
  textEnd = to;
  const address = parseIPv4(from, to);
  if (address >= 0) {
    low = <u64>address;
    return IPV4;
  }
  if (!parseIPv6(from, to)) return NO_ADDRESS;
  if (HIDING) lastPart = 0;
  if (high != 0 || low >> 32 != 0xffff) return IPV6;
  low &= 0xffff_ffff;
  return IPV4;
}
