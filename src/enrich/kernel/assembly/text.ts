/**
 * Finds the addresses in lines of any text. Of several in a line, those of the best role (roles.ts) count, of which lookup.ts chooses one.
 *
 * A word is a run of ASCII letters, digits, `_`, `.`, `:` and `-`. Punctuation at its end does not count. A word is an address if
 * it is one as a whole, or without a port at its end, or without names and colons at its beginning: `inside:10.0.0.1`,
 * `IPv6:2001:db8::1`. An IPv4 address is also found between two colons, or as the first one of a range. A port follows a colon, or, as
 * tcpdump writes it, a dot; then it has at least two digits, or is a name before or after ` > `. Colors (`ESC [31m`) are no part of a word.
 *
 * Times, dates and numbers are not addresses, and versions with letters are not. Two things look like versions and are not
 * taken: what follows `~` or the word "version", and an IPv4 address that follows a word and a slash (`Chrome/120.0.0.0`), unless
 * it has a port (`name/192.0.2.1:8020`, `IPV4/UDP/192.0.2.1/5060`) or the word ends in a digit, as names of hosts do.
 */
import { IPV4, IPV6, NO_ADDRESS, parseAddress, textEnd, textStart } from './address';
import { FOUND, LOCATED_IS_RANGE_END, ROLE_MACHINE, ROLE_NEVER, ROLE_OWN, ROLE_UNNAMED, ROLE_UNTRUSTED } from '../abi';
import { BACKSLASH, CASE_BIT, COLON, DOT, MINUS, OPENING_BRACKET, QUOTE, SPACE, ZERO } from './ascii';
import { putLocated } from './locate';
import { addCandidate } from './lookup';
import { equal, inRange, VECTOR } from './masks';
import { grammarOf, isForgeable, machine, programOf, restOf, roleOf } from './roles';
import { found, hasRoles, maxAddressLength } from './settings';

const SLASH: u32 = 47;
const SEMICOLON: u32 = 59;
const EQUALS: u32 = 61;
const GREATER: u32 = 62;
const UNDERSCORE: u32 = 95;
const LETTER_A: u32 = 97;
const LETTER_M: u32 = 109;
const LETTER_U: u8 = 117;
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
  // The first one of a range.
  if (family == NO_ADDRESS) {
    from = word;
    let dash = word;
    while (dash < to && load<u8>(dash) != <u8>MINUS) dash++;
    if (dash < to && parseWhole(dash + 1, to) == IPV4) family = parseWhole(word, dash);
  }
  // The name of a port, as tcpdump writes it.
  if (family == NO_ADDRESS && isBesideArrow(word, end, start)) {
    let dot = to;
    while (dot > word && load<u8>(dot - 1) != <u8>DOT) dot--;
    if (dot > word + SHORTEST_IPV4) family = parseWhole(word, dot - 1);
  }
  if (family == NO_ADDRESS && isHiding) family = parseParts(word, to);
  return family == IPV4 && !takesAll && !isTaken(word, from, start) ? NO_ADDRESS : family;
}

/** Whether all addresses of a text are to be found, which are hidden; whether what looks like a version is one. */
let isHiding: bool = false;
let takesAll: bool = false;

export function setHiding(hiding: bool, all: bool): void {
  isHiding = hiding;
  takesAll = all;
}

/** Returns the family of the first address in a word with minus signs or underscores between its parts. */
function parseParts(word: usize, end: usize): u32 {
  for (let from = word; from < end; ) {
    let to = from;
    while (to < end && load<u8>(to) != <u8>MINUS && load<u8>(to) != <u8>UNDERSCORE) to++;
    let family = parseWithPort(from, to);
    if (family == NO_ADDRESS) family = parseWithPort(afterNames(from, to), to);
    if (family != NO_ADDRESS) return family;
    from = to + 1;
  }
  return NO_ADDRESS;
}

/** Returns whether ` > ` is after a word, or before it. */
@inline function isBesideArrow(word: usize, end: usize, start: usize): bool {
  const isBefore = load<u8>(end) == <u8>SPACE && load<u8>(end + 1) == <u8>GREATER && load<u8>(end + 2) == <u8>SPACE;
  return isBefore || (word >= start + 3 && load<u8>(word - 1) == <u8>SPACE && load<u8>(word - 2) == <u8>GREATER);
}

/** Returns whether the first address of a text is at its beginning, which makes it the client's if it has a country; it is added. */
export function queryFirstWord(value: usize, start: usize, close: usize): bool {
  const byte: u32 = load<u8>(start);
  if (!isHex(byte) && byte != COLON) return false;
  const longest = min(close, start + maxAddressLength + PORT_DIGITS + 2);
  const end = findAddress(start, start, longest);
  if (end == 0 || textStart != start || (end == longest && longest != close)) return false;
  addCandidate(value, familyFound);
  return true;
}

/**
 * Adds the addresses of a text that have its best role as candidates for a value, in their order. Of addresses with the own label of a
 * log, the last one counts.
 *
 * @param start, close the beginning and end of the text
 * @returns whether there is an address
 */
export function queryAddresses(value: usize, start: usize, close: usize): bool {
  let end = findAddress(start, start, close);
  if (end == 0) return false;
  let first = textStart;
  const firstEnd = textEnd;
  let from = start;
  if (findAddress(start, end, close) == 0) {
    addCandidate(value, parseAddress(first, firstEnd));
    return true;
  }
  const program = programOf(start, close);
  if (first == machine) {
    first = textStart;
    from = end;
  }
  const grammar = grammarOf(program, close);
  if (isForgeable(grammar, start, first)) {
    let to = from;
    for (end = findAddress(start, from, close); end != 0; end = findAddress(start, end, close)) {
      from = textStart;
      to = textEnd;
    }
    addCandidate(value, parseAddress(from, to));
    return true;
  }
  let best: u32 = ROLE_NEVER + 1;
  let count: u32 = 0;
  let rest = close;
  for (end = findAddress(start, from, close); end != 0; end = findAddress(start, end, close)) {
    const at = textStart;
    let role = roleOf(at, start, grammar);
    if (role == ROLE_OWN) {
      if (best != ROLE_OWN) rest = restOf(grammar, start, close);
      if (at >= rest) role = ROLE_UNTRUSTED;
    }
    if (role > best) continue;
    if (role < best || role == ROLE_OWN) count = 0;
    best = role;
    if (count < <u32>FOUND) {
      store<u32>(found + (<usize>count << 3), <u32>at);
      store<u32>(found + (<usize>count << 3), <u32>textEnd, 4);
    }
    count++;
  }
  for (let i: u32 = 0; i < min(count, <u32>FOUND); i++) {
    from = load<u32>(found + (<usize>i << 3));
    end = load<u32>(found + (<usize>i << 3), 4);
    if (addCandidate(value, parseAddress(from, end))) return true;
  }
  if (count <= <u32>FOUND) return true;
  for (end = findAddress(start, end, close); end != 0; end = findAddress(start, end, close)) {
    if (roleOf(textStart, start, grammar) == best && addCandidate(value, familyFound)) break;
  }
  return true;
}

/**
 * Adds the first address of a text as a candidate for the value of its line.
 *
 * @param start the beginning of the line; @param from where the search before has ended; @param close the end of the line's text
 * @returns where the search goes on, or 0 if there was no address
 */
export function queryNextAddress(value: usize, start: usize, from: usize, close: usize): usize {
  const end = findAddress(start, from, close);
  if (end != 0) addCandidate(value, familyFound);
  return end;
}

/** Locates the addresses of a text, each with its own role. */
export function locateText(start: usize, close: usize): void {
  let grammar: usize = 0;
  if (hasRoles) grammar = grammarOf(programOf(start, close), close);
  for (let end = findAddress(start, start, close); end != 0; end = findAddress(start, end, close)) {
    const from = textStart;
    let to = textEnd;
    let role: u32 = ROLE_UNNAMED;
    if (hasRoles) role = from == machine ? ROLE_MACHINE : roleOf(from, start, grammar);
    putLocated(familyFound, role, from, to, 0);
    // What else the word has, as in 192.0.2.1-192.0.2.9, is not looked up.
    while (++to < end) {
      const family = parseWord(to, end, start);
      if (family == NO_ADDRESS) continue;
      to = textEnd;
      putLocated(family, role, textStart, to, LOCATED_IS_RANGE_END);
    }
  }
}

/** Returns where a word begins without the end of an escape sequence that sets a color (ECMA-48, 8.3.117): `[1;31m`. */
function afterColor(word: usize, end: usize, start: usize): usize {
  let at = word;
  while (at < end && isDigit(load<u8>(at))) at++;
  if (at == end || (load<u8>(at) | CASE_BIT) != LETTER_M) return word;
  let from = word;
  while (from > start && (isDigit(load<u8>(from - 1)) || load<u8>(from - 1) == <u8>SEMICOLON)) from--;
  return from > start && load<u8>(from - 1) == <u8>OPENING_BRACKET ? at + 1 : word;
}

/** The family of the address that was found last. */
export let familyFound: u32 = NO_ADDRESS;

/** Finds the first address of a text. Parameters and result are those of {@link queryNextAddress}. */
export function findAddress(start: usize, from: usize, close: usize): usize {
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
      // What follows a backslash is an escape.
      if (isHiding && word > start && load<u8>(word - 1) == <u8>BACKSLASH) word += load<u8>(word) == LETTER_U ? 5 : 1;
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
      familyFound = parseWord(afterColor(word, wordEnd, start), wordEnd, start);
      if (familyFound != NO_ADDRESS) return wordEnd;
    }
  }
  return 0;
}
