/**
 * Finds the addresses in lines of any text. Of several in a line, lookup.ts chooses one.
 *
 * A word is a run of ASCII letters, digits, `_`, `.`, `:` and `-`. Punctuation at its end does not count. A word is an address if
 * it is one as a whole, or without a port at its end, or without names and colons at its beginning: `inside:10.0.0.1`,
 * `IPv6:2001:db8::1`. An IPv4 address is also found between two colons. A port follows a colon, or, as tcpdump writes it, a dot;
 * then it has at least two digits.
 *
 * Times, dates and numbers are not addresses, and versions with letters are not. Two things look like versions and are not
 * taken: what follows `~` or the word "version", and an IPv4 address that follows a word and a slash (`Chrome/120.0.0.0`), unless
 * it has a port (`name/192.0.2.1:8020`, `IPV4/UDP/192.0.2.1/5060`) or the word ends in a digit, as names of hosts do.
 */
import { IPV4, IPV6, NO_ADDRESS, parseAddress, textEnd, textStart } from './address';
import { COLON, DOT, MINUS, QUOTE, SPACE, ZERO } from './ascii';
import { addCandidate } from './lookup';
import { equal, inRange, VECTOR } from './masks';
import { maxAddressLength, untrusted } from './settings';

const SLASH: u32 = 47;
const EQUALS: u32 = 61;
const UNDERSCORE: u32 = 95;
const LETTER_A: u32 = 97;
const TILDE: u32 = 126;

/** Longest port number in digits; shortest one after a dot, where one digit could be the end of a version. */
const PORT_DIGITS: usize = 5;
const DOTTED_PORT_DIGITS: usize = 2;
/** Shortest IPv4 address in bytes. */
const SHORTEST_IPV4: usize = 7;
/** Dots of an IPv4 address, also at the end of an IPv6 address; colons of an IPv6 address that has neither dots nor two in a row. */
const IPV4_DOTS: u32 = 3;
const IPV6_COLONS: u32 = 7;
/** The word "version" in small letters, and the bits that are compared: the last of 8 bytes is any. */
const VERSION: u64 = 0x006e_6f69_7372_6576;
const VERSION_MASK: u64 = 0x00ff_ffff_ffff_ffff;
const CASE_BITS: u64 = 0x2020_2020_2020_2020;
/** Most separators between the word "version" and the version. */
const VERSION_SEPARATORS: usize = 3;

@inline function isDigit(byte: u32): bool {
  return byte - ZERO < 10;
}

@inline function isHex(byte: u32): bool {
  return isDigit(byte) || (byte | 32) - LETTER_A < 6;
}

@inline function isWordByte(byte: u32): bool {
  return (byte | 32) - LETTER_A < 26 || byte - ZERO < 11 || byte == DOT || byte == MINUS || byte == UNDERSCORE;
}

function hasDigit(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) if (isDigit(load<u8>(at))) return true;
  return false;
}

/** Returns where the port at the end of a text begins, which follows a colon or a dot; or 0 if there is none. */
function portStart(from: usize, to: usize): usize {
  let at = to;
  while (at > from && isDigit(load<u8>(at - 1))) at--;
  const digits = to - at;
  if (at == from || digits > PORT_DIGITS) return 0;
  const separator: u32 = load<u8>(at - 1);
  const isPort = separator == COLON ? digits > 0 : separator == DOT && digits >= DOTTED_PORT_DIGITS;
  return isPort ? at : 0;
}

/** Returns where a word begins without names and their colons. A name has a letter that no address has, or is empty. */
function afterNames(from: usize, to: usize): usize {
  let start = from;
  let isName = false;
  for (let at = from; at < to; at++) {
    const byte: u32 = load<u8>(at);
    if (byte == COLON) {
      if (!isName && (at > start || (at + 1 < to && load<u8>(at + 1) == <u8>COLON))) return start;
      start = at + 1;
      isName = false;
    } else if (!isHex(byte) && byte != DOT) isName = true;
  }
  return start;
}

/** Parses `from … to`, see `parseAddress`; an address has a digit. */
function parseWhole(from: usize, to: usize): u32 {
  if (to - from > maxAddressLength) return NO_ADDRESS;
  const family = parseAddress(from, to);
  if (family == NO_ADDRESS || (family == IPV6 && !hasDigit(from, to))) return NO_ADDRESS;
  return family;
}

/** Parses `from … to` with or without a port. */
function parseWithPort(from: usize, to: usize): u32 {
  const family = parseWhole(from, to);
  if (family != NO_ADDRESS) return family;
  const port = portStart(from, to);
  return port == 0 ? NO_ADDRESS : parseWhole(from, port - 1);
}

/** Returns whether what begins at an address is a version, by the text before it in the line. */
function isVersion(at: usize, start: usize): bool {
  if (at > start && load<u8>(at - 1) == <u8>TILDE) return true;
  for (let count: usize = 0; count < VERSION_SEPARATORS && at >= start + 8; count++) {
    const byte: u32 = load<u8>(--at);
    if (byte != SPACE && byte != COLON && byte != EQUALS && byte != QUOTE) return false;
    if (((load<u64>(at - 7) | CASE_BITS) & VERSION_MASK) == VERSION) return true;
  }
  return false;
}

/** Returns whether a port is at an address: a colon and a digit, or a slash and a number that ends the text in slashes. */
function hasPort(at: usize): bool {
  if (load<u8>(at) == <u8>COLON) return isDigit(load<u8>(at + 1));
  if (load<u8>(at) != <u8>SLASH) return false;
  let end = at + 1;
  while (isDigit(load<u8>(end))) end++;
  const digits = end - at - 1;
  return digits > 0 && digits <= PORT_DIGITS && load<u8>(end) != <u8>SLASH && !isWordByte(load<u8>(end));
}

/**
 * Returns whether the IPv4 address that was found last counts.
 *
 * @param word the beginning of its word; @param at its own; @param start the beginning of the line
 */
function isTaken(word: usize, at: usize, start: usize): bool {
  if (isVersion(at, start)) return false;
  if (word < start + 2 || load<u8>(word - 1) != <u8>SLASH || !isWordByte(load<u8>(word - 2))) return true;
  return hasPort(textEnd) || (isDigit(load<u8>(word - 2)) && load<u8>(textEnd) != <u8>SLASH);
}

/** Returns the family of the address in a word, as `parseAddress` does. */
function parseWord(word: usize, end: usize, start: usize): u32 {
  let to = end;
  while (to > word && (load<u8>(to - 1) == <u8>DOT || load<u8>(to - 1) == <u8>MINUS)) to--;
  if (to > word + 1 && load<u8>(to - 1) == <u8>COLON && load<u8>(to - 2) != <u8>COLON) to--;
  let from = word;
  let family = parseWithPort(from, to);
  if (family == NO_ADDRESS) {
    from = afterNames(word, to);
    if (from != word) family = parseWithPort(from, to);
  }
  // Between two colons.
  for (let next = word; family == NO_ADDRESS && next < to; next++) {
    from = next;
    while (next < to && load<u8>(next) != <u8>COLON) next++;
    if (next - from >= SHORTEST_IPV4) family = parseWithPort(from, next);
  }
  return family == IPV4 && !isTaken(word, from, start) ? NO_ADDRESS : family;
}

/** Returns whether a text after which a line has what the client has written is in `from … to`. */
function hasUntrusted(from: usize, to: usize): bool {
  for (let text = untrusted; load<u8>(text) != 0; text += 1 + <usize>load<u8>(text)) {
    const length: usize = load<u8>(text);
    for (let at = from; at + length <= to; at++) if (memory.compare(at, text + 1, length) == 0) return true;
  }
  return false;
}

/**
 * Adds the first address of a text as a candidate for the value of its line; the last one if the client may have written those before.
 *
 * @param start the beginning of the line; @param from where the search before has ended; @param close the end of the line's text
 * @returns where the search goes on, or 0 if there was no address
 */
export function queryNextAddress(value: usize, start: usize, from: usize, close: usize): usize {
  if (untrusted == 0) return findAddress(value, start, from, close);
  let end = findAddress(0, start, from, close);
  if (end != 0 && hasUntrusted(start, textStart)) {
    while (true) {
      const next = findAddress(0, start, end, close);
      if (next == 0) break;
      from = end;
      end = next;
    }
  }
  return findAddress(value, start, from, close);
}

/** The same for the first address; with `value` 0, it is only found. */
function findAddress(value: usize, start: usize, from: usize, close: usize): usize {
  let wordEnd = from;
  for (let vector = from; vector < close; vector += VECTOR) {
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);
    const allColons = equal(a, b, c, d, COLON);
    const bit = i8x16.splat(32);
    const letters = inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), LETTER_A, 6);
    const parts = allColons | letters | inRange(a, b, c, d, ZERO, 10);
    // Every address has a dot or colon between two digits or colons. Those at the edges of the vector are always looked at.
    let marks = (allColons | equal(a, b, c, d, DOT)) & ((parts << 1) | 1) & ((parts >> 1) | ((<u64>1) << 63));
    if (close - vector < VECTOR) marks &= ((<u64>1) << <u64>(close - vector)) - 1;
    for (; marks != 0; marks &= marks - 1) {
      const at = vector + <usize>ctz(marks);
      if (at < wordEnd) continue;
      let word = at;
      while (word > start && isWordByte(load<u8>(word - 1))) word--;
      let dots: u32 = 0;
      let colons: u32 = 0;
      let hasPair = false;
      let previous: u32 = 0;
      for (wordEnd = word; wordEnd < close; wordEnd++) {
        const byte: u32 = load<u8>(wordEnd);
        if (!isWordByte(byte)) break;
        dots += u32(byte == DOT);
        colons += u32(byte == COLON);
        hasPair = hasPair || (byte == COLON && previous == COLON);
        previous = byte;
      }
      // Most words with colons are times.
      if (dots < IPV4_DOTS && colons < IPV6_COLONS && !hasPair) continue;
      const family = parseWord(word, wordEnd, start);
      if (family == NO_ADDRESS) continue;
      if (value != 0) addCandidate(value, family);
      return wordEnd;
    }
  }
  return 0;
}
