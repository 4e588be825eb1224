/**
 * Splits a stream of bytes into chunks of whole records: lines, records of a table, items of a document. A chunk is assembled in
 * the kernel's memory, so only the incomplete record at its end is copied.
 */

import type { FilePart } from '../../file-part.js';
import type { Kernel, Slot } from '../kernel/kernel.js';
import { RECORD_START } from '../kernel/kernel.js';
import type { ByteSource } from './source.js';

const NEWLINE = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Returns the length of the byte order mark that bytes begin with, 0 if they do not, undefined if they are a part of one. */
function startsWithMark(bytes: Uint8Array): number | undefined {
  const differs = BYTE_ORDER_MARK.some((byte, index) => index < bytes.length && bytes[index] !== byte);
  if (differs) return 0;
  return bytes.length < BYTE_ORDER_MARK.length ? undefined : BYTE_ORDER_MARK.length;
}

/** Bytes at the start of a slot's input. */
export interface Chunk {
  slot: Slot;
  length: number;
  /** Number of bytes at the start, such as a byte order mark, that belong to no record. */
  skip: number;
  /** What is put out in place of those bytes, if they are not copied. */
  header?: Uint8Array | undefined;
  /**
   * Undefined for whole records; only the last line of the input may lack its newline. Otherwise the bytes are the first or a
   * further piece of a record that is too long, or that cannot be read.
   */
  piece: 'first' | 'further' | undefined;
  /** For a first piece: what is wrong with the record. */
  problem?: string;
  /** For whole lines that are still in their file: the thread that processes them reads them into the slot. */
  from?: FilePart | undefined;
  /** For documents: the number of bytes and of newlines before the chunk. */
  origin?: Origin | undefined;
}

export interface Origin {
  bytes: number;
  newlines: number;
}

/** What a search for the ends of records has found. All numbers are offsets in a slot's input. */
export interface Found {
  /** The end of the last record that ends in the bytes; 0 if none does. */
  end: number;
  /** Where the next search begins. */
  searched: number;
  /** The end of the bytes that belong to no record, if there are any. */
  skip?: number;
  /** The byte at `end` - 1 before the search replaced it by a terminator: it is the first one after the record. */
  replaced?: number;
}

/** Finds where the records of an input end. */
export interface Splitter {
  /** The byte at which a record that is too long, or that cannot be read, is given up. */
  readonly terminator: number;
  /** Starts at the beginning of a record, of a new input if `name` is given. */
  start(name?: string): void;
  /**
   * Searches the bytes `from … to` of a slot's input, which follow those that were searched before.
   *
   * @throws AtlasError E_BAD_INPUT if they are not in the format; the records before that have been found
   */
  search(slot: Slot, from: number, to: number): Found;
  /** Returns what is wrong with a record that is longer than `maxBytes`. */
  tooLong(maxBytes: number): string;
  /**
   * Ends the input with `held` bytes in a slot that end no record.
   *
   * @returns what is wrong with them; undefined if they are a record
   * @throws AtlasError E_BAD_INPUT if the input must not end there
   */
  end(slot: Slot, held: number): string | undefined;
  /** Takes note that bytes at the start of a slot's input are given away, and returns where they are. Only for documents. */
  take?(slot: Slot, bytes: number): Origin;
}

/** Lines, which end with a newline. */
export class LineSplitter implements Splitter {
  readonly terminator = NEWLINE;

  start(): void {}

  search({ input }: Slot, from: number, to: number): Found {
    const newline = input.subarray(from, to).lastIndexOf(NEWLINE);
    return { end: newline < 0 ? 0 : from + newline + 1, searched: to };
  }

  tooLong(maxBytes: number): string {
    return `is longer than ${maxBytes} bytes`;
  }

  end(): undefined {}
}

/**
 * Records of a table. A newline in quotes does not end a record, so the kernel finds the ends, from the beginning of the table
 * on. A quote that is never closed would make one record of all that follows. Therefore only the line on which such a record begins
 * is given up, and the next line begins a record.
 */
export class RecordSplitter implements Splitter {
  readonly terminator = NEWLINE;
  readonly #kernel: Kernel;
  #state = RECORD_START;
  #isQuoted = false;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  start(): void {
    this.#state = RECORD_START;
    this.#isQuoted = false;
  }

  search({ place }: Slot, from: number, to: number): Found {
    const { end, state, isQuoted } = this.#kernel.findRecords(place, from, to, this.#state);
    this.#state = state;
    this.#isQuoted = isQuoted;
    return { end, searched: to };
  }

  tooLong(maxBytes: number): string {
    return `a record of more than ${maxBytes} bytes begins here; is a quote not closed?`;
  }

  end(): string | undefined {
    return this.#isQuoted ? 'a quote is opened and never closed' : undefined;
  }
}

/**
 * Assembles chunks in slots.
 *
 * Invariants: the `#held` bytes are at the start of `#filling.input` and begin a record, or continue a long one. The first
 * `#searched` of them were searched; the last record in them ends at `#end`, and `#skip` bytes at their start belong to no record.
 */
export class ChunkBuffer {
  readonly #splitter: Splitter;
  readonly #large: Slot;
  readonly #maxBytes: number;
  /** The ordinary slot in use, and the slot that is being filled: this one or the large one. */
  #slot: Slot;
  #filling: Slot;
  #held = 0;
  #searched = 0;
  #end = 0;
  #skip = 0;
  /** The byte that was replaced at `#end` - 1, if any. */
  #replaced: number | undefined;
  /** The bytes after a chunk that was returned, to be moved to the start of a slot. */
  #rest: Buffer | undefined;
  #isInLongRecord = false;
  /** Whether no byte of the input has been returned; whether the input has ended. */
  #isAtStart = true;
  #hasEnded = false;

  /**
   * @param slot the first slot
   * @param large the slot for records that do not fit into an ordinary slot
   * @param maxBytes longest record in bytes, without its terminator; not less than the input of a slot
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
    this.#rest = undefined;
    this.#held = 0;
    this.#searched = 0;
    this.#end = 0;
    this.#skip = 0;
    this.#replaced = undefined;
    this.#isInLongRecord = false;
    this.#isAtStart = true;
    this.#hasEnded = false;
  }

  /** Where the next bytes go. Never empty, and never longer than a chunk. */
  get space(): Buffer {
    const { input } = this.#filling;
    return input.subarray(this.#held, Math.min(this.#held + this.#slot.input.length, input.length));
  }

  /**
   * Takes the next lines of a source as a chunk without reading them, if lines are the records. Bytes of theirs that were added
   * count as not read.
   *
   * @returns the chunk, for which `useSlot` must be called next; undefined if the source must be read as usual
   */
  async takeStretch(source: ByteSource): Promise<Chunk | undefined> {
    const isPossible =
      !this.#isAtStart && !this.#isInLongRecord && this.#filling === this.#slot && this.#rest === undefined;
    if (!isPossible) return undefined;
    const from = await source.takeLines?.(this.#held, this.#slot.input.length);
    if (from === undefined) return undefined;
    this.#rest = this.#slot.input.subarray(0, 0);
    this.#held = 0;
    this.#searched = 0;
    this.#end = 0;
    return { slot: this.#slot, length: from.length, skip: 0, piece: undefined, from };
  }

  /**
   * Adds the bytes that the caller put at the start of `space`.
   *
   * @returns the chunk that they complete, if any. If it `needsSlot`, `useSlot` must be called next. Otherwise it is in the large
   *   slot, and the caller must process it before the next call
   * @throws AtlasError E_BAD_INPUT if the input is not in its format
   */
  add(bytes: number): Chunk | undefined {
    this.#held += bytes;
    return this.next();
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
    this.#moveRest();
  }

  /** Returns a further chunk of the same bytes. Must be called after each chunk until it returns undefined. */
  next(): Chunk | undefined {
    this.#moveRest();
    if (this.#isInLongRecord) return this.#furtherPiece();
    if (this.#isAtStart) {
      const mark = startsWithMark(this.#filling.input.subarray(0, this.#held));
      // With a limit below the mark's length, more bytes would find no room.
      if (mark === undefined && !this.#hasEnded && this.#held <= this.#maxBytes) return this.#makeRoom();
      this.#skip = Math.max(this.#skip, mark ?? 0);
      this.#searched = Math.max(this.#searched, this.#skip);
    }
    this.#search(Math.min(this.#held, this.#maxBytes + 1));
    if (this.#end > 0) return this.#take(this.#end);
    const isTooLong = this.#held > this.#maxBytes;
    if (isTooLong) return this.#giveUp(this.#splitter.tooLong(this.#maxBytes));
    if (!this.#hasEnded) return this.#makeRoom();
    const problem = this.#splitter.end(this.#filling, this.#held);
    if (this.#held === 0) return undefined;
    return problem === undefined ? this.#take(this.#held) : this.#giveUp(problem);
  }

  /** Searches the bytes that were not searched, unless records that were found before are still to be returned. */
  #search(to: number): void {
    if (this.#end > 0 || this.#searched >= to) return;
    const { end, searched, skip = this.#skip, replaced } = this.#splitter.search(this.#filling, this.#searched, to);
    if (end > 0) this.#end = end;
    this.#searched = searched;
    this.#skip = skip;
    this.#replaced = replaced;
  }

  /** Moves the bytes after the chunk that was returned to the start of a slot. */
  #moveRest(): void {
    const rest = this.#rest;
    if (rest === undefined) return;
    this.#rest = undefined;
    this.#filling = rest.length <= this.#slot.input.length ? this.#slot : this.#large;
    this.#filling.input.set(rest);
    if (this.#replaced !== undefined && this.#end === 0) {
      this.#filling.input[0] = this.#replaced;
      this.#replaced = undefined;
    }
  }

  /** Makes room for more bytes. */
  #makeRoom(): undefined {
    if (this.#filling === this.#slot && this.#held === this.#slot.input.length) this.#moveToLarge();
  }

  #moveToLarge(): void {
    this.#large.input.set(this.#slot.input.subarray(0, this.#held));
    this.#filling = this.#large;
  }

  /** Returns the first bytes as a chunk of whole records. */
  #take(length: number): Chunk {
    const chunk: Chunk = { slot: this.#filling, length, skip: Math.min(this.#skip, length), piece: undefined };
    return this.#give(chunk);
  }

  /** Gives up a record: returns its first piece, in a document after the text around the items. */
  #giveUp(problem: string): Chunk {
    if (this.#skip > 0 && this.#splitter.take !== undefined) return this.#take(this.#skip);
    return { ...this.#takePiece('first'), problem };
  }

  #furtherPiece(): Chunk | undefined {
    if (this.#held > 0) return this.#takePiece('further');
    if (this.#hasEnded) this.#isInLongRecord = false;
    return undefined;
  }

  /** Returns the bytes up to the first terminator as a piece of a record. */
  #takePiece(piece: 'first' | 'further'): Chunk {
    if (this.#filling !== this.#large) this.#moveToLarge();
    this.#search(this.#held);
    const end = this.#large.input.subarray(0, this.#held).indexOf(this.#splitter.terminator);
    this.#isInLongRecord = end < 0;
    const chunk = this.#give({ slot: this.#large, length: end < 0 ? this.#held : end + 1, skip: 0, piece });
    if (this.#splitter.take !== undefined) return chunk;
    // The next line begins a record, even if this one is not valid.
    this.#splitter.start();
    this.#searched = 0;
    this.#end = 0;
    return chunk;
  }

  #give(chunk: Chunk): Chunk {
    // The byte that was replaced belongs to the rest.
    const isReplaced = this.#replaced !== undefined && this.#end === chunk.length;
    const length = isReplaced ? chunk.length - 1 : chunk.length;
    const origin = this.#splitter.take?.(chunk.slot, length);
    this.#rest = chunk.slot.input.subarray(length, this.#held);
    this.#held -= length;
    this.#searched = Math.max(this.#searched - length, 0);
    this.#end = Math.max(this.#end - chunk.length, 0);
    this.#skip = 0;
    this.#isAtStart = false;
    return { ...chunk, origin };
  }
}
