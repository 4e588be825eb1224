/**
 * A list: one address a line. The answer stands behind it on its line, a tab in front of each part, so that the list
 * becomes a table without a header line.
 */
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import { BYTE_ORDER_MARK, bytesToText, type Format, type FormatContext, textToBytes } from './format.js';
import { cellAnswerer, NO_TEXT } from './results.js';

/** A line that goes on past this many bytes can be no address (byte order mark and line ending counted in). */
const MAX_HELD_BYTES = MAX_ADDRESS_LENGTH + 8;

/**
 * A line with something on it that is no address gets empty parts and counts as an invalid address; no line is invalid.
 * Blank lines pass.
 */
export function listFormat(context: FormatContext): Format {
  const answer = cellAnswerer(context, '\t');

  /** @param end what ends the line: `\n`, `\r\n`, or nothing */
  function finish(line: string, end: string, isFirst: boolean, isTooLong: boolean): string {
    context.counts.lines++;
    if (isTooLong) return line + answer(NO_TEXT) + end;
    const address = isFirst && line.startsWith(BYTE_ORDER_MARK) ? line.slice(BYTE_ORDER_MARK.length) : line;
    return line + (address.trim() === '' ? '' : answer(address)) + end;
  }

  async function* enrich(_name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let held = '';
    let isFirst = true;
    // Of a line that is too long only its last character is held: it may be the first half of the line's ending.
    let isTooLong = false;

    for await (const chunk of chunks) {
      const text = held + bytesToText(chunk);
      const out: string[] = [];
      let from = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        const lineEnd = at > from && text[at - 1] === '\r' ? at - 1 : at;
        out.push(finish(text.slice(from, lineEnd), text.slice(lineEnd, at + 1), isFirst, isTooLong));
        isFirst = false;
        isTooLong = false;
        from = at + 1;
      }
      held = text.slice(from);
      if (held.length > MAX_HELD_BYTES) {
        out.push(held.slice(0, -1));
        held = held.slice(-1);
        isTooLong = true;
      }
      if (out.length > 0) yield textToBytes(out.join(''));
    }
    if (held !== '') yield textToBytes(finish(held, '', isFirst, isTooLong));
  }

  return { newline: '\n', enrich };
}
