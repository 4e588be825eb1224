/** The lines of lists, access logs and free text, which have nothing to check. */
import { FORMAT_PAIRS, INSERT_BYTES } from '../abi';
import { CARRIAGE_RETURN, isWhiteSpace, NEWLINE } from './ascii';
import { addPlainLine, endOtherLine, flushBatch } from './batch';
import { equal, VECTOR } from './masks';
import { findPairs } from './pairs';
import { fieldCount, format, valueOffsets } from './settings';

/**
 * Processes lines, the first of which begins at `from`.
 *
 * @param end after the last newline; @param inputEnd the end of the input: one byte less if the last newline is not part of it
 * @returns `end`, or the first byte of the first line that was not processed because the output is full
 */
export function processPlainLines(from: usize, end: usize, inputEnd: usize): usize {
  let start = from;
  for (let vector = from; vector < end; vector += VECTOR) {
    const a = v128.load(vector);
    const b = v128.load(vector, 16);
    const c = v128.load(vector, 32);
    const d = v128.load(vector, 48);
    const size = min(end - vector, VECTOR);
    let newlines = equal(a, b, c, d, NEWLINE) & (<u64>-1 >> (64 - <u64>size));
    for (; newlines != 0; newlines &= newlines - 1) {
      const at = vector + <usize>ctz(newlines);
      // Also without its newline, at the end of the input, a carriage return is part of the line ending.
      const hasReturn = at > start && load<u8>(at - 1) == <u8>CARRIAGE_RETURN;
      const close = at - usize(hasReturn);
      let text = start;
      while (text < close && isWhiteSpace(load<u8>(text))) text++;
      const after = min(at + 1, inputEnd);
      let full: usize = 0;
      if (text == close) full = endOtherLine(start, after, true);
      else {
        let style: usize = 0;
        if (format == FORMAT_PAIRS) style = <usize>(findPairs(start, close) * fieldCount) * INSERT_BYTES;
        else store<u32>(valueOffsets, <u32>start);
        full = addPlainLine(start, close, after, style);
      }
      if (full != 0) return full;
      start = at + 1;
    }
  }
  const full = flushBatch();
  return full != 0 ? full : end;
}
