/**
 * The one address parser: text to numbers. Pipeline, engine, API and library all use it (the enrichment kernel has a twin
 * over bytes, tested against this one).
 *
 * Accepted (RFC 4291 §2.2, narrowed as documented in README.md): four decimal groups 0–255 without leading zeros; IPv6 in
 * full or with one `::`, leading zeros optional, either letter case, with or without a dotted-decimal tail. Refused: zone
 * ids, ports, brackets, masks, blanks, anything else.
 */
import { MAX_ADDRESS_LENGTH } from '../limits.js';

/** Address family of a parsed address; 0 stands for "no address". */
export type Family = 4 | 6;

const DOT = 46;
const COLON = 58;

/** High words of the IPv4-mapped block `::ffff:0:0/96` (RFC 4291 §2.5.5.2). */
const MAPPED_WORD = 0x0000ffff;

/**
 * Parses an IPv4 address in dotted decimal.
 *
 * @param text the text it stands in
 * @param from index of its first character
 * @param to index behind its last character
 * @returns the address, 0 to 2^32 - 1, or -1 where the text is no such address
 */
export function parseIPv4(text: string, from = 0, to = text.length): number {
  if (to - from < 7 || to - from > 15) return -1;
  let address = 0;
  let octet = -1;
  let dots = 0;
  for (let i = from; i < to; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) {
      // A further digit behind a lone 0 would be a leading zero: ambiguous (octal in some parsers), so refused.
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

/** Values of the hexadecimal digits by ASCII code; -1 for every other character. */
const HEX_DIGITS = Int8Array.from({ length: 128 }, (_, code) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(code).toLowerCase()),
);

/** The groups of the address being parsed; parsing is synchronous, so one scratch area serves every call. */
const groups = new Uint16Array(8);

/**
 * Parses an IPv6 address.
 *
 * @param text the whole text
 * @param words receives the address as four 32-bit words, most significant first; left as they were where it fails
 * @returns whether the text is an IPv6 address
 */
export function parseIPv6(text: string, words: Uint32Array): boolean {
  const length = text.length;
  if (length < 2 || length > MAX_ADDRESS_LENGTH) return false;
  /** Groups that are complete, and how many of them stand before the `::`. */
  let count = 0;
  let gapAt = -1;
  /** The group that is being read, and its digits so far. */
  let group = 0;
  let digits = 0;
  let i = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return false;
    gapAt = 0;
    i = 2;
  }
  for (; i < length; i++) {
    const code = text.charCodeAt(i);
    const digit = code < 128 ? HEX_DIGITS[code]! : -1;
    if (digit >= 0) {
      group = (group << 4) | digit;
      digits++;
    } else if (code === COLON) {
      // A colon ends a group, and another group or the `::` must follow.
      if (digits === 0 || digits > 4 || count === 7) return false;
      groups[count++] = group;
      group = 0;
      digits = 0;
      if (text.charCodeAt(i + 1) === COLON) {
        if (gapAt >= 0) return false;
        gapAt = count;
        i++;
      }
    } else if (code === DOT) {
      // A dotted-decimal tail stands for the last two groups.
      const tail = parseIPv4(text, i - digits, length);
      if (tail < 0 || count > 6) return false;
      groups[count++] = tail >>> 16;
      group = tail & 0xffff;
      digits = 4;
      break;
    } else {
      return false;
    }
  }
  if (digits > 4) return false;
  if (digits > 0) groups[count++] = group;
  else if (gapAt !== count) return false; // a lone colon at the end
  if (gapAt < 0) {
    if (count !== 8) return false;
  } else {
    // `::` stands for one group of zeros or more (RFC 4291 §2.2).
    if (count > 7) return false;
    const shift = 8 - count;
    for (let k = count - 1; k >= gapAt; k--) groups[k + shift] = groups[k]!;
    for (let k = gapAt; k < gapAt + shift; k++) groups[k] = 0;
  }
  words[0] = ((groups[0]! << 16) | groups[1]!) >>> 0;
  words[1] = ((groups[2]! << 16) | groups[3]!) >>> 0;
  words[2] = ((groups[4]! << 16) | groups[5]!) >>> 0;
  words[3] = ((groups[6]! << 16) | groups[7]!) >>> 0;
  return true;
}

/** Whether four words hold an IPv4-mapped address, which *is* that IPv4 address everywhere. */
export function isMapped(words: Uint32Array): boolean {
  return words[2] === MAPPED_WORD && words[0] === 0 && words[1] === 0;
}

/**
 * Parses an address of either family. An IPv4-mapped IPv6 address counts as the IPv4 address inside.
 *
 * @param text the whole text, nothing around the address
 * @param words receives the address: an IPv4 one in `words[0]`, an IPv6 one in all four, most significant first
 * @returns 4 or 6, or 0 where the text is no address
 */
export function parseAddress(text: string, words: Uint32Array): Family | 0 {
  const address = parseIPv4(text);
  if (address >= 0) {
    words[0] = address;
    return 4;
  }
  if (!parseIPv6(text, words)) return 0;
  if (!isMapped(words)) return 6;
  words[0] = words[3]!;
  return 4;
}
