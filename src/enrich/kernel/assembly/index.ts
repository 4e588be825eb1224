/** What the module exports. */

import { answerLines, startPending } from './pending';
import { closeSlot, openSlot, putInputTo, takeAreas } from './slot';
import { configure, needsTables } from './config';
import { flatLines, goesTheShortWay, outputFull } from './flat';
import { makeTables } from './tables';
import { walk } from './walk';

export { recordOf } from './lookup';

/** Takes up the configuration, see config.ts, and a thread's working areas; the first in a memory makes the tables. */
export function begin(config: usize, areas: usize): void {
  configure(config);
  takeAreas(areas);
  if (needsTables(config)) makeTables();
}

/** Most input, in bytes, that goes the long way before the short one is tried again. */
const LONGEST_STRETCH: usize = 16_384;

/** Behind the first newline at `from` or later; there must be one. */
function behindNewline(from: usize): usize {
  const newline = i8x16.splat(10);
  let at = from;
  while (true) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(at), newline));
    if (mask != 0) return at + ctz(mask) + 1;
    at += 16;
  }
}

/** Lines go the short way as far as they can; one that cannot, and ever more behind it, go the long way. */
function takeLines(from: usize, end: usize, inputEnd: usize): usize {
  if (!goesTheShortWay()) return walk(from, end, inputEnd);
  let at = from;
  let stretch: usize = 0;
  while (true) {
    const begun = at;
    at = flatLines(at, end, inputEnd);
    if (at >= end || outputFull) return at;
    // Where few lines go the short way, trying it for each would cost more than it saves.
    stretch = at - begun > stretch ? 0 : min(stretch * 2 + 256, LONGEST_STRETCH);
    const stop = behindNewline(min(at + stretch, end - 1));
    const next = walk(at, stop, min(stop, inputEnd));
    if (next != stop || next >= end) return next;
    at = next;
  }
}

/** Works through lines; returns where the first begins that was not dealt with, or `end`. */
function work(from: usize, end: usize, inputEnd: usize): usize {
  startPending();
  let next = takeLines(from, end, inputEnd);
  const full = answerLines();
  if (full != 0) next = full;
  putInputTo(min(next, inputEnd));
  return next;
}

/**
 * Works through the lines in a slot; `SLOT_FIELDS` in `../layout.ts` says what is read and what is written.
 *
 * @returns whether all were dealt with
 */
export function run(slot: usize): bool {
  const from: usize = load<u32>(slot, 4);
  const inputEnd: usize = load<u32>(slot, 8);
  openSlot(slot);
  if (from >= inputEnd) {
    putInputTo(inputEnd);
    closeSlot(slot, inputEnd);
    return true;
  }
  // A last line without its newline gets one for the walk, which is not put out.
  let end = inputEnd;
  if (load<u8>(inputEnd - 1) != 10) {
    store<u8>(inputEnd, 10);
    end++;
  }
  const next = work(from, end, inputEnd);
  closeSlot(slot, next);
  return next >= end;
}

/** Exported only so that the compiler leaves them out of the loop that calls them: it runs a third faster for it. */
export { onCloser, onNewline, onOpener } from './walk';
