/** Columns of ranges that grow row by row. */
import type { Family } from '../src/address/parse.js';
import { addressWords } from '../src/range/cidr.js';
import type { RangeRows } from './stage.js';

/** Rows there is room for at first; the room doubles when it is full. */
const FIRST_CAPACITY = 1024;

export class RangeColumns {
  readonly family: Family;
  #count = 0;
  #first: Uint32Array;
  #last: Uint32Array;
  #code = new Uint16Array(FIRST_CAPACITY);

  constructor(family: Family) {
    this.family = family;
    this.#first = new Uint32Array(FIRST_CAPACITY * addressWords(family));
    this.#last = new Uint32Array(FIRST_CAPACITY * addressWords(family));
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Adds a range.
   *
   * @param first its first address, one word (IPv4) or four; words behind them are not looked at
   * @param last its last address
   * @param code index of its country code
   */
  append(first: Uint32Array, last: Uint32Array, code: number): void {
    if (this.#count === this.#code.length) this.#grow();
    const width = addressWords(this.family);
    const at = this.#count * width;
    for (let i = 0; i < width; i++) {
      this.#first[at + i] = first[i]!;
      this.#last[at + i] = last[i]!;
    }
    this.#code[this.#count++] = code;
  }

  /** The ranges so far, in columns of just their length. */
  rows(): RangeRows {
    const words = this.#count * addressWords(this.family);
    return {
      family: this.family,
      count: this.#count,
      first: this.#first.slice(0, words),
      last: this.#last.slice(0, words),
      code: this.#code.slice(0, this.#count),
    };
  }

  #grow(): void {
    const { first, last, code } = { first: this.#first, last: this.#last, code: this.#code };
    this.#first = new Uint32Array(first.length * 2);
    this.#last = new Uint32Array(last.length * 2);
    this.#code = new Uint16Array(code.length * 2);
    this.#first.set(first);
    this.#last.set(last);
    this.#code.set(code);
  }
}
