/**
 * The first step over the input: finds all separators, 64 bytes at a time.
 *
 * For each block of 64 bytes a mask says, bit by bit, where a certain byte stands. Strings come first: a quote that no
 * backslash escapes opens or closes one, so a byte is inside a string where the number of quotes before it is odd. Outside
 * of strings stand separators (`{` `[` `}` `]` `:` `,` and newline), blanks, and scalars: runs of any other bytes, such as
 * numbers, `true`, `null`. How scalars are spelled is not checked.
 *
 * Between two separators there can be one string or one scalar. That there are two shows here, for a whole block at once:
 * the carry of an addition runs from the end of a value through a run of blanks and sets the bit behind it, where no other
 * value may begin. Everything else is for the second step, walk.ts.
 *
 * A newline ends its line wherever it stands. Inside of a string it means that the string was never closed, and that quotes
 * were paired wrongly from there on: so the next block begins right behind it, afresh.
 */

import { bits, equal, escapedBy, prefixXor } from './masks';

/** Set in an entry that stands for a breach, not for a separator. Addresses stay below it. */
export const BREACH: u32 = 0x8000_0000;

/** Most entries that one block adds: each byte a separator and a breach. */
const BLOCK_ENTRIES: u32 = 128;

/** Where the next block begins. */
let base: usize = 0;
/** Whether a backslash has been met. */
export let escapes: bool = false;

// Carried from block to block: all ones where a string is open, and for the rest one bit.
let inside: u64 = 0;
let escapeCarry: u64 = 0;
let scalarCarry: u64 = 0;
let valueCarry: u64 = 0;

function beginAt(at: usize): void {
  base = at;
  inside = 0;
  escapeCarry = 0;
  scalarCarry = 0;
  valueCarry = 0;
}

/** Begins with a line. */
export function startSeparators(at: usize): void {
  beginAt(at);
  escapes = false;
}

/** Where a space or a byte below it stands. */
@inline function control(a: v128, b: v128, c: v128, d: v128): u64 {
  const space = i8x16.splat(32);
  return bits(i8x16.le_u(a, space), i8x16.le_u(b, space), i8x16.le_u(c, space), i8x16.le_u(d, space));
}

/** For the low half of a byte, the separator that ends in it, with bit 5 set. */
const SEPARATORS = i8x16(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x7b, 0x2c, 0x7d, 0, 0);

/**
 * Makes the separators' bytes all ones. Bit 5 is where `[` and `{`, and `]` and `}`, differ. Two control characters come out
 * as separators as well; they have no place outside of strings, and the second step refuses them.
 */
@inline function isSeparator(bytes: v128): v128 {
  const candidates = i8x16.swizzle(SEPARATORS, v128.and(bytes, i8x16.splat(15)));
  return i8x16.eq(candidates, v128.or(bytes, i8x16.splat(32)));
}

/** Writes the addresses of separators and breaches in order; of the same byte, the breach first. */
function addBreaches(into: usize, from: usize, separators: u64, breaches: u64): usize {
  for (let left = separators | breaches; left != 0; left &= left - 1) {
    const bit = left & (0 - left);
    const at = <u32>from + <u32>ctz(left);
    if ((breaches & bit) != 0) {
      store<u32>(into, at | BREACH);
      into += 4;
    }
    if ((separators & bit) != 0) {
      store<u32>(into, at);
      into += 4;
    }
  }
  return into;
}

/** Writes the addresses of separators. Always eight at a time: how many a block has cannot be foreseen. */
@inline function addSeparators(into: usize, from: usize, separators: u64): usize {
  const end = into + (<usize>popcnt(separators) << 2);
  let next = into;
  do {
    for (let i = 0; i < 8; i++) {
      store<u32>(next, <u32>from + <u32>ctz(separators), 0);
      separators &= separators - 1;
      next += 4;
    }
  } while (next < end);
  return end;
}

/**
 * Finds the next separators.
 *
 * @param index receives their addresses in order, 4 bytes each, breaches among them
 * @param capacity entries that it takes, at least 256
 * @param end of the input
 * @returns where the entries end
 */
export function findSeparators(index: usize, capacity: u32, end: usize): usize {
  let into = index;
  const full = index + (<usize>(capacity - BLOCK_ENTRIES) << 2);
  while (base < end && into <= full) {
    const a = v128.load(base);
    const b = v128.load(base, 16);
    const c = v128.load(base, 32);
    const d = v128.load(base, 48);

    // Strings.
    let quotes = equal(a, b, c, d, 34);
    let strays: u64 = 0;
    const backslash = i8x16.splat(92);
    const isBackslash = v128.or(
      v128.or(i8x16.eq(a, backslash), i8x16.eq(b, backslash)),
      v128.or(i8x16.eq(c, backslash), i8x16.eq(d, backslash)),
    );
    if (v128.any_true(isBackslash) || escapeCarry != 0) {
      const backslashes = equal(a, b, c, d, 92);
      const escaped = escapedBy(backslashes, escapeCarry);
      quotes &= ~escaped;
      escapeCarry = (backslashes & ~escaped) >> 63;
      escapes = true;
      strays = backslashes;
    }
    const strings = prefixXor(quotes) ^ inside;
    const closes = quotes & ~strings;
    const outside = ~(strings | closes);

    // Separators and blanks. Where there is nothing below a space but newlines, there are no blanks: the rule in logs.
    const newlines = equal(a, b, c, d, 10);
    let separators = (bits(isSeparator(a), isSeparator(b), isSeparator(c), isSeparator(d)) & outside) | newlines;
    let blanks = control(a, b, c, d) & outside & ~newlines;
    if (blanks != 0) blanks = (equal(a, b, c, d, 32) | equal(a, b, c, d, 9) | equal(a, b, c, d, 13)) & outside;

    // Values that follow a value.
    const scalars = outside & ~(separators | blanks);
    const behindScalars = (scalars << 1) | scalarCarry;
    const valueStarts = (quotes & strings) | (scalars & ~behindScalars);
    const behindValues = (closes << 1) | valueCarry | (behindScalars & ~scalars);
    const run = (behindValues & blanks) + blanks;
    let breaches = (valueStarts & (run | behindValues) & ~blanks) | (strays & outside);

    const from = base;
    const unclosed = newlines & strings;
    if (unclosed != 0) {
      const bit = unclosed & (0 - unclosed);
      const upTo = bit | (bit - 1);
      separators &= upTo;
      breaches = (breaches & upTo) | bit;
      beginAt(base + <usize>ctz(bit) + 1);
    } else {
      base += 64;
      inside = <u64>(<i64>strings >> 63);
      scalarCarry = scalars >> 63;
      valueCarry = (closes >> 63) | u64(run < blanks);
    }
    into = breaches == 0 ? addSeparators(into, from, separators) : addBreaches(into, from, separators, breaches);
  }
  return into;
}
