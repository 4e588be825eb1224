/** Creates the buffer that splits an input into blocks, by the format of the input. */
import { MAX_CSV_RECORD_BYTES, MAX_LINE_BYTES } from '../../limits.js';
import type { EnrichCounts } from '../counts.js';
import { Table } from '../formats/table.js';
import type { Kernel, Slot } from '../kernel/kernel.js';
import { type KernelLayout, setTableShape } from '../kernel/layout.js';
import type { EnrichOptions } from '../options.js';
import { type BlockBuffer, LineBuffer } from './line-buffer.js';
import { RecordBuffer } from './record-buffer.js';

/** Returns the longest line, or record of a table, in bytes. */
export function maxRecordBytes({ input }: EnrichOptions): number {
  return input?.kind === 'table' ? MAX_CSV_RECORD_BYTES : MAX_LINE_BYTES;
}

/** Returns the table that the inputs are; undefined for other formats. */
export function createTable(layout: KernelLayout, options: EnrichOptions, counts: EnrichCounts): Table | undefined {
  if (options.input?.kind !== 'table') return undefined;
  return new Table(options.input, options, counts, (columns, fields) => setTableShape(layout, columns, fields));
}

/**
 * Creates a buffer of whole lines, or of whole records of a table.
 *
 * @param slot the first slot; @param large the slot for what does not fit into an ordinary slot
 * @param maxBytes longest line or record
 */
export function createBlockBuffer(
  kernel: Kernel,
  { input }: EnrichOptions,
  slot: Slot,
  large: Slot,
  maxBytes: number,
): BlockBuffer {
  return input?.kind === 'table'
    ? new RecordBuffer(kernel, slot, large, maxBytes)
    : new LineBuffer(slot, large, maxBytes);
}
