/**
 * Splits a table into blocks of whole records. A newline in quotes does not end a record, so the kernel finds the ends, from
 * the beginning of the table on.
 *
 * A quote that is never closed would make one record of all that follows. Therefore, if a record is too long or does not end,
 * the line on which it begins is returned as a part, and the next line begins a record.
 */
import { type Kernel, RECORD_START, type Slot } from '../kernel/kernel.js';
import { type Block, type BlockBuffer, startsWithMark } from './line-buffer.js';

const NEWLINE = 10;

/**
 * Invariants: the `#held` bytes are at the start of `#filling.input` and begin a record, or continue a long line. The first
 * `#searched` of them were searched for ends of records, of which the last one is `#end`.
 */
export class RecordBuffer implements BlockBuffer {
  readonly #kernel: Kernel;
  readonly #large: Slot;
  readonly #maxRecordBytes: number;
  /** The incomplete record that the next slot starts with. */
  #rest: Buffer = Buffer.alloc(0);
  /** The ordinary slot in use, and the slot that is being filled: this one or the large one. */
  #slot: Slot;
  #filling: Slot;
  #held = 0;
  #searched = 0;
  #state = RECORD_START;
  #isQuoted = false;
  /** Bytes at the start of the large slot that were returned. */
  #returned = 0;
  /** Whether the bytes continue a line of which a part was returned. */
  #isInLongLine = false;
  /** Whether no byte of the input has been returned; whether the input has ended. */
  #isAtStart = true;
  #hasEnded = false;

  /**
   * @param slot the first slot
   * @param large the slot for records that do not fit into an ordinary slot
   * @param maxRecordBytes longest record in bytes, without its last newline; not less than the input of a slot
   */
  constructor(kernel: Kernel, slot: Slot, large: Slot, maxRecordBytes: number) {
    this.#kernel = kernel;
    this.#large = large;
    this.#maxRecordBytes = maxRecordBytes;
    this.#slot = slot;
    this.#filling = slot;
  }

  useSlot(slot: Slot): void {
    slot.input.set(this.#rest);
    this.#slot = slot;
    this.#restart(slot, this.#rest.length);
    this.#rest = this.#rest.subarray(0, 0);
  }

  get space(): Buffer {
    const { input } = this.#filling;
    return input.subarray(this.#held, Math.min(this.#held + this.#slot.input.length, input.length));
  }

  add(bytes: number): Block | undefined {
    this.#held += bytes;
    return this.next();
  }

  end(): Block | undefined {
    this.#hasEnded = true;
    return this.next();
  }

  next(): Block | undefined {
    this.#discardReturned();
    const block = this.#isInLongLine ? this.#furtherPart() : this.#nextRecords();
    if (block === undefined && this.#hasEnded) {
      this.#hasEnded = false;
      this.#isInLongLine = false;
      this.#isAtStart = true;
      this.#restart(this.#slot, 0);
    }
    return block;
  }

  #restart(slot: Slot, held: number): void {
    this.#filling = slot;
    this.#held = held;
    this.#searched = 0;
    this.#state = RECORD_START;
    this.#isQuoted = false;
  }

  /** Moves the bytes that were not returned to the start of a slot. */
  #discardReturned(): void {
    if (this.#returned === 0) return;
    const rest = this.#large.input.subarray(this.#returned, this.#held);
    const target = rest.length <= this.#slot.input.length ? this.#slot : this.#large;
    target.input.set(rest);
    this.#returned = 0;
    this.#restart(target, rest.length);
  }

  #furtherPart(): Block | undefined {
    if (this.#held === 0) return undefined;
    const newline = this.#filling.input.subarray(0, this.#held).indexOf(NEWLINE);
    this.#isInLongLine = newline < 0;
    return this.#takePart('further', newline < 0 ? this.#held : newline + 1);
  }

  #nextRecords(): Block | undefined {
    const { input, place } = this.#filling;
    const held = input.subarray(0, this.#held);
    const mark = this.#isAtStart ? startsWithMark(held) : 0;
    if (mark === undefined && !this.#hasEnded) return this.#makeRoom();
    const skip = mark ?? 0;
    if (this.#searched === 0) this.#searched = skip;
    const limit = Math.min(this.#held, this.#maxRecordBytes + 1);
    let end = 0;
    if (this.#searched < limit) {
      const found = this.#kernel.findRecords(place, this.#searched, limit, this.#state);
      end = found.end;
      this.#state = found.state;
      this.#isQuoted = found.isQuoted;
      this.#searched = limit;
    }
    if (end > 0) return this.#takeRecords(end, skip);
    const isTooLong = this.#held > this.#maxRecordBytes;
    if (isTooLong || (this.#hasEnded && this.#isQuoted)) {
      return this.#takeLine(
        isTooLong
          ? `a record of more than ${this.#maxRecordBytes} bytes begins here; is a quote not closed?`
          : 'a quote is opened and never closed',
      );
    }
    if (this.#hasEnded) return this.#held > 0 ? this.#takeRecords(this.#held, skip) : undefined;
    return this.#makeRoom();
  }

  /** Makes room for more bytes. */
  #makeRoom(): undefined {
    if (this.#filling === this.#slot && this.#held === this.#slot.input.length) this.#moveToLarge();
  }

  #moveToLarge(): void {
    this.#large.input.set(this.#filling.input.subarray(0, this.#held));
    this.#filling = this.#large;
  }

  /** Returns whole records. */
  #takeRecords(length: number, skip: number): Block {
    const block: Block = { slot: this.#filling, length, skip, part: undefined };
    this.#isAtStart = false;
    if (this.#filling === this.#large) this.#returned = length;
    else this.#rest = this.#filling.input.subarray(length, this.#held);
    return block;
  }

  /** Returns the first line of a record that cannot be read. */
  #takeLine(problem: string): Block {
    const newline = this.#filling.input.subarray(0, this.#held).indexOf(NEWLINE);
    this.#isInLongLine = newline < 0;
    return { ...this.#takePart('first', newline < 0 ? this.#held : newline + 1), problem };
  }

  #takePart(part: 'first' | 'further', length: number): Block {
    if (this.#filling !== this.#large) this.#moveToLarge();
    this.#isAtStart = false;
    this.#returned = length;
    return { slot: this.#large, length, skip: 0, part };
  }
}
