/**
 * The short way for the lines that logs are made of: one object without another in it, and no blanks between its tokens. Such
 * a line is checked 64 bytes at a time by masks alone, where the long way (separators.ts, walk.ts) looks at every separator.
 * Any other line, whether it is JSON or not, is left to the long way.
 *
 * In such a line a token says what may stand right behind it:
 *
 * | token | behind it |
 * |---|---|
 * | opening brace (the line's first byte), comma | a string |
 * | colon | a string, a scalar |
 * | string, scalar | comma, closing brace; behind a string also a colon |
 * | closing brace | newline |
 *
 * Braces, colons and commas have to take turns besides: brace, colon, comma, colon, comma, …, colon. That tells keys from
 * values: a string stands behind an odd number of them if and only if it is a value.
 */
import { keyLengths, targetCount } from './config';
import { findTopKey, isAnswerName, noteKey } from './keys';
import { bits, equal, escapedBy, prefixXor } from './masks';
import { addLine, answerLines, isPendingFull } from './pending';
import { found } from './slot';

const NEWLINE: i8 = 10;
const QUOTE: i8 = 34;
const COMMA: i8 = 44;
const COLON: i8 = 58;
const BACKSLASH: i8 = 92;
const BRACE: u32 = 0x7b;
const CLOSING_BRACE: u32 = 0x7d;

/** Why {@link flatLines} stopped, where it did so before the end: the output is full, or the line is none of its kind. */
export let outputFull: bool = false;

/** Longest key that can be found from the quotes of one block and the one before. */
const LONGEST_KEY: u64 = 61;

/** Whether the keys that count are such that lines can go the short way. */
export function goesTheShortWay(): bool {
  return keyLengths >> (LONGEST_KEY + 1) == 0;
}

/** Makes all ones of the bytes that are no part of a scalar: up to the space, brackets and braces, and beyond ASCII. */
@inline function isBetween(bytes: v128): v128 {
  // Signed: brackets, braces and all beyond ASCII become negative; so do some bytes that are in no scalar either.
  const moved = i8x16.add(v128.or(bytes, i8x16.splat(32)), i8x16.splat(5));
  return v128.or(i8x16.lt_s(moved, i8x16.splat(0x26)), i8x16.lt_s(bytes, i8x16.splat(32)));
}

/** All bits the same as the topmost. */
@inline function spread(mask: u64): u64 {
  return <u64>(<i64>mask >> 63);
}

function forget(): void {
  for (let target: u32 = 0; target < targetCount; target++) store<u32>(found + (<usize>target << 2), 0);
}

/**
 * Looks up the key before a colon, which may be one of those that count.
 *
 * @returns whether it is the name of an answer
 */
@inline function noteCandidate(colon: usize): bool {
  const key = findTopKey(colon - 1);
  if (key < 0) return false;
  noteKey(key, colon);
  return isAnswerName(key);
}

/**
 * Works through lines as long as they are flat.
 *
 * @param from first byte of the first line
 * @param end behind the last line's newline, which must be there
 * @param inputEnd the end of the input: before the last newline, where that was not in the input
 * @returns `end`, the last lines waiting for their answers; or the first byte of the first line that was not dealt with
 */
export function flatLines(from: usize, end: usize, inputEnd: usize): usize {
  let base = from;
  let lineStart = from;
  let replaces = false;
  outputFull = false;
  forget();

  // Carried from block to block. All ones: a string is open.
  let inside: u64 = 0;
  // One bit: the block before ended behind a colon and its comma or brace; with an escaping backslash, newline, separator,
  // scalar, closing brace.
  let odd: u64 = 1;
  let escapeCarry: u64 = 0;
  let newlineCarry: u64 = 1;
  let separatorCarry: u64 = 0;
  let scalarCarry: u64 = 0;
  let closerCarry: u64 = 0;
  let opensBefore: u64 = 0;

  while (true) {
    const a = v128.load(base);
    const b = v128.load(base, 16);
    const c = v128.load(base, 32);
    const d = v128.load(base, 48);

    let quotes = equal(a, b, c, d, QUOTE);
    let backslashes: u64 = 0;
    const backslash = i8x16.splat(BACKSLASH);
    const isBackslash = v128.or(
      v128.or(i8x16.eq(a, backslash), i8x16.eq(b, backslash)),
      v128.or(i8x16.eq(c, backslash), i8x16.eq(d, backslash)),
    );
    if (v128.any_true(isBackslash) || escapeCarry != 0) {
      backslashes = equal(a, b, c, d, BACKSLASH);
      const escaped = escapedBy(backslashes, escapeCarry);
      quotes &= ~escaped;
      escapeCarry = (backslashes & ~escaped) >> 63;
    }
    const strings = prefixXor(quotes) ^ inside;
    const opens = quotes & strings;
    const outside = ~(strings | quotes);

    const newlines = equal(a, b, c, d, NEWLINE);
    const starts = (newlines << 1) | newlineCarry;
    const colons = equal(a, b, c, d, COLON) & outside;
    const commas = equal(a, b, c, d, COMMA) & outside;
    const between = bits(isBetween(a), isBetween(b), isBetween(c), isBetween(d)) & outside;
    const members = commas | starts;
    const separators = members | colons;
    // Subtracting sets all bits from a colon up to the next comma or brace, where the two take turns; where they do not, a
    // colon's bit comes out as 0 or one of the others' as 1.
    const values = members - colons - odd;
    const scalars = outside & ~(colons | commas | between);
    const closers = between & ~(newlines | starts);

    const behindSeparators = (separators << 1) | separatorCarry;
    const scalarStarts = scalars & ~((scalars << 1) | scalarCarry);
    const behindClosers = (closers << 1) | closerCarry;
    const wrong =
      (behindSeparators ^ (opens | scalarStarts)) |
      ((values & separators) ^ colons) |
      (behindClosers ^ newlines) |
      ((scalars | newlines | backslashes) & ~values);

    let candidates: u64 = 0;
    for (let left = keyLengths; left != 0; left &= left - 1) {
      const length = ctz(left);
      candidates |= (opens << (length + 2)) | (opensBefore >> (62 - length));
    }
    candidates &= colons;

    let events = newlines | candidates;
    if (wrong != 0) events &= (wrong & (0 - wrong)) - 1;
    for (; events != 0; events &= events - 1) {
      const at = base + <usize>ctz(events);
      if (load<u8>(at) == <u8>COLON) {
        if (noteCandidate(at)) replaces = true;
        continue;
      }
      if (load<u8>(lineStart) != BRACE || load<u8>(at - 1) != CLOSING_BRACE) {
        return lineStart;
      }
      const next = at + 1;
      addLine(lineStart, lineStart, at - 1, min(next, inputEnd), false, replaces);
      if (isPendingFull()) {
        const full = answerLines();
        if (full != 0) {
          outputFull = true;
          return full;
        }
      }
      forget();
      replaces = false;
      lineStart = next;
      if (next >= end) return end;
    }
    if (wrong != 0) return lineStart;

    base += 64;
    inside = spread(strings);
    odd = values >> 63;
    newlineCarry = newlines >> 63;
    separatorCarry = separators >> 63;
    scalarCarry = scalars >> 63;
    closerCarry = closers >> 63;
    opensBefore = opens;
  }
}
