/**
 * Changes between two partitions of a family. They are a partition, too: each range has the value that it changed to, or
 * {@link UNCHANGED}.
 */
import type { RangeColumns } from '../range/columns.js';
import { combine } from '../range/cut.js';

/** The value of ranges that did not change. Every other value is the number of a record, plus one. */
export const UNCHANGED = 0;

/** A partition of the addresses of one family. The value of a range is the number of a record, plus one, or {@link UNCHANGED}. */
export type Values = RangeColumns<Uint32Array>;

/** Returns the changes that make `after` of `before`. */
export function differenceOf(before: Values, after: Values): Values {
  return combine(before, after, (from, to) => (from === to ? UNCHANGED : to));
}

/** Returns a partition, or changes, with later changes laid over it. */
export function overlay(below: Values, changes: Values): Values {
  return combine(below, changes, (from, to) => (to === UNCHANGED ? from : to));
}

/**
 * Joins partitions that came one after another. They are joined in pairs, so that the time grows with their number times its
 * logarithm.
 *
 * @param layers at least one, the earliest first
 * @param join joins two
 */
export function joinLayers(
  layers: readonly Values[],
  join: (earlier: Values, later: Values) => Values = overlay,
): Values {
  if (layers.length === 1) return layers[0]!;
  const middle = layers.length >> 1;
  return join(joinLayers(layers.slice(0, middle), join), joinLayers(layers.slice(middle), join));
}
