/** What the module exports. */

import { closeSlot, openSlot, putInputTo } from './slot';
import { walk } from './walk';

export { configure } from './config';
export { recordOf } from './lookup';

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
  const next = walk(from, end, inputEnd);
  closeSlot(slot, next);
  return next >= end;
}

/** Exported only so that the compiler leaves them out of the loop that calls them: it runs a third faster for it. */
export { onCloser, onNewline, onOpener } from './walk';
