/** The kernel's exports: its settings, the processing of the lines of a slot, the ends of records and items, one address. */
import { FORMAT_JSON, FORMAT_TABLE, SLOT_INPUT_END, SLOT_NEXT, SLOT_OUTPUT } from '../abi';
import { NEWLINE } from './ascii';
import { startBatch } from './batch';
import { restoreCommas } from './items';
import { processSequence } from './objects';
import { processPlainLines } from './lines';
import { processObjects } from './process';
import { format, isSequence, locates, terminator } from './settings';
import { closeSlot, copied, openSlot, outputEnd, putInputTo } from './slot';
import { processRecords } from './table';

export { cellState, countNewlines, findLine, findRecords, isRecord } from './cells';
export { dayOfText } from './dates';
export { lastObjectEnd, objectEnd, startObject } from './objects';
export { closingBracket, itemsEnd, splitItems, startItems, strayItemEnd } from './items';
export * from './settings';
export { hideInput } from './slot';
export { makeTables, makeTables6 } from './tables';
export { resetTemplates } from './template';

/** Processes the lines `from … end` in the format of the input. */
function processInput(from: usize, end: usize, inputEnd: usize): usize {
  startBatch();
  if (isSequence) return processSequence(from, inputEnd);
  if (format == FORMAT_JSON) return processObjects(from, end, inputEnd);
  if (format == FORMAT_TABLE) return processRecords(from, end, inputEnd);
  return processPlainLines(from, end, inputEnd);
}

/**
 * Processes the lines of a slot; its header, see `SLOT_…` in ../abi.ts, says which, and receives how far it came.
 *
 * @returns whether all were processed
 */
export function run(slot: usize): bool {
  const from: usize = load<u32>(slot, SLOT_NEXT);
  const inputEnd: usize = load<u32>(slot, SLOT_INPUT_END);
  const output: usize = load<u32>(slot, SLOT_OUTPUT);
  openSlot(slot);
  let end = inputEnd;
  let next = inputEnd;
  if (from < inputEnd) {
    // If the last line has no terminator, it gets one that is not put out.
    if (isSequence) end++;
    else if (<u32>load<u8>(inputEnd - 1) != terminator) {
      store<u8>(inputEnd, <u8>terminator);
      end++;
    }
    next = processInput(from, end, inputEnd);
  }
  // The addresses of the record at which it stops may be extracted already.
  if (!locates) putInputTo(max(copied, min(next, inputEnd)));
  if (!locates && terminator != NEWLINE && !isSequence) restoreCommas(output, outputEnd());
  closeSlot(slot, next);
  return next >= end;
}
