/**
 * Finds the ends of JSON objects that are one after the other: with or without a line break or a comma between them, on several lines, or
 * each after the byte 0x1E (RFC 7464).
 *
 * A record begins after blanks, commas and that byte. An object ends with its last brace, any other text with its line. A line break in a string,
 * or that byte in an object, is in no valid JSON, so the record ends there and the next one begins.
 */
import { ITEM_END } from '../abi';
import { BACKSLASH, CASE_BIT, CLOSING_BRACE, COMMA, isBlank, NEWLINE, OPENING_BRACE, QUOTE } from './ascii';
import { processObjects } from './process';
import { terminator } from './settings';

// The state between two bytes: how many brackets are open; whether it is in a string, the next byte of a string is escaped, the record has
// begun.
let depth: u32 = 0;
let isInString: bool = false;
let isEscaped: bool = false;
let hasText: bool = false;

/** Returns whether a byte may be between two records. */
@inline function isSeparator(byte: u32): bool {
  return isBlank(byte) || byte == COMMA || byte == ITEM_END;
}

/** Starts at the beginning of a record. */
export function startObject(): void {
  depth = 0;
  isInString = false;
  isEscaped = false;
  hasText = false;
}

/** Returns the end of the record that goes on in `from … to`, or 0; continues where the last call ended. */
export function objectEnd(from: usize, to: usize): usize {
  for (let at = from; at < to; at++) {
    const byte: u32 = load<u8>(at);
    let end: usize = 0;
    if (byte == ITEM_END) {
      if (hasText) end = at;
    } else if (isInString) {
      if (isEscaped) isEscaped = false;
      else if (byte == BACKSLASH) isEscaped = true;
      else if (byte == QUOTE) isInString = false;
      if (byte == NEWLINE) end = at + 1;
    } else if (byte == QUOTE) {
      isInString = true;
      hasText = true;
    } else if ((byte | CASE_BIT) == OPENING_BRACE) {
      depth++;
      hasText = true;
    } else if ((byte | CASE_BIT) == CLOSING_BRACE) {
      hasText = true;
      if (depth > 0 && --depth == 0) end = at + 1;
    } else if (isBlank(byte) || (byte == COMMA && !hasText)) {
      if (byte == NEWLINE && depth == 0 && hasText) end = at + 1;
    } else hasText = true;
    if (end != 0) {
      startObject();
      return end;
    }
  }
  return 0;
}

/** Returns the end of the last record that ends in `from … to`, or 0; continues where the last call ended. */
export function lastObjectEnd(from: usize, to: usize): usize {
  let last: usize = 0;
  for (let end = objectEnd(from, to); end != 0; end = objectEnd(end, to)) last = end;
  return last;
}

/**
 * Processes the records in `from … inputEnd`, each as a line whose terminator is in the place of the byte after it.
 *
 * @returns one byte after `inputEnd`, or the first byte of the first record that was not processed, as `processObjects` does
 */
export function processSequence(from: usize, inputEnd: usize): usize {
  // The reader may be in the middle of another record.
  const depthBefore = depth;
  const isInStringBefore = isInString;
  const isEscapedBefore = isEscaped;
  const hasTextBefore = hasText;
  let next = inputEnd + 1;
  for (let at = from; at < inputEnd; ) {
    while (at < inputEnd && isSeparator(load<u8>(at))) at++;
    if (at == inputEnd) break;
    startObject();
    const found = objectEnd(at, inputEnd);
    const end = found == 0 ? inputEnd : found;
    const after = load<u8>(end);
    store<u8>(end, <u8>terminator);
    const stop = processObjects(at, end + 1, end);
    store<u8>(end, after);
    if (stop != end + 1) {
      next = stop;
      break;
    }
    at = end;
  }
  depth = depthBefore;
  isInString = isInStringBefore;
  isEscaped = isEscapedBefore;
  hasText = hasTextBefore;
  return next;
}
