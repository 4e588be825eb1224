/** The kernel's exports: configure it, process the lines of a slot, look up one address. */
import { SLOT_INPUT_END, SLOT_NEXT } from '../abi';
import { NEWLINE } from './ascii';
import { claimTables, readConfig } from './config';
import { processLines } from './process';
import { closeSlot, openSlot, putInputTo, readAreas } from './slot';
import { makeTables } from './tables';

export { recordOf } from './lookup';

/** Reads the configuration and the working areas of a thread. The first call in a memory makes the lookup tables. */
export function configure(config: usize, areas: usize): void {
  readConfig(config);
  readAreas(areas);
  if (claimTables(config)) makeTables();
}

/**
 * Processes the lines of a slot; its header, see `SLOT_…` in ../abi.ts, says which, and receives how far it came.
 *
 * @returns whether all were processed
 */
export function run(slot: usize): bool {
  const from: usize = load<u32>(slot, SLOT_NEXT);
  const inputEnd: usize = load<u32>(slot, SLOT_INPUT_END);
  openSlot(slot);
  if (from >= inputEnd) {
    putInputTo(inputEnd);
    closeSlot(slot, inputEnd);
    return true;
  }
  let end = inputEnd;
  // If the last line has no newline, it gets one that is not put out.
  if (load<u8>(inputEnd - 1) != <u8>NEWLINE) {
    store<u8>(inputEnd, <u8>NEWLINE);
    end++;
  }
  const next = processLines(from, end, inputEnd);
  putInputTo(min(next, inputEnd));
  closeSlot(slot, next);
  return next >= end;
}
