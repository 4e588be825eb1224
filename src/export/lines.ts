/** Text exports: one line per range or CIDR block. */
import type { Family } from '../address/parse.js';
import { formatCidr, rangeToCidrs } from '../range/cidr.js';
import type { ExportedRange } from './ranges.js';

/** Characters in a piece of the output: the default capacity of a pipe. */
const PIECE_LENGTH = 65_536;

/**
 * Formats ranges.
 *
 * @param line formats one range, line end included
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
 * Formats ranges as the fewest CIDR blocks, one per line.
 *
 * @param ends by record number, the text after the block, line end included
 * @param before the text before each block
 */
export function blockLines(
  family: Family,
  ranges: Iterable<ExportedRange>,
  ends: readonly string[],
  before = '',
): Generator<string> {
  return rangeLines(ranges, ({ first, last, record }) => {
    const end = ends[record]!;
    let lines = '';
    rangeToCidrs(family, first, last, (block, prefix) => {
      lines += before + formatCidr(family, block, prefix) + end;
    });
    return lines;
  });
}
