/**
 * Finds the address in text that has more than an address: a port, brackets, a prefix length, a zone, a name, or a list with
 * commas.
 * The tests have a twin of it, which says with regular expressions what is accepted.
 */
import { IPV4, NO_ADDRESS, parseAddress } from './address';
import { CLOSING_BRACKET, COLON, COMMA, DOT, includes, LETTER_A, MINUS, OPENING_BRACKET, PERCENT, QUOTE, SEMICOLON, SLASH, SPACE, TAB, UNDERSCORE, ZERO } from './ascii';
import { isLenient, maxAddressLength, maxLenientBytes } from './settings';

/** The bytes `for=` in small letters, and the bits in which capitals differ. */
const FOR: u32 = 0x3d72_6f66;
const FOR_CASE_BITS: u32 = 0x0020_2020;
const MAX_PORT: u32 = 65_535;

/** Parses `from … to` as an address without anything else, see `parseAddress`. */
@inline function parseExact(from: usize, to: usize): u32 {
  return to - from <= maxAddressLength ? parseAddress(from, to) : NO_ADDRESS;
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

/** Returns whether `from … to` is a colon and a port. */
@inline function isPort(from: usize, to: usize): bool {
  return load<u8>(from) == <u8>COLON && <u32>numberIn(from + 1, to, 5) <= MAX_PORT;
}

/** Returns whether `from … to` is a slash and a prefix length. */
@inline function isPrefixLength(from: usize, to: usize, isIPv6: bool): bool {
  return load<u8>(from) == <u8>SLASH && <u32>numberIn(from + 1, to, 3) <= u32(isIPv6 ? 128 : 32);
}

/** Returns whether a byte can be in a zone, or in a name before an address. */
@inline function isNameByte(byte: u32): bool {
  return (byte | 32) - LETTER_A < 26 || byte - ZERO < 10 || byte == DOT || byte == MINUS || byte == UNDERSCORE;
}

/** Returns the end of an address without its zone: a percent sign and letters, digits, `.`, `_`, `-` (RFC 4007, section 11). */
function beforeZone(from: usize, to: usize): usize {
  let end = to - 1;
  while (end > from && isNameByte(load<u8>(end))) end--;
  return end < to - 1 && load<u8>(end) == <u8>PERCENT && includes(from, end, COLON) ? end : to;
}

/** Parses an address with or without a zone. */
@inline function parseZoned(from: usize, to: usize): u32 {
  return parseExact(from, beforeZone(from, to));
}

/** Parses an address with brackets, a zone, a port, a port and an interface, or a prefix length. */
function parseNode(from: usize, to: usize): u32 {
  if (from >= to) return NO_ADDRESS;
  if (load<u8>(from) == <u8>OPENING_BRACKET) {
    let close = from + 1;
    while (close < to && load<u8>(close) != <u8>CLOSING_BRACKET) close++;
    if (close == to) return NO_ADDRESS;
    const end = close + 1;
    return end == to || isPort(end, to) || isPrefixLength(end, to, includes(from, close, COLON))
      ? parseZoned(from + 1, close)
      : NO_ADDRESS;
  }
  let end = to;
  while (end > from && <u32>load<u8>(end - 1) - ZERO < 10) end--;
  // What has one colon is not an IPv6 address.
  if (end > from && load<u8>(end - 1) == <u8>COLON && !includes(from, end - 1, COLON)) {
    return isPort(end - 1, to) ? parseExact(from, end - 1) : NO_ADDRESS;
  }
  const family = parseZoned(from, to);
  if (family != NO_ADDRESS) return family;
  // An interface after the port, as SonicWall writes it.
  let colon = from;
  while (colon < to && load<u8>(colon) != <u8>COLON) colon++;
  let last = colon + 1;
  while (last < to && load<u8>(last) != <u8>COLON) last++;
  const isInterface = last + 1 < to && (<u32>load<u8>(last + 1) | 32) - LETTER_A < 26;
  if (isInterface && (last == colon + 1 || isPort(colon, last))) {
    const exact = parseExact(from, colon);
    if (exact == IPV4) return exact;
  }
  if (end == from) return NO_ADDRESS;
  end--;
  return isPrefixLength(end, to, includes(from, end, COLON)) ? parseZoned(from, end) : NO_ADDRESS;
}

/** Parses the same with or without a name, which begins with a letter or is empty, and a slash before it. */
function parseNamed(from: usize, to: usize): u32 {
  const family = parseNode(from, to);
  if (family != NO_ADDRESS) return family;
  let at = from;
  while (at < to && isNameByte(load<u8>(at))) at++;
  const isName = at == from || (<u32>load<u8>(from) | 32) - LETTER_A < 26;
  return isName && at < to && load<u8>(at) == <u8>SLASH ? parseNode(at + 1, to) : NO_ADDRESS;
}

/** Parses one element of a list: an address, or in a header Forwarded the address after `for=` (RFC 7239, section 4). */
function parseElement(from: usize, to: usize): u32 {
  const family = parseNamed(from, to);
  if (family != NO_ADDRESS) return family;
  for (let start = from; start < to; start++) {
    let end = start;
    while (end < to && load<u8>(end) != <u8>SEMICOLON) end++;
    while (start < end && isListBlank(start)) start++;
    if (end - start >= 4 && (load<u32>(start) | FOR_CASE_BITS) == FOR) {
      let node = start + 4;
      let close = end;
      while (node < close && isListBlank(close - 1)) close--;
      if (close >= node + 2 && load<u8>(node) == <u8>QUOTE && load<u8>(close - 1) == <u8>QUOTE) {
        node++;
        close--;
      }
      return parseNamed(node, close);
    }
    start = end;
  }
  return NO_ADDRESS;
}

@inline function isListBlank(at: usize): bool {
  return load<u8>(at) == <u8>SPACE || load<u8>(at) == <u8>TAB;
}

/** Where the element of a list ends that was an address last. */
export let elementEnd: usize = 0;

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
    elementEnd = comma;
    if (family != NO_ADDRESS || comma == to) return family;
    from = comma + 1;
  }
  return NO_ADDRESS;
}

/** What the whole text of the field that was parsed last is, as of `parseAddress`. */
export let exactFamily: u32 = NO_ADDRESS;

/** Parses the text of a field, as exactly or leniently as the options say. Result as of `parseAddress`. */
@inline export function parseText(from: usize, to: usize): u32 {
  const exact = parseExact(from, to);
  elementEnd = to;
  if (HIDING) exactFamily = exact;
  return exact == NO_ADDRESS && isLenient ? parseList(from, to) : exact;
}

/** Longest text of a field that can have an address, in bytes. */
@inline export function longestText(): usize {
  return isLenient ? maxLenientBytes : maxAddressLength;
}
