/**
 * Parses addresses from bytes. src/address/parse.ts, which parses them from text, says what is accepted and why; a test
 * compares the two.
 */
import { IPV4_FORM_BYTES, IPV4_FORM_LEAST } from '../abi';
import { COLON, DOT } from './ascii';
import { digits, ipv4Forms, maxAddressLength } from './settings';

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
@inline function isHex(text: v128): v128 {
  const digit = i8x16.le_u(i8x16.sub(text, i8x16.splat(48)), i8x16.splat(9));
  return v128.or(digit, isLetter(text));
}

@inline function isLetter(text: v128): v128 {
  return i8x16.le_u(i8x16.sub(v128.or(text, i8x16.splat(32)), i8x16.splat(97)), i8x16.splat(5));
}

/** Stores the values of hexadecimal digits. The values of other bytes are not used. */
@inline function storeValues(text: v128, offset: usize): void {
  const nine = v128.and(isLetter(text), i8x16.splat(9));
  v128.store(digits + offset, i8x16.add(v128.and(text, i8x16.splat(15)), nine));
}

/** Returns the group of 1 to 4 digits whose values end at `end`. */
@inline function groupBefore(end: usize, length: usize): u64 {
  const values = load<u32>(end - 4) & (0xffff_ffff << (32 - 8 * <u32>length));
  const pairs = (values << 4) | (values >> 8);
  return <u64>(((pairs & 0xff) << 8) | ((pairs >> 16) & 0xff));
}

/** Parses `from … to` as an IPv6 address into `high` and `low`. */
function parseIPv6(from: usize, to: usize): bool {
  const length = to - from;
  if (length < 2 || length > maxAddressLength) return false;
  const a = v128.load(from);
  const b = v128.load(from, 16);
  const c = v128.load(from, 32);
  const all = ((<u64>1) << length) - 1;
  let colons = positions(a, b, c, COLON) & all;
  const dots = positions(a, b, c, DOT) & all;
  // An address has two colons at least.
  if ((colons & (colons - 1)) == 0 || ((bits(isHex(a), isHex(b), isHex(c)) & all) | colons | dots) != all) return false;
  // Each group reads the values of four digits, so up to three bytes before the first are read.
  storeValues(a, 4);
  storeValues(b, 20);
  storeValues(c, 36);
  const values = digits + 4;

  // Groups are shifted in from the right. At `::` the ones so far are set aside.
  let h: u64 = 0;
  let l: u64 = 0;
  let gapHigh: u64 = 0;
  let gapLow: u64 = 0;
  let count: u32 = 0;
  let gapAt: i32 = -1;
  let start: usize = 0;
  if ((colons & 1) != 0) {
    if ((colons & 2) == 0) return false;
    gapAt = 0;
    start = 2;
    colons &= ~(<u64>3);
  }
  for (; colons != 0; colons &= colons - 1) {
    const at = <usize>ctz(colons);
    const size = at - start;
    if (size == 0) {
      if (gapAt >= 0) return false; // a second `::`
      gapAt = <i32>count;
      gapHigh = h;
      gapLow = l;
      h = 0;
      l = 0;
    } else {
      if (size > 4 || count == 8) return false;
      h = (h << 16) | (l >> 48);
      l = (l << 16) | groupBefore(values + at, size);
      count++;
    }
    start = at + 1;
  }
  if (dots != 0) {
    // A dotted-decimal tail is the last two groups; no dot may be before it.
    if (<usize>ctz(dots) < start) return false;
    const tail = parseIPv4(from + start, to);
    if (tail < 0 || count > 6) return false;
    h = (h << 32) | (l >> 32);
    l = (l << 32) | <u64>tail;
    count += 2;
  } else if (start == length) {
    if (gapAt != <i32>count) return false; // a lone colon at the end
  } else {
    const size = length - start;
    if (size > 4 || count == 8) return false;
    h = (h << 16) | (l >> 48);
    l = (l << 16) | groupBefore(values + length, size);
    count++;
  }

  if (gapAt < 0) {
    if (count != 8) return false;
  } else {
    // `::` means one or more groups of zeros (RFC 4291, section 2.2). The groups before it move to the top.
    if (count > 7) return false;
    const shift = 128 - 16 * <u64>gapAt;
    if (shift < 64) {
      h |= (gapHigh << shift) | (gapLow >> (64 - shift));
      l |= gapLow << shift;
    } else if (shift < 128) h |= gapLow << (shift - 64);
  }
  high = h;
  low = l;
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
  if (high != 0 || low >> 32 != 0xffff) return IPV6;
  low &= 0xffff_ffff;
  return IPV4;
}
