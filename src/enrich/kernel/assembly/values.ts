/** Looks up the values of the lines of a batch, which batch.ts has collected: their offsets are replaced by their records. */
import { FORMAT_COMBINED, FORMAT_JSON, FORMAT_PAIRS, FORMAT_TABLE, FORMAT_TEXT, HIDE_INLINE, LINE_BYTES, PICK_FIRST, QUOTES_NONE } from '../abi';
import { isBlank, NEWLINE, QUOTE, SPACE } from './ascii';
import { stateOfLine } from './dates';
import { findElement, hasSeveralValues, hasStepsInto, queryElements } from './elements';
import { endLine, endLines, hideQueried, hideTextLines, spansEnd, startLines } from './hide';
import { longestText, parseText } from './lenient';
import { valueEnd } from './pairs';
import { addCandidate, isSettled, parseString, queryValue, resolveQueries, setState, startQueries } from './lookup';
import { delimiter, fieldCount, format, hasRoles, hasSteps, hides, isLenient, lines, locates, maxLenientBytes, others, pick, quotes, recordCount, scratch, searchesStrings, timelines, unset, valueCount, values } from './settings';
import { closingQuote, setSource, unescape } from './strings';
import { bestRole, familyFound, findAddress, isAtBeginning, isClient, queryAddresses, queryFrom } from './text';

// What is kept of a line: its first byte; the opening and closing brace of an object, in other formats the beginning and end of
// its text; the end of its input; the opening quote of the first member that is replaced, and how many are.
export const LINE_START: usize = 0;
export const LINE_OPEN: usize = 4;
export const LINE_CLOSE: usize = 8;
export const LINE_END: usize = 12;
export const LINE_FIRST_REPLACED: usize = 16;
export const LINE_REPLACED_COUNT: usize = 20;
/** In the last of these: of two equal keys in the line, the first had an address that must be hidden, too. */
export const FORGOTTEN: u32 = 0x8000_0000;

/**
 * Replaces the offset of a value in a JSON object with a lookup query, for the address at its own place or at another.
 *
 * @param at the colon before the value, or before the array on the way to it; 0 if there is none
 * @returns whether it has an address
 */
@inline function queryMember(value: usize, field: u32, at: usize): bool {
  if (hasSteps && at != 0 && hasStepsInto(field)) {
    if (hasSeveralValues(field)) {
      store<u32>(value, recordCount + 1);
      return queryElements(value, field, at);
    }
    at = findElement(field, at);
  } else if (at != 0) {
    do at++;
    while (isBlank(load<u8>(at)));
  }
  if (at == 0) {
    store<u32>(value, recordCount + 1);
    return false;
  }
  if (searchesStrings) {
    store<u32>(value, recordCount);
    return queryStringText(value, at);
  }
  if (load<u8>(at) == <u8>QUOTE && queryValue(value, parseString(at + 1))) return true;
  store<u32>(value, recordCount);
  return false;
}

/** Copies the text of the string at an address to `scratch`. Returns its length, or -1 if it is no string or too long. */
function readText(at: usize): i32 {
  const length = load<u8>(at) == <u8>QUOTE ? unescape(at + 1, closingQuote(at + 1), scratch, maxLenientBytes) : -1;
  // Ends a port that is searched for after the text.
  if (length >= 0) store<u8>(scratch + length, 0);
  return length;
}

/** Adds the addresses in the text of the string at an address as candidates for a value. Returns whether there is one. */
export function queryStringText(value: usize, at: usize): bool {
  const length = readText(at);
  if (length < 0) return false;
  if (locates) setSource(at + 1, scratch);
  return searchText(value, scratch, scratch + length);
}

/** Returns the best role of the addresses in the text of the string at an address, see `bestRole`. */
export function roleOfString(at: usize): u32 {
  return bestRole(scratch, scratch + max(readText(at), 0));
}

/** Adds the addresses in a text that may count as candidates for a value: without roles, the first or the last one does. */
function searchText(value: usize, start: usize, close: usize): bool {
  if (hasRoles) return queryAddresses(value, start, close);
  const first = findAddress(start, start, close);
  for (let end = first; end != 0; end = pick == PICK_FIRST ? 0 : findAddress(start, end, close)) addCandidate(value, familyFound);
  return first != 0;
}

/** Returns the number of bytes before the first of two bytes, or a number above that of any text with an address. */
@inline function lengthTo(from: usize, byte: u32, other: u32): usize {
  const a = i8x16.splat(<i8>byte);
  const b = i8x16.splat(<i8>other);
  let length: usize = 0;
  do {
    const text = v128.load(from + length);
    const mask = i8x16.bitmask(v128.or(i8x16.eq(text, a), i8x16.eq(text, b)));
    if (mask != 0) return length + ctz(mask);
    length += 16;
  } while (length <= longestText());
  return length;
}

/**
 * Copies the text of a quoted cell to `scratch` as csv-parse reads it with `relax_quotes`. If text follows the quotation, the
 * quotes around the quotation are text as well.
 *
 * @param close the end of the record's text
 * @returns the length, or a number above that of any text with an address
 */
function unquote(from: usize, close: usize): usize {
  let at = from + 1;
  // The first byte is for the opening quote.
  let to = scratch + 1;
  const limit = to + longestText();
  for (; at < close && to <= limit; at++) {
    if (load<u8>(at) == <u8>QUOTE && (++at == close || load<u8>(at) != <u8>QUOTE)) break;
    store<u8>(to++, load<u8>(at));
  }
  if (to > limit) return to - scratch;
  const isWhole = at == close || load<u8>(at) == <u8>delimiter;
  if (locates) setSource(from, isWhole ? scratch - 1 : scratch);
  if (isWhole) {
    memory.copy(scratch, scratch + 1, to - scratch - 1);
    return to - scratch - 1;
  }
  store<u8>(scratch, <u8>QUOTE);
  for (at--; at < close && load<u8>(at) != <u8>delimiter && to <= limit; at++) store<u8>(to++, load<u8>(at));
  return to - scratch;
}

/** The length of a value that is missing. */
const MISSING: usize = usize.MAX_VALUE;

/** Where the text begins whose length was returned last. */
let text: usize = 0;

/** Returns the length of a text that is not quoted: one that is empty, or stands for no value, is missing. */
@inline function presentLength(from: usize, length: usize): usize {
  text = from;
  return length == 0 || (length == 1 && <u32>load<u8>(from) == unset) ? MISSING : length;
}

/**
 * Returns the length of the text of a cell. A field without a column and an empty cell are missing values. A quoted cell is exactly
 * an address only if its first quote after the opening one closes it, because no address has a quote in it.
 */
function cellLength(from: usize, close: usize): usize {
  if (from == 0) return MISSING;
  if (from < close && load<u8>(from) == <u8>QUOTE && quotes != QUOTES_NONE) {
    const length = lengthTo(from + 1, QUOTE, QUOTE);
    const after = from + length + 2;
    if (after > close || (after < close && load<u8>(after) != <u8>delimiter)) {
      text = scratch;
      return isLenient ? unquote(from, close) : longestText() + 1;
    }
    text = from + 1;
    return length == 0 ? MISSING : length;
  }
  return presentLength(from, min(lengthTo(from, delimiter, NEWLINE), close - from));
}

/** Returns the length of the text that a line of a format without objects has for a field. */
@inline function textLength(from: usize, close: usize): usize {
  if (format == FORMAT_TABLE) return cellLength(from, close);
  if (format == FORMAT_PAIRS) return from == 0 ? MISSING : presentLength(from, valueEnd(from, close) - from);
  text = from;
  return format == FORMAT_COMBINED ? min(lengthTo(from, SPACE, NEWLINE), close - from) : close - from;
}

/** Replaces the offset of a text with a query for the address that it is. Returns whether it is one. */
@inline function queryText(value: usize, from: usize, close: usize): bool {
  const length = textLength(from, close);
  const isSearched = length != MISSING && length <= longestText();
  if (isSearched && (searchesStrings ? searchText(value, text, text + length) : queryValue(value, parseText(text, text + length)))) return true;
  store<u32>(value, recordCount + u32(length == MISSING));
  return false;
}

/** Looks for the address of a field that is not in its own place in the others. `first` is the first value of the line. */
function queryOthers(value: usize, field: u32, first: usize, close: usize): void {
  const range = others + (<usize>field << 3);
  for (let other = load<u32>(range); other < load<u32>(range, 4); other++) {
    const problem = load<u32>(value);
    const at: usize = load<u32>(first + (<usize>other << 2));
    if (format == FORMAT_JSON ? queryMember(value, other, at) : queryText(value, at, close)) return;
    store<u32>(value, min(problem, load<u32>(value)));
  }
}

/**
 * Looks up the addresses in free text. With roles, all addresses of a line must be known to choose one, but the rest of a line is not
 * read if its first address has a country and is at the beginning, or has the label of a client. `LINE_OPEN` is the end of such an
 * address, or 0.
 */
function lookUpText(count: u32): void {
  startQueries();
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const start: usize = load<u32>(line, LINE_START);
    const close: usize = load<u32>(line, LINE_CLOSE);
    const value = values + (<usize>i << 2);
    store<u32>(value, recordCount + 1);
    store<u32>(line, 0, LINE_OPEN);
    if (!hasRoles) {
      searchText(value, start, close);
      continue;
    }
    const end = findAddress(start, start, close);
    if (end == 0) continue;
    if (isAtBeginning(start, end, close) || isClient(start, close)) {
      addCandidate(value, familyFound);
      store<u32>(line, <u32>end, LINE_OPEN);
    } else queryFrom(value, start, end, close);
  }
  resolveQueries();
  startQueries();
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const value = values + (<usize>i << 2);
    const end: usize = load<u32>(line, LINE_OPEN);
    if (end == 0 || isSettled(load<u32>(value))) continue;
    const start: usize = load<u32>(line, LINE_START);
    const close: usize = load<u32>(line, LINE_CLOSE);
    if (findAddress(start, end, close) == 0) continue;
    store<u32>(value, recordCount + 1);
    queryAddresses(value, start, close);
  }
  resolveQueries();
}

/** Replaces the value offsets of lines with queries. Inlined twice, because a loop in which the format decides is slower. Result as of `lookUpValues`. */
@inline function queryValues(count: u32, isJson: bool): u32 {
  let first = values;
  for (let i: u32 = 0; i < count; i++) {
    const line = lines + <usize>i * LINE_BYTES;
    const close: usize = load<u32>(line, LINE_CLOSE);
    const span: usize = HIDING && hides != 0 ? spansEnd : 0;
    if (timelines != 0) {
      const date = first + (<usize>fieldCount << 2);
      const state = stateOfLine(load<u32>(date), close);
      store<u32>(date, state);
      setState(state);
    }
    for (let field: u32 = 0; field < fieldCount; field++) {
      const value = first + (<usize>field << 2);
      const at: usize = load<u32>(value);
      const hasAddress = isJson ? queryMember(value, field, at) : queryText(value, at, close);
      if (HIDING && hides != 0 && at != 0) hideQueried(line, field, at, hasAddress, isJson);
      if (others != 0 && !hasAddress) queryOthers(value, field, first, close);
    }
    if (HIDING && hides != 0 && !endLine(line, span, first)) return max(i, 1);
    first += <usize>valueCount << 2;
  }
  return count;
}

/**
 * Replaces the value offsets of a number of lines with records: `recordCount` for a value that is not an address, `recordCount` + 1
 * for one that is missing, `recordCount` + 2 for an address if there are no answers of the line's date, `recordCount` + 3 if they are damaged. The offset of the date is
 * replaced with the state.
 *
 * @returns the number of lines whose addresses there was room for, if they are hidden; of one alone they are hidden as those of text
 */
export function lookUpValues(count: u32): u32 {
  const isHiding = HIDING && hides != 0;
  if (isHiding && count > 0) startLines(count);
  if (format == FORMAT_TEXT) {
    if (isHiding) count = hideTextLines(count);
    if (hides != HIDE_INLINE) lookUpText(count);
  } else {
    startQueries();
    count = format == FORMAT_JSON ? queryValues(count, true) : queryValues(count, false);
    resolveQueries();
  }
  if (isHiding && count > 0) endLines();
  return count;
}
