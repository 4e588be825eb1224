/** The kernel's exports: configure it, process the lines of a slot, look up one address. */
import { FORMAT_JSON_ITEMS, FORMAT_JSON_LINES, FORMAT_TABLE, FORMAT_TEXT, SLOT_INPUT_END, SLOT_NEXT } from '../abi';
import { NEWLINE } from './ascii';
import { claimTables, format, readConfig, readShape } from './config';
import { processList } from './list';
import { processLines } from './process';
import { closeSlot, openSlot, putInputTo, readAreas } from './slot';
import { processRecords } from './table';
import { makeTables } from './tables';
import { resetTemplate } from './template';
import { processText } from './text';

export { cellState, countBytes, findRecords } from './cells';
export { itemsClosing, itemsComma, itemsSplitEnd, restoreItems, splitItems, startItems } from './items';
export { recordOf } from './lookup';

/** Reads the configuration and the working areas of a thread. The first call in a memory makes the lookup tables. */
export function configure(config: usize, areas: usize): void {
  readConfig(config);
  readAreas(areas);
  resetTemplate();
  if (claimTables(config)) makeTables();
}

/** Processes the lines `from … end` in the format of the input. */
function processInput(from: usize, end: usize, inputEnd: usize): usize {
  if (format == FORMAT_JSON_LINES || format == FORMAT_JSON_ITEMS) return processLines(from, end, inputEnd);
  if (format == FORMAT_TABLE) {
    readShape();
    return processRecords(from, end, inputEnd);
  }
  if (format == FORMAT_TEXT) return processText(from, end, inputEnd);
  return processList(from, end, inputEnd);
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
  const next = processInput(from, end, inputEnd);
  putInputTo(min(next, inputEnd));
  closeSlot(slot, next);
  return next >= end;
}
