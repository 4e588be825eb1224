/** Text exports: a line for each range or CIDR block, in pieces of a size that suits a pipe. */
import type { Family } from '../address/parse.js';
import { formatCidr, rangeToCidrs } from '../range/cidr.js';
import type { ExportedRange } from './ranges.js';

/** Characters collected before they are handed on: a pipe takes 64 KiB at once. */
const PIECE_LENGTH = 65_536;

/**
 * Ranges as text.
 *
 * @param line the text of one range, line end included
 */
export function* rangeLines(
  ranges: Iterable<ExportedRange>,
  line: (range: ExportedRange) => string,
): Generator<string> {
  let piece = '';
  for (const range of ranges) {
    piece += line(range);
    if (piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

/**
 * Ranges as the fewest CIDR blocks, a line each.
 *
 * @param ends by record number, what stands behind the block, line end included
 */
export function blockLines(
  family: Family,
  ranges: Iterable<ExportedRange>,
  ends: readonly string[],
): Generator<string> {
  return rangeLines(ranges, ({ first, last, record }) => {
    const end = ends[record]!;
    let lines = '';
    rangeToCidrs(family, first, last, (block, prefix) => {
      lines += formatCidr(family, block, prefix) + end;
    });
    return lines;
  });
}
