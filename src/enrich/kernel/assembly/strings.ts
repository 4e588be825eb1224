/** JSON strings: their ends and their text. The strings are known to be valid. */
import { FORMAT_TABLE } from '../abi';
import { BACKSLASH, hexNumber, LETTER_U, QUOTE } from './ascii';
import { format, maxLenientBytes, scratch } from './settings';

/** Returns the first quote or backslash at an address or after it; there must be one. */
@inline export function quoteOrBackslash(at: usize): usize {
  while (true) {
    const bytes = v128.load(at);
    const mask = i8x16.bitmask(
      v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH))),
    );
    if (mask != 0) return at + ctz(mask);
    at += 16;
  }
}

/** Returns the closing quote of the string whose text begins at `from`. */
export function closingQuote(from: usize): usize {
  let at = quoteOrBackslash(from);
  while (load<u8>(at) == <u8>BACKSLASH) at = quoteOrBackslash(at + 2);
  return at;
}

/** Returns the opening quote of the string that ends at a quote: the last one before it that no backslash escapes. */
export function openingQuote(close: usize): usize {
  let at = close;
  while (true) {
    at--;
    if (load<u8>(at) != <u8>QUOTE) continue;
    let run = at;
    while (load<u8>(run - 1) == <u8>BACKSLASH) run--;
    if (((at - run) & 1) == 0) return at;
    at = run;
  }
}

/** Returns what a letter after a backslash means (RFC 8259, section 7); quotes, backslashes and slashes mean themselves. */
function shortEscape(letter: u32): u8 {
  switch (letter) {
    case 0x62:
      return 8;
    case 0x66:
      return 12;
    case 0x6e:
      return 10;
    case 0x72:
      return 13;
    case 0x74:
      return 9;
    default:
      return <u8>letter;
  }
}

/** Writes a code point as UTF-8; returns the number of bytes. */
function encodeUtf8(to: usize, point: u32): usize {
  if (point < 0x80) {
    store<u8>(to, point);
    return 1;
  }
  if (point < 0x800) {
    store<u8>(to, 0xc0 | (point >> 6));
    store<u8>(to, 0x80 | (point & 63), 1);
    return 2;
  }
  if (point < 0x10000) {
    store<u8>(to, 0xe0 | (point >> 12));
    store<u8>(to, 0x80 | ((point >> 6) & 63), 1);
    store<u8>(to, 0x80 | (point & 63), 2);
    return 3;
  }
  store<u8>(to, 0xf0 | (point >> 18));
  store<u8>(to, 0x80 | ((point >> 12) & 63), 1);
  store<u8>(to, 0x80 | ((point >> 6) & 63), 2);
  store<u8>(to, 0x80 | (point & 63), 3);
  return 4;
}

/**
 * Writes the text of a string without its escapes.
 *
 * @param from its first byte; @param to its closing quote
 * @param into room for `limit` + 4 bytes
 * @param limit longest text of interest, in bytes
 * @returns the length of the text, or -1 if it is longer or has half of a surrogate pair: then it is not a wanted key and not
 *   an address
 */
export function unescape(from: usize, to: usize, into: usize, limit: usize): i32 {
  let length: usize = 0;
  let at = from;
  while (at < to) {
    if (length > limit) return -1;
    const byte: u32 = load<u8>(at);
    if (byte != BACKSLASH) {
      store<u8>(into + length, byte);
      length++;
      at++;
      continue;
    }
    const letter: u32 = load<u8>(at, 1);
    if (letter != LETTER_U) {
      store<u8>(into + length, shortEscape(letter));
      length++;
      at += 2;
      continue;
    }
    let point: i32 = hexNumber(load<u32>(at + 2));
    at += 6;
    if (point >= 0xd800 && point < 0xe000) {
      if (point >= 0xdc00 || at + 6 > to || load<u16>(at) != 0x755c) return -1; // not followed by `\u`
      const second: i32 = hexNumber(load<u32>(at + 2));
      if (second < 0xdc00 || second >= 0xe000) return -1;
      point = 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00);
      at += 6;
    }
    length += encodeUtf8(into + length, point);
  }
  return length > limit ? -1 : <i32>length;
}

// The text of which `scratch` has a copy without escapes, and how far it was followed: a place in it, and in the copy.
let source: usize = 0;
let sourceAt: usize = 0;
let copyAt: usize = 0;
/** Whether quotes of a cell are doubled there. */
let isInQuotes: bool = false;

/**
 * Notes what `scratch` is a copy of.
 *
 * @param from the text of a string of JSON; in a table, a cell with its opening quote
 * @param at where the copy of it begins: without its opening quote, or with it
 */
export function setSource(from: usize, at: usize): void {
  source = from;
  sourceAt = from;
  copyAt = at;
  isInQuotes = format == FORMAT_TABLE;
}

/** Returns the bytes that a byte of the copy, or a few, have in the string; moves the place in the copy. */
function escapeLength(): usize {
  copyAt++;
  if (load<u8>(sourceAt) != <u8>BACKSLASH) return 1;
  if (load<u8>(sourceAt, 1) != <u8>LETTER_U) return 2;
  const point: i32 = hexNumber(load<u32>(sourceAt + 2));
  if (point >= 0x80) copyAt++;
  if (point >= 0x800) copyAt++;
  if (point < 0xd800 || point >= 0xdc00) return 6;
  copyAt++;
  return 12;
}

/** Returns the bytes that a byte of the copy has in the cell; moves the place in the copy. */
function quoteLength(): usize {
  copyAt++;
  if (!isInQuotes || load<u8>(sourceAt) != <u8>QUOTE || sourceAt == source) return 1;
  if (load<u8>(sourceAt, 1) == <u8>QUOTE) return 2;
  isInQuotes = false;
  return 1;
}

/** Returns where a byte of a text is in the input, also if the text is a copy. It must not be before the last such byte of a copy. */
export function inputPosition(at: usize): usize {
  if (at < scratch || at > scratch + maxLenientBytes) return at;
  while (copyAt < at) sourceAt += format == FORMAT_TABLE ? quoteLength() : escapeLength();
  return sourceAt;
}
