/** A list: one address per line. Each part of the result is appended to the line after a tab, which makes a TSV table. */
import { MAX_ADDRESS_LENGTH } from '../../limits.js';
import { passesOthers } from '../query.js';
import { BYTE_ORDER_MARK, bytesToText, type FormatContext, type FormatEnricher, textToBytes } from './format.js';
import { cellResults, NOT_TEXT, recordQuery } from './results.js';

/** A line with more bytes than this cannot be an address; includes a byte order mark and the line ending. */
const MAX_HELD_BYTES = MAX_ADDRESS_LENGTH + 8;

/**
 * Creates the enricher of lists. A line that is not an address gets empty parts and is counted as an invalid address; no
 * line is invalid. Blank lines are passed on.
 */
export function listFormat(context: FormatContext): FormatEnricher {
  const { query } = context.options;
  const resultCells = cellResults(context, '\t');
  const isPassedOn = query === undefined ? undefined : recordQuery(context, query);

  /** @param ending the line ending: `\n`, `\r\n`, or nothing */
  function finishLine(line: string, ending: string, isFirst: boolean, isTooLong: boolean): string {
    context.counts.lines++;
    const address = isFirst && line.startsWith(BYTE_ORDER_MARK) ? line.slice(BYTE_ORDER_MARK.length) : line;
    const isBlank = !isTooLong && address.trim() === '';
    const value = isTooLong ? NOT_TEXT : address;
    if (query !== undefined) return (isBlank ? passesOthers(query) : isPassedOn!([value])) ? line + ending : '';
    return line + (isBlank ? '' : resultCells(value)) + ending;
  }

  async function* enrich(_name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let held = '';
    let isFirst = true;
    // Of a line that is too long, only the last character is held: it may be the first half of CRLF.
    let isTooLong = false;

    for await (const chunk of chunks) {
      const text = held + bytesToText(chunk);
      const out: string[] = [];
      let from = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        const lineEnd = at > from && text[at - 1] === '\r' ? at - 1 : at;
        out.push(finishLine(text.slice(from, lineEnd), text.slice(lineEnd, at + 1), isFirst, isTooLong));
        isFirst = false;
        isTooLong = false;
        from = at + 1;
      }
      held = text.slice(from);
      if (held.length > MAX_HELD_BYTES) {
        if (query === undefined || passesOthers(query)) out.push(held.slice(0, -1));
        held = held.slice(-1);
        isTooLong = true;
      }
      if (out.length > 0) yield textToBytes(out.join(''));
    }
    if (held !== '') yield textToBytes(finishLine(held, '', isFirst, isTooLong));
  }

  return { newline: '\n', enrich };
}
