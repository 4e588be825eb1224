/**
 * Splits a stream of bytes into blocks of whole lines. A block is assembled in the kernel's memory, so only the incomplete
 * line at the end of a block is copied.
 */
import type { Slot } from '../kernel/kernel.js';

const NEWLINE = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Returns the length of the byte order mark that bytes begin with, 0 if they do not, undefined if they are a part of one. */
export function startsWithMark(bytes: Uint8Array): number | undefined {
  const differs = BYTE_ORDER_MARK.some((byte, index) => index < bytes.length && bytes[index] !== byte);
  if (differs) return 0;
  return bytes.length < BYTE_ORDER_MARK.length ? undefined : BYTE_ORDER_MARK.length;
}

/** Bytes at the start of a slot's input. */
export interface Block {
  slot: Slot;
  length: number;
  /** Number of bytes at the start, such as a byte order mark, that belong to no line. */
  skip: number;
  /** What is put out in place of those bytes, if they are not copied. */
  head?: Uint8Array | undefined;
  /**
   * Undefined for whole lines; only the last line of the input may lack its newline. Otherwise the bytes are the first or a
   * further part of a line that is too long.
   */
  part: 'first' | 'further' | undefined;
  /** For a first part: what is wrong with the line, if it is not only its length. */
  problem?: string;
}

/** Assembles blocks in slots. */
export interface BlockBuffer {
  /** Where the next bytes go. Never empty, and never longer than a block. */
  readonly space: Buffer;
  /**
   * Adds the bytes that the caller put at the start of `space`.
   *
   * @returns the block that they complete, if any. If it is in the ordinary slot, `useSlot` must be called next. If it is in
   *   the large slot, the caller must process it before the next call
   */
  add(bytes: number): Block | undefined;
  /** Ends the input; the next bytes start another input. Returns a block as `add` does. */
  end(): Block | undefined;
  /** Returns a further block of the same bytes. Must be called after each block until it returns undefined. */
  next(): Block | undefined;
  /** Uses the next slot after a block in the previous slot was returned. It may be the same slot. */
  useSlot(slot: Slot): void;
}

/**
 * Invariants: the `#held` bytes are at the start of `#filling.input`. The first `#searched` of them have no newline; the
 * others have one only after the end of a line that was too long. In the large slot, they belong to one line.
 */
export class LineBuffer implements BlockBuffer {
  readonly #large: Slot;
  readonly #maxLineBytes: number;
  /** The incomplete line that the next slot starts with. */
  #rest: Buffer = Buffer.alloc(0);
  /** The ordinary slot in use. */
  #slot: Slot;
  /** The slot that is being filled: the ordinary slot or the large slot. */
  #filling: Slot;
  #held = 0;
  #searched = 0;
  /** Whether the current line is too long, so it is returned in parts. */
  #isOversized = false;
  /** Whether no byte of the input has been returned. */
  #isAtStart = true;

  /**
   * @param slot the first slot
   * @param large the slot for lines that do not fit into an ordinary slot
   * @param maxLineBytes longest line in bytes, without its newline; not less than the input of a slot
   */
  constructor(slot: Slot, large: Slot, maxLineBytes: number) {
    this.#large = large;
    this.#maxLineBytes = maxLineBytes;
    this.#slot = slot;
    this.#filling = slot;
  }

  /** Uses the next slot after a block in the previous slot was returned. It may be the same slot. */
  useSlot(slot: Slot): void {
    slot.input.set(this.#rest);
    this.#held = this.#rest.length;
    this.#searched = 0;
    this.#rest = this.#rest.subarray(0, 0);
    this.#slot = slot;
    this.#filling = slot;
  }

  /** Where the next bytes go. Never empty, and never longer than a block. */
  get space(): Buffer {
    const input = this.#filling.input;
    return input.subarray(this.#held, Math.min(this.#held + this.#slot.input.length, input.length));
  }

  /**
   * Adds the bytes that the caller put at the start of `space`.
   *
   * @returns the block that they complete, if any. If it is in the ordinary slot, `useSlot` must be called before more bytes
   *   are added. If it is in the large slot, the caller must have processed it by then
   */
  add(bytes: number): Block | undefined {
    const input = this.#filling.input;
    const from = this.#held;
    const to = from + bytes;
    if (this.#filling === this.#slot) {
      const newline = input.subarray(this.#searched, to).lastIndexOf(NEWLINE);
      if (newline >= 0) return this.#takeBlock(this.#searched + newline + 1, to);
      this.#held = to;
      this.#searched = to;
      if (to === input.length) this.#moveToLarge();
      return undefined;
    }
    const newline = input.subarray(from, to).indexOf(NEWLINE);
    if (this.#isOversized) return this.#takePart('further', newline < 0 ? to : newline + 1, to, newline >= 0);
    if (newline < 0) {
      this.#held = to;
      return to > this.#maxLineBytes ? this.#takePart('first', to, to, false) : undefined;
    }
    if (from + newline > this.#maxLineBytes) return this.#takePart('first', from + newline + 1, to, true);
    return this.#takeBlock(from + input.subarray(from, to).lastIndexOf(NEWLINE) + 1, to);
  }

  /**
   * Ends the input; the next bytes start another input.
   *
   * @returns the last line if it lacks its newline
   */
  end(): Block | undefined {
    const block = this.#held > 0 ? this.#takeBlock(this.#held, this.#held) : undefined;
    this.#isOversized = false;
    this.#filling = this.#slot;
    this.#searched = 0;
    this.#isAtStart = true;
    return block;
  }

  /** Returns undefined: a block has all whole lines. */
  next(): undefined {}

  #moveToLarge(): void {
    this.#large.input.set(this.#slot.input);
    this.#filling = this.#large;
  }

  /** Returns the bytes up to `length` as a block. The bytes from there to `to` start the next block. */
  #takeBlock(length: number, to: number): Block {
    const { input } = this.#filling;
    const mark = this.#isAtStart ? startsWithMark(input.subarray(0, length)) : 0;
    const block = { slot: this.#filling, length, skip: mark ?? 0, part: undefined };
    this.#keepRest(length, to);
    return block;
  }

  #takePart(part: 'first' | 'further', length: number, to: number, isLast: boolean): Block {
    const block: Block = { slot: this.#large, length, skip: 0, part };
    this.#isOversized = !isLast;
    if (isLast) this.#keepRest(length, to);
    else this.#held = 0;
    this.#isAtStart = false;
    return block;
  }

  /** Keeps the bytes from `from` to `to` for the next block. */
  #keepRest(from: number, to: number): void {
    this.#rest = this.#filling.input.subarray(from, to);
    this.#held = 0;
    this.#isAtStart = false;
    if (this.#filling === this.#large) this.useSlot(this.#slot);
  }
}
