/** Partitions of the address space that are seen as one: all cut where one of them changes, neighbors with the same answer joined. */
import { addressWords } from '../address/words.js';
import type { RangeColumns } from './columns.js';

/**
 * Goes through two partitions of a family side by side, and joins neighbors with the same result.
 *
 * @param resultOf returns what becomes of the values of both at an address
 */
export function combine(
  below: RangeColumns,
  above: RangeColumns,
  resultOf: (below: number, above: number) => number,
): RangeColumns<Uint32Array> {
  const { family } = below;
  const words = addressWords(family);
  const capacity = below.count + above.count;
  const first = new Uint32Array(capacity * words);
  const value = new Uint32Array(capacity);
  // In variables, and without loops over words: opening a day goes through a million ranges here.
  const [a, b, valueA, valueB] = [below.first, above.first, below.value, above.value];
  const [lastA, lastB] = [below.count - 1, above.count - 1];
  let count = 0;
  let last = -1;
  let i = 0;
  let j = 0;
  // The column and the index of the address at which the two current ranges begin to overlap.
  let column = a;
  let at = 0;
  for (;;) {
    const result = resultOf(valueA[i]!, valueB[j]!);
    if (result !== last) {
      const to = count * words;
      first[to] = column[at]!;
      if (words === 4) {
        first[to + 1] = column[at + 1]!;
        first[to + 2] = column[at + 2]!;
        first[to + 3] = column[at + 3]!;
      }
      value[count++] = result;
      last = result;
    }
    const nextA = (i + 1) * words;
    const nextB = (j + 1) * words;
    let order: number;
    if (i === lastA) {
      if (j === lastB) break;
      order = 1;
    } else if (j === lastB) order = -1;
    else {
      order = a[nextA]! - b[nextB]!;
      if (words === 4) {
        order ||= a[nextA + 1]! - b[nextB + 1]!;
        order ||= a[nextA + 2]! - b[nextB + 2]!;
        order ||= a[nextA + 3]! - b[nextB + 3]!;
      }
    }
    if (order <= 0) i++;
    if (order >= 0) j++;
    column = order <= 0 ? a : b;
    at = order <= 0 ? nextA : nextB;
  }
  return { family, count, first: first.subarray(0, count * words), value: value.subarray(0, count) };
}

/** Numbers pairs of values in the order in which they come: what {@link combine} makes of two partitions whose values are both wanted. */
export class Pairs {
  /** By the number of the pair. */
  readonly first: number[] = [];
  readonly second: number[] = [];
  readonly #numbers: Map<number, number>[] = [];

  get count(): number {
    return this.first.length;
  }

  readonly numberOf = (first: number, second: number): number => {
    this.#numbers[first] ??= new Map();
    const numbers = this.#numbers[first];
    let number = numbers.get(second);
    if (number === undefined) {
      number = this.first.push(first) - 1;
      this.second.push(second);
      numbers.set(second, number);
    }
    return number;
  };
}
