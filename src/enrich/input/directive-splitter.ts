/** Splits tables whose header is a directive, a line that begins with `#`; see ../formats/directives.ts. */
import type { Slot } from '../kernel/kernel.js';
import { type Found, LineSplitter } from './chunk-buffer.js';

const NEWLINE = 10;
const HASH = 35;
/** A byte order mark and `#`, as where files were joined. */
const MARKED_HASH = Buffer.from('\ufeff#');
const NEWLINE_HASH = Buffer.from('\n#');
const NEWLINE_MARK_HASH = Buffer.from('\n\ufeff#');

/** Returns whether a directive begins at an offset. */
export function isDirective(input: Buffer, at: number): boolean {
  return input[at] === HASH || MARKED_HASH.equals(input.subarray(at, at + MARKED_HASH.length));
}

/** Splits lines, and before a directive that follows a record: directives are at the beginning of their chunk. */
export class DirectiveSplitter extends LineSplitter {
  override search(slot: Slot, from: number, to: number): Found {
    const found = super.search(slot, from, to);
    // The newline before `from` was searched with what was there.
    const at = firstCut(slot.input, Math.max(from - NEWLINE_MARK_HASH.length, 0), found.end);
    return at === undefined ? found : { end: at, searched: at };
  }
}

/** Returns where the first directive after a record begins, if one does in complete lines. */
function firstCut(input: Buffer, from: number, end: number): number | undefined {
  const bytes = input.subarray(0, end);
  let plain = from;
  let marked = from;
  for (let at = from; at < end; ) {
    if (plain <= at) plain = indexOrEnd(bytes, NEWLINE_HASH, at);
    if (marked <= at) marked = indexOrEnd(bytes, NEWLINE_MARK_HASH, at);
    at = Math.min(plain, marked) + 1;
    if (at < end && !isDirective(input, lineStart(bytes, at - 1))) return at;
  }
  return undefined;
}

function indexOrEnd(bytes: Buffer, text: Buffer, from: number): number {
  const index = bytes.indexOf(text, from);
  return index < 0 ? bytes.length : index;
}

/** Returns the start of the line that ends with the newline at an offset. */
function lineStart(bytes: Buffer, newline: number): number {
  return newline === 0 ? 0 : bytes.lastIndexOf(NEWLINE, newline - 1) + 1;
}
