/**
 * Splits an array of JSON objects into lines for the kernel, in place: each comma between two items becomes a newline, and each
 * newline of the text becomes a carriage return, which JSON treats alike. `restoreItems` reverses this. Text with carriage
 * returns of its own is not split.
 *
 * Nothing is checked here: each line must turn out to be an object, and then the text up to there was split correctly.
 */
import { BACKSLASH, CARRIAGE_RETURN, CLOSING_BRACE, COMMA, NEWLINE, OPENING_BRACE, QUOTE } from './ascii';
import {
  BLOCK,
  equal,
  equalEitherCase,
  escapeCarry,
  escapedBytes,
  hasByte,
  nearBrackets,
  prefixXor,
  spread,
} from './masks';

// The state between two blocks: all ones in a string, whether the first byte is escaped, how many brackets are open.
let inString: u64 = 0;
let escaped: u64 = 0;
let depth: i32 = 0;

/** After `splitItems`: the last comma between items, or 0; the bracket that closes the array, or 0; the end of what was split. */
let lastComma: usize = 0;
let closing: usize = 0;
let splitEnd: usize = 0;

export function itemsComma(): usize {
  return lastComma;
}
export function itemsClosing(): usize {
  return closing;
}
export function itemsSplitEnd(): usize {
  return splitEnd;
}

/** Starts at the beginning of the items. */
export function startItems(): void {
  inString = 0;
  escaped = 0;
  depth = 0;
}

/** Replaces newlines by carriage returns in 16 bytes. */
@inline function hideNewlines(at: usize): void {
  const bytes = v128.load(at);
  v128.store(at, v128.bitselect(i8x16.splat(<i8>CARRIAGE_RETURN), bytes, i8x16.eq(bytes, i8x16.splat(<i8>NEWLINE))));
}

/**
 * Splits the items in `from … to`; continues where the last call ended.
 *
 * @returns false if the text cannot be split: it has a carriage return, or something else than a brace before a comma between
 *   items
 */
export function splitItems(from: usize, to: usize): bool {
  lastComma = 0;
  closing = 0;
  for (let block = from; block < to; block += BLOCK) {
    splitEnd = block;
    const a = v128.load(block);
    const b = v128.load(block, 16);
    const c = v128.load(block, 32);
    const d = v128.load(block, 48);
    const size = min(to - block, BLOCK);
    const live = <u64>-1 >> (64 - <u64>size);
    if ((equal(a, b, c, d, CARRIAGE_RETURN) & live) != 0) return false;
    splitEnd = block + size;
    if ((equal(a, b, c, d, NEWLINE) & live) != 0) {
      hideNewlines(block);
      hideNewlines(block + 16);
      hideNewlines(block + 32);
      hideNewlines(block + 48);
    }
    let quotes = equal(a, b, c, d, QUOTE) & live;
    if (hasByte(a, b, c, d, BACKSLASH) || escaped != 0) {
      const backslashes = equal(a, b, c, d, BACKSLASH) & live;
      quotes &= ~escapedBytes(backslashes, escaped);
      if (size == BLOCK) escaped = escapeCarry;
      else {
        // The next byte is escaped if an odd number of backslashes is before it, the first of which may be escaped itself.
        let run = block + size;
        while (run > block && load<u8>(run - 1) == <u8>BACKSLASH) run--;
        escaped = <u64>((block + size - run) & 1) ^ (run == block ? escaped : 0);
      }
    }
    const strings = prefixXor(quotes) ^ inString;
    const commas = equal(a, b, c, d, COMMA) & ~strings & live;
    const brackets = nearBrackets(a, b, c, d) & ~strings & live;
    inString = spread(strings << (64 - <u64>size));
    const openers = brackets != 0 ? equalEitherCase(a, b, c, d, OPENING_BRACE) : 0;
    let separators: u64 = 0;
    let below: u64 = 0;
    for (let left = brackets; left != 0; left &= left - 1) {
      const bit = left & (0 - left);
      if (depth == 0) separators |= commas & (bit - 1) & ~below;
      below = (bit - 1) | bit;
      if ((openers & bit) != 0) depth++;
      else if (depth == 0) {
        closing = block + <usize>ctz(bit);
        left = 0;
        below = -1;
        break;
      } else depth--;
    }
    if (depth == 0) separators |= commas & ~below;
    for (; separators != 0; separators &= separators - 1) {
      lastComma = block + <usize>ctz(separators);
      if (load<u8>(lastComma - 1) != <u8>CLOSING_BRACE) return false;
      store<u8>(lastComma, <u8>NEWLINE);
    }
    if (closing != 0) return true;
  }
  return true;
}

/** Reverses the splitting of `from … to`. */
export function restoreItems(from: usize, to: usize): void {
  const newline = i8x16.splat(<i8>NEWLINE);
  let at = from;
  for (; at + 16 <= to; at += 16) {
    const bytes = v128.load(at);
    const commas = v128.bitselect(i8x16.splat(<i8>COMMA), bytes, i8x16.eq(bytes, newline));
    v128.store(at, v128.bitselect(newline, commas, i8x16.eq(bytes, i8x16.splat(<i8>CARRIAGE_RETURN))));
  }
  for (; at < to; at++) {
    const byte: u32 = load<u8>(at);
    if (byte == NEWLINE) store<u8>(at, <u8>COMMA);
    else if (byte == CARRIAGE_RETURN) store<u8>(at, <u8>NEWLINE);
  }
}
