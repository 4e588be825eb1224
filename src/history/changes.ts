/**
 * Changes between two partitions of a family. They are a partition, too: each range has the value that it changed to, or
 * {@link UNCHANGED}.
 */
import type { Family } from '../address/parse.js';
import { addressWords } from '../address/words.js';

/** The value of ranges that did not change. Every other value is the number of a record, plus one. */
export const UNCHANGED = 0;

/** A partition of the addresses of one family, as `RangeColumns`, with values above 65,535. */
export interface Layer {
  family: Family;
  count: number;
  /** First address of each range, most significant word first; ascending, the first is zero. */
  first: Uint32Array;
  /** Value of each range; neighbors differ. */
  value: Uint32Array;
}

/**
 * Goes through two partitions side by side, and joins neighbors with the same result.
 *
 * @param resultOf returns what becomes of the values of both at an address
 */
export function combine(below: Layer, above: Layer, resultOf: (below: number, above: number) => number): Layer {
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

/** Returns the changes that make `after` of `before`. */
export function differenceOf(before: Layer, after: Layer): Layer {
  return combine(before, after, (from, to) => (from === to ? UNCHANGED : to));
}

/** Returns a partition, or changes, with later changes laid over it. */
export function overlay(below: Layer, changes: Layer): Layer {
  return combine(below, changes, (from, to) => (to === UNCHANGED ? from : to));
}

/**
 * Joins partitions that came one after another. They are joined in pairs, so that the time grows with their number times its
 * logarithm.
 *
 * @param layers at least one, the earliest first
 * @param join joins two
 */
export function joinLayers(layers: readonly Layer[], join: (earlier: Layer, later: Layer) => Layer = overlay): Layer {
  if (layers.length === 1) return layers[0]!;
  const middle = layers.length >> 1;
  return join(joinLayers(layers.slice(0, middle), join), joinLayers(layers.slice(middle), join));
}
