/**
 * The role of an address in a text: that of its label, which is what precedes it, or of its place. The names and texts are those of
 * data/address-names.json and of the log (data/logs.json); ../roles.ts places them.
 *
 * A name is a run of letters, digits, `_`, `-` and `.`. Before an address are a name and punctuation: `client: `, `src=`,
 * `"remoteAddress": "`, `[client `. A name is looked up without its separators as a whole, by its words, and by its last words; words
 * with spaces between them count as a whole only: `user ip`.
 */
import {
  GRAMMAR_BYTES,
  GRAMMAR_OWN,
  GRAMMAR_PROGRAMS,
  GRAMMAR_REST,
  GRAMMAR_TEXTS,
  GRAMMAR_UNTRUSTED,
  LABEL_BITS,
  LABEL_BYTES,
  NAME_BYTES,
  NAME_ROLE,
  ROLE_CLIENT,
  ROLE_MACHINE,
  ROLE_SERVER,
  ROLE_UNNAMED,
  ROLE_UNTRUSTED,
} from '../abi';
import { BACKSLASH, CASE_BIT, COLON, COMMA, DOT, EQUALS, ESCAPE, GREATER, includes, isDigit, isLetter, MINUS, OPENING_BRACE, OPENING_BRACKET, OPENING_PARENTHESIS, PERCENT, PIPE, PLUS, QUOTE, SEMICOLON, SLASH, SPACE, TAB, UNDERSCORE } from './ascii';
import { generalTexts, grammars, grammarCount, labels, roleNames, roleNamesMask } from './settings';

const CAPITAL_A: u32 = 65;
const APOSTROPHE: u32 = 39;
const ASTERISK: u32 = 42;
const HASH: u32 = 35;
const LESS: u32 = 60;
const QUESTION: u32 = 63;
const AT: u32 = 64;

/** Most bytes of a name and of the punctuation after it, and of a word before an address. */
const NAME_LENGTH: usize = 40;
const PUNCTUATION: usize = 8;
const WORD_LENGTH: usize = 64;
// A label that is kept: its length; its role and its grammar; whether a digit is before it; its text, at the end.
const LABEL_LENGTH: usize = 0;
const LABEL_ROLE: usize = 4;
const LABEL_GRAMMAR: usize = 8;
const LABEL_DIGIT: usize = 12;
const LABEL_TEXT: usize = 16;
/** Spreads the four bytes before an address over the places of labels. */
const LABEL_FACTOR: u32 = 0x9e37_79b1;
/** The bytes `->/`. */
const ARROW_SLASH: u32 = 0x2f_3e_2d_00;
/** The bytes ` <`. */
const SPACE_LESS: u32 = 0x3c20;
/** ESC as nginx, rsyslog and shells write it. */
const HEX_ESCAPE: u32 = 0x6231_785c;
const HASH_ESCAPE: u32 = 0x3333_3023;
const OCTAL_ESCAPE: u32 = 0x3333_305c;
/** FNV-1a, 32 bits. */
const HASH_START: u32 = 0x811c_9dc5;
const HASH_FACTOR: u32 = 0x0100_0193;

@inline function isCapital(byte: u32): bool {
  return byte - CAPITAL_A < 26;
}

@inline function isPunctuation(byte: u32): bool {
  return (
    byte == SPACE || byte == TAB || byte == QUOTE || byte == APOSTROPHE || byte == EQUALS || byte == COLON || byte == OPENING_BRACKET ||
    byte == OPENING_PARENTHESIS || byte == OPENING_BRACE || byte == LESS || byte == BACKSLASH
  );
}

/** Returns the bit of the role of a name, 0 if it has none. */
function bitOf(hash: u32): u32 {
  for (let slot = hash; ; slot++) {
    const name = roleNames + <usize>(slot & roleNamesMask) * NAME_BYTES;
    const found = load<u32>(name);
    if (found == 0) return 0;
    if (found == hash) return (<u32>1) << load<u32>(name, NAME_ROLE);
  }
  return 0;
}

/** Returns the role of a name of whose words and last words the bits are given. */
function roleOfBits(whole: u32, bits: u32): u32 {
  const all = whole | bits;
  if ((all & (1 << ROLE_UNTRUSTED)) != 0) return ROLE_UNTRUSTED;
  if ((whole & (1 << ROLE_CLIENT)) != 0) return ROLE_CLIENT;
  if ((all & (1 << ROLE_SERVER)) != 0) return ROLE_SERVER;
  if ((all & (1 << ROLE_CLIENT)) != 0) return ROLE_CLIENT;
  return all == 0 ? ROLE_UNNAMED : <u32>31 - <u32>clz(all);
}

/** Where the name begins that was looked up last, without the words before it. */
let nameStart: usize = 0;
/** The first byte of what was read for the role that was found last; it can be before the line. */
let readFrom: usize = 0;
/** A byte before a name, of which it counts only that it is a digit: many labels follow a number, or another address. */
let digitAt: usize = 0;

/** Returns the role of the name that ends at an address; `ROLE_UNNAMED` if it has none. */
function roleOfName(end: usize, start: usize): u32 {
  const least = end - start > NAME_LENGTH ? end - NAME_LENGTH : start;
  let tail: u32 = HASH_START;
  let word: u32 = HASH_START;
  let bits: u32 = 0;
  let whole: u32 = 0;
  let role: u32 = ROLE_UNNAMED;
  let isPhrase = false;
  nameStart = end;
  let at = end;
  while (at > least) {
    const byte: u32 = load<u8>(--at);
    const before: u32 = at > least ? load<u8>(at - 1) : 0;
    const isPart = isLetter(byte) || isDigit(byte);
    if (isPart) {
      const small = isLetter(byte) ? byte | CASE_BIT : byte;
      tail = (tail ^ small) * HASH_FACTOR;
      word = (word ^ small) * HASH_FACTOR;
      if (!isPhrase) nameStart = at;
    }
    const isSeparator = byte == UNDERSCORE || byte == MINUS || byte == DOT || byte == SPACE;
    if (!isPart && !isSeparator) break;
    const isHump = isPart && isCapital(byte) && !isCapital(before);
    const isEnd = isPart && (!(isLetter(before) || isDigit(before)) || beforeColor(at, start) != at);
    if (!isHump && !isEnd) continue;
    whole = bitOf(tail);
    if (isPhrase) {
      if (whole != 0) role = roleOfBits(whole, 0);
    } else bits |= whole | bitOf(word);
    word = HASH_START;
    const isLast = before != UNDERSCORE && before != MINUS && before != DOT && isEnd;
    if (isLast && !isPhrase) {
      role = roleOfBits(whole, bits);
      isPhrase = true;
    }
    if (isLast && (before != SPACE || at < least + 2 || !isLetter(load<u8>(at - 2)))) break;
  }
  const isAfterDigit = at > start + 1 && load<u8>(at - 1) == <u8>SPACE && isDigit(load<u8>(at - 2));
  if (isAfterDigit) digitAt = at - 2;
  readFrom = min(readFrom, at - (isAfterDigit ? 1 : 2));
  return role;
}

/** Returns whether a byte is one between the beginning and the letter of an escape sequence: `ESC [1;31m`, `ESC [?25l`. */
@inline export function isParameter(byte: u32): bool {
  return isDigit(byte) || byte == SEMICOLON || byte == QUESTION;
}

/** Returns whether the word that ends before a space is in capitals, as the methods of HTTP are. */
function isAfterMethod(space: usize, start: usize): bool {
  let at = space;
  while (at > start && isCapital(load<u8>(at - 1)) && space - at < 9) at--;
  return space - at > 2;
}

/** Returns where an escape sequence that sets a color, erases, or moves the cursor begins before an address: `ESC [31m`. */
function beforeColor(address: usize, start: usize): usize {
  if (address < start + 3) return address;
  if (!isLetter(load<u8>(address - 1))) return address;
  let at = address - 1;
  while (at > start && isParameter(load<u8>(at - 1))) at--;
  // The texts of colors are not kept.
  readFrom = at == address - 1 && load<u8>(at - 1) != <u8>OPENING_BRACKET ? min(readFrom, at - 1) : 0;
  if (at < start + 2 || load<u8>(at - 1) != <u8>OPENING_BRACKET) return address;
  if (load<u8>(at - 2) == <u8>ESCAPE) return at - 2;
  const written: u32 = at < start + 5 ? 0 : load<u32>(at - 5);
  return written == HEX_ESCAPE || written == HASH_ESCAPE || written == OCTAL_ESCAPE ? at - 5 : address;
}

/** Returns the role of the first text of a list, each after bytes with its length and its role, that ends at an address; -1 if none does. */
function roleOfTexts(texts: usize, at: usize, start: usize): i32 {
  for (let text = texts; load<u8>(text) != 0; text += 2 + <usize>load<u8>(text)) {
    const length: usize = load<u8>(text);
    let left = length;
    while (left > 0 && at - length + left > start && load<u8>(text + left, 1) == load<u8>(at - length + left - 1)) left--;
    readFrom = min(readFrom, at - length + left - usize(left > 0));
    if (left == 0) return load<u8>(text, 1);
  }
  return -1;
}

/**
 * Returns the role of an address by what precedes it. Most lines of a log have the same texts before their addresses: the roles of some
 * of them are kept.
 *
 * @param address its beginning; @param end its end; @param start the beginning of its line; @param grammar of the line, or 0
 */
export function roleOf(address: usize, end: usize, start: usize, grammar: usize): u32 {
  // A name after an at sign makes it that of a user; a port may follow one, too.
  if (load<u8>(end) == <u8>AT && isLetter(load<u8>(end + 1))) return ROLE_UNTRUSTED;
  // The agent of OSSEC, before the file that it reads: 192.0.2.1->/var/log/auth.log.
  if (load<u32>(end) << 8 == ARROW_SLASH) return ROLE_MACHINE;
  if (address == start && isSender(end)) return ROLE_MACHINE;
  if (machine != 0 && isMachine(address, end)) return ROLE_MACHINE;
  const slot = (load<u32>(address - 4) * LABEL_FACTOR) >> (32 - LABEL_BITS);
  const label = labels + <usize>slot * LABEL_BYTES;
  if (isLabel(label, address, start, grammar)) return load<u32>(label, LABEL_ROLE);
  const role = findRole(address, start, grammar);
  const length = address - readFrom;
  // What depends on the beginning of the line is not kept.
  if (readFrom <= start || length > <usize>LABEL_BYTES - LABEL_TEXT) return role;
  store<u32>(label, <u32>length, LABEL_LENGTH);
  store<u32>(label, role, LABEL_ROLE);
  store<u32>(label, <u32>grammar, LABEL_GRAMMAR);
  store<u32>(label, u32(digitAt == readFrom - 1), LABEL_DIGIT);
  memory.copy(label + LABEL_BYTES - length, readFrom, length);
  return role;
}

/** Returns whether the priority of syslog follows an address, which is that of its sender: 192.0.2.1 <134>Feb  3 … */
export function isSender(end: usize): bool {
  const at = load<u8>(end) == <u8>COLON ? end + 1 : end;
  return load<u16>(at) == SPACE_LESS && isDigit(load<u8>(at, 2));
}

/** Returns whether an address has the label that is kept, in the same grammar. */
@inline function isLabel(label: usize, address: usize, start: usize, grammar: usize): bool {
  const length: usize = load<u32>(label, LABEL_LENGTH);
  if (length == 0 || address <= start + length || <usize>load<u32>(label, LABEL_GRAMMAR) != grammar) return false;
  if (load<u32>(label, LABEL_DIGIT) != 0 && !isDigit(load<u8>(address - length - 1))) return false;
  let from = address - 16;
  let own = label + LABEL_BYTES - 16;
  for (let left = length; ; left -= 16) {
    const same = <u32>i8x16.bitmask(i8x16.eq(v128.load(from), v128.load(own)));
    if (left <= 16) return (same | (0xffff >> <u32>left)) == 0xffff;
    if (same != 0xffff) return false;
    from -= 16;
    own -= 16;
  }
  return false;
}

/** Finds the role of an address, and sets `readFrom`. Parameters are those of {@link roleOf}. */
function findRole(address: usize, start: usize, grammar: usize): u32 {
  readFrom = address - 4;
  digitAt = 0;
  const at = beforeColor(address, start);
  let role = grammar == 0 ? -1 : roleOfTexts(load<u32>(grammar, GRAMMAR_TEXTS), at, start);
  if (role < 0) role = roleOfTexts(load<u32>(generalTexts, GRAMMAR_TEXTS), at, start);
  if (role >= 0) return role;
  // The word before it, which may be the beginning of a URL, of a path in a request, or of an address with a user.
  let word = at;
  while (word > start && at - word < WORD_LENGTH) {
    const byte: u32 = load<u8>(word - 1);
    if (byte <= SPACE || byte == QUOTE || byte == APOSTROPHE || byte == PIPE) break;
    readFrom = min(readFrom, word - 1);
    if (byte == SLASH && word < at && load<u8>(word) == <u8>SLASH) return ROLE_SERVER;
    if (byte == QUESTION) return ROLE_UNTRUSTED;
    word--;
  }
  readFrom = min(readFrom, word - 1);
  let end = at;
  if (word < at) {
    const last: u32 = load<u8>(at - 1);
    if (last == AT || (last == OPENING_BRACKET && load<u8>(at - 2) == <u8>AT)) return ROLE_SERVER;
    if (load<u8>(word) == <u8>SLASH && word > start && load<u8>(word - 1) == <u8>SPACE) {
      readFrom = min(readFrom, word - 12);
      if (isAfterMethod(word - 1, start)) return ROLE_UNTRUSTED;
    }
    // The names of protocols, as Asterisk writes them.
    if (last == SLASH) end = word;
  }
  let skips = end > start && load<u8>(end - 1) == <u8>COLON;
  for (let left = PUNCTUATION; end > start && left > 0; left--) {
    const colored = beforeColor(end, start);
    if (colored == end && !isPunctuation(load<u8>(end - 1))) break;
    end = colored == end ? end - 1 : colored;
    if (load<u8>(end) == <u8>OPENING_BRACKET || load<u8>(end) == <u8>OPENING_PARENTHESIS) skips = true;
  }
  readFrom = min(readFrom, end - 1);
  let found = roleOfName(end, start);
  // A value that looks like a pair of its own, as in ruser=rhost=192.0.2.1.
  if (nameStart > start && nameStart < end && load<u8>(end) == <u8>EQUALS && load<u8>(nameStart - 1) == <u8>EQUALS) return ROLE_UNTRUSTED;
  if (skips && includes(nameStart, end, DOT) && load<u8>(end) != <u8>EQUALS && load<u8>(end) != <u8>COLON) found = ROLE_UNNAMED;
  if (found != ROLE_UNNAMED || !skips || nameStart == end) return found;
  // The name of a host or of an interface before the address itself.
  end = nameStart;
  while (end > start && (load<u8>(end - 1) == <u8>SPACE || load<u8>(end - 1) == <u8>EQUALS)) end--;
  return end == nameStart ? found : roleOfName(end, start);
}

/** Returns where one of some texts, each after a byte with its length, begins in `from … to`, or 0. */
function findText(texts: usize, from: usize, to: usize): usize {
  for (let text = texts; load<u8>(text) != 0; text += 1 + <usize>load<u8>(text)) {
    const length: usize = load<u8>(text);
    const first = i8x16.splat(load<i8>(text, 1));
    const last = i8x16.splat(load<i8>(text + length));
    for (let vector = from; vector + length <= to; vector += 32) {
      const end = vector + length - 1;
      const a = v128.and(i8x16.eq(v128.load(vector), first), i8x16.eq(v128.load(end), last));
      const b = v128.and(i8x16.eq(v128.load(vector, 16), first), i8x16.eq(v128.load(end, 16), last));
      if (!v128.any_true(v128.or(a, b))) continue;
      let marks = <u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16);
      for (; marks != 0; marks &= marks - 1) {
        const at = vector + <usize>ctz(marks);
        if (at + length <= to && memory.compare(at, text + 1, length) == 0) return at;
      }
    }
  }
  return 0;
}

/** Returns whether one of some texts, each after a byte with its length, begins at an address. */
function startsWith(at: usize, close: usize, texts: usize): bool {
  for (let text = texts; load<u8>(text) != 0; text += 1 + <usize>load<u8>(text)) {
    const length: usize = load<u8>(text);
    if (load<u8>(at) == load<u8>(text, 1) && at + length <= close && memory.compare(at, text + 1, length) == 0) return true;
  }
  return false;
}

/** Returns the grammar of a line: the only one, or that of the program in its header of syslog, if there is one; otherwise 0. */
export function grammarOf(program: usize, close: usize): usize {
  // One that all lines have is the only one.
  const count = program == 0 ? min<u32>(grammarCount, 1) : grammarCount;
  for (let i: u32 = 0; i < count; i++) {
    const grammar = grammars + <usize>i * GRAMMAR_BYTES;
    const programs: usize = load<u32>(grammar, GRAMMAR_PROGRAMS);
    if (load<u8>(programs) == 0 || (program != 0 && startsWith(program, close, programs))) return grammar;
  }
  return 0;
}

/** Returns whether a client may have written the addresses of a line before its last one, of which the first begins at an address. */
export function isForgeable(grammar: usize, start: usize, at: usize): bool {
  return grammar != 0 && findText(load<u32>(grammar, GRAMMAR_UNTRUSTED), start, at) != 0;
}

/** Returns where a text is in `from … to` that a list of the grammar or of all lines has, or 0. */
function findEither(grammar: usize, list: usize, from: usize, to: usize): usize {
  const own: usize = grammar == 0 ? 0 : findText(load<u32>(grammar + list), from, to);
  return own != 0 ? own : findText(load<u32>(generalTexts + list), from, to);
}

/** Returns whether a text is in `from … to` from which on a client has written the line. */
export function hasRest(grammar: usize, from: usize, to: usize): bool {
  return findEither(grammar, GRAMMAR_REST, from, to) != 0;
}

/** Returns whether a log's own label may be in `from … close`, before a text from which on a client has written the line. */
export function hasOwnLabel(grammar: usize, from: usize, close: usize): bool {
  const rest = findEither(grammar, GRAMMAR_REST, from, close);
  return findEither(grammar, GRAMMAR_OWN, from, rest == 0 ? close : rest) != 0;
}

@inline function isTime(at: usize): bool {
  return isDigit(load<u8>(at)) && isDigit(load<u8>(at, 1)) && load<u8>(at, 2) == <u8>COLON && isDigit(load<u8>(at, 3)) &&
    load<u8>(at, 5) == <u8>COLON && isDigit(load<u8>(at, 6)) && isDigit(load<u8>(at, 7));
}

/** Returns the end of a fraction of a second, if there is one. */
function afterFraction(at: usize): usize {
  if (load<u8>(at) != <u8>DOT && load<u8>(at) != <u8>COMMA) return at;
  do at++;
  while (isDigit(load<u8>(at)));
  return at;
}

/**
 * Returns the end of a time as RFC 3164 or RFC 3339 has it, or 0. Reads at most 40 bytes, and stops at what is not a time.
 *
 * @param isSure whether spaces may be before the time of day and the zone
 */
function afterTime(at: usize, isSure: bool): usize {
  if (isLetter(load<u8>(at)) && isLetter(load<u8>(at, 2)) && load<u8>(at, 3) == <u8>SPACE && load<u8>(at, 6) == <u8>SPACE) {
    at += 7;
    if (isDigit(load<u8>(at, 3)) && load<u8>(at, 4) == <u8>SPACE) at += 5;
    return isTime(at) ? afterFraction(at + 8) : 0;
  }
  if (load<u8>(at, 4) != <u8>MINUS || load<u8>(at, 7) != <u8>MINUS || !isDigit(load<u8>(at)) || !isTime(at + 11)) return 0;
  if (load<u8>(at, 10) != 84 && !(isSure && load<u8>(at, 10) == <u8>SPACE)) return 0;
  at = afterFraction(at + 19);
  if (isSure && load<u8>(at) == <u8>SPACE) at++;
  if (load<u8>(at) == 90) return at + 1;
  if (load<u8>(at) != <u8>PLUS && load<u8>(at) != <u8>MINUS) return 0;
  do at++;
  while (isDigit(load<u8>(at)) || load<u8>(at) == <u8>COLON);
  return at;
}

/** Where the machine begins and ends in the header of the line that was looked at last, if it has one. */
export let machine: usize = 0;
let machineEnd: usize = 0;

/** Returns whether an address is in the name of the machine, or is the same again. */
function isMachine(address: usize, end: usize): bool {
  if (address >= machine && address < machineEnd) return true;
  const same = machine + (end - address);
  return (same == machineEnd || (same < machineEnd && load<u8>(same) == <u8>COLON)) && memory.compare(address, machine, end - address) == 0;
}

/**
 * Returns where the program is in the header of syslog (RFC 3164, RFC 5424, or with a time as rsyslog and syslog-ng write it), or 0 if
 * the text has no such header. The program comes after the machine; other logs have requests and numbers there.
 */
export function programOf(start: usize, close: usize): usize {
  machine = 0;
  let at = start;
  const hasPriority = load<u8>(at) == <u8>LESS;
  if (hasPriority) {
    do at++;
    while (isDigit(load<u8>(at)));
    if (load<u8>(at++) != <u8>GREATER) return 0;
    if (load<u8>(at) == <u8>SPACE) at++;
    if (isDigit(load<u8>(at)) && load<u8>(at, 1) == <u8>SPACE) at += 2;
    // Cisco writes a number and may write the machine before the time: <189>42: 192.0.2.1: Feb  3 …
    let next = at;
    while (isDigit(load<u8>(next))) next++;
    if (next > at && load<u8>(next) == <u8>COLON && load<u8>(next, 1) == <u8>SPACE) {
      at = next + 2;
      next = at;
      while (next < close && load<u8>(next) != <u8>SPACE) next++;
      if (load<u8>(next - 1) == <u8>COLON) {
        machine = at;
        machineEnd = next;
        return next;
      }
    }
  }
  const isIso = isDigit(load<u8>(at));
  at = afterTime(at, hasPriority);
  if (at == 0 || load<u8>(at) != <u8>SPACE) return 0;
  if (hasPriority) while (at < close && load<u8>(at, 1) == <u8>SPACE) at++;
  const host = at + 1;
  do at++;
  while (at < close && load<u8>(at) != <u8>SPACE);
  machineEnd = at;
  if (++at >= close) return 0;
  if (!hasPriority) {
    const byte: u32 = load<u8>(at);
    let end = at;
    while (end < close && (isCapital(load<u8>(end)) || isDigit(load<u8>(end)))) end++;
    if (isCapital(byte) && end - at > 2 && load<u8>(end) == <u8>SPACE) return 0;
    const isNumbered = isDigit(byte) && (!isIso || load<u8>(end) == <u8>COMMA || load<u8>(end) == <u8>COLON);
    if (!isLetter(byte) && !isNumbered && byte != PERCENT && byte != OPENING_PARENTHESIS && byte != ASTERISK && byte != COLON && byte != HASH) return 0;
  }
  machine = host;
  return at;
}
