/**
 * Parses addresses. Everything uses this parser, except the enrichment kernel, whose parser of bytes is tested against it.
 *
 * Accepted forms (RFC 4291 §2.2): four decimal groups from 0 to 255 without leading zeros; IPv6 in full or with one `::`,
 * leading zeros optional, in upper or lower case, with or without a dotted-decimal tail. Everything else is refused, such
 * as zone ids, ports, brackets, masks and white space.
 */
import { MAX_ADDRESS_LENGTH } from '../limits.js';

/** Address family of a parsed address. */
export type Family = 4 | 6;

const DOT = 46;
const COLON = 58;

/** High words of the IPv4-mapped block `::ffff:0:0/96` (RFC 4291 §2.5.5.2). */
const MAPPED_WORD = 0x0000ffff;

/**
 * Parses an IPv4 address in dotted decimal.
 *
 * @param text that contains the address
 * @param from index of its first character
 * @param to index after its last character
 * @returns the address, 0 to 2^32 - 1, or -1 if the text is not an IPv4 address
 */
export function parseIPv4(text: string, from = 0, to = text.length): number {
  if (to - from < 7 || to - from > 15) return -1;
  let address = 0;
  let octet = -1;
  let dots = 0;
  for (let i = from; i < to; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) {
      // Leading zeros are refused, because some parsers read them as octal.
      if (octet === 0) return -1;
      octet = octet < 0 ? digit : octet * 10 + digit;
      if (octet > 255) return -1;
    } else if (digit === DOT - 48 && octet >= 0 && dots < 3) {
      address = (address << 8) | octet;
      octet = -1;
      dots++;
    } else {
      return -1;
    }
  }
  if (dots !== 3 || octet < 0) return -1;
  return ((address << 8) | octet) >>> 0;
}

/** Above the value of every hexadecimal digit. */
const NO_DIGIT = 16;

/** Values of the hexadecimal digits by character code, {@link NO_DIGIT} for every other code: no bounds check is needed. */
const HEX_DIGITS = new Uint8Array(65_536).fill(NO_DIGIT);
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX_DIGITS[digit.charCodeAt(0)] = value;
  HEX_DIGITS[digit.toUpperCase().charCodeAt(0)] = value;
}

/** The groups of the address that is being parsed. One array serves all calls, because parsing is synchronous. */
const groups = new Uint16Array(8);

/**
 * Parses an IPv6 address.
 *
 * @param text the whole text
 * @param words receives the address as four 32-bit words, most significant first; unchanged if the text is not an address
 * @returns whether the text is an IPv6 address
 */
export function parseIPv6(text: string, words: Uint32Array): boolean {
  return parseIPv6Form(text, words) !== NOT_IPV6;
}

/** Result of {@link parseIPv6Form}: the text is not an IPv6 address. */
export const NOT_IPV6 = 0;
export const IPV6 = 1;
/** The text is an IPv6 address in full and in lower case, as in lookup results, so it need not be formatted again. */
export const IPV6_IN_FULL = 2;

/** Length of an IPv6 address in full: eight groups of four digits. Only one with a dotted-decimal tail can be as long. */
const FULL_LENGTH = 39;

/** The bit that is set in ASCII digits, colons and lower-case letters, but not in upper-case letters. */
const NOT_UPPER = 0x20;

/** Parses as {@link parseIPv6}, and distinguishes the full form from others. */
export function parseIPv6Form(text: string, words: Uint32Array): typeof NOT_IPV6 | typeof IPV6 | typeof IPV6_IN_FULL {
  const length = text.length;
  if (length < 2 || length > MAX_ADDRESS_LENGTH) return NOT_IPV6;
  let count = 0;
  /** Number of groups before the `::`, or -1. */
  let gapAt = -1;
  /** {@link NOT_UPPER} while no upper-case digit was found. */
  let common = NOT_UPPER;
  let i = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return NOT_IPV6;
    gapAt = 0;
    i = 2;
  }
  while (i < length) {
    if (count === 8) return NOT_IPV6;
    // A group of up to four digits. A loop over the digits takes a third longer.
    const start = i;
    let code = text.charCodeAt(i);
    let group = HEX_DIGITS[code]!;
    if (group === NO_DIGIT) return NOT_IPV6;
    common &= code;
    i++;
    code = i < length ? text.charCodeAt(i) : 0;
    let digit = HEX_DIGITS[code]!;
    if (digit !== NO_DIGIT) {
      group = (group << 4) | digit;
      common &= code;
      i++;
      code = i < length ? text.charCodeAt(i) : 0;
      digit = HEX_DIGITS[code]!;
      if (digit !== NO_DIGIT) {
        group = (group << 4) | digit;
        common &= code;
        i++;
        code = i < length ? text.charCodeAt(i) : 0;
        digit = HEX_DIGITS[code]!;
        if (digit !== NO_DIGIT) {
          group = (group << 4) | digit;
          common &= code;
          i++;
          code = i < length ? text.charCodeAt(i) : 0;
        }
      }
    }
    if (i === length) {
      groups[count++] = group;
      break;
    }
    if (code === DOT) {
      // These are the first digits of a dotted-decimal tail, which replaces the last two groups.
      const tail = parseIPv4(text, start, length);
      if (tail < 0 || count > 6) return NOT_IPV6;
      groups[count++] = tail >>> 16;
      groups[count++] = tail;
      common = 0; // not the full form, even if it has the same length
      break;
    }
    if (code !== COLON) return NOT_IPV6;
    groups[count++] = group;
    i++;
    if (i === length) return NOT_IPV6; // a lone colon at the end
    if (text.charCodeAt(i) === COLON) {
      if (gapAt >= 0) return NOT_IPV6; // a second `::`
      gapAt = count;
      i++;
    }
  }
  if (gapAt < 0) {
    if (count !== 8) return NOT_IPV6;
  } else {
    // `::` replaces one or more groups of zeros (RFC 4291 §2.2).
    if (count > 7) return NOT_IPV6;
    const shift = 8 - count;
    for (let k = count - 1; k >= gapAt; k--) groups[k + shift] = groups[k]!;
    for (let k = gapAt; k < gapAt + shift; k++) groups[k] = 0;
  }
  words[0] = ((groups[0]! << 16) | groups[1]!) >>> 0;
  words[1] = ((groups[2]! << 16) | groups[3]!) >>> 0;
  words[2] = ((groups[4]! << 16) | groups[5]!) >>> 0;
  words[3] = ((groups[6]! << 16) | groups[7]!) >>> 0;
  return length === FULL_LENGTH && count === 8 && common !== 0 ? IPV6_IN_FULL : IPV6;
}

/** Whether four words are an IPv4-mapped address, which is always treated as the IPv4 address. */
export function isMapped(words: Uint32Array): boolean {
  return words[2] === MAPPED_WORD && words[0] === 0 && words[1] === 0;
}

/**
 * Whether a text has a colon after four characters, so that it cannot be an IPv4 address. This avoids parsing most IPv6
 * addresses as IPv4 first.
 */
export function looksLikeIPv6(text: string): boolean {
  return text.length > 4 && text.charCodeAt(4) === COLON;
}

/**
 * Parses an address of either family. An IPv4-mapped IPv6 address is the IPv4 address in it.
 *
 * @param text the whole text
 * @param words receives the address: IPv4 in `words[0]`, IPv6 in all four words, most significant first
 * @returns 4 or 6, or 0 if the text is not an address
 */
export function parseAddress(text: string, words: Uint32Array): Family | 0 {
  const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
  if (address >= 0) {
    words[0] = address;
    return 4;
  }
  if (!parseIPv6(text, words)) return 0;
  if (!isMapped(words)) return 6;
  words[0] = words[3]!;
  return 4;
}

/** Returns whether an address is one of the Internet, as far as its first bits say: not private, local, shared or multicast. */
export function isPublicAddress(address: string): boolean {
  const words = new Uint32Array(4);
  const family = parseAddress(address, words);
  const first = words[0]!;
  if (family === 4) {
    const isShared =
      first >>> 22 === 0x191 || first >>> 20 === 0xac1 || first >>> 16 === 0xc0a8 || first >>> 16 === 0xa9fe;
    return !isShared && ![0, 10, 127].includes(first >>> 24) && first >>> 29 !== 7;
  }
  return family === 6 && first >>> 29 === 1;
}
