/**
 * The template path, for lines with the same text around their values as a line before. Most lines of a log have the keys of one of
 * a few lines in the same order, and differ in strings, numbers and literals only.
 *
 * A template is made of a line that is known to be valid. It is a list of entries: up to 16 bytes of fixed text, and what
 * follows: a string, a scalar (a number or a literal), the rest of a longer text, or the next line.
 *
 * ```
 * {"ip":"192.0.2.1","status":200}⏎      {"ip":"  string  ","status":  scalar  }⏎
 * ```
 *
 * Templates that begin alike share these entries: they are a tree. An entry has the address of another one, which is compared in its
 * place if a line does not have it.
 *
 * A line has a template if its fixed text is equal, byte for byte, each string has no control character and only valid escapes
 * (RFC 8259, section 7), and each scalar is valid. Then it has the same tokens as the line of the template, so it is valid as
 * well. All other lines, valid or not, are left to the general path (process.ts).
 */
import {
  NO_LENGTH,
  TEMPLATE_CLOSE_DISTANCE,
  TEMPLATE_ENTRIES,
  TEMPLATE_ENTRY_BYTES,
  TEMPLATE_EXPECTED,
  TEMPLATE_KIND,
  TEMPLATE_LENGTH,
  TEMPLATE_MASK,
  TEMPLATE_OFFSET_SLOT,
  TEMPLATE_OPEN_DISTANCE,
  TEMPLATE_OTHER,
  TEMPLATE_SURPRISE,
  TEMPLATE_TEXT,
  TEMPLATE_VALUE_DISTANCE,
} from '../abi';
import {
  BACKSLASH,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COLON,
  COMMA,
  isBlank,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
  skipBlanks,
} from './ascii';
import { addLine, flushBatch, isBatchFull, isLastLine, lastLineValue } from './batch';
import { escapeEnd } from './escapes';
import { clearValues } from './keys';
import { scalarEnd } from './scalars';
import { fieldTargets, unread, template, terminator, valueCount, valueOffsets } from './settings';
import { closingQuote } from './strings';

/** What follows the text of an entry. */
const TEXT: u32 = 0;
const STRING: u32 = 1;
const SCALAR: u32 = 2;
const END: u32 = 3;

const ENTRY_TEXT_BYTES: usize = 16;

/** The end of the entries; equal to `template` if there is no template. */
let templateEnd: usize = 0;

/** Returns all ones for the bytes that end a string, begin an escape, or do not belong in a string. */
@inline function isStringEnd(bytes: v128): v128 {
  return v128.or(
    v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>BACKSLASH))),
    i8x16.le_u(bytes, i8x16.splat(31)),
  );
}

/** Returns the end of the text of a string: its closing quote, or a byte with which the string is not valid. */
@inline function stringEnd(at: usize): usize {
  while (true) {
    const first = <u32>i8x16.bitmask(isStringEnd(v128.load(at)));
    let ends = first | (<u32>i8x16.bitmask(isStringEnd(v128.load(at, 16))) << 16);
    let next = at + 32;
    while (ends != 0) {
      const stop = at + <usize>ctz(ends);
      if (load<u8>(stop) != <u8>BACKSLASH) return stop;
      const end = escapeEnd(stop);
      if (end == 0) return stop;
      next = max(next, end);
      // What follows the escape is in the same vector.
      ends &= <u32>(~(<u64>0) << <u64>(end - at));
    }
    at = next;
  }
}

/** Bytes within which a second value of another length than expected shows that the length varies. */
const SURPRISE_LEAST: usize = 4096;

/** Notes that the value of an entry has another length than expected. If that is no exception, none is expected any more. */
@inline function noteSurprise(entry: usize, lineStart: usize): void {
  if (lineStart - load<u32>(entry, TEMPLATE_SURPRISE) < SURPRISE_LEAST) store<u32>(entry, NO_LENGTH, TEMPLATE_EXPECTED);
  store<u32>(entry, <u32>lineStart, TEMPLATE_SURPRISE);
}

/**
 * Processes lines as long as they have a template.
 *
 * @param from first byte of the first line; @param end after the last newline
 * @param inputEnd the end of the input: one byte less, if the last newline is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: it does not have a template, or the output is
 *   full
 */
export function processTemplateLines(from: usize, end: usize, inputEnd: usize): usize {
  if (templateEnd == template) return from;
  let lineStart = from;
  while (lineStart < end) {
    clearValues();
    let at = lineStart;
    let entry = template;
    while (true) {
      const difference = v128.xor(v128.load(at), v128.load(entry, TEMPLATE_TEXT));
      if (!v128.any_true(v128.and(difference, v128.load(entry, TEMPLATE_MASK)))) {
        let next = at + load<u32>(entry, TEMPLATE_LENGTH);
        store<u32>(load<u32>(entry, TEMPLATE_OFFSET_SLOT), <u32>next - load<u32>(entry, TEMPLATE_VALUE_DISTANCE));
        const kind = load<u32>(entry, TEMPLATE_KIND);
        if (kind == STRING || kind == SCALAR) {
          const end = kind == STRING ? stringEnd(next) : scalarEnd(next);
          next += load<u32>(entry, TEMPLATE_EXPECTED);
          // The processor predicts that they are equal, and goes on before it knows the end.
          if (next != end) {
            next = end;
            noteSurprise(entry, lineStart);
          }
        }
        if (next != 0) {
          at = next;
          if (kind == END) break;
          entry += TEMPLATE_ENTRY_BYTES;
          continue;
        }
      }
      entry = load<u32>(entry, TEMPLATE_OTHER);
      if (entry == 0) return lineStart;
    }
    const open = lineStart + load<u32>(entry, TEMPLATE_OPEN_DISTANCE);
    addLine(lineStart, open, at - load<u32>(entry, TEMPLATE_CLOSE_DISTANCE), min(at, inputEnd), 0, 0);
    lineStart = at;
    if (isBatchFull()) {
      const full = flushBatch();
      if (full != 0) return full;
    }
  }
  return lineStart;
}

/** Adds an entry. Returns whether there was room, and at most one wanted value begins in the text. */
function addEntry(from: usize, length: usize, kind: u32): bool {
  const entry = templateEnd;
  if (entry == template + TEMPLATE_ENTRIES * TEMPLATE_ENTRY_BYTES) return false;
  const mask = i8x16.lt_u(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<i8>length));
  v128.store(entry, v128.and(v128.load(from), mask), TEMPLATE_TEXT);
  v128.store(entry, mask, TEMPLATE_MASK);
  store<u32>(entry, <u32>length, TEMPLATE_LENGTH);
  store<u32>(entry, kind, TEMPLATE_KIND);
  // Without a wanted value, the offset goes to a place where nothing reads it.
  let slot = unread;
  let distance: usize = 0;
  for (let field: u32 = 0; field < valueCount; field++) {
    const colon = lastLineValue(field);
    if (colon - from >= length) continue;
    const wanted = valueOffsets + (<usize>load<u32>(fieldTargets + (<usize>field << 2)) << 2);
    if (slot != unread && slot != wanted) return false;
    slot = wanted;
    distance = from + length - colon;
  }
  store<u32>(entry, <u32>slot, TEMPLATE_OFFSET_SLOT);
  store<u32>(entry, <u32>distance, TEMPLATE_VALUE_DISTANCE);
  store<u32>(entry, 0, TEMPLATE_OTHER);
  templateEnd = entry + TEMPLATE_ENTRY_BYTES;
  return true;
}

/**
 * Adds the entries of the fixed text `from … to`. Returns whether that was possible. That of a scalar is shorter than all the text of an
 * entry: a longer text that begins like it must be another entry, which is compared if there is no scalar.
 */
function addText(from: usize, to: usize, kind: u32): bool {
  const most = kind == SCALAR ? ENTRY_TEXT_BYTES - 1 : ENTRY_TEXT_BYTES;
  while (to - from > most) {
    if (!addEntry(from, ENTRY_TEXT_BYTES, TEXT)) return false;
    from += ENTRY_TEXT_BYTES;
  }
  return addEntry(from, to - from, kind);
}

/** Expects values of a length after the entry that was added last. */
@inline function expectLength(length: usize): void {
  store<u32>(templateEnd - TEMPLATE_ENTRY_BYTES, <u32>length, TEMPLATE_EXPECTED);
  store<u32>(templateEnd - TEMPLATE_ENTRY_BYTES, 0, TEMPLATE_SURPRISE);
}

/** Returns whether a byte outside of strings belongs to a number or a literal, in a valid line. */
function isScalarByte(byte: u32): bool {
  return (
    byte != COMMA &&
    byte != COLON &&
    byte != OPENING_BRACE &&
    byte != CLOSING_BRACE &&
    byte != OPENING_BRACKET &&
    byte != CLOSING_BRACKET &&
    byte != terminator &&
    !isBlank(byte)
  );
}

/** Makes entries of a valid line. Returns whether that was possible. */
function addEntries(start: usize): bool {
  let text = start;
  let at = start;
  while (true) {
    const byte: u32 = load<u8>(at);
    if (byte == terminator) return addText(text, at + 1, END);
    if (byte == QUOTE) {
      const close = closingQuote(at + 1);
      const next = skipBlanks(close + 1);
      // A key is part of the fixed text.
      if (load<u8>(next) != <u8>COLON) {
        if (!addText(text, at + 1, STRING)) return false;
        expectLength(close - at - 1);
        text = close;
      }
      at = close + 1;
    } else if (isScalarByte(byte)) {
      if (!addText(text, at, SCALAR)) return false;
      text = at;
      while (isScalarByte(load<u8>(at))) at++;
      expectLength(at - text);
      text = at;
    } else at++;
  }
}

/** Joins the entries from `added` on, which are those of one line, with those before them. */
function join(added: usize): void {
  let entry = template;
  for (let own = added; own < templateEnd; own += TEMPLATE_ENTRY_BYTES) {
    while (memory.compare(entry, own, TEMPLATE_OTHER) != 0) {
      const other: usize = load<u32>(entry, TEMPLATE_OTHER);
      if (other == 0) {
        // Those before it were there already.
        store<u32>(entry, <u32>added, TEMPLATE_OTHER);
        memory.copy(added, own, templateEnd - own);
        templateEnd -= own - added;
        return;
      }
      entry = other;
    }
    entry += TEMPLATE_ENTRY_BYTES;
  }
  templateEnd = added;
}

/**
 * Adds the template of a line, if it is the last one of the batch, which has valid lines only. Lines with members to replace
 * have no template. If there is no room, the others are forgotten.
 *
 * @param start its first byte; @param end after its newline
 */
export function addTemplate(start: usize, end: usize): void {
  if (!isLastLine(start)) return;
  let added = templateEnd;
  if (!addEntries(start)) {
    added = templateEnd = template;
    if (!addEntries(start)) {
      templateEnd = template;
      return;
    }
  }
  let close = end - 1;
  while (load<u8>(close) != <u8>CLOSING_BRACE) close--;
  const last = templateEnd - TEMPLATE_ENTRY_BYTES;
  store<u32>(last, <u32>(skipBlanks(start) - start), TEMPLATE_OPEN_DISTANCE);
  store<u32>(last, <u32>(end - close), TEMPLATE_CLOSE_DISTANCE);
  if (added != template) join(added);
}

/** Forgets the templates. Must be called before the first line of an instance. */
export function resetTemplates(): void {
  templateEnd = template;
}
