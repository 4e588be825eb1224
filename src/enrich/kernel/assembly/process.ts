/**
 * Processes lines by the template path (template.ts) if possible, if not by the flat-object path (flat.ts), and if that is not
 * possible either by the general path (scan.ts).
 *
 * After a line that a path cannot process, the next slower one takes over for a stretch, which doubles each time that the
 * faster path has not come far. What is known about the input is kept from block to block: it changes the speed, not the result.
 */
import { flushBatch, isOutputFull, startBatch } from './batch';
import { triesFlatPath } from './config';
import { processFlatLines } from './flat';
import { newlineFrom, processAnyLines } from './scan';
import { makeTemplate, processTemplateLines } from './template';

/** Most bytes of a stretch of the general path, and of one without a template: to make one takes as long as some KiB. */
const LONGEST_GENERAL: usize = 65_536;
const LONGEST_OTHER: usize = 1_048_576;

/** Bytes between two lines without the template from which on it saves more time than those lines cost. */
const TEMPLATE_LEAST: usize = 512;

/** The stretch without a template, what is left of it, and the bytes that had the template since the last line without. */
let otherStretch: usize = 1;
let otherLeft: usize = 0;
let templateBytes: usize = 0;

/** The stretch of the general path, and what is left of it. */
let generalStretch: usize = 1;
let generalLeft: usize = 0;

/** Returns the end of the line that a stretch of bytes ends in. */
function endOfStretch(at: usize, stretch: usize, end: usize): usize {
  return stretch >= end - at ? end : newlineFrom(at + stretch - 1) + 1;
}

/** Processes lines without a template. Parameters and result are those of `processLines`. */
function processOtherLines(from: usize, end: usize, inputEnd: usize): usize {
  let at = from;
  while (at < end) {
    if (triesFlatPath && generalLeft == 0) {
      const stop = processFlatLines(at, end, inputEnd);
      const isShort = stop - at < generalStretch;
      if (isOutputFull) return stop;
      if (stop < end || !isShort) generalStretch = isShort ? min<usize>(2 * generalStretch, LONGEST_GENERAL) : 1;
      if (stop == end) return end;
      generalLeft = generalStretch;
      at = stop;
    }
    const stretchEnd = triesFlatPath ? endOfStretch(at, generalLeft, end) : end;
    generalLeft -= min(generalLeft, stretchEnd - at);
    at = processAnyLines(at, stretchEnd, inputEnd);
    if (at != stretchEnd) return at;
  }
  return end;
}

/**
 * Processes lines. A line that does not have the template becomes the next one, unless the line before it has it: other lines
 * may be rare.
 *
 * @param from first byte of the first line; @param end after the last newline
 * @param inputEnd the end of the input: one byte less, if the last newline is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: the output is full, or the policy is to fail
 */
export function processLines(from: usize, end: usize, inputEnd: usize): usize {
  startBatch();
  let at = from;
  while (at < end) {
    if (otherLeft == 0) {
      const stop = processTemplateLines(at, end, inputEnd);
      if (isOutputFull) return stop;
      templateBytes += stop - at;
      at = stop;
      if (at == end) break;
      otherStretch = templateBytes < TEMPLATE_LEAST ? min<usize>(2 * otherStretch, LONGEST_OTHER) : 1;
      const isKept = templateBytes != 0;
      templateBytes = 0;
      const lineEnd = newlineFrom(at) + 1;
      const stopped = processOtherLines(at, lineEnd, inputEnd);
      if (stopped != lineEnd) return stopped;
      if (!isKept) makeTemplate(at, lineEnd);
      otherLeft = otherStretch - 1;
      at = lineEnd;
    } else {
      const stretchEnd = endOfStretch(at, otherLeft, end);
      otherLeft -= min(otherLeft, stretchEnd - at);
      at = processOtherLines(at, stretchEnd, inputEnd);
      if (at != stretchEnd) return at;
    }
  }
  const full = flushBatch();
  return full != 0 ? full : end;
}
