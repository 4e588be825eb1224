/** What the module exports. */
import { walk } from './walk';
import { closeSlot, openSlot } from './slot';

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
  if (from >= inputEnd) return true;
  // A last line without its newline gets one for the scan, which is not put out.
  let end = inputEnd;
  if (load<u8>(inputEnd - 1) != 10) {
    store<u8>(inputEnd, 10);
    end++;
  }
  const next = walk(from, end, inputEnd);
  closeSlot(slot, next);
  return next >= end;
}

export { onCloser, onNewline, onOpener } from './walk';
