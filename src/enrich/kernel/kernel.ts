/** Runs the kernel, a WebAssembly module compiled from assembly/, in a memory that layout.ts has laid out. */
import { LABELS, NETWORKS } from '../../rangefile/partitions.js';
import type { NetworkFile, UnreadColumns } from '../../rangefile/reader.js';
import { addressCipher, type CipherName } from '../address-cipher.js';
import type { EnrichCounts, HidingCounts } from '../counts.js';
import { type Addable, otherPartitionOf } from '../members.js';
import type { NetworkCount } from '../query.js';
import type { Redaction } from '../redaction.js';
import * as abi from './abi.js';
import type { KernelLayout, SlotPlace } from './layout.js';
import { columnValues, countedNetworks } from './rows.js';

/** The module's exports, see assembly/index.ts, besides the settings. Addresses are bytes from the start of the memory. */
interface Exports {
  makeTables(): void;
  makeTables6(): void;
  readonly hasTables6: WebAssembly.Global;
  resetTemplates(): void;
  run(slot: number): number;
  hideInput(slot: number, from: number, to: number): void;
  dayOfText(from: number, to: number): number;
  findRecords(from: number, to: number, state: number): number;
  findLine(from: number, to: number): number;
  isRecord(): number;
  cellState(): number;
  countNewlines(from: number, to: number): number;
  startObject(): void;
  objectEnd(from: number, to: number): number;
  lastObjectEnd(from: number, to: number): number;
  startItems(): void;
  splitItems(from: number, to: number): void;
  readonly itemsEnd: WebAssembly.Global;
  readonly closingBracket: WebAssembly.Global;
  readonly strayItemEnd: WebAssembly.Global;
}

/** A slot as the host sees it: its input, its output, its header. */
export class Slot {
  readonly place: SlotPlace;
  /** The room for input. */
  readonly input: Buffer;
  readonly #header: Uint32Array;
  readonly #memory: Uint8Array;

  constructor(layout: KernelLayout, place: SlotPlace) {
    this.place = place;
    this.#memory = new Uint8Array(layout.memory.buffer);
    this.#header = new Uint32Array(layout.memory.buffer, place.header, abi.SLOT_BYTES / 4);
    this.input = Buffer.from(layout.memory.buffer, place.input, place.inputBytes);
  }

  #get(offset: number): number {
    return this.#header[offset / 4]!;
  }

  #set(offset: number, value: number): void {
    this.#header[offset / 4] = value;
  }

  /**
   * Prepares the slot for the lines in `input`.
   *
   * @param length bytes of input: whole lines; only the last one of all may lack its newline
   */
  begin(length: number): void {
    this.#set(abi.SLOT_OUTPUT_END, this.place.output + this.place.outputBytes);
    this.setRecords(0, length);
    this.clear();
  }

  /** Sets the offsets between which the next run processes lines, and copies the input. */
  setRecords(from: number, to: number): void {
    this.#set(abi.SLOT_INPUT_END, this.place.input + to);
    this.skipTo(from, false);
  }

  /** Goes on with the line at an offset. `isCopied` says whether the input before it, as far as it is not in the output, is copied. */
  skipTo(offset: number, isCopied: boolean): void {
    this.#set(abi.SLOT_NEXT, this.place.input + offset);
    if (!isCopied) this.#set(abi.SLOT_COPIED, this.place.input + offset);
  }

  /** Prepares the slot for the rest of the same lines, after its output was taken. */
  clear(): void {
    this.#set(abi.SLOT_OUTPUT, this.place.output);
    this.#set(abi.SLOT_REJECTS, this.place.rejects);
  }

  /** The output of the last run; valid until the next run. */
  get output(): Uint8Array {
    return this.#memory.subarray(this.place.output, this.#get(abi.SLOT_OUTPUT));
  }

  /** Returns the output with a byte before it. */
  outputAfter(byte: number): Uint8Array {
    this.#memory[this.place.output - 1] = byte;
    return this.#memory.subarray(this.place.output - 1, this.#get(abi.SLOT_OUTPUT));
  }

  /** The invalid lines of the last run; valid until the next run. */
  get rejects(): Uint8Array {
    return this.#memory.subarray(this.place.rejects, this.#get(abi.SLOT_REJECTS));
  }

  /** What is wrong with the line at which the last run stopped because of the policy `fail`; 0 if it did not. */
  get stoppedAtInvalid(): number {
    return this.#get(abi.SLOT_STOPPED_AT_INVALID);
  }

  /** The number of cells of the record at which the last run stopped because of the policy `fail`. */
  get cells(): number {
    return this.#get(abi.SLOT_CELLS);
  }

  /** The bytes of input before the first line that was not processed. */
  get processed(): number {
    return this.#get(abi.SLOT_NEXT) - this.place.input;
  }

  /** The end of the lines that the next run processes. */
  get recordsEnd(): number {
    return this.#get(abi.SLOT_INPUT_END) - this.place.input;
  }

  /** Lines that the last run processed. */
  get lines(): number {
    return this.#get(abi.SLOT_LINES);
  }

  /** Adds the counts of the last run. */
  addCountsTo(counts: EnrichCounts): void {
    counts.lines += this.lines;
    counts.found += this.#get(abi.SLOT_FOUND);
    counts.no_country += this.#get(abi.SLOT_NO_COUNTRY);
    counts.invalid_address += this.#get(abi.SLOT_INVALID_ADDRESS);
    counts.missing_field += this.#get(abi.SLOT_MISSING_FIELD);
    counts.invalid_line += this.#get(abi.SLOT_INVALID_LINE);
    counts.missing_date += this.#get(abi.SLOT_MISSING_DATE);
    counts.damaged_history += this.#get(abi.SLOT_DAMAGED_HISTORY);
    const { hidden } = counts as Partial<HidingCounts>;
    if (hidden === undefined) return;
    hidden.addresses += this.#get(abi.SLOT_HIDDEN);
    hidden.searched_records += this.#get(abi.SLOT_SEARCHED);
    hidden.records_with_others += this.#get(abi.SLOT_OTHERS);
  }
}

/**
 * Returns the number of addresses that a query has found for each record, in all threads.
 *
 * @param recordCount number of records of the release
 */
export function countRecords({ memory, recordCounts = [] }: KernelLayout, recordCount: number): number[] {
  return sumOfThreads(memory, recordCounts, recordCount);
}

/** Returns the networks, or blocks of networks, that a query has counted, with the number of addresses in each. */
export function countNetworks({ memory, networkCounts }: KernelLayout): NetworkCount[] {
  const { threads, length, blocks, others } = networkCounts!;
  const networks = others.files.get(NETWORKS) as NetworkFile;
  return countedNetworks(sumOfThreads(memory, threads, length), networks, blocks);
}

/** Returns the number of addresses by the value of a column of rows. */
export function countValues({ memory, networkCounts }: KernelLayout, name: Addable): Map<string, number> {
  const { threads, length, others } = networkCounts!;
  const values = columnValues(others.files.get(otherPartitionOf(name, others.files.get(LABELS)?.columns)!)!, name);
  const counts = new Map<string, number>();
  sumOfThreads(memory, threads, length).forEach((count, record) => {
    const value = values[record];
    if (count > 0 && value != null) counts.set(String(value), (counts.get(String(value)) ?? 0) + count);
  });
  return counts;
}

function sumOfThreads({ buffer }: WebAssembly.Memory, areas: readonly number[], length: number): number[] {
  const threads = areas.map((at) => new BigUint64Array(buffer, at, length));
  return Array.from({ length }, (_, index) => threads.reduce((sum, counts) => sum + Number(counts[index]), 0));
}

/** Bytes of an address for a cipher. */
const ADDRESS_BYTES = 16;

function isCiphered(redaction: Redaction | undefined): redaction is Redaction & { how: CipherName; key: Uint8Array } {
  return redaction?.key !== undefined;
}

/** The state of {@link Kernel.findRecords} at the beginning of a record; the bit of a state that is set in quotes. */
export const RECORD_START = 2;
export const IN_QUOTES = 1;

/** One thread's instance of the kernel. */
export class Kernel {
  readonly #exports: Exports;
  readonly #layout: KernelLayout;
  readonly #unread: UnreadColumns | undefined;

  /**
   * That of the first thread makes the lookup tables; the others must not begin before it has made all, see {@link makeTables6}.
   *
   * @param module see module.ts
   * @param thread number of the thread, whose working areas it uses; 0 is the first one
   * @param unread the columns that were not read yet
   */
  constructor(layout: KernelLayout, module: WebAssembly.Module, thread = 0, unread?: UnreadColumns) {
    const { redaction } = layout;
    const cipher = isCiphered(redaction) && addressCipher(redaction.how, redaction.key, redaction.isReverse);
    // OpenSSL takes no memory that threads share.
    const copy = new Uint8Array(cipher ? ADDRESS_BYTES * abi.SPANS : 0);
    const env = {
      memory: layout.memory,
      readIPv6: () => this.makeTables6(),
      encrypt: (at: number, count: number) => {
        const room = new Uint8Array(layout.memory.buffer, at, ADDRESS_BYTES * count);
        const addresses = copy.subarray(0, room.length);
        addresses.set(room);
        if (cipher) cipher(addresses);
        room.set(addresses);
      },
    };
    const instance = new WebAssembly.Instance(module, { env });
    this.#exports = instance.exports as unknown as Exports;
    this.#layout = layout;
    this.#unread = unread;
    const globals = instance.exports as Record<string, WebAssembly.Global>;
    for (const [name, value] of Object.entries({ ...layout.settings, ...layout.threads[thread] })) {
      globals[name]!.value = value;
    }
    this.#exports.resetTemplates();
    if (thread === 0) this.#exports.makeTables();
    if (thread > 0) this.#exports.hasTables6.value = 1;
    else if (layout.unreadHighs === undefined) this.makeTables6();
  }

  /** Makes the lookup tables of IPv6, if they are not made. Reads their columns, if they are not read; throws as that does. */
  makeTables6(): void {
    const { memory, unreadHighs } = this.#layout;
    const { hasTables6 } = this.#exports;
    if (hasTables6.value === 1) return;
    if (unreadHighs !== undefined) this.#unread!.read(new Uint8Array(memory.buffer, unreadHighs.at, unreadHighs.bytes));
    this.#exports.makeTables6();
    hasTables6.value = 1;
  }

  /**
   * Processes the lines of a slot that was prepared.
   *
   * @returns whether all were processed. If not, the output is full (take it, {@link Slot.clear}, run again), or the policy
   *   is to fail at an invalid line
   */
  run(slot: SlotPlace): boolean {
    return this.#exports.run(slot.header) !== 0;
  }

  /**
   * Finds the last record of a table that ends in a part of a slot's input.
   *
   * @param from offset of the first byte; @param to offset after the last byte
   * @param state what the last call returned for the bytes before; {@link RECORD_START} at the beginning of a record
   * @returns the offset after that record, 0 if there is none; the state
   */
  findRecords({ input }: SlotPlace, from: number, to: number, state: number) {
    const found = this.#exports.findRecords(input + from, input + to, state);
    return { end: found === 0 ? 0 : found - input, state: this.#exports.cellState() };
  }

  /**
   * Reads the line of a table at the beginning of a part of a slot's input as the beginning of a record.
   *
   * @returns the offset after its newline, 0 if there is none; whether the record ends there; without a newline, the state
   */
  findLine({ input }: SlotPlace, from: number, to: number) {
    const end = this.#exports.findLine(input + from, input + to);
    return {
      end: end === 0 ? 0 : end - input,
      isRecord: this.#exports.isRecord() !== 0,
      state: this.#exports.cellState(),
    };
  }

  /** Returns a part of a slot's input without its addresses, if they are hidden; overwrites the output. The counts are those of a run. */
  withoutAddresses(slot: Slot, from: number, to: number): Uint8Array {
    if (this.#layout.settings.hides === undefined) return slot.input.subarray(from, to);
    slot.clear();
    const { header, input } = slot.place;
    this.#exports.hideInput(header, input + from, input + to);
    const text = Uint8Array.from(slot.output);
    slot.clear();
    return text;
  }

  /** Starts to find the ends of JSON objects, see assembly/objects.ts. */
  startObject(): void {
    this.#exports.startObject();
  }

  /**
   * Finds the end of the first or last object that ends in a part of a slot's input; continues where the last call ended.
   *
   * @returns the offset after it, 0 if there is none
   */
  objectEnd(which: 'first' | 'last', { input }: SlotPlace, from: number, to: number): number {
    const { objectEnd, lastObjectEnd } = this.#exports;
    const end = (which === 'first' ? objectEnd : lastObjectEnd)(input + from, input + to);
    return end === 0 ? 0 : end - input;
  }

  /** Starts to split the items of an array. */
  startItems(): void {
    this.#exports.startItems();
  }

  /**
   * Splits the items in a part of a slot's input, see assembly/items.ts; continues where the last call ended.
   *
   * @returns offsets, -1 if there is none: the end of the last item that a comma follows, after that comma; the bracket that
   *   closes the array; a byte that the text must not have, from whose vector on nothing was split
   */
  splitItems({ input }: SlotPlace, from: number, to: number) {
    this.#exports.splitItems(input + from, input + to);
    const offset = ({ value }: WebAssembly.Global): number => (value === 0 ? -1 : (value as number) - input);
    const { itemsEnd, closingBracket, strayItemEnd } = this.#exports;
    return { end: offset(itemsEnd), closing: offset(closingBracket), stray: offset(strayItemEnd) };
  }

  /** Returns the number of newlines in the first bytes of a slot's input. */
  countNewlines({ input }: SlotPlace, length: number): number {
    return length === 0 ? 0 : this.#exports.countNewlines(input, input + length);
  }

  /** Returns the day of a date in days since 1970; undefined if the text is no date. For tests. */
  dayOf(slot: SlotPlace, text: Uint8Array): number | undefined {
    new Uint8Array(this.#layout.memory.buffer).set(text, slot.input);
    const day = this.#exports.dayOfText(slot.input, slot.input + text.length);
    return day === -(2 ** 31) ? undefined : day;
  }
}
