/** Processes lines by the flat-object path (flat.ts) if possible, and by the general path (scan.ts) if not. */
import { flushBatch, startBatch } from './batch';
import { triesFlatPath } from './config';
import { isOutputFull, processFlatLines } from './flat';
import { newlineFrom, processAnyLines } from './scan';

/** Most bytes that the general path processes before the flat-object path is tried again. */
const LONGEST_STRETCH: usize = 65_536;

/**
 * Processes lines. At a line that is not flat, the general path takes over for a stretch: one line at first, twice as many
 * bytes each time that the flat-object path has not come as far as the stretch before.
 *
 * @param from first byte of the first line; @param end after the last newline
 * @param inputEnd the end of the input: one byte less, if the last newline is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: the output is full, or the policy is to fail
 */
export function processLines(from: usize, end: usize, inputEnd: usize): usize {
  startBatch();
  let at = from;
  let stretch: usize = triesFlatPath ? 1 : end - from;
  while (at < end) {
    if (triesFlatPath) {
      const stop = processFlatLines(at, end, inputEnd);
      if (isOutputFull || stop >= end) {
        at = stop;
        break;
      }
      stretch = stop - at < stretch ? min<usize>(2 * stretch, LONGEST_STRETCH) : 1;
      at = stop;
    }
    const stretchEnd = stretch >= end - at ? end : newlineFrom(at + stretch - 1) + 1;
    at = processAnyLines(at, stretchEnd, inputEnd);
    if (at != stretchEnd) return at;
  }
  if (isOutputFull) return at;
  const full = flushBatch();
  return full != 0 ? full : at;
}
