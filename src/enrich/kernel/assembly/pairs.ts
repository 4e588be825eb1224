/**
 * Finds the values of keys in lines of any text that have `key=value` or `key="a value"` in it, such as logfmt, the lines of
 * iptables, CEF and LEEF. The first of equal keys counts. A key in a quoted value is text.
 */
import { STEP_KEY_LENGTH, STEP_VALUE, STEPS_BYTES } from '../abi';
import { BACKSLASH, CLOSING_BRACKET, COMMA, DOT, EQUALS, LETTER_A, MINUS, OPENING_BRACKET, PIPE, QUOTE, SEMICOLON, SPACE, TAB, UNDERSCORE, ZERO } from './ascii';
import { equal, VECTOR } from './masks';
import { valueCount, fieldSteps, valueOffsets } from './settings';

const FIRST_NON_ASCII: u32 = 128;
const CLOSING_PARENTHESIS: u32 = 41;
const CLOSING_BRACE: u32 = 125;

/** The numbers of the styles, see `stylesOf` in ../../formats/results.ts: results after a space, or after a tab. */
const SPACED: u32 = 0;
const TABBED: u32 = 1;

/** Returns whether a byte before a key would be a part of it, or makes it a value: after an equals sign, a client may have written it. */
@inline function isKeyByte(byte: u32): bool {
  return (
    (byte | 32) - LETTER_A < 26 ||
    byte - ZERO < 10 ||
    byte == UNDERSCORE ||
    byte == DOT ||
    byte == MINUS ||
    byte == EQUALS ||
    byte >= FIRST_NON_ASCII
  );
}

/** Returns the closing quote of the value whose text begins at `from`, 0 if there is none in the line. */
function closingQuoteIn(from: usize, close: usize): usize {
  for (let at = from; at < close; ) {
    const bytes = v128.load(at);
    const mask = i8x16.bitmask(
      v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH))),
    );
    at += mask == 0 ? 16 : <usize>ctz(mask);
    if (mask == 0 || at >= close) continue;
    if (load<u8>(at) == <u8>QUOTE) return at;
    at += 2;
  }
  return 0;
}

/** Returns where a field's key begins if it is what precedes the equals sign at `at`, otherwise 0. */
@inline function keyStart(field: u32, at: usize, start: usize): usize {
  const step: usize = load<u32>(fieldSteps + <usize>field * STEPS_BYTES);
  const key: usize = load<u32>(step, STEP_VALUE);
  const length: usize = load<u32>(step, STEP_KEY_LENGTH);
  if (at < start + length) return 0;
  const from = at - length;
  for (let i = length; i > 0; i--) if (load<u8>(from + i - 1) != load<u8>(key + i - 1)) return 0;
  return from > start && isKeyByte(load<u8>(from - 1)) ? 0 : from;
}

/**
 * Notes where the values of the fields, and the date, begin in a line; those of quoted ones after the quote.
 *
 * @returns the style of the results: after a tab if a tab is before a key or after its value, as in LEEF
 */
export function findPairs(start: usize, close: usize): u32 {
  memory.fill(valueOffsets, 0, <usize>valueCount << 2);
  let left = valueCount;
  let style = SPACED;
  let quotedEnd = start;
  for (let vector = start; vector < close; vector += VECTOR) {
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);
    for (let signs = equal(a, b, c, d, EQUALS); signs != 0; signs &= signs - 1) {
      const at = vector + <usize>ctz(signs);
      if (at >= close) return style;
      if (at < quotedEnd) continue;
      let value = at + 1;
      if (value < close && load<u8>(value) == <u8>QUOTE) {
        const quote = closingQuoteIn(value + 1, close);
        if (quote != 0) {
          quotedEnd = quote;
          value++;
        }
      }
      for (let field: u32 = 0; field < valueCount; field++) {
        const slot = valueOffsets + (<usize>field << 2);
        if (load<u32>(slot) != 0) continue;
        const key = keyStart(field, at, start);
        if (key == 0) continue;
        store<u32>(slot, <u32>value);
        const end = valueEnd(value, close) + usize(isQuoted(value));
        const isTabbed = (key > start && load<u8>(key - 1) == <u8>TAB) || load<u8>(end) == <u8>TAB;
        if (isTabbed) style = TABBED;
        if (--left == 0) return style;
      }
    }
  }
  return style;
}

@inline function isQuoted(value: usize): bool {
  return load<u8>(value - 1) == <u8>QUOTE;
}

/** Returns the end of the value that begins at an address: its closing quote, or the first byte that no address has. */
export function valueEnd(value: usize, close: usize): usize {
  if (isQuoted(value)) return closingQuoteIn(value, close);
  const isBracketed = load<u8>(value) == <u8>OPENING_BRACKET;
  for (let at = value; at < close; at++) {
    const byte: u32 = load<u8>(at);
    const isEnd =
      byte <= SPACE ||
      byte == COMMA ||
      byte == SEMICOLON ||
      byte == PIPE ||
      byte == QUOTE ||
      byte == CLOSING_PARENTHESIS ||
      byte == CLOSING_BRACE ||
      (byte == CLOSING_BRACKET && !isBracketed);
    if (isEnd) return at;
  }
  return close;
}

/** Returns where the next value of a field's key begins in `from … close`, or 0: of equal keys only the first counts, but all are hidden. */
export function nextValue(field: u32, from: usize, start: usize, close: usize): usize {
  for (let at = from; at < close; at++) {
    if (load<u8>(at) != <u8>EQUALS) continue;
    const isOpen = at + 1 < close && load<u8>(at + 1) == <u8>QUOTE;
    const quote: usize = isOpen ? closingQuoteIn(at + 2, close) : 0;
    if (keyStart(field, at, start) != 0) return at + 1 + usize(quote != 0);
    if (quote != 0) at = quote;
  }
  return 0;
}
