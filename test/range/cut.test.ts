/** Joining and cutting partitions, compared with models that look at every address of a tiny space. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RangeColumns } from '../../src/range/columns.js';
import { cutRanges, joinRanges } from '../../src/range/cut.js';
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
  it('cuts partitions where one of them begins a range', () => {
    fc.assert(
      fc.property(fc.tuple(partition, partition, partition), fc.integer({ min: 1, max: 3 }), (all, length) => {
        const parts = all.slice(0, length).map((ranges) => columnsOf(family, place, ranges));
        const cut = cutRanges(parts as [RangeColumns]);
        const starts = parts.flatMap(({ first, count }) =>
          Array.from({ length: count }, (_, i) =>
            sortKey(first.slice((i * first.length) / count, ((i + 1) * first.length) / count)),
          ),
        );
        expect(cut.count).toBe(new Set(starts).size);
        expect(cut.first.length).toBe(cut.count * (family === 4 ? 1 : 4));
        expect(cut.values.map((column) => painted(place, cut, column))).toEqual(
          parts.map((part) => painted(place, part, part.value)),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('joins neighbors with the same answer', () => {
    fc.assert(
      fc.property(partition, fc.array(fc.nat(2), { minLength: 4, maxLength: 4 }), (ranges, answers) => {
        const part = columnsOf(family, place, ranges);
        const joined = joinRanges(part, Uint32Array.from(answers));
        expect(painted(place, joined, joined.value)).toEqual(
          painted(place, part, part.value).map((value) => answers[value!]),
        );
        expect([...joined.value].filter((value, range) => range > 0 && value === joined.value[range - 1])).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});
