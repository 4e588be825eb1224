/** Reads lines that are an address, or begin with one: lists, and access logs in the combined format. */
import { CARRIAGE_RETURN, isWhiteSpace, NEWLINE } from './ascii';
import { BLOCK, equal } from './masks';
import { addRow, endOtherRow, flushRows, startRows } from './rows';
import { valueOffsets } from './slot';

/**
 * Processes lines, the first of which begins at `from`.
 *
 * @param end after the last newline; @param inputEnd the end of the input: one byte less if the last newline is not part of it
 * @returns `end`, or the first byte of the first line that was not processed because the output is full
 */
export function processList(from: usize, end: usize, inputEnd: usize): usize {
  startRows();
  let start = from;
  for (let block = from; block < end; block += BLOCK) {
    const a = v128.load(block);
    const b = v128.load(block, 16);
    const c = v128.load(block, 32);
    const d = v128.load(block, 48);
    const size = min(end - block, BLOCK);
    let newlines = equal(a, b, c, d, NEWLINE) & (<u64>-1 >> (64 - <u64>size));
    for (; newlines != 0; newlines &= newlines - 1) {
      const at = block + <usize>ctz(newlines);
      const isCrLf = at > start && at < inputEnd && load<u8>(at - 1) == <u8>CARRIAGE_RETURN;
      const close = at - usize(isCrLf);
      let text = start;
      while (text < close && isWhiteSpace(load<u8>(text))) text++;
      store<u32>(valueOffsets, <u32>start);
      const after = min(at + 1, inputEnd);
      const full = text == close ? endOtherRow(start, after, true) : addRow(start, close, after);
      if (full != 0) return full;
      start = at + 1;
    }
  }
  const full = flushRows();
  return full != 0 ? full : end;
}
