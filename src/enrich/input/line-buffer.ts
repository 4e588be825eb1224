/**
 * Cuts bytes, as they come, into blocks of whole lines. A block is put together in the very memory that the kernel works
 * in, so that nothing is copied but the piece of a line that a block ends with.
 */
import type { Slot } from '../kernel/kernel.js';

const NEWLINE = 10;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Bytes at the beginning of a slot's input. */
export interface Block {
  slot: Slot;
  length: number;
  /** Bytes at its beginning, a byte order mark, that belong to no line. */
  skip: number;
  /**
   * Undefined for whole lines, of which only the input's last may lack its newline. Otherwise the bytes are a part of a line
   * that is longer than lines may be.
   */
  part: 'first' | 'further' | undefined;
}

/**
 * Invariants: the bytes that are held begin at the start of `#filling.input` and are `#held` in number. No newline is among
 * the first `#searched` of them, and behind those only where a line that was too long has just ended. In the large slot they
 * are one line's.
 */
export class LineBuffer {
  readonly #large: Slot;
  readonly #maxLineBytes: number;
  /** Where a piece stays that a new slot is to begin with. */
  #rest: Buffer = Buffer.alloc(0);
  /** The slot that was taken up for blocks, and the one being filled: that, or the large one. */
  #slot: Slot;
  #filling: Slot;
  #held = 0;
  #searched = 0;
  /** Whether the line at hand is too long and is being passed on in parts. */
  #oversized = false;
  /** Whether the input's first byte is still to be handed out. */
  #atStart = true;

  /**
   * @param slot taken up first
   * @param large takes lines that do not fit into a slot
   * @param maxLineBytes longest line, without its newline; a slot's input is not larger
   */
  constructor(slot: Slot, large: Slot, maxLineBytes: number) {
    this.#large = large;
    this.#maxLineBytes = maxLineBytes;
    this.#slot = slot;
    this.#filling = slot;
  }

  /** Takes up the next slot, after a block in the one before has been handed out. May be the same one. */
  takeUp(slot: Slot): void {
    slot.input.set(this.#rest);
    this.#held = this.#rest.length;
    this.#searched = 0;
    this.#rest = this.#rest.subarray(0, 0);
    this.#slot = slot;
    this.#filling = slot;
  }

  /** Where the next bytes go; never empty, never longer than a block. */
  get space(): Buffer {
    const input = this.#filling.input;
    return input.subarray(this.#held, Math.min(this.#held + this.#slot.input.length, input.length));
  }

  /**
   * Says that bytes were put at the start of `space`.
   *
   * @returns the block that they complete, if any. Where it lies in the slot taken up, the next has to be taken up before
   *   more bytes come; where it lies in the large one, it has to be done with by then
   */
  added(bytes: number): Block | undefined {
    const input = this.#filling.input;
    const from = this.#held;
    const to = from + bytes;
    if (this.#filling === this.#slot) {
      const newline = input.subarray(this.#searched, to).lastIndexOf(NEWLINE);
      if (newline >= 0) return this.#handOut(this.#searched + newline + 1, to);
      this.#held = to;
      this.#searched = to;
      if (to === input.length) this.#moveToLarge();
      return undefined;
    }
    const newline = input.subarray(from, to).indexOf(NEWLINE);
    if (this.#oversized) return this.#handOutPart('further', newline < 0 ? to : newline + 1, to, newline >= 0);
    if (newline < 0) {
      this.#held = to;
      return to > this.#maxLineBytes ? this.#handOutPart('first', to, to, false) : undefined;
    }
    if (from + newline > this.#maxLineBytes) return this.#handOutPart('first', from + newline + 1, to, true);
    return this.#handOut(from + input.subarray(from, to).lastIndexOf(NEWLINE) + 1, to);
  }

  /**
   * Says that the input has ended; the next bytes begin another.
   *
   * @returns the last line where it lacks its newline
   */
  ended(): Block | undefined {
    const block = this.#held > 0 ? this.#handOut(this.#held, this.#held) : undefined;
    this.#oversized = false;
    this.#filling = this.#slot;
    this.#searched = 0;
    this.#atStart = true;
    return block;
  }

  #moveToLarge(): void {
    this.#large.input.set(this.#slot.input);
    this.#filling = this.#large;
  }

  /** Hands out the bytes up to `length`; what is there behind them up to `to` begins the next block. */
  #handOut(length: number, to: number): Block {
    const { input } = this.#filling;
    const marked = this.#atStart && BYTE_ORDER_MARK.every((byte, index) => index < length && input[index] === byte);
    const block = { slot: this.#filling, length, skip: marked ? BYTE_ORDER_MARK.length : 0, part: undefined };
    this.#keep(length, to);
    return block;
  }

  #handOutPart(part: 'first' | 'further', length: number, to: number, isLast: boolean): Block {
    const block: Block = { slot: this.#large, length, skip: 0, part };
    this.#oversized = !isLast;
    if (isLast) this.#keep(length, to);
    else this.#held = 0;
    this.#atStart = false;
    return block;
  }

  /** Keeps the bytes `from … to` for the next block. */
  #keep(from: number, to: number): void {
    this.#rest = this.#filling.input.subarray(from, to);
    this.#held = 0;
    this.#atStart = false;
    if (this.#filling === this.#large) this.takeUp(this.#slot);
  }
}
