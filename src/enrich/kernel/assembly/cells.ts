/**
 * Finds the separators of tables, in vectors of 64 bytes, as RFC 4180 defines them and csv-parse reads them with `relax_quotes`:
 *
 * - A quote opens a quoted cell if it is the first byte of the cell. Elsewhere in an unquoted cell it is text.
 * - In a quoted cell, two quotes are one quote of the text. A single quote ends the quotation. If no separator follows it, the
 *   rest of the cell is text like that of an unquoted cell.
 *
 * So the bytes in quotation are those after an odd number of quotes, provided that quotes in unquoted text are not counted.
 * Of those, the first in each cell is recognized: it would open a quotation, but neither a separator nor a quote is before it.
 *
 * In a table whose records are lines, a quotation that does not end on its line is text: the caller reads that line again. If its
 * delimiter is a space, several count as one.
 */
import { QUOTES_LINE, QUOTES_NONE } from '../abi';
import { NEWLINE, QUOTE, SPACE } from './ascii';
import { delimiter, quotes as quoteRule } from './settings';
import { VECTOR, equal, next, prefixXor } from './masks';

// The state between two vectors.
/** All ones in a quotation. */
let inQuotes: u64 = 0;
/** One bit each: the last byte is a separator, or it is a quote that is not text. */
let separatorCarry: u64 = 1;
let quoteCarry: u64 = 0;

/** The newlines of the last vector that separate records. */
export let recordEnds: u64 = 0;

/** In a table whose records are lines: the first newline of the last vector that is in a quotation, as a bit. */
export let brokenEnd: u64 = 0;
/** Quotes before this address are text. */
let textEnd: usize = 0;

/** Starts at the beginning of a record; quotes before an address are text. */
export function startCells(quotesFrom: usize = 0): void {
  textEnd = quotesFrom;
  brokenEnd = 0;
  inQuotes = 0;
  separatorCarry = 1;
  quoteCarry = 0;
}

/**
 * Returns the delimiters and newlines of a vector that are separators, and sets `recordEnds`.
 *
 * @param size number of bytes of the vector that are read: 64 except at the end of the input
 */
@inline export function separatorsOf(vector: usize, size: usize): u64 {
  const a = v128.load(vector);
  const b = v128.load(vector, 16);
  const c = v128.load(vector, 32);
  const d = v128.load(vector, 48);
  const last: u64 = <u64>size - 1;
  const live = <u64>-1 >> (63 - last);
  const newlines = equal(a, b, c, d, NEWLINE) & live;
  let candidates = (equal(a, b, c, d, delimiter) & live) | newlines;
  let quotes = equal(a, b, c, d, QUOTE) & live;
  if (quoteRule == QUOTES_NONE) quotes = 0;
  else if (quoteRule == QUOTES_LINE) {
    if (delimiter == SPACE) {
      // Of several spaces, the last one is the delimiter.
      const beyond = u64(load<u8>(vector, 64) == <u8>SPACE) << 63;
      candidates &= newlines | ~(((candidates & ~newlines) >> 1) | beyond);
    }
    if (textEnd > vector) quotes &= textEnd - vector >= VECTOR ? 0 : <u64>-1 << <u64>(textEnd - vector);
  }
  if ((quotes | inQuotes) == 0) {
    recordEnds = newlines;
    separatorCarry = (candidates >> last) & 1;
    quoteCarry = 0;
    return candidates;
  }
  let quoted: u64 = 0;
  while (true) {
    quoted = prefixXor(quotes) ^ inQuotes;
    const mayOpen = next(candidates & ~quoted, separatorCarry) | next(quotes, quoteCarry);
    const text = quotes & quoted & ~mayOpen;
    if (text == 0) break;
    // This quote and those after it in its cell are text.
    const first = text & (0 - text);
    const after = candidates & ~((first << 1) - 1);
    quotes &= ~((after & (0 - after)) - first);
  }
  recordEnds = newlines & ~quoted;
  if (quoteRule == QUOTES_LINE) {
    brokenEnd = newlines & quoted & (0 - (newlines & quoted));
    // All bits without a broken line.
    recordEnds &= brokenEnd - 1;
  }
  const separators = candidates & ~quoted;
  separatorCarry = (separators >> last) & 1;
  quoteCarry = (quotes >> last) & 1;
  inQuotes = 0 - ((quoted >> last) & 1);
  return separators;
}

/** The bits of a state outside of this module. */
const IN_QUOTES: u32 = 1;
const AFTER_SEPARATOR: u32 = 2;
const AFTER_QUOTE: u32 = 4;

/** Returns the state after the last vector, see `findRecords`. Bit 0 is set in a quotation. */
export function cellState(): u32 {
  return (
    (inQuotes != 0 ? IN_QUOTES : 0) |
    (separatorCarry != 0 ? AFTER_SEPARATOR : 0) |
    (quoteCarry != 0 ? AFTER_QUOTE : 0)
  );
}

/**
 * Finds the end of the last record that ends in `from … to`.
 *
 * @param state what `cellState` returned after the bytes before; `AFTER_SEPARATOR` at the beginning of a record
 * @returns the address after the newline of that record, or 0
 */
export function findRecords(from: usize, to: usize, state: u32): usize {
  inQuotes = 0 - <u64>(state & IN_QUOTES);
  separatorCarry = u64((state & AFTER_SEPARATOR) != 0);
  quoteCarry = u64((state & AFTER_QUOTE) != 0);
  let found: usize = 0;
  for (let vector = from; vector < to; vector += VECTOR) {
    separatorsOf(vector, min(to - vector, VECTOR));
    if (recordEnds != 0) found = vector + 64 - <usize>clz(recordEnds);
  }
  return found;
}

/** Whether a record ended with the line that was found last. */
let endsRecord: bool = false;

export function isRecord(): bool {
  return endsRecord;
}

/** Reads a line as the beginning of a record. Returns the address after its newline, or 0 if there is none in `from … to`. */
export function findLine(from: usize, to: usize): usize {
  startCells();
  for (let vector = from; vector < to; vector += VECTOR) {
    const size = min(to - vector, VECTOR);
    separatorsOf(vector, size);
    const newlines = newlinesOf(vector, size);
    if (newlines == 0) continue;
    endsRecord = (newlines & (0 - newlines) & recordEnds) != 0;
    return vector + <usize>ctz(newlines) + 1;
  }
  return 0;
}

/** Returns the newlines among the first bytes of a vector. */
@inline function newlinesOf(vector: usize, size: usize): u64 {
  const newlines = equal(v128.load(vector), v128.load(vector, 16), v128.load(vector, 32), v128.load(vector, 48), NEWLINE);
  return newlines & (<u64>-1 >> (64 - <u64>size));
}

/** Returns the number of newlines in `from … to`. */
export function countNewlines(from: usize, to: usize): u32 {
  let count: u32 = 0;
  for (let vector = from; vector < to; vector += VECTOR) {
    count += <u32>popcnt(newlinesOf(vector, min(to - vector, VECTOR)));
  }
  return count;
}
