/**
 * Finds an address in lines of any text: the first one that has a country, or else the first one.
 *
 * A word is a run of letters, digits, `_`, `.`, `:`, `-` and bytes beyond ASCII. A word is an address if, without punctuation
 * after it, it is one as a whole, or an IPv4 address and a port. So versions with letters, times, dates and numbers are not
 * addresses. Neither is a word after a slash that follows another word, such as the version in `Chrome/120.0.0.0`.
 */
import { OUTCOME_COUNTRY } from '../abi';
import { IPV6, parseAddress } from './address';
import { CARRIAGE_RETURN, COLON, DOT, isWhiteSpace, MINUS, ZERO } from './ascii';
import { countResult, queryLine } from './batch';
import { longestInsert, maxAddressLength, outcomes, passesOthers, recordCount, selected } from './config';
import { addQuery, answerQueries, startQueries } from './lookup';
import { BLOCK, equal, inRange } from './masks';
import { putFragment } from './rows';
import { countLine, dropLine, hasRoom, putInputTo, values } from './slot';
import { newlineFrom } from './scan';

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

/** Returns the record of the line `start … close`, or `recordCount` + 1 if it has no address. */
function recordOfLine(start: usize, close: usize): u32 {
  let record = recordCount + 1;
  let wordEnd = start;
  for (let block = start; block < close; block += BLOCK) {
    const a = v128.load(block);
    const b = v128.load(block, 16);
    const c = v128.load(block, 32);
    const d = v128.load(block, 48);
    const colons = equal(a, b, c, d, COLON);
    const bit = i8x16.splat(32);
    const letters = inRange(v128.or(a, bit), v128.or(b, bit), v128.or(c, bit), v128.or(d, bit), LETTER_A, 6);
    const parts = colons | letters | inRange(a, b, c, d, ZERO, 10);
    // Every address has a dot or colon between two digits or colons. Those at the edges of the block are always looked at.
    let marks = (colons | equal(a, b, c, d, DOT)) & ((parts << 1) | 1) & ((parts >> 1) | ((<u64>1) << 63));
    if (close - block < BLOCK) marks &= ((<u64>1) << <u64>(close - block)) - 1;
    for (; marks != 0; marks &= marks - 1) {
      const at = block + <usize>ctz(marks);
      if (at < wordEnd) continue;
      let from = at;
      while (from > start && isWordByte(load<u8>(from - 1))) from--;
      wordEnd = at + 1;
      while (wordEnd < close && isWordByte(load<u8>(wordEnd))) wordEnd++;
      if (from > start + 1 && load<u8>(from - 1) == <u8>SLASH && isWordByte(load<u8>(from - 2))) continue;
      const family = parseWord(from, wordEnd);
      if (family == 0) continue;
      startQueries();
      addQuery(values, family);
      answerQueries();
      const found = load<u32>(values);
      if (load<u8>(outcomes + found) == <u8>OUTCOME_COUNTRY) return found;
      if (record > recordCount) record = found;
    }
  }
  return record;
}

/**
 * Processes lines, the first of which begins at `from`.
 *
 * @param end after the last newline; @param inputEnd the end of the input: one byte less if the last newline is not part of it
 * @returns `end`, or the first byte of the first line that was not processed because the output is full
 */
export function processText(from: usize, end: usize, inputEnd: usize): usize {
  let start = from;
  while (start < end) {
    const newline = newlineFrom(start);
    const after = min(newline + 1, inputEnd);
    if (!hasRoom(after, longestInsert)) return start;
    countLine();
    const isCrLf = newline > start && newline < inputEnd && load<u8>(newline - 1) == <u8>CARRIAGE_RETURN;
    const close = newline - usize(isCrLf);
    let text = start;
    while (text < close && isWhiteSpace(load<u8>(text))) text++;
    if (text == close) {
      if (selected != 0 && !passesOthers) dropLine(start, after);
    } else {
      const record = recordOfLine(start, close);
      if (selected != 0) {
        store<u32>(values, record);
        queryLine(values, start, after);
      } else {
        putInputTo(close);
        countResult(record);
        putFragment(0, record);
      }
    }
    start = newline + 1;
  }
  return end;
}
