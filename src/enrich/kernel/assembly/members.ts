/** The members of a valid line: those that are replaced, and the results. */
import {
  DATE_BYTES,
  GAP_ADDRESS,
  GAP_ASN,
  GAP_BLOCK,
  GAP_BYTES,
  GAP_DATE,
  GAP_KIND,
  GAP_NAME,
  GAP_NETWORKS,
  GAP_TEXTS,
  INSERT_BYTES,
  INSERT_GAP_COUNT,
  INSERT_GAPS,
  INSERT_TEXTS,
  KEPT_LENGTH,
  KEPT_ROW,
  KEPT_STATE,
  LONGEST_INDENT,
  NETWORK_ASN,
  NETWORK_BYTES,
  NETWORK_NAME,
  NETWORK_NAME_LENGTH,
  NO_PREFIX,
  ROW_NETWORK,
  TEXT_BYTES,
} from '../abi';
import { CASE_BIT, CLOSING_BRACE, COMMA, isBlank, NEWLINE, OPENING_BRACE, QUOTE, skipBlanks } from './ascii';
import { blockPrefix, putBlock } from './blocks';
import { findEscapedKey, isResultKey } from './keys';
import { keptOfValue } from './lookup';
import { dates, inserts, keptOfValues, recordCount, terminator } from './settings';
import { put, putByte, putInputTo, putNumber, skipInputTo, trimOutput } from './slot';
import { closingQuote } from './strings';

/** Returns the first quote, comma, bracket or brace at an address or after it. */
@inline function structureFrom(at: usize): usize {
  while (true) {
    const bytes = v128.load(at);
    const lower = v128.or(bytes, i8x16.splat(<i8>CASE_BIT));
    const mask = i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(bytes, i8x16.splat(<i8>QUOTE)), i8x16.eq(bytes, i8x16.splat(<i8>COMMA))),
        v128.or(i8x16.eq(lower, i8x16.splat(<i8>OPENING_BRACE)), i8x16.eq(lower, i8x16.splat(<i8>CLOSING_BRACE))),
      ),
    );
    if (mask != 0) return at + ctz(mask);
    at += 16;
  }
}

/** Returns the end of the member or element that `at` is in, outside of its strings: the comma, or the closing bracket or brace. */
export function memberEnd(at: usize): usize {
  let depth: u32 = 0;
  while (true) {
    at = structureFrom(at);
    const byte: u32 = load<u8>(at);
    if (byte == QUOTE) at = closingQuote(at + 1);
    else if (byte == COMMA) {
      if (depth == 0) return at;
    } else if ((byte | CASE_BIT) == OPENING_BRACE) depth++;
    else if (depth == 0) return at;
    else depth--;
    at++;
  }
}

/** Returns whether the member that begins at an address has the key of a result. */
function isReplaced(at: usize): bool {
  at = skipBlanks(at);
  const node = findEscapedKey(0, at, closingQuote(at + 1));
  return node >= 0 && isResultKey(node);
}

/**
 * Puts out a line's members except those that are replaced. A member is everything between two commas, blanks included. It is
 * left out together with one of the two; every other byte stays.
 *
 * @param open the object's opening brace; @param close its closing brace
 * @param first the opening quote of the first member that is replaced; @param count how many are
 * @returns whether a member is left
 */
export function putKeptMembers(open: usize, close: usize, first: usize, count: u32): bool {
  let from = first;
  while (isBlank(load<u8>(from - 1))) from--;
  let left = from != open + 1;
  putInputTo(left ? from - 1 : from);
  while (count > 0) {
    const end = memberEnd(from);
    if (isReplaced(from)) count--;
    else {
      if (left) putByte(<u8>COMMA);
      skipInputTo(from);
      putInputTo(end);
      left = true;
    }
    from = end + 1;
  }
  // `from` is after the comma or the closing brace that follows the last replaced member.
  if (from <= close) {
    skipInputTo(left ? from - 1 : from);
    putInputTo(close);
    return true;
  }
  skipInputTo(close);
  return left;
}

@inline function putText(text: usize): void {
  put(load<u32>(text), load<u32>(text, 4));
}

/**
 * Puts out what differs within a record.
 *
 * @param kept what is kept of the address
 */
function putGap(gap: usize, kept: usize): void {
  const kind = load<u32>(gap, GAP_KIND);
  const texts: usize = load<u32>(gap, GAP_TEXTS);
  let prefix: u32 = 0;
  let network: usize = 0;
  let isNothing = false;
  if (kind == GAP_BLOCK) {
    prefix = blockPrefix(kept);
    isNothing = prefix == NO_PREFIX;
  } else if (kind == GAP_ASN || kind == GAP_NAME) {
    const row: usize = load<u32>(kept, KEPT_ROW);
    network = <usize>load<u32>(gap, GAP_NETWORKS) + <usize>load<u32>(row, ROW_NETWORK) * NETWORK_BYTES;
    isNothing = (kind == GAP_ASN ? load<u32>(network, NETWORK_ASN) : load<u32>(network, NETWORK_NAME_LENGTH)) == 0;
  }
  if (isNothing) {
    putText(texts + 2 * TEXT_BYTES);
    return;
  }
  putText(texts);
  if (kind == GAP_ADDRESS) put(kept, load<u32>(kept, KEPT_LENGTH));
  else if (kind == GAP_BLOCK) putBlock(kept, prefix);
  else if (kind == GAP_DATE) put(dates + <usize>load<u32>(kept, KEPT_STATE) * DATE_BYTES, DATE_BYTES);
  else if (kind == GAP_ASN) putNumber(load<u32>(network, NETWORK_ASN));
  else putText(network + NETWORK_NAME);
  putText(texts + TEXT_BYTES);
}

/**
 * Puts out what is inserted for a value from its byte `skip` on: the text for no result if the value has no record.
 *
 * @param insert see `INSERT_…` in ../abi.ts
 */
@inline export function putInsert(insert: usize, value: usize, skip: u32): void {
  const record = min(load<u32>(value), recordCount);
  // Gaps are filled with what is kept of the addresses.
  if (keptOfValues != 0) {
    putWithGaps(insert, record, value, skip);
    return;
  }
  const text = <usize>load<u32>(insert, INSERT_TEXTS) + <usize>record * TEXT_BYTES;
  put(load<u32>(text) + skip, load<u32>(text, 4) - skip);
}

/** The same for a text with gaps: they are filled if the value has a record. */
function putWithGaps(insert: usize, record: u32, value: usize, skip: u32): void {
  const gaps = load<u32>(insert, INSERT_GAP_COUNT);
  let text = <usize>load<u32>(insert, INSERT_TEXTS) + <usize>(record * (gaps + 1)) * TEXT_BYTES;
  put(load<u32>(text) + skip, load<u32>(text, 4) - skip);
  if (record == recordCount) return;
  const gap: usize = load<u32>(insert, INSERT_GAPS);
  const kept = keptOfValue(value);
  for (let i: u32 = 0; i < gaps; i++) {
    putGap(gap + <usize>i * GAP_BYTES, kept);
    text += TEXT_BYTES;
    putText(text);
  }
}

/**
 * Puts out results as members of an object, whose other members are in the output.
 *
 * @param open its opening brace; @param close its closing brace; @param hasMember whether a member of it is in the output
 * @param fields the fields, one bit each; @param value the records of the line
 */
@inline export function putMembers(open: usize, close: usize, hasMember: bool, fields: u64, value: usize): void {
  const isIndented = terminator != NEWLINE;
  if (isIndented) startIndent(open, close);
  for (let left = fields; left != 0; left &= left - 1) {
    const field = <u32>ctz(left);
    if (isIndented) putSeparator(hasMember, indent, indentLength);
    putInsert(inserts + <usize>field * INSERT_BYTES, value + (<usize>field << 2), u32(isIndented || !hasMember));
    hasMember = true;
  }
  if (isIndented) endIndent(close);
}

/** In a document, the white space before the first member of an object, and what of it is repeated; the white space at its end. */
export let indent: usize = 0;
export let indentLength: usize = 0;
export let indentTail: usize = 0;

/**
 * In a document, the white space before the first member of an object is repeated before each result, and that before the closing
 * brace stays there, so that an indented object stays indented. `startIndent` must be called before the first result, and
 * `endIndent` after the last one with the same `indentTail`.
 */
export function startIndent(open: usize, close: usize): void {
  indent = open + 1;
  const first = skipBlanks(indent);
  indentTail = close;
  if (first < close) while (isBlank(load<u8>(indentTail - 1))) indentTail--;
  indentLength = first - indent <= <usize>LONGEST_INDENT ? first - indent : 0;
  trimOutput();
}

@inline export function endIndent(close: usize): void {
  put(indentTail, close - indentTail);
}

/** Puts out what is between two members of an object: a comma, and white space. */
@inline export function putSeparator(hasMember: bool, blanks: usize, length: usize): void {
  if (hasMember) putByte(<u8>COMMA);
  put(blanks, length);
}
