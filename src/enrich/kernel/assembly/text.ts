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
import { IPV4, IPV6, NO_ADDRESS, parseAddress, parseSpan, SPAN_END, storeSpan, textEnd, textStart } from './address';
import { FOUND, ROLE_CLIENT, ROLE_NEVER, ROLE_OWN, ROLE_UNTRUSTED, SPAN_BYTES } from '../abi';
import { BACKSLASH, CASE_BIT, COLON, DOT, EQUALS, ESCAPE, GREATER, isDigit, LETTER_A, LETTER_U, MINUS, OPENING_BRACKET, OPENING_PARENTHESIS, QUOTE, SLASH, SPACE, UNDERSCORE, ZERO } from './ascii';
import { addCandidate } from './lookup';
import { bits, equal, inRange, isWithin, VECTOR } from './masks';
import { grammarOf, hasOwnLabel, hasRest, isForgeable, isParameter, isSender, machine, programOf, roleOf } from './roles';
import { found, maxAddressLength } from './settings';

const LETTER_M: u32 = 109;
const CAPITAL_K: u32 = 75;
const TILDE: u32 = 126;

/** Longest port number in digits; shortest one after a dot, where one digit could be the end of a version. */
const PORT_DIGITS: usize = 5;
const DOTTED_PORT_DIGITS: usize = 2;
/** Bytes from which on a word is searched in parts if addresses are hidden. */
const LONGEST_WORD: usize = 256;
/** Shortest IPv4 address in bytes. */
const SHORTEST_IPV4: usize = 7;
/** Dots of an IPv4 address, also at the end of an IPv6 address; colons of an IPv6 address that has neither dots nor two in a row. */
const IPV4_DOTS: u32 = 3;
const IPV6_COLONS: u32 = 7;
/** Most colons of a word with nothing but an address: one before it and one before a port. What has more are hardware addresses. */
const MOST_COLONS: u32 = 9;
/** Bytes before a mark that are looked at with it for the beginning of its word. */
const BEFORE_MARK: usize = 24;
/** The word "version" in small letters, and the bits that are compared: the last of 8 bytes is any. */
const VERSION: u64 = 0x006e_6f69_7372_6576;
const VERSION_MASK: u64 = 0x00ff_ffff_ffff_ffff;
const CASE_BITS: u64 = 0x2020_2020_2020_2020;
/** Most separators between the word "version" and the version. */
const VERSION_SEPARATORS: usize = 3;

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

/** Returns whether a port is at an address: a colon or parenthesis and a digit, or a slash and a number that ends the text in slashes. */
function hasPort(at: usize): bool {
  if (load<u8>(at) == <u8>COLON || load<u8>(at) == <u8>OPENING_PARENTHESIS) return isDigit(load<u8>(at + 1));
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
  while (word < to && load<u8>(word) == <u8>DOT) word++;
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
/** Then the end of the word that was looked at last, if it was long: several addresses can be in it. */
let knownEnd: usize = 0;

/** Must be called before each text whose addresses are all to be found, and after it. */
export function setHiding(hiding: bool, all: bool): void {
  isHiding = hiding;
  takesAll = all;
  knownEnd = 0;
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

/** Returns whether the address that was found last, whose word has an end, is at the beginning of a text. */
export function isAtBeginning(start: usize, end: usize, close: usize): bool {
  const longest = start + maxAddressLength + PORT_DIGITS + 2;
  return textStart == start && (end < longest || longest >= close) && !isSender(textEnd);
}

/**
 * Returns whether the address that was found last, which is the first one of a text, is the client's, so that others need not be known
 * if it has a country: only a log's own label could be better. A short rest of the text is read faster than that is known.
 */
export function isClient(start: usize, close: usize): bool {
  if (textEnd + VECTOR + VECTOR / 2 > close) return false;
  const grammar = grammarOf(programOf(start, close), close);
  if (textStart == machine) return false;
  const role = roleOf(textStart, textEnd, start, grammar);
  if (role > <u32>ROLE_CLIENT || (role == ROLE_OWN && hasRest(grammar, start, textStart))) return false;
  return !isForgeable(grammar, start, textStart) && !hasOwnLabel(grammar, textEnd, close);
}

/**
 * Adds the addresses of a text that have its best role as candidates for a value, in their order. Of addresses with the own label of a
 * log, the last one counts.
 *
 * @param start, close the beginning and end of the text
 * @returns whether there is an address
 */
export function queryAddresses(value: usize, start: usize, close: usize): bool {
  const end = findAddress(start, start, close);
  if (end != 0) queryFrom(value, start, end, close);
  return end != 0;
}

/** Adds the candidates of a text, the first address of which was found last; its word has an end. */
export function queryFrom(value: usize, start: usize, end: usize, close: usize): void {
  storeSpan(found, textStart, textEnd, familyFound);
  end = findAddress(start, end, close);
  if (end == 0) {
    addCandidate(value, parseSpan(found));
    return;
  }
  const program = programOf(start, close);
  let at: usize = load<u32>(found);
  if (at == machine) at = textStart;
  const grammar = grammarOf(program, close);
  if (isForgeable(grammar, start, at)) {
    for (; end != 0; end = findAddress(start, end, close)) storeSpan(found, textStart, textEnd, familyFound);
    addCandidate(value, parseSpan(found));
    return;
  }
  let best: u32 = ROLE_NEVER + 1;
  let count: u32 = 0;
  // A client writes what it likes to the end of the line.
  let searchedTo = start;
  let isRest = false;
  while (true) {
    const isFirst = at != textStart;
    let role = roleOf(at, isFirst ? <usize>load<u32>(found, SPAN_END) : textEnd, start, grammar);
    if (role == ROLE_OWN) {
      isRest = isRest || hasRest(grammar, searchedTo, at);
      searchedTo = at;
      if (isRest) role = ROLE_UNTRUSTED;
    }
    if (role <= best) {
      if (role < best || role == ROLE_OWN) count = 0;
      best = role;
      // The first one is in its place.
      if (count < <u32>FOUND && !isFirst) storeSpan(found + <usize>count * SPAN_BYTES, at, textEnd, familyFound);
      count++;
    }
    if (!isFirst) end = findAddress(start, end, close);
    if (end == 0) break;
    at = textStart;
  }
  for (let i: u32 = 0; i < min(count, <u32>FOUND); i++) {
    if (addCandidate(value, parseSpan(found + <usize>i * SPAN_BYTES))) return;
  }
  if (count <= <u32>FOUND) return;
  for (end = findAddress(start, textEnd, close); end != 0; end = findAddress(start, end, close)) {
    if (roleOf(textStart, textEnd, start, grammar) == best && addCandidate(value, familyFound)) break;
  }
}

/** Returns the best role of the addresses of a text, or one below all if it has none. */
export function bestRole(start: usize, close: usize): u32 {
  let best: u32 = ROLE_NEVER + 1;
  const grammar = grammarOf(programOf(start, close), close);
  for (let end = findAddress(start, start, close); end != 0; end = findAddress(start, end, close)) {
    best = min(best, roleOf(textStart, textEnd, start, grammar));
  }
  return best;
}

/** Returns where a word begins without the end of an escape sequence (ECMA-48, 5.4): `ESC [1G`, or of a color without its ESC: `[1;31m`. */
function afterColor(word: usize, end: usize, start: usize): usize {
  let at = word;
  while (at < end && isDigit(load<u8>(at))) at++;
  const letter: u32 = load<u8>(at);
  if (at == end || (letter | CASE_BIT) - LETTER_A >= 26) return word;
  let from = word;
  while (from > start && isParameter(load<u8>(from - 1))) from--;
  if (from == start || load<u8>(from - 1) != <u8>OPENING_BRACKET) return word;
  const isWhole = from > start + 1 && load<u8>(from - 2) == <u8>ESCAPE;
  return isWhole || letter == LETTER_M || letter == CAPITAL_K ? at + 1 : word;
}

/** The family of the address that was found last. */
export let familyFound: u32 = NO_ADDRESS;

/** Returns all ones for the bytes of words. */
@inline function isWord(bytes: v128): v128 {
  const letters = isWithin(v128.or(bytes, i8x16.splat(<i8>CASE_BIT)), LETTER_A, 26);
  // Minus signs and dots, digits and colons, underscores.
  const others = v128.or(isWithin(bytes, MINUS, 2), isWithin(bytes, ZERO, 11));
  return v128.or(v128.or(letters, others), i8x16.eq(bytes, i8x16.splat(<i8>UNDERSCORE)));
}

/** Returns whether a word has as many dots or colons as an address. */
function hasAddressMarks(word: usize, end: usize): bool {
  let dots: u32 = 0;
  let colons: u32 = 0;
  let previous: u32 = 0;
  for (let at = word; at < end; at++) {
    const byte: u32 = load<u8>(at);
    if (byte == COLON && previous == COLON) return true;
    dots += u32(byte == DOT);
    colons += u32(byte == COLON);
    if (dots == IPV4_DOTS || colons == IPV6_COLONS) return true;
    previous = byte;
  }
  return false;
}

/** Returns whether a word ends at a byte: one that belongs to no word, or if addresses are hidden, one between parts of a long word. */
@inline function isWordEnd(byte: u32, distance: usize): bool {
  if (!isWordByte(byte)) return true;
  return isHiding && distance > LONGEST_WORD && (byte == MINUS || byte == UNDERSCORE);
}

/** Returns the places 2 to 4 after those of a mask; `last` is the same mask of the vector before. */
@inline function after2To4(mask: u64, last: u64): u64 {
  return (mask << 2) | (mask << 3) | (mask << 4) | (last >> 62) | (last >> 61) | (last >> 60);
}

/** Returns how many digits, dots and slashes are before an address, at most 16. */
@inline function numbersBefore(at: usize): usize {
  const others = ~<u32>i8x16.bitmask(isWithin(v128.load(at - 16), DOT, 12));
  return <usize>clz(others << 16 | 0x8000);
}

/** Parses a word of which it is known that numbers and dots are before a dot. Most have nothing else, or a port. */
@inline function parseNumbers(dot: usize, word: usize, end: usize, start: usize): u32 {
  const digits = <u32>i8x16.bitmask(isWithin(v128.load(dot + 1), ZERO, 10));
  const count = ctz(~digits);
  const to = dot + 1 + <usize>count;
  const port = end - to - 1;
  if (end == to || (load<u8>(to) == <u8>COLON && port <= PORT_DIGITS && <usize>ctz(~(digits >> (count + 1))) == port)) {
    if (parseAddress(word, to) == IPV4) return takesAll || isTaken(word, word, start) ? IPV4 : NO_ADDRESS;
  }
  return parseWord(word, end, start);
}

// Where the search goes on after the address that was found last: the end of its word, the next vector, the marks of this one that are
// left, and what the marks of the next one depend on.
let resumeAt: usize = 0;
let resumeVector: usize = 0;
let resumeMarks: u64 = 0;
let resumeDots: u64 = 0;
let resumeSeconds: u64 = 0;
let resumeColons: u64 = 0;

/**
 * Finds the next address of a text.
 *
 * @param start the beginning of the text; @param from where the search before has ended; @param close the end of the text
 * @returns the end of its word, where the search goes on; 0 if there was no address
 *
 * Marks are the third dot of an IPv4 address, with one to three bytes between dots, the second of two colons in a row, and colons near
 * others if there are seven in two vectors. Other words are not looked at.
 */
export function findAddress(start: usize, from: usize, close: usize): usize {
  let vector = from;
  let marks: u64 = 0;
  let dots: u64 = 0;
  let seconds: u64 = 0;
  let colons: u64 = 0;
  let wordEnd = from;
  if (from == resumeAt && from != start) {
    vector = resumeVector;
    marks = resumeMarks;
    dots = resumeDots;
    seconds = resumeSeconds;
    colons = resumeColons;
  }
  while (true) {
    while (marks == 0) {
      if (vector >= close) return 0;
      const a = v128.load(vector);
      const b = v128.load(vector, 16);
      const c = v128.load(vector, 32);
      const d = v128.load(vector, 48);
      const lastDots = dots;
      const lastSeconds = seconds;
      const lastColons = colons;
      dots = equal(a, b, c, d, DOT);
      colons = equal(a, b, c, d, COLON);
      seconds = dots & after2To4(dots, lastDots);
      marks = (seconds & after2To4(seconds, lastSeconds)) | (colons & ((colons << 1) | (lastColons >> 63)));
      if (<u32>(popcnt(colons) + popcnt(lastColons)) >= IPV6_COLONS) {
        marks |= colons & (after2To4(colons, lastColons) | (colons << 5) | (lastColons >> 59));
      }
      if (close - vector < VECTOR) marks &= ((<u64>1) << <u64>(close - vector)) - 1;
      vector += VECTOR;
    }
    const at = vector - VECTOR + <usize>ctz(marks);
    marks &= marks - 1;
    if (at < wordEnd) continue;
    const isDot = load<u8>(at) == <u8>DOT;
    const numbers = numbersBefore(at);
    if (isDot && (numbers < 5 || !isDigit(load<u8>(at + 1)))) continue;
    // Most words are in one vector.
    const first = at - BEFORE_MARK;
    const a = v128.load(first);
    const b = v128.load(first, 16);
    const c = v128.load(first, 32);
    const d = v128.load(first, 48);
    let others = ~bits(isWord(a), isWord(b), isWord(c), isWord(d));
    if (start > first) others |= ((<u64>1) << <u64>(start - first)) - 1;
    if (close - first < VECTOR) others |= <u64>-1 << <u64>(close - first);
    const before = others & (((<u64>1) << BEFORE_MARK) - 1);
    const after = others & (<u64>-1 << BEFORE_MARK);
    let word = first + 64 - <usize>clz(before);
    wordEnd = first + <usize>ctz(after);
    if (before != 0 && after != 0) {
      if (!isDot) {
        const inside = ((after & (0 - after)) - 1) & ~(<u64>-1 >> clz(before));
        const own = equal(a, b, c, d, COLON) & inside;
        const count = <u32>popcnt(own);
        const bit = i8x16.splat(<i8>CASE_BIT);
        const letters = inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), LETTER_A, 6);
        const isNumbers = count > MOST_COLONS && (inside & ~(letters | inRange(a, b, c, d, ZERO, 11))) == 0;
        const isLong = (count >= IPV6_COLONS && !isNumbers) || (own & (own >> 1)) != 0;
        if (!isLong && <u32>popcnt(equal(a, b, c, d, DOT) & inside) < IPV4_DOTS) continue;
      }
    } else {
      while (before == 0 && word > start && !isWordEnd(load<u8>(word - 1), at - word)) word--;
      // A name that ends in minus signs is no part of an address that is hidden.
      while (isHiding && (load<u8>(word) == <u8>MINUS || load<u8>(word) == <u8>UNDERSCORE)) word++;
      if (isHiding && at < knownEnd) wordEnd = knownEnd;
      while (after == 0 && wordEnd < close && !isWordEnd(load<u8>(wordEnd), wordEnd - at)) wordEnd++;
      knownEnd = wordEnd;
      if (!isDot && !hasAddressMarks(word, wordEnd)) continue;
    }
    // What follows a backslash is an escape.
    if (isHiding && word > start && load<u8>(word - 1) == <u8>BACKSLASH) word += load<u8>(word) == <u8>LETTER_U ? 5 : 1;
    familyFound = isDot && word >= at - numbers ? parseNumbers(at, word, wordEnd, start) : parseWord(afterColor(word, wordEnd, start), wordEnd, start);
    if (familyFound == NO_ADDRESS) continue;
    resumeAt = wordEnd;
    resumeVector = vector;
    resumeMarks = marks;
    resumeDots = dots;
    resumeSeconds = seconds;
    resumeColons = colons;
    return wordEnd;
  }
  return 0;
}
