import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressWords } from '../../src/address/words.js';
import type { RangeColumns } from '../../src/range/columns.js';
import { boundPlaces, comparePlaces, compareRanges, parsed, valueAt } from '../../truth/measure.js';
import { PLACES, SIZE } from '../support/tiny-space.js';

/** Values 1 and 2 are countries, and 2 is in the European Union; 0 is not a country. */
const COUNTRIES = { inEu: [false, false, true] };

/** Returns ranges with one value per offset of the tiny space, and no country elsewhere. */
function rangesOf(family: 4 | 6, place: (offset: number) => number[], painted: readonly number[]): RangeColumns {
  const words = addressWords(family);
  const firsts = [Array<number>(words).fill(0)];
  const values = [0];
  painted.forEach((value, offset) => {
    if (value === values.at(-1)) return;
    if (place(offset).every((word) => word === 0)) {
      firsts.pop();
      values.pop();
    }
    firsts.push(place(offset));
    values.push(value);
  });
  return { family, count: values.length, first: Uint32Array.from(firsts.flat()), value: Uint16Array.from(values) };
}

const painted = fc
  .array(fc.nat(2), { minLength: SIZE, maxLength: SIZE })
  .map((list) => [...list.slice(0, SIZE - 1), 0]);
const inner = Object.entries(PLACES).filter(([name]) => !name.endsWith('top'));

describe.each(inner)('compareRanges, %s', (_, { family, place }) => {
  it('agrees with a count of every address', () => {
    fc.assert(
      fc.property(painted, painted, painted, (a, b, delegated) => {
        const compared = a.flatMap((value, i) => (value > 0 && b[i]! > 0 && delegated[i]! > 0 ? [i] : []));
        fc.pre(compared.length > 0);
        const share = (offsets: number[]): number => offsets.filter((i) => a[i] === b[i]).length / offsets.length;
        /** Number of the delegation of each offset. */
        const numbers = delegated.map((value, i) => (i > 0 && delegated[i - 1] === value ? 0 : 1));
        const numberOf = numbers.map((_, i) => numbers.slice(0, i + 1).reduce<number>((sum, each) => sum + each, 0));
        const groups = [...new Set(compared.map((i) => numberOf[i]))].map((number) =>
          compared.filter((i) => numberOf[i] === number),
        );
        const [ra, rb, rd] = [a, b, delegated].map((list) => rangesOf(family, place, list));
        const result = compareRanges(ra!, rb!, rd!, COUNTRIES);
        const both = a.flatMap((value, i) => (value > 0 && b[i]! > 0 ? [i] : []));
        expect(result.everywhere).toBeCloseTo(share(both), 10);
        expect(result.addresses).toBeCloseTo(share(compared), 10);
        expect(result.delegations).toBeCloseTo(
          groups.map(share).reduce((sum, each) => sum + each, 0) / groups.length,
          10,
        );
        expect(result.eu).toBeCloseTo(
          compared.filter((i) => (a[i] === 2) !== (b[i] === 2)).length / compared.length,
          10,
        );
      }),
      { numRuns: 300 },
    );
  });

  it('finds the value at every address', () => {
    fc.assert(
      fc.property(painted, (list) => {
        const ranges = rangesOf(family, place, list);
        expect(list.map((_, offset) => valueAt(ranges, Uint32Array.from(place(offset))))).toEqual(list);
      }),
      { numRuns: 100 },
    );
  });
});

describe('comparePlaces', () => {
  it('counts right answers and wrong EU flags by family and class', () => {
    const v4 = rangesOf(4, (offset) => [offset], [1, 2, 0, 1, 2]);
    const v6 = rangesOf(6, (offset) => [0, 0, 0, offset], [2]);
    const place = (address: string, kind: string, value: number) => ({ ...parsed(address), class: kind, value });
    const places = [
      place('0.0.0.0', 'nic', 1),
      place('0.0.0.1', 'nic', 1),
      place('0.0.0.2', 'nic', 1),
      place('0.0.0.4', 'vpn', 2),
      place('::', 'vpn', 2),
    ];
    expect(comparePlaces({ v4, v6 }, places, COUNTRIES)).toEqual({
      'v4 nic': { right: 1, euWrong: 1, total: 3 },
      'v4 vpn': { right: 1, euWrong: 0, total: 1 },
      'v6 vpn': { right: 1, euWrong: 0, total: 1 },
    });
  });
});

describe('boundPlaces', () => {
  it('counts a place as right if any source is right, else by the first source', () => {
    const v4 = (...values: number[]) => rangesOf(4, (offset) => [offset], values);
    const v6 = rangesOf(6, (offset) => [0, 0, 0, offset], [2]);
    const sources = [
      { v4: v4(1, 1, 1, 0), v6 },
      { v4: v4(2, 1, 0, 1), v6 },
    ];
    const place = (address: string, value: number) => ({ ...parsed(address), class: 'nic', value });
    const places = ['0.0.0.0', '0.0.0.1', '0.0.0.2', '0.0.0.3'].map((address) => place(address, 2));
    expect(boundPlaces(sources, places, COUNTRIES)).toEqual({ 'v4 nic': { right: 1, euWrong: 3, total: 4 } });
    expect(boundPlaces(sources, [place('0.0.0.3', 1)], COUNTRIES)).toEqual({
      'v4 nic': { right: 1, euWrong: 0, total: 1 },
    });
  });
});
