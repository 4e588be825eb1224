/** JSON strings: where they end, and what they say. */

const QUOTE: u32 = 34;
const BACKSLASH: u32 = 92;

/** Whether a backslash stands in `from … to`. */
export function hasEscape(from: usize, to: usize): bool {
  for (let at = from; at < to; at++) if (load<u8>(at) == BACKSLASH) return true;
  return false;
}

/** Where the string whose first byte is at `from` ends: the address of its closing quote, which must be there. */
export function closingQuote(from: usize): usize {
  let at = from;
  let byte: u32 = load<u8>(at);
  while (byte != QUOTE) {
    at += byte == BACKSLASH ? 2 : 1;
    byte = load<u8>(at);
  }
  return at;
}

/** The number that four hexadecimal digits stand for, or -1. */
function fourHexDigits(at: usize, end: usize): i32 {
  if (at + 4 > end) return -1;
  let value: i32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const byte: u32 = load<u8>(at + i);
    const letter: u32 = (byte | 32) - 97;
    if (byte - 48 <= 9) value = (value << 4) | <i32>(byte - 48);
    else if (letter <= 5) value = (value << 4) | <i32>(letter + 10);
    else return -1;
  }
  return value;
}

/** What the letter behind a backslash stands for, or 0 where it is none of JSON's (RFC 8259 §7). */
function shortEscape(letter: u32): u8 {
  switch (letter) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
      return <u8>letter;
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
      return 0;
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
 * Undoes the escapes of the string's text `from … to`.
 *
 * @param into room for `limit` + 4 bytes
 * @param limit longest text that is of interest, in bytes
 * @returns the length of the text, or -1 where it is longer, or has an escape that JSON does not know or half of a
 *   surrogate pair: then it equals no key and is no address
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
    const letter: u32 = at + 1 < to ? load<u8>(at, 1) : 0;
    if (letter != 0x75) {
      const plain = shortEscape(letter);
      if (plain == 0) return -1;
      store<u8>(into + length, plain);
      length++;
      at += 2;
      continue;
    }
    let point = fourHexDigits(at + 2, to);
    if (point < 0) return -1;
    at += 6;
    if (point >= 0xd800 && point < 0xe000) {
      if (point >= 0xdc00 || at + 6 > to || load<u16>(at) != 0x755c) return -1; // `\u` again
      const second = fourHexDigits(at + 2, to);
      if (second < 0xdc00 || second >= 0xe000) return -1;
      point = 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00);
      at += 6;
    }
    length += encodeUtf8(into + length, point);
  }
  return length > limit ? -1 : <i32>length;
}
