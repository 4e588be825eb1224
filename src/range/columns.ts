/** Ranges in columns: hundreds of thousands of ranges as a few typed arrays instead of an object each. */
import type { Family } from '../address/parse.js';
import { addressWords, copyAddress, previousAddress } from '../address/words.js';

/**
 * Ranges of one family. Without explicit ends they are a partition of the whole address space: in ascending order and
 * without gaps, each ends before the next begins, the first begins at address zero, the last ends at the last address.
 */
export interface RangeColumns<Value extends Uint16Array | Uint32Array = Uint16Array | Uint32Array> {
  family: Family;
  count: number;
  /** First address of each range, {@link addressWords} words each, most significant first. */
  first: Uint32Array;
  /** Value of each range: an index into a table that the owner of the columns defines, such as records or country codes. */
  value: Value;
}

/** Writes the first and the last address of a range of a partition. */
export function copyBounds(
  { family, count, first }: RangeColumns,
  range: number,
  start: Uint32Array,
  end: Uint32Array,
): void {
  copyAddress(first, range, addressWords(family), start);
  // The last range ends before the first one begins, at the end of the space.
  previousAddress(first, (range + 1) % count, addressWords(family), end);
}

/** Ranges with explicit ends: not a partition, but in any order, overlapping or not. */
export interface BoundedRanges extends RangeColumns {
  /** Last address of each range, inclusive, not below the first. */
  last: Uint32Array;
}

/** Candidate ranges: ranges that compete for addresses until merge.ts or vote.ts decides. Of two in the same layer with the same bounds, the one with the higher index wins. */
export interface CandidateRanges extends BoundedRanges {
  /** Priority of each range, 0 to 31: a higher layer takes precedence over a lower one. */
  layer: Uint8Array;
}

/** The outcome of merging candidates: a partition in which neighbors never have the same value. */
export interface MergedRanges extends RangeColumns {
  /** The layers that won somewhere in each range, one bit per layer; no bit if there was no candidate. */
  layers: Uint32Array;
  /**
   * Share of the lineages with evidence that agree on each range's value, in percent; the lowest share within the range.
   * 100 if the value was not put to the vote.
   */
  confidence: Uint8Array;
  /** Pairs of candidates of one layer with the same bounds: the later one counted. */
  duplicates: number;
  /** Those duplicates whose values differ. */
  conflicts: number;
}

/** Initial capacity in ranges; it doubles when it is full. */
const FIRST_CAPACITY = 1024;

/** Collects ranges one by one. */
export class RangeBuilder {
  readonly family: Family;
  readonly words: 1 | 4;
  #count = 0;
  #first: Uint32Array;
  #last: Uint32Array;
  #value: Uint32Array;
  #layer: Uint8Array;

  constructor(family: Family, capacity = FIRST_CAPACITY) {
    this.family = family;
    this.words = addressWords(family);
    this.#first = new Uint32Array(capacity * this.words);
    this.#last = new Uint32Array(capacity * this.words);
    this.#value = new Uint32Array(capacity);
    this.#layer = new Uint8Array(capacity);
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Adds a range.
   *
   * @param first column with its first address
   * @param last column with its last address, inclusive
   * @param index of the range in both columns
   */
  add(first: Uint32Array, last: Uint32Array, index: number, value: number, layer = 0): void {
    if (this.#count === this.#value.length) this.#grow();
    const { words } = this;
    const to = this.#count * words;
    const from = index * words;
    for (let k = 0; k < words; k++) {
      this.#first[to + k] = first[from + k]!;
      this.#last[to + k] = last[from + k]!;
    }
    this.#value[this.#count] = value;
    this.#layer[this.#count] = layer;
    this.#count++;
  }

  /** Returns the ranges so far, in columns of exactly their length. They are copies only if that saves much memory. */
  finish(): CandidateRanges {
    const isAlmostFull = this.#count > 0.9 * this.#value.length;
    const used = <Column extends Uint8Array | Uint32Array>(column: Column, words: number): Column =>
      (isAlmostFull ? column.subarray(0, this.#count * words) : column.slice(0, this.#count * words)) as Column;
    return {
      family: this.family,
      count: this.#count,
      first: used(this.#first, this.words),
      last: used(this.#last, this.words),
      value: used(this.#value, 1),
      layer: used(this.#layer, 1),
    };
  }

  #grow(): void {
    const capacity = Math.max(16, 2 * this.#value.length);
    this.#first = enlarged(this.#first, capacity * this.words);
    this.#last = enlarged(this.#last, capacity * this.words);
    this.#value = enlarged(this.#value, capacity);
    this.#layer = enlarged(this.#layer, capacity);
  }
}

/** Returns a copy of a column with more room. */
export function enlarged<Column extends Uint8Array | Uint32Array>(column: Column, length: number): Column {
  const larger = column instanceof Uint8Array ? new Uint8Array(length) : new Uint32Array(length);
  larger.set(column);
  return larger as Column;
}
