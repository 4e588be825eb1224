/**
 * Finds the address in text that has more than an address: a port, brackets, a prefix length, or a list with commas.
 * src/address/lenient.ts, which does the same with text, says what is accepted; a test compares the two.
 */
import { NO_ADDRESS, parseAddress } from './address';
import { CLOSING_BRACKET, COLON, COMMA, OPENING_BRACKET, SPACE, TAB, ZERO } from './ascii';
import { isLenient, maxAddressLength, maxLenientBytes } from './settings';

const SLASH: u32 = 47;
const MAX_PORT: u32 = 65_535;

/** Parses `from … to` as an address without anything else, see `parseAddress`. */
@inline function parseExact(from: usize, to: usize): u32 {
  return to - from <= maxAddressLength ? parseAddress(from, to) : NO_ADDRESS;
}

function hasColon(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) if (load<u8>(at) == <u8>COLON) return true;
  return false;
}

/** Returns the number in `from … to`, which has 1 to `most` digits, or -1. */
function numberIn(from: usize, to: usize, most: usize): i32 {
  if (from >= to || to - from > most) return -1;
  let value: i32 = 0;
  for (let at = from; at < to; at++) {
    const digit: u32 = <u32>load<u8>(at) - ZERO;
    if (digit > 9) return -1;
    value = 10 * value + <i32>digit;
  }
  return value;
}

@inline function isPort(from: usize, to: usize): bool {
  return <u32>numberIn(from, to, 5) <= MAX_PORT;
}

/** Parses one element of a list. */
function parseElement(from: usize, to: usize): u32 {
  const exact = parseExact(from, to);
  if (exact != NO_ADDRESS || from >= to) return exact;
  if (load<u8>(from) == <u8>OPENING_BRACKET) {
    let close = from + 1;
    while (close < to && load<u8>(close) != <u8>CLOSING_BRACKET) close++;
    if (close == to || !hasColon(from + 1, close)) return NO_ADDRESS;
    const end = close + 1;
    if (end < to && (load<u8>(end) != <u8>COLON || !isPort(end + 1, to))) return NO_ADDRESS;
    return parseExact(from + 1, close);
  }
  let digits = to;
  while (digits > from && <u32>load<u8>(digits - 1) - ZERO < 10) digits--;
  if (digits == from) return NO_ADDRESS;
  const end = digits - 1;
  const separator: u32 = load<u8>(end);
  const isIPv6 = hasColon(from, end);
  if (separator == COLON) return !isIPv6 && isPort(digits, to) ? parseExact(from, end) : NO_ADDRESS;
  const bits: u32 = isIPv6 ? 128 : 32;
  return separator == SLASH && <u32>numberIn(digits, to, 3) <= bits ? parseExact(from, end) : NO_ADDRESS;
}

@inline function isListBlank(at: usize): bool {
  return load<u8>(at) == <u8>SPACE || load<u8>(at) == <u8>TAB;
}

/** Parses the first element of a list that is an address. */
function parseList(from: usize, to: usize): u32 {
  if (to - from > maxLenientBytes) return NO_ADDRESS;
  while (true) {
    let comma = from;
    while (comma < to && load<u8>(comma) != <u8>COMMA) comma++;
    let end = comma;
    while (from < end && isListBlank(from)) from++;
    while (end > from && isListBlank(end - 1)) end--;
    const family = parseElement(from, end);
    if (family != NO_ADDRESS || comma == to) return family;
    from = comma + 1;
  }
  return NO_ADDRESS;
}

/** Parses the text of a field, as exactly or leniently as the options say. Result as of `parseAddress`. */
@inline export function parseText(from: usize, to: usize): u32 {
  const exact = parseExact(from, to);
  return exact == NO_ADDRESS && isLenient ? parseList(from, to) : exact;
}

/** Longest text of a field that can have an address, in bytes. */
@inline export function longestText(): usize {
  return isLenient ? maxLenientBytes : maxAddressLength;
}
