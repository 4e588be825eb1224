/**
 * The flat-object path, for the lines that most logs consist of: one object without another object or an array in it, and
 * without blanks between its tokens. Such lines are checked by masks, with as few branches as possible, because a branch that
 * depends on the data is often mispredicted. All other lines, valid or not, are left to scan.ts.
 *
 * In such a line each token determines what comes next:
 *
 * | token | next |
 * |---|---|
 * | opening brace (first byte of the line), comma | a string |
 * | colon | a string or a scalar |
 * | string, scalar | comma, closing brace (last byte of the line); after a string also a colon |
 *
 * Also, the opening brace and commas alternate with colons. So a string is a value if and only if a colon comes before it.
 *
 * Stage 1 makes the masks of several blocks and notes *events*: the bytes that stage 2 must look at.
 */
import { FLAT_CHUNK_BYTES } from '../abi';
import { CLOSING_BRACE, COLON, COMMA, NEWLINE, OPENING_BRACE, QUOTE } from './ascii';
import { addLine, flushBatch, isBatchFull } from './batch';
import { keyLengths } from './config';
import { backslashes, escapeErrors, escapeOpen, findEscapes, resetEscapes } from './escapes';
import { clearValues, findFlatKey, flatKeyOpen, isResultKey, noteKey } from './keys';
import { atMost, BLOCK, equal, hasControlOrBackslash, next, prefixXor, spread } from './masks';
import { scalarEnd } from './scalars';
import { events } from './slot';

/** A closing brace and a newline, as one number. */
const BRACE_NEWLINE: u32 = CLOSING_BRACE | (NEWLINE << 8);

/**
 * Returns whether an address has a number or a literal that ends with a comma, or with the closing brace and the newline.
 * Then it has all bytes up to the next separator.
 */
@inline function isScalar(at: usize): bool {
  const end = scalarEnd(at);
  const bytes: u32 = load<u16>(end);
  return end != 0 && ((bytes & 0xff) == COMMA || bytes == BRACE_NEWLINE);
}

/** Returns where control characters are in a block. */
function controls(block: usize): u64 {
  return atMost(v128.load(block), v128.load(block, 16), v128.load(block, 32), v128.load(block, 48), 31);
}

/**
 * Processes lines as long as they are flat objects.
 *
 * @param from first byte of the first line; @param end after the last newline
 * @param inputEnd the end of the input: one byte less, if the last newline is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: it is not flat, or the output is full
 */
export function processFlatLines(from: usize, end: usize, inputEnd: usize): usize {
  clearValues();
  resetEscapes();
  let block = from;
  let lineStart = from;
  // Members of the line that have the key of a result, and the first one's opening quote.
  let replacedCount: u32 = 0;
  let firstReplaced: usize = 0;
  // The distances from the opening quote to the colon for two lengths of wanted keys, which may be the same, and all others.
  const distance1: u64 = ctz(keyLengths) + 2;
  const distance2: u64 = 65 - clz(keyLengths);
  const otherLengths = keyLengths & ~((<u64>1) << (distance1 - 2)) & ~((<u64>1) << (distance2 - 2));

  // Carried from block to block. All ones: a string is open.
  let inString: u64 = 0;
  let opensBefore: u64 = 0;
  // One bit each: the block ended within a value; with a newline, a separator, a scalar.
  let valueCarry: u64 = 1;
  let newlineCarry: u64 = 1;
  let separatorCarry: u64 = 0;
  let scalarCarry: u64 = 0;

  while (true) {
    // Stage 1. The events are the newlines, the colons after keys that may be wanted, and the first bytes of scalars.
    let event = events;
    let errors: u64 = 0;
    const chunkEnd = min(block + FLAT_CHUNK_BYTES, end);
    while (block < chunkEnd) {
      const a = v128.load(block);
      const b = v128.load(block, 16);
      const c = v128.load(block, 32);
      const d = v128.load(block, 48);

      const newlines = equal(a, b, c, d, NEWLINE);
      let quotes = equal(a, b, c, d, QUOTE);
      const isSpecial = hasControlOrBackslash(a, b, c, d) || escapeOpen;
      if (!isSpecial && (quotes | newlines | ~inString) == 0) {
        // Nothing but the text of a string.
        opensBefore = 0;
        block += BLOCK;
        continue;
      }
      // All masks of bytes are made before the call, so that the vectors need not be kept.
      const allColons = equal(a, b, c, d, COLON);
      const allCommas = equal(a, b, c, d, COMMA);
      let escapes: u64 = 0;
      if (isSpecial) {
        quotes &= ~findEscapes(block);
        escapes = backslashes;
        errors = escapeErrors | (controls(block) & ~newlines);
      }
      const strings = prefixXor(quotes) ^ inString;
      const opens = quotes & strings;
      const outside = ~(strings | quotes);
      const colons = allColons & outside;
      const commas = allCommas & outside;
      const starts = next(newlines, newlineCarry);
      const ends = (newlines >> 1) | (u64(load<u8>(block, BLOCK) == <u8>NEWLINE) << 63);
      const members = commas | starts;
      const separators = members | colons;
      // Subtracting sets all bits from a colon up to the next comma or opening brace, if the two alternate. If they do not, the
      // bit of a colon is 0, or that of one of the others is 1.
      const values = members - colons - valueCarry;
      // Everything else outside of strings must be numbers and literals. Stage 2 checks the first and last bytes of lines.
      const scalars = outside & ~(separators | newlines | ends);
      const scalarStarts = scalars & ~next(scalars, scalarCarry);
      errors |=
        (next(separators, separatorCarry) ^ (opens | scalarStarts)) |
        ((values & separators) ^ colons) |
        ((scalars | newlines | escapes) & ~values) |
        (newlines & strings);

      let wanted = (opens << distance1) | (opens << distance2) | (opensBefore >> (64 - distance1)) | (opensBefore >> (64 - distance2));
      for (let lengths = otherLengths; lengths != 0; lengths &= lengths - 1) {
        const distance = ctz(lengths) + 2;
        wanted |= (opens << distance) | (opensBefore >> (64 - distance));
      }
      let left = (wanted & colons) | scalarStarts | newlines;
      if (block + BLOCK > end) {
        const live = ((<u64>1) << <u64>(end - block)) - 1;
        errors &= live;
        left &= live;
      }
      if (errors != 0) left &= (errors & (0 - errors)) - 1;
      // Four at a time, without a branch for each.
      let at = event;
      event += <usize>popcnt(left) << 2;
      do {
        store<u32>(at, <u32>block + <u32>ctz(left));
        left &= left - 1;
        store<u32>(at, <u32>block + <u32>ctz(left), 4);
        left &= left - 1;
        store<u32>(at, <u32>block + <u32>ctz(left), 8);
        left &= left - 1;
        store<u32>(at, <u32>block + <u32>ctz(left), 12);
        left &= left - 1;
        at += 16;
      } while (at < event);
      if (errors != 0) break;

      inString = spread(strings);
      opensBefore = opens;
      valueCarry = values >> 63;
      newlineCarry = newlines >> 63;
      separatorCarry = separators >> 63;
      scalarCarry = scalars >> 63;
      block += BLOCK;
    }

    // Stage 2.
    for (let e = events; e < event; e += 4) {
      const at = <usize>load<u32>(e);
      const byte: u32 = load<u8>(at);
      if (byte == COLON) {
        const key = findFlatKey(at - 1);
        if (key < 0) continue;
        noteKey(key, at);
        if (isResultKey(key)) {
          if (replacedCount == 0) firstReplaced = flatKeyOpen;
          replacedCount++;
        }
      } else if (byte != NEWLINE) {
        if (!isScalar(at)) return lineStart;
      } else {
        if (load<u8>(lineStart) != <u8>OPENING_BRACE || load<u8>(at - 1) != <u8>CLOSING_BRACE) return lineStart;
        addLine(lineStart, lineStart, at - 1, min(at + 1, inputEnd), firstReplaced, replacedCount);
        clearValues();
        replacedCount = 0;
        lineStart = at + 1;
        if (isBatchFull()) {
          const full = flushBatch();
          if (full != 0) return full;
        }
      }
    }
    if (errors != 0 || lineStart >= end) break;
  }
  return lineStart;
}
