/**
 * The fast path of JSON documents: runs the kernel over the items of an array, as lines. It takes text from the beginning of the
 * items, as far as they are objects that the kernel can enrich. The rest of the document is left to the caller.
 */

import { recordResult } from '../../database/binary-engine.js';
import { ENRICH_BLOCK_BYTES } from '../../limits.js';
import type { RangeFile } from '../../rangefile/reader.js';
import { type EnrichCounts, emptyCounts } from '../counts.js';
import { countRecords, Kernel, recordCountsOf, Slot } from '../kernel/kernel.js';
import { type KernelLayout, layOut } from '../kernel/layout.js';
import type { EnrichOptions } from '../options.js';

const COMMA = Buffer.from(',');
const CARRIAGE_RETURN = 13;
const SPACES = new Set([9, 10, 13, 32]);

/** What became of some text. */
export interface ItemsResult {
  /** The output for the items that are done, without a comma before the first and after the last. */
  output: Uint8Array;
  /** The bytes of the items that are done, with the commas between them, and the newlines in them. */
  length: number;
  newlines: number;
  /** The number of items that are done. */
  items: number;
  /** What the fast path leaves to the caller, who must read all text from there on; undefined if it goes on. */
  rest: Uint8Array | undefined;
}

export class ItemReader {
  readonly #file: RangeFile;
  readonly #options: EnrichOptions;
  readonly #layout: KernelLayout;
  readonly #kernel: Kernel;
  readonly #slot: Slot;
  readonly #counts: EnrichCounts;
  /** Bytes in the slot: those of items that are not complete. */
  #held = 0;
  /** Whether a comma was taken after the items that are done. */
  #hasComma = false;

  /**
   * @param counts updated with the items that are done
   * @param blockBytes longest item; a longer one is left to the caller
   */
  constructor(file: RangeFile, options: EnrichOptions, counts: EnrichCounts, blockBytes = ENRICH_BLOCK_BYTES) {
    this.#file = file;
    this.#options = options;
    this.#counts = counts;
    this.#layout = layOut({
      file,
      options: { ...options, input: { kind: 'items' }, onInvalid: 'keep' },
      threadCount: 1,
      slotCount: 1,
      blockBytes,
      maxLineBytes: blockBytes,
      keepsRejects: false,
    });
    this.#kernel = new Kernel(this.#layout);
    this.#slot = new Slot(this.#layout, this.#layout.slots[0]!);
  }

  /** Starts at the beginning of the items of an array. */
  start(): void {
    this.#kernel.startItems();
    this.#held = 0;
    this.#hasComma = false;
  }

  /** Takes the next text. */
  add(bytes: Uint8Array): ItemsResult {
    const { input, place } = this.#slot;
    const result: ItemsResult = { output: new Uint8Array(0), length: 0, newlines: 0, items: 0, rest: undefined };
    const outputs: Uint8Array[] = [];
    for (let at = 0; at < bytes.length && result.rest === undefined; ) {
      const part = bytes.subarray(at, at + input.length - this.#held);
      const from = this.#held;
      input.set(part, from);
      at += part.length;
      this.#held += part.length;
      const { isPossible, comma, closing, end } = this.#kernel.splitItems(place, from, this.#held);
      const itemsEnd = closing < 0 ? comma : this.#lastItemEnd(closing);
      const hasItems = isPossible && itemsEnd > 0 && this.#process(itemsEnd, closing < 0, outputs, result);
      if (!hasItems && (closing >= 0 || !isPossible || comma >= 0 || this.#held === input.length)) {
        result.rest = this.#leave(0, end, bytes.subarray(at));
      } else if (closing >= 0) {
        result.rest = this.#leave(itemsEnd, end, bytes.subarray(at));
      } else if (hasItems) {
        input.copyWithin(0, comma + 1, this.#held);
        this.#held -= comma + 1;
      }
    }
    result.output = Buffer.concat(outputs);
    return result;
  }

  /** Returns the text that was taken and is not done, and starts again. */
  end(): Uint8Array {
    return this.#leave(0, this.#held, new Uint8Array(0));
  }

  /** Returns the end of the last item before the bracket that closes the array: the blanks between them are not a part of it. */
  #lastItemEnd(closing: number): number {
    let end = closing;
    while (end > 0 && SPACES.has(this.#slot.input[end - 1]!)) end--;
    return end;
  }

  /** Returns the held text from an offset as it was, with the comma before it. The first `splitEnd` bytes were split. */
  #leave(from: number, splitEnd: number, more: Uint8Array): Uint8Array {
    const { input, place } = this.#slot;
    if (splitEnd > from) this.#kernel.restoreInput(place, from, splitEnd);
    const rest = Buffer.concat([this.#hasComma ? COMMA : input.subarray(0, 0), input.subarray(from, this.#held), more]);
    this.#held = 0;
    this.#hasComma = false;
    return rest;
  }

  /**
   * Enriches the items in the first bytes of the slot, if all of them are objects that the kernel can enrich.
   *
   * @param hasComma whether a comma follows them
   */
  #process(length: number, hasComma: boolean, outputs: Uint8Array[], result: ItemsResult): boolean {
    const { place, input } = this.#slot;
    const { fields } = this.#options;
    // Newlines are carriage returns in text that was split.
    const newlines = this.#kernel.countBytes(place, length, CARRIAGE_RETURN);
    const before = recordCountsOf(this.#layout)?.slice();
    const counts = emptyCounts();
    const parts: Buffer[] = [];
    const inputLength = length + (hasComma ? 1 : 0);
    const following = input[inputLength];
    let processed = 0;
    this.#slot.begin(inputLength, 0);
    for (let isDone = false; !isDone; ) {
      isDone = this.#kernel.run(place);
      // An item whose results do not fit into the output at all.
      if (!isDone && this.#slot.lines === 0) break;
      this.#slot.addCountsTo(counts);
      processed = this.#slot.processed;
      this.#kernel.restoreOutput(place, this.#slot.output.length);
      parts.push(Buffer.from(this.#slot.output));
      this.#slot.clear();
    }
    // The kernel ends the last line with a newline of its own.
    if (following !== undefined) input[inputLength] = following;
    const { found, no_country, invalid_address, missing_field, invalid_line, lines } = counts;
    if (
      processed < inputLength ||
      invalid_line > 0 ||
      found + no_country + invalid_address + missing_field !== lines * fields.length
    ) {
      if (before !== undefined) recordCountsOf(this.#layout)!.set(before);
      return false;
    }
    let output = Buffer.concat(parts);
    if (output.at(-1) === COMMA[0]) output = output.subarray(0, -1);
    if (output.length > 0) outputs.push(...(outputs.length > 0 ? [COMMA, output] : [output]));
    this.#addCounts(counts);
    result.items += lines;
    result.length += length + (this.#hasComma ? 1 : 0);
    result.newlines += newlines;
    this.#hasComma = hasComma;
    return true;
  }

  #addCounts(counts: EnrichCounts): void {
    for (const key of Object.keys(counts) as (keyof EnrichCounts)[]) this.#counts[key] += counts[key];
  }

  /** Adds the addresses of a summary to it. Must be called once, at the end. */
  finish(): void {
    const { query } = this.#options;
    if (query?.kind !== 'summarize') return;
    countRecords(this.#layout, this.#file.records.length).forEach((count, record) => {
      query.summary.add(recordResult(this.#file.records[record]!), count);
    });
    recordCountsOf(this.#layout)!.fill(0n);
  }
}
