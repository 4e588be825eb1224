/**
 * Hides addresses: what is copied of the input has other text in their place. The addresses of a line are found as spans, in their
 * order: those of its fields or, if all are hidden, of all of it. What is no record, such as an invalid line, is text, of which each
 * address is hidden. So is everything that was not searched before it is copied.
 *
 * The spans of many lines are collected together, so that one call encrypts all of them.
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
import { IPV4, NO_ADDRESS, parseAddress, SPAN_END, SPAN_FAMILY, SPAN_HIGH, SPAN_KIND, SPAN_LOW, SPAN_START, storeSpan, textEnd, textStart } from './address';
import { BACKSLASH, CASE_BIT, CLOSING_BRACKET, COLON, DOT, hexNumber, isBlank, MINUS, NEWLINE, OPENING_BRACE, OPENING_BRACKET, QUOTE, SPACE, TAB, ZERO } from './ascii';
import { countResult } from './batch';
import { putIPv4, putIPv6 } from './blocks';
import { hasStepsInto, locateElements } from './elements';
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
  inlineValues,
  inserts,
  lines,
  maxAddressLength,
  maxLenientBytes,
  offsetsOfValues,
  quotes,
  scratch,
  searchesStrings,
  spans,
  spansLimit,
  spansOfValues,
  timelines,
  valueCount,
} from './settings';
import { copied, countHidden, countMissingField, countSearched, outputEnd, put, putByte, skipInputTo, setOutputEnd } from './slot';
import { closingQuote, quoteOrBackslash, unescape } from './strings';
import { familyFound, findAddress, setHiding } from './text';
import { FORGOTTEN, LINE_CLOSE, LINE_END, LINE_REPLACED_COUNT, LINE_START } from './values';

/** An address in its place, or a whole value that is dropped. */
const ADDRESS: u32 = 0;
const VALUE: u32 = 1;

/** The first 32 bits of the addresses of Teredo (RFC 4380), and the first 16 of 6to4 (RFC 3056); those of NAT64 (RFC 6052). */
const TEREDO: u64 = 0x2001_0000;
const SIX_TO_4: u64 = 0x2002;
const NAT64: u64 = 0x0064_ff9b_0000_0000;
const MAPPED: u64 = 0xffff;
const SLASH: u8 = 47;
const UNDERSCORE: u32 = 95;
const LETTER_A: u32 = 97;
const LETTER_U: u8 = 117;

/** The next span to put out, and the end of the spans. */
let next: usize = 0;
let spansEnd: usize = 0;
/** Input before this address was searched. */
let searchedTo: usize = 0;

/** Starts at an address, of which nothing is searched yet. */
export function startHiding(from: usize): void {
  next = spans;
  spansEnd = spans;
  searchedTo = from;
}

@inline function isFull(): bool {
  return spansEnd == spansLimit;
}

/** Adds a span. */
function addSpan(start: usize, end: usize, family: u32): void {
  if (isFull()) return;
  storeSpan(spansEnd, start, end, family);
  spansEnd += SPAN_BYTES;
}

/** Returns whether truncation drops an address: the first half of an address of Teredo has an IPv4 address. */
@inline function isDropped(span: usize): bool {
  return hides == HIDE_DROP || (hides == HIDE_TRUNCATE && load<u32>(span, SPAN_FAMILY) != IPV4 && load<u64>(span, SPAN_HIGH) >> 32 == TEREDO);
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
  if (spansEnd == before || !isDropped(before)) return;
  if (family == NO_ADDRESS && !(isField && hides == HIDE_DROP)) return;
  spansEnd = before + SPAN_BYTES;
  dropLast(first, end);
}

/** Returns whether a string has an escape of a byte that addresses have: `\u0031`. */
function hasEscapedAddress(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) {
    if (load<u8>(at) != <u8>BACKSLASH) continue;
    const isUnicode = load<u8>(++at) == LETTER_U;
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
      if (isDropped(before)) dropLast(quote, to + 1);
      return;
    }
    if (length >= 0) hideText(scratch, scratch + length, true);
    if (length >= 0 && spansEnd == before) return;
    spansEnd = before;
    addSpan(quote, to + 1, NO_ADDRESS);
    dropLast(quote, to + 1);
    return;
  }
  hideValue(from, to, quote, to + 1, isField);
}

/** Makes the last span the whole value. */
@inline function dropLast(first: usize, end: usize): void {
  const last = spansEnd - SPAN_BYTES;
  store<u32>(last, <u32>first, SPAN_START);
  store<u32>(last, <u32>end, SPAN_END);
  store<u32>(last, VALUE, SPAN_KIND);
}

/** Adds the addresses of all strings in `from … to` but keys. */
function hideStrings(from: usize, to: usize, isField: bool): void {
  for (let at = from; at < to; at++) {
    if (load<u8>(at) != <u8>QUOTE) continue;
    const close = closingQuote(at + 1);
    let after = close + 1;
    while (isBlank(load<u8>(after))) after++;
    if (load<u8>(after) != <u8>COLON) hideString(at, isField);
    at = close;
  }
}

/** Adds the addresses of a field's value of JSON that begins at an address. */
export function hideJson(at: usize): void {
  const byte: u32 = load<u8>(at);
  if (byte == QUOTE) hideString(at, !searchesStrings);
  else if ((byte | CASE_BIT) == OPENING_BRACE) hideStrings(at, memberEnd(at), !searchesStrings);
}

/** Adds the addresses of a member. Its address was parsed already if its text is nothing else. */
@inline function hideMember(field: u32, colon: usize, parsed: usize): void {
  if (hasStepsInto(field)) {
    locateElements(field, colon);
    return;
  }
  let at = colon + 1;
  while (isBlank(load<u8>(at))) at++;
  const isParsed = !searchesStrings && load<u32>(parsed) == <u32>at + 1 && load<u8>(load<u32>(parsed, SPAN_END)) == <u8>QUOTE;
  if (!isParsed || load<u8>(at) != <u8>QUOTE) hideJson(at);
  else addParsed(parsed, at, load<u32>(parsed, SPAN_END) + 1);
}

/** Adds the span of an address that is all of a value. */
@inline function addParsed(parsed: usize, first: usize, end: usize): void {
  if (isFull()) return;
  v128.store(spansEnd, v128.load(parsed));
  v128.store(spansEnd, v128.load(parsed, 16), 16);
  spansEnd += SPAN_BYTES;
  if (isDropped(parsed)) dropLast(first, end);
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

/** Adds the addresses of a line. */
function hideLine(line: usize, index: u32): void {
  const start: usize = load<u32>(line, LINE_START);
  const close: usize = load<u32>(line, LINE_CLOSE);
  if (format == FORMAT_TEXT) {
    const before = spansEnd;
    hideText(start, close, false);
    if (spansEnd == before && hides == HIDE_INLINE) countMissingField();
    return;
  }
  const first = spansEnd;
  const offsets = offsetsOfValues + (<usize>(index * valueCount) << 2);
  const parsed = spansOfValues + <usize>(index * valueCount) * SPAN_BYTES;
  for (let value: u32 = 0; value < valueCount; value++) {
    const at: usize = load<u32>(offsets + (<usize>value << 2));
    // The date is no address.
    if (at == 0 || (timelines != 0 && value == fieldCount)) continue;
    if (format == FORMAT_JSON) hideMember(value, at, parsed + <usize>value * SPAN_BYTES);
    else hidePlain(at, close);
    if (format != FORMAT_PAIRS) continue;
    for (let next = nextValue(value, valueEnd(at, close), start, close); next != 0; next = nextValue(value, valueEnd(next, close), start, close)) {
      hidePlain(next, close);
    }
  }
  // A value that an equal key has replaced has no offset.
  if (hidesAll || (load<u32>(line, LINE_REPLACED_COUNT) & FORGOTTEN) != 0) hideAll(start, close);
  if (spansEnd > first + SPAN_BYTES) sortSpans(first);
}

/** Counts a line, and whether it has an address that is in none of the spans from `span` on. */
function searchRest(line: usize, span: usize): void {
  const close: usize = load<u32>(line, LINE_CLOSE);
  setHiding(true, false);
  let hasOther = false;
  for (let at: usize = load<u32>(line, LINE_START); !hasOther; ) {
    at = findAddress(at, at, close);
    if (at == 0) break;
    while (span < spansEnd && load<u32>(span, SPAN_END) <= <u32>textStart) span += SPAN_BYTES;
    hasOther = span == spansEnd || load<u32>(span) > <u32>textStart;
  }
  setHiding(false, false);
  countSearched(hasOther);
}

/** The lines of which all are searched for other addresses, and of how many of the others one is. */
const SEARCHED_LINES: u32 = 1024;
const SEARCHED_SHARE: u32 = 64;
let lineCount: u32 = 0;

/**
 * Finds the addresses of lines of the batch, as many as there is room for. All lines before them must be put out.
 *
 * @param index the first of them; @param count the number of lines
 */
export function hideLines(index: u32, count: u32): void {
  // What is not put out yet before the line is no record.
  putHiding(load<u32>(lines + <usize>index * LINE_BYTES, LINE_START));
  next = spans;
  spansEnd = spans;
  for (; index < count; index++) {
    const line = lines + <usize>index * LINE_BYTES;
    const first = spansEnd;
    hideLine(line, index);
    if (isFull()) {
      // If there is no room for this line alone, it is text.
      spansEnd = first;
      break;
    }
    if (hides <= <u32>HIDE_CIPHER && (lineCount < SEARCHED_LINES || lineCount % SEARCHED_SHARE == 0)) searchRest(line, first);
    lineCount++;
    searchedTo = load<u32>(line, LINE_END);
  }
  prepareSpans();
}

/** Returns whether the addresses of a line must be found. */
@inline export function isUnsearched(line: usize): bool {
  return <usize>load<u32>(line, LINE_END) > searchedTo;
}

@external('env', 'encrypt')
declare function encrypt(addresses: usize, count: u32): void;

/** Looks the addresses of the spans up. */
function lookUpSpans(): void {
  startQueries();
  let value = inlineValues;
  for (let span = spans; span < spansEnd; span += SPAN_BYTES) {
    queryValue(value, parseAddress(load<u32>(span), load<u32>(span, SPAN_END)));
    value += 4;
  }
  resolveQueries();
  for (let at = inlineValues; at < value; at += 4) countResult(load<u32>(at));
}

/** Encrypts the addresses of the spans, or looks them up, if that is asked for. */
function prepareSpans(): void {
  if (spansEnd == spans) return;
  if (hides == HIDE_CIPHER) encryptSpans();
  else if (hides == HIDE_INLINE) lookUpSpans();
}

function encryptSpans(): void {
  let bytes = cipherBytes;
  for (let span = spans; span < spansEnd; span += SPAN_BYTES) {
    const isIPv4 = load<u32>(span, SPAN_FAMILY) == IPV4;
    const last = load<u64>(span, SPAN_LOW);
    store<u64>(bytes, isIPv4 ? 0 : bswap<u64>(load<u64>(span, SPAN_HIGH)));
    store<u64>(bytes, bswap<u64>(isIPv4 ? (MAPPED << 32) | last : last), 8);
    bytes += 16;
  }
  encrypt(cipherBytes, <u32>((spansEnd - spans) / SPAN_BYTES));
  bytes = cipherBytes;
  for (let span = spans; span < spansEnd; span += SPAN_BYTES) {
    store<u64>(span, bswap<u64>(load<u64>(bytes)), SPAN_HIGH);
    store<u64>(span, bswap<u64>(load<u64>(bytes, 8)), SPAN_LOW);
    bytes += 16;
  }
}

/** Puts out the input that has not been copied, up to an address, without its addresses. */
export function putHiding(end: usize): void {
  const first = copied;
  const extracts = hides == HIDE_EXTRACT;
  let isExtracted = false;
  while (copied < end) {
    for (; next < spansEnd; next += SPAN_BYTES) {
      const start: usize = load<u32>(next);
      // It was left out, or is in the one before.
      if (start < copied) continue;
      if (start >= end) break;
      if (!extracts) put(copied, start - copied);
      skipInputTo(load<u32>(next, SPAN_END));
      if (extracts) putExtracted(start);
      else putReplacement(next);
      isExtracted = true;
    }
    if (searchedTo >= end) break;
    const from = max(copied, searchedTo);
    next = spans;
    spansEnd = spans;
    hideText(from, end, false);
    searchedTo = isFull() ? <usize>load<u32>(spansEnd - SPAN_BYTES, SPAN_END) : end;
    prepareSpans();
  }
  if (extracts && extractsLines && isExtracted) putExtractedLine(first, end);
  if (copied < end && !extracts) put(copied, end - copied);
  skipInputTo(max(copied, end));
}

@inline function putText(text: usize): void {
  put(load<u32>(text), load<u32>(text, 4));
}

@inline function hasByte(from: usize, to: usize, byte: u32): bool {
  for (let at = from; at < to; at++) if (load<u8>(at) == <u8>byte) return true;
  return false;
}

/**
 * Puts out the address of the next span as a line, with its prefix length, or with the address after a dash, if it has them. Its input is
 * skipped already.
 */
function putExtracted(start: usize): void {
  countHidden();
  if (load<u8>(copied) == <u8>MINUS && next + SPAN_BYTES < spansEnd && load<u32>(next + SPAN_BYTES) == <u32>copied + 1) {
    next += SPAN_BYTES;
    skipInputTo(load<u32>(next, SPAN_END));
  } else if (load<u8>(copied) == SLASH) {
    let end = copied + 1;
    while (end < copied + 4 && <u32>load<u8>(end) - ZERO < 10) end++;
    const after: u32 = load<u8>(end);
    const goesOn = after == SLASH || after == DOT || after - ZERO < 10 || (after | CASE_BIT) - LETTER_A < 26;
    if (end > copied + 1 && !goesOn) skipInputTo(end);
  }
  if (!hasByte(start, copied, BACKSLASH)) put(start, copied - start);
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

/** Puts out what replaces a span; its input is skipped already. */
function putReplacement(span: usize): void {
  countHidden();
  if (hides == HIDE_INLINE) {
    putInsert(inserts, inlineValues + (((span - spans) / SPAN_BYTES) << 2), 0);
    return;
  }
  const kind = load<u32>(span, SPAN_KIND);
  if (kind == VALUE) putText(emptyText);
  else if (isDropped(span)) putText(foundText);
  else if (hides == HIDE_TRUNCATE) putTruncated(span);
  else putEncrypted(span);
}

/** Returns the last bits of an address that `bits` first bits leave, as zeros. `bits` is at most 64. */
@inline function mask(bits: u32): u64 {
  return bits == 0 ? 0 : <u64>-1 << <u64>(64 - bits);
}

/** Returns whether an address has a colon: one of IPv6 has it in its first five bytes. */
@inline function hasColon(start: usize, end: usize): bool {
  const colons = <u32>i8x16.bitmask(i8x16.eq(v128.load(start), i8x16.splat(<i8>COLON)));
  return (colons & (((<u32>1) << min<u32>(<u32>(end - start), 16)) - 1)) != 0;
}

function putTruncated(span: usize): void {
  const start: usize = load<u32>(span);
  const end: usize = load<u32>(span, SPAN_END);
  let first = load<u64>(span, SPAN_HIGH);
  let last = load<u64>(span, SPAN_LOW);
  let bits = cut6;
  if (load<u32>(span, SPAN_FAMILY) == IPV4) {
    last &= mask(32 + cut4);
    if (!hasColon(start, end)) {
      putIPv4(<u32>last);
      return;
    }
    // IPv4-mapped.
    first = 0;
    last |= MAPPED << 32;
    bits = 96 + cut4;
  } else if (first >> 48 == SIX_TO_4) bits = 16 + cut4;
  else if (first == NAT64 && last >> 32 == 0) bits = 96 + cut4;
  first &= mask(min(bits, 64));
  last &= mask(bits > 64 ? bits - 64 : 0);
  // An IPv4 address at the end stays dotted.
  putIPv6(first, last, bits >= 96 && hasByte(start, end, DOT));
}

function putEncrypted(span: usize): void {
  const first = load<u64>(span, SPAN_HIGH);
  const last = load<u64>(span, SPAN_LOW);
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
