/**
 * Splits an array of a JSON document into lines for the kernel, in place: each comma between two items becomes the terminator
 * `ITEM_END`, which JSON allows nowhere. In the output, `restoreCommas` reverses this.
 *
 * Nothing else is checked here. If an item is not valid, the text after it may be split wrongly; so each line must turn out to be
 * a JSON value before those after it count.
 */
import { ITEM_END } from '../abi';
import { BACKSLASH, COMMA, OPENING_BRACE, QUOTE } from './ascii';
import {
  equal,
  equalEitherCase,
  escapeCarry,
  escapedBytes,
  hasByte,
  nearBrackets,
  prefixXor,
  spread,
  VECTOR,
} from './masks';

// The state between two vectors: all ones in a string, whether the first byte is escaped, how many brackets are open.
let inString: u64 = 0;
let escaped: u64 = 0;
let depth: i32 = 0;

// What `splitItems` has found; 0 if nothing.
/** The end of the last item that a comma follows, after that comma. */
export let itemsEnd: usize = 0;
/** The bracket that closes the array. */
export let closingBracket: usize = 0;
/** A byte that is `ITEM_END` in the text itself, so the text is not JSON. Nothing from its vector on is split. */
export let strayItemEnd: usize = 0;

/** Starts at the beginning of the items. */
export function startItems(): void {
  inString = 0;
  escaped = 0;
  depth = 0;
}

/** Splits the items in `from … to`; continues where the last call ended. Stops after the bracket that closes the array. */
export function splitItems(from: usize, to: usize): void {
  itemsEnd = 0;
  closingBracket = 0;
  strayItemEnd = 0;
  for (let vector = from; vector < to; vector += VECTOR) {
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);
    const size = min(to - vector, VECTOR);
    const live = <u64>-1 >> (64 - <u64>size);
    const stray = equal(a, b, c, d, ITEM_END) & live;
    if (stray != 0) {
      strayItemEnd = vector + <usize>ctz(stray);
      return;
    }
    let quotes = equal(a, b, c, d, QUOTE) & live;
    if (hasByte(a, b, c, d, BACKSLASH) || escaped != 0) {
      const backslashes = equal(a, b, c, d, BACKSLASH) & live;
      quotes &= ~escapedBytes(backslashes, escaped);
      if (size == VECTOR) escaped = escapeCarry;
      else {
        // The next byte is escaped if an odd number of backslashes is before it, the first of which may be escaped itself.
        let run = vector + size;
        while (run > vector && load<u8>(run - 1) == <u8>BACKSLASH) run--;
        escaped = <u64>((vector + size - run) & 1) ^ (run == vector ? escaped : 0);
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
        closingBracket = vector + <usize>ctz(bit);
        below = -1;
        break;
      } else depth--;
    }
    if (depth == 0) separators |= commas & ~below;
    for (; separators != 0; separators &= separators - 1) {
      const comma = vector + <usize>ctz(separators);
      store<u8>(comma, <u8>ITEM_END);
      itemsEnd = comma + 1;
    }
    if (closingBracket != 0) return;
  }
}

/** Makes the commas between items of those terminators again, in `from … to` and up to 15 bytes after it. */
export function restoreCommas(from: usize, to: usize): void {
  const comma = i8x16.splat(<i8>COMMA);
  for (let at = from; at < to; at += 16) {
    const bytes = v128.load(at);
    v128.store(at, v128.bitselect(comma, bytes, i8x16.eq(bytes, i8x16.splat(<i8>ITEM_END))));
  }
}
