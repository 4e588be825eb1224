/**
 * Hides addresses: what is copied of the input has other text in their place. The addresses of a line are found as spans, in their
 * order: those of its fields or, if all are hidden, of all of it. What is no record, such as an invalid line, is text, of which each
 * address is hidden. So is everything that was not searched before it is copied.
 *
 * The spans of the lines of a batch are found when their values are read, so that one call encrypts all of them.
 */
import {
  FORMAT_COMBINED,
  FORMAT_JSON,
  FORMAT_PAIRS,
  FORMAT_TABLE,
  FORMAT_TEXT,
  HIDE_CIPHER,
  HIDE_DROP,
  HIDE_EXTRACT,
  HIDE_INLINE,
  HIDE_TRUNCATE,
  LINE_BYTES,
  QUOTES_NONE,
  SPAN_BYTES,
} from '../abi';
import { high, IPV4, lastPart, NO_ADDRESS, parseAddress, SPAN_END, SPAN_FAMILY, SPAN_HIGH, SPAN_LOW, SPAN_START, SPAN_TEXT, storeSpan, textEnd, textStart } from './address';
import { BACKSLASH, CASE_BIT, CLOSING_BRACKET, COLON, DOT, hexNumber, includes, LETTER_A, LETTER_U, MINUS, NEWLINE, OPENING_BRACKET, QUOTE, skipBlanks, SLASH, SPACE, TAB, UNDERSCORE, ZERO } from './ascii';
import { countResult } from './batch';
import { maskOf, putIPv4, putIPv6, putNetwork, reverseHalves, vectorOf } from './blocks';
import { hasStepsInto, hideElements } from './elements';
import { exactFamily } from './lenient';
import { queryValue, resolveQueries, startQueries } from './lookup';
import { memberEnd, putInsert } from './members';
import { nextValue, valueEnd } from './pairs';
import {
  cipherBytes,
  cut4,
  cut6,
  delimiter,
  emptyText,
  extractsLines,
  fieldCount,
  foundText,
  format,
  hides,
  hidesAll,
  hasSteps,
  inlineValues,
  inserts,
  lines,
  maxAddressLength,
  maxLenientBytes,
  quotes,
  scratch,
  searchesStrings,
  spans,
  spansLimit,
  timelines,
  valueCount,
  zeroText,
} from './settings';
import { copied, countHidden, countMissingField, countSearched, outputEnd, put, putByte, putInputAndText, putInputTo, skipInputTo, setOutputEnd } from './slot';
import { closingQuote, quoteOrBackslash, unescape } from './strings';
import { familyFound, findAddress, setHiding } from './text';
import { FORGOTTEN, LINE_CLOSE, LINE_END, LINE_REPLACED_COUNT, LINE_START } from './values';

/** The first 32 bits of the addresses of Teredo (RFC 4380), and the first 16 of 6to4 (RFC 3056); those of NAT64 (RFC 6052). */
const TEREDO: u64 = 0x2001_0000;
const SIX_TO_4: u64 = 0x2002;
const NAT64: u64 = 0x0064_ff9b_0000_0000;
const MAPPED: u64 = 0xffff;
/** The prefix length that leaves three of the numbers of an IPv4 address. */
const OCTETS_WIDTH: u32 = 24;

/** The next span to put out, and the end of the spans. */
let next: usize = 0;
export let spansEnd: usize = 0;
/** Input before this address was searched. */
let searchedTo: usize = 0;
/** Where the input begins that is not copied as it is: at the next span, or where it was not searched. */
export let gapAt: usize = usize.MAX_VALUE;

/** Whether the value of a field can be an address that was parsed already; whether a line has no other addresses to hide. */
let mayBeExact: bool = false;
let hasFieldsOnly: bool = false;
/** Whether three of the numbers of an IPv4 address stay. */
let keepsOctets: bool = false;

/** Spans for which there is room after those of the lines of a batch: one for each field of a line, or those of text. */
const MORE_SPANS: usize = 64;

/** Starts at an address, of which nothing is searched yet. */
export function startHiding(from: usize): void {
  next = spans;
  spansEnd = spans;
  searchedTo = from;
  mayBeExact = !searchesStrings && !hasSteps;
  hasFieldsOnly = format == FORMAT_TEXT || (!hidesAll && fieldCount + u32(timelines != 0) == valueCount);
  keepsOctets = hides == HIDE_TRUNCATE && cut4 == OCTETS_WIDTH;
  setGap();
}

/** Sets `gapAt`. What is extracted leaves a gap wherever it is. */
@inline function setGap(): void {
  gapAt = hides == HIDE_EXTRACT ? 0 : next < spansEnd ? <usize>load<u32>(next) : searchedTo;
}

@inline function isFull(): bool {
  return spansEnd >= spansLimit;
}

/** Adds a span with the address that was parsed last. */
function addSpan(start: usize, end: usize, family: u32): void {
  if (!isFull()) pushSpan(start, end, family, 0, foundText);
}

/** Adds a span where there is room. If it is dropped, a text takes its place, and that of the quotes around it. */
@inline function pushSpan(start: usize, end: usize, family: u32, quotes: usize, text: usize): void {
  const span = spansEnd;
  spansEnd = span + SPAN_BYTES;
  // Of most addresses that are truncated, all but the last number stays. One that is written with escapes was parsed elsewhere.
  if (keepsOctets && lastPart != 0 && start == textStart) setSpan(span, lastPart, end, zeroText);
  else if (isDropped(family, high)) setSpan(span, start - quotes, end + quotes, text);
  else {
    storeSpan(span, start, end, family);
    store<u32>(span, 0, SPAN_TEXT);
  }
}

@inline function setSpan(span: usize, start: usize, end: usize, text: usize): void {
  store<u32>(span, <u32>start, SPAN_START);
  store<u32>(span, <u32>end, SPAN_END);
  store<u32>(span, <u32>text, SPAN_TEXT);
}

/** Returns whether an address is dropped; truncation does so if the first half has an IPv4 address, as that of Teredo. */
@inline function isDropped(family: u32, high: u64): bool {
  return hides == HIDE_DROP || (hides == HIDE_TRUNCATE && family != IPV4 && high >> 32 == TEREDO);
}

/**
 * Adds the addresses of a text. Between two of them may be a byte of a word: `192.0.2.1-192.0.2.9`.
 *
 * @param takesAll whether what looks like a version counts
 */
function hideText(from: usize, to: usize, takesAll: bool): void {
  setHiding(true, takesAll);
  let start = from;
  let at = from;
  while (at < to && !isFull()) {
    const end = findAddress(start, at, to);
    if (end == 0) break;
    addSpan(textStart, textEnd, familyFound);
    at = end;
    if (textEnd < end) {
      at = textEnd;
      while (at < end && isJoint(load<u8>(at))) at++;
      start = at;
    }
  }
  setHiding(false, false);
}

@inline function isJoint(byte: u32): bool {
  return byte == MINUS || byte == UNDERSCORE || byte == DOT || byte == COLON;
}

/**
 * Adds the addresses of a value.
 *
 * @param from, to its text; @param first, end what is replaced if the value is dropped
 * @param isField whether all of it is dropped if it has an address: it is the value of a field that is no text
 */
function hideValue(from: usize, to: usize, first: usize, end: usize, isField: bool): void {
  const before = spansEnd;
  const family = to - from <= maxAddressLength ? parseAddress(from, to) : NO_ADDRESS;
  if (family != NO_ADDRESS) addSpan(from, to, family);
  else hideText(from, to, isField);
  if (spansEnd == before || !isSpanDropped(before)) return;
  if (family == NO_ADDRESS && !(isField && hides == HIDE_DROP)) return;
  spansEnd = before + SPAN_BYTES;
  setSpan(before, first, end, emptyText);
}

@inline function isSpanDropped(span: usize): bool {
  return hides <= <u32>HIDE_TRUNCATE && load<u32>(span, SPAN_TEXT) == <u32>foundText;
}

/** Returns whether a string has an escape of a byte that addresses have: `\u0031`. */
function hasEscapedAddress(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) {
    if (load<u8>(at) != <u8>BACKSLASH) continue;
    const isUnicode = load<u8>(++at) == <u8>LETTER_U;
    if (!isUnicode || load<u16>(at + 1) != 0x3030) continue;
    const byte = hexNumber(load<u32>(at + 1));
    if (byte - ZERO < 11 || byte == DOT || (byte | CASE_BIT) - LETTER_A < 6) return true;
  }
  return false;
}

/**
 * Adds the addresses of a string. If an address is written with escapes, the whole string is dropped, unless it is that address.
 *
 * @param isField whether it is the value of a field that is no text
 */
function hideString(quote: usize, isField: bool): void {
  const from = quote + 1;
  const to = closingQuote(from);
  if (quoteOrBackslash(from) != to && hasEscapedAddress(from, to)) {
    const before = spansEnd;
    const length = unescape(from, to, scratch, maxLenientBytes);
    const isShort = length >= 0 && <usize>length <= maxAddressLength;
    const family = isShort ? parseAddress(scratch, scratch + length) : NO_ADDRESS;
    if (family != NO_ADDRESS) {
      addSpan(from, to, family);
      if (isSpanDropped(before)) setSpan(before, quote, to + 1, emptyText);
      return;
    }
    if (length >= 0) hideText(scratch, scratch + length, true);
    if (length >= 0 && spansEnd == before) return;
    spansEnd = before;
    addSpan(quote, to + 1, NO_ADDRESS);
    setSpan(before, quote, to + 1, emptyText);
    return;
  }
  hideValue(from, to, quote, to + 1, isField);
}

/** Adds the addresses of all strings in `from … to` but keys. */
function hideStrings(from: usize, to: usize, isField: bool): void {
  for (let at = from; at < to; at++) {
    if (load<u8>(at) != <u8>QUOTE) continue;
    const close = closingQuote(at + 1);
    if (load<u8>(skipBlanks(close + 1)) != <u8>COLON) hideString(at, isField);
    at = close;
  }
}

/** Adds the addresses of all strings in a field's value of JSON that begins at an address. */
export function hideJson(at: usize): void {
  hideStrings(at, memberEnd(at), !searchesStrings);
}

/** Adds the addresses of the value of a field, or of its further values only. */
function hideField(field: u32, at: usize, start: usize, close: usize, isKnown: bool): void {
  if (format == FORMAT_JSON) {
    if (hasStepsInto(field)) hideElements(field, at);
    else hideJson(at + 1);
    return;
  }
  if (!isKnown) hidePlain(at, close);
  if (format != FORMAT_PAIRS) return;
  for (let next = nextValue(field, valueEnd(at, close), start, close); next != 0; next = nextValue(field, valueEnd(next, close), start, close)) {
    hidePlain(next, close);
  }
}

/**
 * Adds the addresses of a value that was looked up. If all of it is an address, which is so for most, that one was parsed last.
 *
 * @param at its place in the line
 */
@inline export function hideQueried(line: usize, field: u32, at: usize, hasAddress: bool, isJson: bool): void {
  // A copy without escapes is before all input.
  const isExact = hasAddress && mayBeExact && exactFamily != NO_ADDRESS && textStart >= at;
  if (isExact) {
    pushSpan(textStart, textEnd, exactFamily, usize(isJson), emptyText);
    if (isJson || format != FORMAT_PAIRS) return;
  }
  hideField(field, at, load<u32>(line, LINE_START), load<u32>(line, LINE_CLOSE), isExact);
}

/** Returns the end of the cell that begins at an address. */
function cellEnd(from: usize, close: usize): usize {
  let at = from;
  if (quotes != QUOTES_NONE && load<u8>(at) == <u8>QUOTE) {
    for (at++; at < close; at++) if (load<u8>(at) == <u8>QUOTE && load<u8>(++at) != <u8>QUOTE) break;
  }
  while (at < close && load<u8>(at) != <u8>delimiter) at++;
  return min(at, close);
}

/** Adds the addresses of a cell. Its quotes stay. */
function hideCell(from: usize, end: usize, isField: bool): void {
  const isQuoted = quotes != QUOTES_NONE && end > from + 1 && load<u8>(from) == <u8>QUOTE && load<u8>(end - 1) == <u8>QUOTE;
  from += usize(isQuoted);
  end -= usize(isQuoted);
  hideValue(from, end, from, end, isField);
}

/** Adds the addresses of a value that begins at an address, in a format without objects. */
function hidePlain(from: usize, close: usize): void {
  if (format == FORMAT_TABLE) {
    hideCell(from, cellEnd(from, close), !searchesStrings);
    return;
  }
  let end = close;
  if (format == FORMAT_PAIRS) end = valueEnd(from, close);
  else if (format == FORMAT_COMBINED) {
    end = from;
    while (end < close && load<u8>(end) != <u8>SPACE) end++;
  }
  hideValue(from, end, from, end, true);
}

/** Adds all addresses of a line. */
function hideAll(start: usize, close: usize): void {
  if (format == FORMAT_JSON) hideStrings(start, close, false);
  else if (format != FORMAT_TABLE) hideText(start, close, false);
  else
    for (let at = start; at <= close && !isFull(); ) {
      const end = cellEnd(at, close);
      hideCell(at, end, false);
      at = end + 1;
    }
}

/** Orders the spans from `first` on: fields may be in any order, and overlap. */
function sortSpans(first: usize): void {
  for (let span = first + SPAN_BYTES; span < spansEnd; span += SPAN_BYTES) {
    const start = load<u32>(span);
    let to = span;
    while (to > first && load<u32>(to - SPAN_BYTES) > start) to -= SPAN_BYTES;
    if (to == span) continue;
    const a = v128.load(span);
    const b = v128.load(span, 16);
    memory.copy(to + SPAN_BYTES, to, span - to);
    v128.store(to, a);
    v128.store(to, b, 16);
  }
}

/**
 * Ends a line whose fields' addresses were added: adds the others that are hidden.
 *
 * @param first its first span; @param values its values
 * @returns false if there was no room for all of its addresses; then it has no spans
 */
@inline export function endLine(line: usize, first: usize, values: usize): bool {
  if (!hasFieldsOnly || load<u32>(line, LINE_REPLACED_COUNT) != 0 || spansEnd > first + SPAN_BYTES) hideOthers(line, first, values);
  if (spansEnd >= spansLimit - MORE_SPANS * SPAN_BYTES) {
    spansEnd = first;
    searchedTo = load<u32>(line, LINE_START);
    return false;
  }
  if (--linesToSearch == 0) searchRest(line, first);
  return true;
}

/** Adds the addresses of a line that are not those of its fields, and orders all. Parameters are those of {@link endLine}. */
function hideOthers(line: usize, first: usize, values: usize): void {
  const start: usize = load<u32>(line, LINE_START);
  const close: usize = load<u32>(line, LINE_CLOSE);
  // The date is no address.
  for (let value = fieldCount + u32(timelines != 0); value < valueCount; value++) {
    const at: usize = load<u32>(values + (<usize>value << 2));
    if (at != 0) hideField(value, at, start, close, false);
  }
  // A value that an equal key has replaced has no offset.
  const isForgotten = (load<u32>(line, LINE_REPLACED_COUNT) & FORGOTTEN) != 0;
  if ((hidesAll || isForgotten) && format != FORMAT_TEXT) hideAll(start, close);
  sortSpans(first);
}

/** Lines of which all are searched for other addresses; of how many of the others one is; how many of them are left. */
const SEARCHED_LINES: u32 = 1024;
const SEARCHED_SHARE: u32 = 256;
let searchedLines: u32 = 0;
let linesToSearch: u32 = 1;

/** Counts a line, and whether it has an address that is in none of the spans from `span` on. */
function searchRest(line: usize, span: usize): void {
  linesToSearch = ++searchedLines <= SEARCHED_LINES ? 1 : SEARCHED_SHARE;
  if (hides > <u32>HIDE_CIPHER) return;
  const close: usize = load<u32>(line, LINE_CLOSE);
  setHiding(true, false);
  let hasOther = false;
  for (let at: usize = load<u32>(line, LINE_START); !hasOther; ) {
    at = findAddress(at, at, close);
    if (at == 0) break;
    while (span < spansEnd && load<u32>(span, SPAN_END) <= <u32>textStart) span += SPAN_BYTES;
    // A span may begin in an address, at what is cut.
    hasOther = span == spansEnd || load<u32>(span) >= <u32>textEnd;
  }
  setHiding(false, false);
  countSearched(hasOther);
}

/** Finds the addresses of lines of text. Result as of `lookUpValues`. */
export function hideTextLines(count: u32): u32 {
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const first = spansEnd;
    hideText(load<u32>(line, LINE_START), load<u32>(line, LINE_CLOSE), false);
    if (spansEnd == first && hides == HIDE_INLINE) countMissingField();
    if (!endLine(line, first, 0)) return max(i, 1);
  }
  return count;
}

/** Starts to find the addresses of the lines of the batch. What is not put out yet before them is no record. */
export function startLines(count: u32): void {
  putInputTo(load<u32>(lines, LINE_START));
  next = spans;
  spansEnd = spans;
  searchedTo = load<u32>(lines + <usize>(count - 1) * LINE_BYTES, LINE_END);
}

/** Ends the batch, after the last line that was searched. */
export function endLines(): void {
  prepareSpans(spans);
  setGap();
}

@external('env', 'encrypt')
declare function encrypt(addresses: usize, count: u32): void;

/** Looks up the addresses of the spans, from the first one on. */
function lookUpSpans(first: usize): void {
  startQueries();
  const values = inlineValues + (((first - spans) / SPAN_BYTES) << 2);
  let value = values;
  for (let span = first; span < spansEnd; span += SPAN_BYTES) {
    queryValue(value, parseAddress(load<u32>(span), load<u32>(span, SPAN_END)));
    value += 4;
  }
  resolveQueries();
  for (let at = values; at < value; at += 4) countResult(load<u32>(at));
}

/** Encrypts the addresses of the spans from the first one on, or looks them up, if that is asked for. */
function prepareSpans(first: usize): void {
  if (spansEnd == first) return;
  if (hides == HIDE_CIPHER) encryptSpans(first);
  else if (hides == HIDE_INLINE) lookUpSpans(first);
}

/** Returns where the bytes of the address of a span are, or go, for the cipher. */
@inline function bytesOf(span: usize): usize {
  return cipherBytes + ((span - spans) >> 1);
}

function encryptSpans(first: usize): void {
  let bytes = bytesOf(first);
  for (let span = first; span < spansEnd; span += SPAN_BYTES) {
    const isIPv4 = load<u32>(span, SPAN_FAMILY) == IPV4;
    const mapped = vectorOf(0, (MAPPED << 32) | load<u64>(span, SPAN_LOW));
    v128.store(bytes, reverseHalves(isIPv4 ? mapped : v128.load(span, SPAN_HIGH)));
    bytes += 16;
  }
  encrypt(bytesOf(first), <u32>((spansEnd - first) / SPAN_BYTES));
}

/** Puts out the input up to the last span before an address, without its addresses. */
@inline function putSpans(end: usize): void {
  let span = next;
  for (; span < spansEnd; span += SPAN_BYTES) {
    const start: usize = load<u32>(span);
    // It was left out, or is in the one before.
    if (start < copied) continue;
    if (start >= end) break;
    countHidden();
    const text: usize = load<u32>(span, SPAN_TEXT);
    if (text != 0) {
      putInputAndText(start, load<u32>(text), load<u32>(text, 4));
      skipInputTo(load<u32>(span, SPAN_END));
      continue;
    }
    if (hides != HIDE_EXTRACT) put(copied, start - copied);
    skipInputTo(load<u32>(span, SPAN_END));
    next = span;
    putReplacement(start);
    span = next;
  }
  next = span;
}

/** Puts out the input that has not been copied, up to an address, as text: without any address. */
export function putTextTo(end: usize): void {
  const nextOfLines = next;
  const first = spansEnd;
  while (copied < end) {
    next = first;
    spansEnd = first;
    hideText(copied, end, false);
    const searched: usize = isFull() ? <usize>load<u32>(spansEnd - SPAN_BYTES, SPAN_END) : end;
    prepareSpans(first);
    putSpans(end);
    if (hides != HIDE_EXTRACT && searched > copied) put(copied, searched - copied);
    skipInputTo(max(copied, searched));
  }
  next = nextOfLines;
  spansEnd = first;
}

/** Puts out the input that has not been copied, up to an address or the last gap before it. */
export function putGaps(end: usize): void {
  const extracts = hides == HIDE_EXTRACT;
  const first = copied;
  const before = outputEnd();
  putSpans(end);
  if (searchedTo < end) {
    const from = max(copied, searchedTo);
    if (!extracts) put(copied, from - copied);
    skipInputTo(from);
    putTextTo(end);
    searchedTo = end;
  }
  setGap();
  if (!extracts) return;
  skipInputTo(max(copied, end));
  if (extractsLines && outputEnd() != before) putExtractedLine(first, end);
}

/**
 * Puts out the address of the next span as a line, with its prefix length, or with the address after a dash, if it has them. Its input is
 * skipped already.
 */
function putExtracted(start: usize): void {
  if (load<u8>(copied) == <u8>MINUS && next + SPAN_BYTES < spansEnd && load<u32>(next + SPAN_BYTES) == <u32>copied + 1) {
    next += SPAN_BYTES;
    skipInputTo(load<u32>(next, SPAN_END));
  } else if (load<u8>(copied) == <u8>SLASH) {
    let end = copied + 1;
    while (end < copied + 4 && <u32>load<u8>(end) - ZERO < 10) end++;
    const after: u32 = load<u8>(end);
    const goesOn = after == SLASH || after == DOT || after - ZERO < 10 || (after | CASE_BIT) - LETTER_A < 26;
    if (end > copied + 1 && !goesOn) skipInputTo(end);
  }
  if (!includes(start, copied, BACKSLASH)) put(start, copied - start);
  else if (load<u32>(next, SPAN_FAMILY) == IPV4) putIPv4(load<u32>(next, SPAN_LOW));
  else putIPv6(load<u64>(next, SPAN_HIGH), load<u64>(next, SPAN_LOW), false);
  putByte(<u8>NEWLINE);
}

/** Puts out the line of the addresses before it, after a tab. */
function putExtractedLine(from: usize, to: usize): void {
  while (from < to && load<u8>(from) <= <u8>SPACE) from++;
  while (to > from && load<u8>(to - 1) <= <u8>SPACE) to--;
  putByte(<u8>TAB);
  for (; from < to; from++) putByte(max(load<u8>(from), <u8>SPACE));
  putByte(<u8>NEWLINE);
}

/** Puts out what replaces the next span, which begins at an address; its input is skipped already. */
function putReplacement(start: usize): void {
  if (hides == HIDE_EXTRACT) putExtracted(start);
  else if (hides == HIDE_INLINE) putInsert(inserts, inlineValues + (((next - spans) / SPAN_BYTES) << 2), 0);
  else if (hides == HIDE_TRUNCATE) putTruncated(next);
  else putEncrypted(next);
}

function putTruncated(span: usize): void {
  const start: usize = load<u32>(span);
  const end: usize = load<u32>(span, SPAN_END);
  let first = load<u64>(span, SPAN_HIGH);
  let last = load<u64>(span, SPAN_LOW);
  let bits = cut6;
  if (load<u32>(span, SPAN_FAMILY) == IPV4) {
    if (!includes(start, end, COLON)) {
      putIPv4(<u32>(last & maskOf(32 + cut4)));
      return;
    }
    // IPv4-mapped.
    first = 0;
    last |= MAPPED << 32;
    bits = 96 + cut4;
  } else if (first >> 48 == SIX_TO_4) bits = 16 + cut4;
  else if (first == NAT64 && last >> 32 == 0) bits = 96 + cut4;
  // An IPv4 address at the end stays dotted.
  putNetwork(first, last, bits, bits >= 96 && includes(start, end, DOT));
}

function putEncrypted(span: usize): void {
  const halves = reverseHalves(v128.load(bytesOf(span)));
  const first = <u64>i64x2.extract_lane(halves, 0);
  const last = <u64>i64x2.extract_lane(halves, 1);
  const isIPv4 = first == 0 && last >> 32 == MAPPED;
  const wasIPv4 = load<u32>(span, SPAN_FAMILY) == IPV4;
  // Before a port, an IPv6 address is in brackets.
  if (isIPv4) {
    if (!wasIPv4 && load<u8>(copied) == <u8>CLOSING_BRACKET && hasPort(copied + 1)) {
      setOutputEnd(outputEnd() - 1);
      skipInputTo(copied + 1);
    }
    putIPv4(<u32>last);
    return;
  }
  const isBracketed = wasIPv4 && hasPort(copied);
  if (isBracketed) putByte(<u8>OPENING_BRACKET);
  putIPv6(first, last, false);
  if (isBracketed) putByte(<u8>CLOSING_BRACKET);
}

@inline function hasPort(at: usize): bool {
  return load<u8>(at) == <u8>COLON && <u32>load<u8>(at + 1) - ZERO < 10;
}
