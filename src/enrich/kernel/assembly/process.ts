/**
 * Processes lines of JSON by the template path (template.ts) if possible, if not by the general path (scan.ts).
 *
 * After a line without a template, the general path takes over for a stretch, which doubles each time that the templates have not
 * come far. What is known about the input is kept from chunk to chunk: it changes the speed, not the result.
 */
import { flushBatch, isOutputFull } from './batch';
import { processAnyLines, terminatorFrom } from './scan';
import { addTemplate, processTemplateLines } from './template';

/** Most bytes of a stretch without a template: to make one takes as long as some KiB. */
const LONGEST_BACKOFF: usize = 1_048_576;

/** Bytes between two lines without a template from which on they save more time than those lines cost. */
const TEMPLATE_LEAST: usize = 512;

/** The stretch without a template, what is left of it, and the bytes that had templates since the last line without. */
let templateBackoff: usize = 1;
let backoffLeft: usize = 0;
let templateBytes: usize = 0;

/** Returns the end of the line that a stretch of bytes ends in. */
function endOfStretch(at: usize, stretch: usize, end: usize): usize {
  return stretch >= end - at ? end : terminatorFrom(at + stretch - 1) + 1;
}

/**
 * Processes lines. Of a line without a template, one is made, unless many lines before it have one: it may be rare.
 *
 * @param from first byte of the first line; @param end after the last terminator
 * @param inputEnd the end of the input: one byte less, if the last terminator is not part of the input
 * @returns `end`, or the first byte of the first line that was not processed: the output is full, or the policy is to fail
 */
export function processObjects(from: usize, end: usize, inputEnd: usize): usize {
  let at = from;
  while (at < end) {
    if (backoffLeft == 0) {
      const stop = processTemplateLines(at, end, inputEnd);
      if (isOutputFull) return stop;
      templateBytes += stop - at;
      at = stop;
      if (at == end) break;
      const isFrequent = templateBytes < TEMPLATE_LEAST;
      templateBackoff = isFrequent ? min<usize>(2 * templateBackoff, LONGEST_BACKOFF) : 1;
      templateBytes = 0;
      const lineEnd = terminatorFrom(at) + 1;
      const stopped = processAnyLines(at, lineEnd, inputEnd);
      if (stopped != lineEnd) return stopped;
      if (isFrequent) addTemplate(at, lineEnd);
      backoffLeft = templateBackoff - 1;
      at = lineEnd;
    } else {
      const stretchEnd = endOfStretch(at, backoffLeft, end);
      backoffLeft -= min(backoffLeft, stretchEnd - at);
      at = processAnyLines(at, stretchEnd, inputEnd);
      if (at != stretchEnd) return at;
    }
  }
  const full = flushBatch();
  return full != 0 ? full : end;
}
