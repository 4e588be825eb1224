/** Joining and cutting partitions, compared with models that look at every address of a tiny space. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RangeColumns } from '../../src/range/columns.js';
import { combine, Pairs } from '../../src/range/cut.js';
import { PLACES, type Place, SIZE, sortKey } from '../support/tiny-space.js';

/** A partition: where its ranges begin in the tiny space, with their values; it begins with value 0. */
const partition = fc.dictionary(fc.integer({ min: 0, max: SIZE - 1 }).map(String), fc.nat(3));
type Partition = Record<string, number>;

function columnsOf(family: 4 | 6, place: Place, ranges: Partition): RangeColumns {
  const zero = place(0).map(() => 0);
  const starts = new Map([[sortKey(zero), { words: zero, value: 0 }]]);
  for (const [offset, value] of Object.entries(ranges)) {
    const words = place(Number(offset));
    starts.set(sortKey(words), { words, value });
  }
  const sorted = [...starts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, range]) => range);
  return {
    family,
    count: sorted.length,
    first: Uint32Array.from(sorted.flatMap(({ words }) => words)),
    value: Uint16Array.from(sorted.map(({ value }) => value)),
  };
}

/** Returns the element of a column for each address of the tiny space, by a linear scan. */
function painted(place: Place, { family, first }: Pick<RangeColumns, 'family' | 'first'>, column: ArrayLike<number>) {
  const words = family === 4 ? 1 : 4;
  return Array.from({ length: SIZE }, (_, offset) => {
    const address = sortKey(place(offset));
    let found = column[0];
    for (let range = 0; range < column.length; range++) {
      if (sortKey(first.subarray(words * range, words * (range + 1))) <= address) found = column[range];
    }
    return found;
  });
}

describe.each(Object.entries(PLACES))('%s', (_, { family, place }) => {
  it('goes through partitions side by side, and joins neighbors with the same result', () => {
    fc.assert(
      fc.property(partition, partition, fc.boolean(), (a, b, isNumbered) => {
        const [below, above] = [columnsOf(family, place, a), columnsOf(family, place, b)];
        const pairs = new Pairs();
        const resultOf = isNumbered ? pairs.numberOf : (x: number, y: number) => (x + y) % 3;
        const joined = combine(below, above, resultOf);
        const [first, second] = [below, above].map((part) => painted(place, part, part.value));
        const expected = first!.map((value, i) => resultOf(value!, second![i]!));
        expect(painted(place, joined, joined.value)).toEqual(expected);
        expect(joined.first.length).toBe(joined.count * (family === 4 ? 1 : 4));
        for (let i = 1; i < joined.count; i++) expect(joined.value[i]).not.toBe(joined.value[i - 1]);
        if (!isNumbered) return;
        expect(expected.map((number) => [pairs.first[number], pairs.second[number]])).toEqual(
          first!.map((value, i) => [value, second![i]]),
        );
      }),
      { numRuns: 60 },
    );
  });
});
