/**
 * Splits a stream of bytes into chunks of whole records: lines, records of a table, items of a document. A chunk is assembled in
 * the kernel's memory, so only the incomplete record at its end is copied.
 */

import type { FilePart } from '../../file-part.js';
import type { Kernel, Slot } from '../kernel/kernel.js';
import { IN_QUOTES, RECORD_START } from '../kernel/kernel.js';
import type { TableShape } from '../kernel/layout.js';
import type { ByteSource } from './source.js';

const NEWLINE = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Returns the length of the byte order mark that bytes begin with, 0 if they do not, undefined if they are a part of one. */
function startsWithMark(bytes: Uint8Array): number | undefined {
  const differs = BYTE_ORDER_MARK.some((byte, index) => index < bytes.length && bytes[index] !== byte);
  if (differs) return 0;
  return bytes.length < BYTE_ORDER_MARK.length ? undefined : BYTE_ORDER_MARK.length;
}

/** Bytes of a chunk that are not records for the kernel. */
export interface Passage {
  /** Offsets in the slot's input. */
  from: number;
  to: number;
  /**
   * `text`, such as a byte order mark, belongs to no record; a `directive` is a line that begins with `#`. The others are the first or a
   * further piece of a record that is too long, or that cannot be read.
   */
  kind: 'text' | 'directive' | 'first' | 'further';
  /** What is put out in place of text or a directive; by default it is copied. */
  output?: Uint8Array;
  /** For a first piece: what is wrong with the record. For a piece: whether the record ends with it. */
  problem?: string | undefined;
  isWhole?: boolean;
  /** The shape of the records after it, if it changes. */
  shape?: TableShape;
}

/** Bytes at the start of a slot's input: whole records, of which only the last one of the input may lack its end, and passages. */
export interface Chunk {
  slot: Slot;
  length: number;
  /** In order. */
  passages: Passage[];
  /** For whole lines that are still in their file: the thread that processes them reads them into the slot. */
  from?: FilePart | undefined;
  /** For documents: the number of bytes and of newlines before the chunk. */
  origin?: Origin | undefined;
}

export interface Origin {
  bytes: number;
  newlines: number;
}

/** What a splitter has found. All numbers are offsets in a slot's input. */
export interface Found {
  /** The end of the last record or passage that ends in the bytes; the start of the record in progress if none does. */
  end: number;
  /** Where the next search begins. */
  scanned: number;
  /** The passages up to `end`. */
  passages?: Passage[];
}

/** What a splitter has found after a record, or a part of one, that it skips. */
export interface Skipped extends Found {
  /** The end of what is skipped, and whether the record ends there. */
  to: number;
  isWhole: boolean;
}

/** Finds where the records of an input end: a state machine that reads each byte once, and can stop after each. */
export interface Splitter {
  /** Starts at the beginning of an input. */
  start(name: string): void;
  /**
   * Searches the bytes `from … to` of a slot's input, which follow those that were searched before, for the end of the record that
   * begins at `start` and of those after it.
   *
   * @throws AtlasError E_BAD_INPUT if they are not in the format; the records before that have been found
   */
  search(slot: Slot, start: number, from: number, to: number): Found;
  /** Returns what is wrong with a record that is longer than `maxBytes`. */
  tooLong(maxBytes: number): string;
  /**
   * Skips a record that begins at `start` and does not end before `scanned`, or goes on with that.
   *
   * @param filled the end of the bytes that are there
   */
  skip(slot: Slot, start: number, scanned: number, filled: number): Skipped;
  /**
   * Ends the input with the bytes `start … filled` of a slot, which end no record.
   *
   * @returns what is wrong with them; undefined if they are a record
   * @throws AtlasError E_BAD_INPUT if the input must not end there
   */
  end(slot: Slot, start: number, filled: number): string | undefined;
  /** Takes note that bytes at the start of a slot's input are emitted. Returns where in the input they are, for documents. */
  emit?(slot: Slot, bytes: number): Origin | undefined;
}

/** Lines, which end with a newline. */
export class LineSplitter implements Splitter {
  start(): void {}

  search({ input }: Slot, start: number, from: number, to: number): Found {
    const newline = input.subarray(from, to).lastIndexOf(NEWLINE);
    return { end: newline < 0 ? start : from + newline + 1, scanned: to };
  }

  tooLong(maxBytes: number): string {
    return `is longer than ${maxBytes} bytes`;
  }

  skip({ input }: Slot, _start: number, scanned: number, filled: number): Skipped {
    const newline = input.subarray(scanned, filled).indexOf(NEWLINE);
    const to = newline < 0 ? filled : scanned + newline + 1;
    return { to, isWhole: newline >= 0, end: to, scanned: to };
  }

  end(): undefined {}
}

/**
 * Records of a table. A newline in quotes does not end a record, so the kernel finds the ends, from the beginning of the table
 * on. A quote that is never closed would make one record of all that follows. Therefore only the line on which such a record begins
 * is skipped, and the next line begins a record.
 *
 * The bytes after that line were searched already, without an end of a record: at the beginning of each of these lines, that search was
 * in quotes. So a record that begins on one of them either ends on its own line, or it goes on as the search before did, and need not
 * be searched again.
 */
export class RecordSplitter implements Splitter {
  readonly #kernel: Kernel;
  #state = RECORD_START;
  /** After `skip`: the end of the line on which the next record begins, if it is known. */
  #lineEnd: number | undefined;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  start(): void {
    this.#state = RECORD_START;
    this.#lineEnd = undefined;
  }

  search({ place }: Slot, start: number, from: number, to: number): Found {
    const { end, state } = this.#kernel.findRecords(place, from, to, this.#state);
    this.#state = state;
    if (end > 0) this.#lineEnd = undefined;
    return { end: Math.max(end, start), scanned: to };
  }

  tooLong(maxBytes: number): string {
    return `a record of more than ${maxBytes} bytes begins here; is a quote not closed?`;
  }

  skip({ input, place }: Slot, start: number, scanned: number, filled: number): Skipped {
    const newline = this.#lineEnd ?? input.subarray(start, filled).indexOf(NEWLINE) + start + 1;
    this.#lineEnd = undefined;
    if (newline === start) return { to: filled, isWhole: false, end: filled, scanned: filled };
    let end = newline;
    while (end < scanned) {
      const line = this.#kernel.findLine(place, end, scanned);
      if (line.end === 0) {
        this.#state = line.state;
        break;
      }
      if (!line.isRecord) {
        this.#lineEnd = line.end;
        break;
      }
      end = line.end;
    }
    if (end >= scanned) this.#state = RECORD_START;
    return { to: newline, isWhole: true, end, scanned: Math.max(end, scanned) };
  }

  emit(_slot: Slot, bytes: number): undefined {
    if (this.#lineEnd !== undefined) this.#lineEnd -= bytes;
  }

  end(): string | undefined {
    return (this.#state & IN_QUOTES) !== 0 ? 'a quote is opened and never closed' : undefined;
  }
}

/** JSON objects that are one after the other. */
export class ObjectSplitter implements Splitter {
  readonly #kernel: Kernel;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  start(): void {
    this.#kernel.startObject();
  }

  search({ place }: Slot, start: number, from: number, to: number): Found {
    return { end: Math.max(this.#kernel.objectEnd('last', place, from, to), start), scanned: to };
  }

  tooLong(maxBytes: number): string {
    return `is longer than ${maxBytes} bytes; is a bracket not closed?`;
  }

  skip({ place }: Slot, _start: number, scanned: number, filled: number): Skipped {
    const end = this.#kernel.objectEnd('first', place, scanned, filled);
    const to = end === 0 ? filled : end;
    return { to, isWhole: end !== 0, end: to, scanned: to };
  }

  end(): undefined {}
}

/**
 * Assembles chunks in slots. The bytes of the slot that is filled are, in this order:
 *
 * ```
 * 0 ………… end ………………… scanned …………… filled
 *  records   a record      not searched
 * ```
 */
export class ChunkBuffer {
  readonly #splitter: Splitter;
  readonly #large: Slot;
  readonly #maxBytes: number;
  /** The ordinary slot in use, and the slot that is being filled: this one or the large one. */
  #slot: Slot;
  #filling: Slot;
  /** The end of the bytes that are there. */
  #filled = 0;
  /** The end of those that were searched; not less than `#end`. */
  #scanned = 0;
  /** The end of whole records and passages, where a record begins, or goes on that is skipped. */
  #end = 0;
  /** The passages before `#end`. */
  #passages: Passage[] = [];
  /** The bytes after a chunk that was emitted, to be moved to the start of a slot. */
  #unreturned: Buffer | undefined;
  /** Whether the record in progress is skipped. */
  #isSkipping = false;
  /** Whether the first bytes of the input, which may be a byte order mark, are not known; whether the input has ended. */
  #isAtStart = true;
  #hasEnded = false;

  /**
   * @param slot the first slot
   * @param large the slot for records that do not fit into an ordinary slot
   * @param maxBytes longest record in bytes, without its end; not less than the input of a slot
   */
  constructor(splitter: Splitter, slot: Slot, large: Slot, maxBytes: number) {
    this.#splitter = splitter;
    this.#large = large;
    this.#maxBytes = maxBytes;
    this.#slot = slot;
    this.#filling = slot;
  }

  /** Starts another input; forgets what is left of the one before. */
  start(name: string): void {
    this.#splitter.start(name);
    this.#filling = this.#slot;
    this.#unreturned = undefined;
    this.#filled = 0;
    this.#scanned = 0;
    this.#end = 0;
    this.#passages = [];
    this.#isSkipping = false;
    this.#isAtStart = true;
    this.#hasEnded = false;
  }

  /** Where the next bytes go. Never empty, and never longer than a chunk. */
  get space(): Buffer {
    const { input } = this.#filling;
    return input.subarray(this.#filled, Math.min(this.#filled + this.#slot.input.length, input.length));
  }

  /**
   * Takes the next lines of a source as a chunk without reading them, if lines are the records. Bytes of theirs that were added
   * count as not read.
   *
   * @returns the chunk, for which `useSlot` must be called next; undefined if the source must be read as usual
   */
  async takeStretch(source: ByteSource): Promise<Chunk | undefined> {
    const isPossible =
      !this.#isAtStart &&
      !this.#isSkipping &&
      this.#end === 0 &&
      this.#filling === this.#slot &&
      this.#unreturned === undefined;
    if (!isPossible) return undefined;
    const from = await source.takeLines?.(this.#filled, this.#slot.input.length);
    if (from === undefined) return undefined;
    this.#unreturned = this.#slot.input.subarray(0, 0);
    this.#filled = 0;
    this.#scanned = 0;
    return { slot: this.#slot, length: from.length, passages: [], from };
  }

  /**
   * Adds the bytes that the caller put at the start of `space`.
   *
   * @returns the chunk that they complete, if any. If it `needsSlot`, `useSlot` must be called next. Otherwise it is in the large
   *   slot, and the caller must process it before the next call
   * @throws AtlasError E_BAD_INPUT if the input is not in its format
   */
  add(bytes: number): Chunk | undefined {
    this.#filled += bytes;
    return this.next();
  }

  /** Adds bytes of any length in parts that fit, and gives `process` what `add` returns for each. Throws as `add` does. */
  addAll(bytes: Uint8Array, process: (chunk: Chunk | undefined) => void): void {
    for (let from = 0; from < bytes.length; ) {
      const { space } = this;
      const length = Math.min(space.length, bytes.length - from);
      space.set(bytes.subarray(from, from + length));
      from += length;
      process(this.add(length));
    }
  }

  /** Ends the input. Returns a chunk, and throws, as `add` does. */
  end(): Chunk | undefined {
    this.#hasEnded = true;
    return this.next();
  }

  /** Whether a chunk that was returned has taken the ordinary slot. */
  needsSlot({ slot }: Chunk): boolean {
    return slot !== this.#large;
  }

  /** Uses the next slot after a chunk in the previous slot was returned. It may be the same slot. */
  useSlot(slot: Slot): void {
    this.#slot = slot;
    this.#roll();
  }

  /** Returns a further chunk of the same bytes. Must be called after each chunk until it returns undefined. */
  next(): Chunk | undefined {
    this.#roll();
    if (this.#isAtStart && !this.#passMark()) return this.#makeRoom();
    for (;;) {
      if (this.#isSkipping && this.#end < this.#filled) this.#skipRecord();
      const limit = Math.min(this.#filled, this.#end + this.#maxBytes + 1);
      if (this.#scanned < limit) {
        const start = this.#end;
        this.#take(this.#splitter.search(this.#filling, start, this.#scanned, limit));
        if (this.#end > start) return this.#emit();
      }
      if (this.#filled - this.#end > this.#maxBytes) {
        this.#skipRecord(this.#splitter.tooLong(this.#maxBytes));
      } else if (!this.#hasEnded) {
        return this.#isWorthEmitting() ? this.#emit() : this.#makeRoom();
      } else {
        const problem = this.#splitter.end(this.#filling, this.#end, this.#filled);
        if (problem === undefined || this.#end === this.#filled) {
          this.#end = this.#filled;
          return this.#end > 0 ? this.#emit() : undefined;
        }
        this.#skipRecord(problem);
      }
      if (this.#filling === this.#large && this.#end >= this.#slot.input.length) return this.#emit();
    }
  }

  /** Passes a byte order mark. Returns false as long as it is not known whether there is one. */
  #passMark(): boolean {
    const mark = startsWithMark(this.#filling.input.subarray(0, this.#filled));
    if (mark === undefined && !this.#hasEnded) return false;
    this.#isAtStart = false;
    if (mark !== undefined && mark > 0) {
      this.#take({ end: mark, scanned: mark, passages: [{ from: 0, to: mark, kind: 'text' }] });
    }
    return true;
  }

  #take({ end, scanned, passages = [] }: Found): void {
    this.#end = end;
    this.#scanned = scanned;
    for (const passage of passages) this.#passages.push(passage);
  }

  /** Skips a record because of a problem, or a further piece of it. */
  #skipRecord(problem?: string): void {
    const from = this.#end;
    const { to, isWhole, ...found } = this.#splitter.skip(this.#filling, from, this.#scanned, this.#filled);
    this.#passages.push({ from, to, kind: problem === undefined ? 'further' : 'first', problem, isWhole });
    this.#isSkipping = !isWhole;
    this.#take(found);
  }

  /** Returns whether records that are complete are emitted before more bytes come: not if much more would have to be moved. */
  #isWorthEmitting(): boolean {
    const least = this.#filling === this.#large ? Math.min(this.#filled - this.#end, this.#slot.input.length) : 1;
    return this.#end > 0 && (this.#end >= least || this.#filled - this.#end <= this.#slot.input.length);
  }

  #emit(): Chunk {
    const length = this.#end;
    const origin = this.#splitter.emit?.(this.#filling, length);
    const chunk = { slot: this.#filling, length, passages: this.#passages, origin };
    this.#unreturned = this.#filling.input.subarray(length, this.#filled);
    this.#filled -= length;
    this.#scanned -= length;
    this.#end = 0;
    this.#passages = [];
    return chunk;
  }

  /** Moves the bytes after the chunk that was emitted to the start of a slot. */
  #roll(): void {
    const rest = this.#unreturned;
    if (rest === undefined) return;
    this.#unreturned = undefined;
    this.#filling = rest.length <= this.#slot.input.length ? this.#slot : this.#large;
    this.#filling.input.set(rest);
  }

  /** Makes room for more bytes. */
  #makeRoom(): undefined {
    if (this.#filling !== this.#slot || this.#filled < this.#slot.input.length) return;
    this.#large.input.set(this.#slot.input.subarray(0, this.#filled));
    this.#filling = this.#large;
  }
}
