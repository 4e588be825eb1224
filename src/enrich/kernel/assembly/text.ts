/**
 * Finds the addresses in lines of any text. The result of a line is that of the first one that has a country, or else of the first.
 *
 * A word is a run of letters, digits, `_`, `.`, `:`, `-` and bytes beyond ASCII. A word is an address if, without punctuation
 * after it, it is one as a whole, or an IPv4 address and a port. So versions with letters, times, dates and numbers are not
 * addresses. Neither is a word after a slash that follows another word, such as the version in `Chrome/120.0.0.0`.
 */
import { IPV6, NO_ADDRESS, parseAddress } from './address';
import { COLON, DOT, MINUS, ZERO } from './ascii';
import { addCandidate } from './lookup';
import { equal, inRange, VECTOR } from './masks';
import { maxAddressLength } from './settings';

const SLASH: u32 = 47;
const UNDERSCORE: u32 = 95;
const LETTER_A: u32 = 97;

/** Longest port number in digits. */
const PORT_DIGITS: usize = 5;

@inline function isDigit(byte: u32): bool {
  return byte - ZERO < 10;
}

@inline function isWordByte(byte: u32): bool {
  return (byte | 32) - LETTER_A < 26 || byte - ZERO < 11 || byte == DOT || byte == MINUS || byte == UNDERSCORE || byte > 127;
}

function hasDigit(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) if (isDigit(load<u8>(at))) return true;
  return false;
}

/** Returns the colon before the port at the end of a word, or 0 if it does not end in a port or has another colon. */
function portColon(from: usize, to: usize): usize {
  let at = to - 1;
  while (at > from && isDigit(load<u8>(at))) at--;
  const digits = to - 1 - at;
  if (load<u8>(at) != <u8>COLON || digits == 0 || digits > PORT_DIGITS) return 0;
  for (let before = from; before < at; before++) if (load<u8>(before) == <u8>COLON) return 0;
  return at;
}

/** Returns the family of the address that a word is, as `parseAddress` does; an address has a digit. */
function parseWord(from: usize, to: usize): u32 {
  while (to > from && (load<u8>(to - 1) == <u8>DOT || load<u8>(to - 1) == <u8>MINUS)) to--;
  if (to > from + 1 && load<u8>(to - 1) == <u8>COLON && load<u8>(to - 2) != <u8>COLON) to--;
  if (to - from > maxAddressLength) return 0;
  const family = parseAddress(from, to);
  if (family == IPV6) return hasDigit(from, to) ? IPV6 : 0;
  if (family != 0) return family;
  const colon = portColon(from, to);
  return colon == 0 ? 0 : parseAddress(from, colon);
}

/**
 * Adds the first address of a text as a candidate for the value of its line.
 *
 * @param start the beginning of the line; @param from where the search before has ended; @param close the end of the line's text
 * @returns where the search goes on, or 0 if there was no address
 */
export function queryNextAddress(value: usize, start: usize, from: usize, close: usize): usize {
  let wordEnd = from;
  for (let vector = from; vector < close; vector += VECTOR) {
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);
    const colons = equal(a, b, c, d, COLON);
    const bit = i8x16.splat(32);
    const letters = inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), LETTER_A, 6);
    const parts = colons | letters | inRange(a, b, c, d, ZERO, 10);
    // Every address has a dot or colon between two digits or colons. Those at the edges of the vector are always looked at.
    let marks = (colons | equal(a, b, c, d, DOT)) & ((parts << 1) | 1) & ((parts >> 1) | ((<u64>1) << 63));
    if (close - vector < VECTOR) marks &= ((<u64>1) << <u64>(close - vector)) - 1;
    for (; marks != 0; marks &= marks - 1) {
      const at = vector + <usize>ctz(marks);
      if (at < wordEnd) continue;
      let word = at;
      while (word > start && isWordByte(load<u8>(word - 1))) word--;
      wordEnd = at + 1;
      while (wordEnd < close && isWordByte(load<u8>(wordEnd))) wordEnd++;
      if (word > start + 1 && load<u8>(word - 1) == <u8>SLASH && isWordByte(load<u8>(word - 2))) continue;
      const family = parseWord(word, wordEnd);
      if (family == NO_ADDRESS) continue;
      addCandidate(value, family);
      return wordEnd;
    }
  }
  return 0;
}
