import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressWords } from '../../src/address/words.js';
import type { CandidateRanges } from '../../src/range/columns.js';
import { mergeRanges, sortedOrder } from '../../src/range/merge.js';
import { PLACES, SIZE, sortKey, type TinyCandidate, toCandidates } from '../support/tiny-space.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 400) * 0.75);

/** The model: for each address, the best of all candidates that cover it. */
function paint(list: TinyCandidate[]): { value: number; layer: number }[] {
  return Array.from({ length: SIZE }, (_, address) => {
    const covering = list.filter(({ from, to }) => from <= address && address <= to);
    const best = covering.reduce<TinyCandidate | undefined>((held, claim) => {
      if (held === undefined) return claim;
      if (claim.layer !== held.layer) return claim.layer > held.layer ? claim : held;
      return claim.to - claim.from <= held.to - held.from ? claim : held;
    }, undefined);
    return best === undefined ? { value: 0, layer: -1 } : { value: best.value, layer: best.layer };
  });
}

const claim = fc
  .record({
    a: fc.nat(SIZE - 1),
    b: fc.nat(SIZE - 1),
    value: fc.nat(4),
    layer: fc.constantFrom(0, 2, 3, 31),
  })
  .map(({ a, b, value, layer }) => ({ from: Math.min(a, b), to: Math.max(a, b), value, layer }));

describe.each(Object.entries(PLACES))('mergeRanges, %s', (_, { family, place }) => {
  const words = addressWords(family);

  it('agrees with a model that fills an array; the result has no gaps, is sorted and merged', () => {
    fc.assert(
      fc.property(fc.array(claim, { maxLength: 24 }), (list) => {
        const result = mergeRanges(toCandidates(family, place, list));
        const painted = paint(list);
        const firsts = Array.from({ length: result.count }, (_, i) =>
          sortKey([...result.first.slice(i * words, (i + 1) * words)]),
        );

        expect(firsts[0]).toBe(sortKey(Array(words).fill(0)));
        expect(firsts).toEqual([...new Set(firsts)].sort());
        for (let i = 1; i < result.count; i++) expect(result.value[i]).not.toBe(result.value[i - 1]);

        const layersSeen = new Map<number, number>();
        const values = painted.map(({ layer }, offset) => {
          const at = sortKey(place(offset));
          const range = firsts.findLastIndex((first) => first <= at);
          if (layer >= 0) layersSeen.set(range, ((layersSeen.get(range) ?? 0) | (1 << layer)) >>> 0);
          return result.value[range];
        });
        expect(values).toEqual(painted.map(({ value }) => value));
        for (const [range, layers] of layersSeen) expect(result.layers[range]).toBe(layers);
      }),
      { numRuns: RUNS },
    );
  });

  it('returns one range with record 0 for no candidates', () => {
    const result = mergeRanges(toCandidates(family, place, []));
    expect([result.count, [...result.first], [...result.value]]).toEqual([1, Array(words).fill(0), [0]]);
  });
});

describe('mergeRanges', () => {
  const ipv4 = (list: TinyCandidate[]) => mergeRanges(toCandidates(4, (offset) => [offset], list));

  it('counts candidates with the same bounds', () => {
    const same = { from: 1, to: 2, layer: 2 };
    const result = ipv4([
      { ...same, value: 1 },
      { ...same, value: 1 },
      { ...same, value: 2 },
      { ...same, value: 3, layer: 3 },
    ]);
    expect(result).toMatchObject({ duplicates: 2, conflicts: 1 });
  });

  it('lets the later of equal ranges win', () => {
    const result = ipv4([1, 2, 3].map((value) => ({ from: 1, to: 2, layer: 2, value })));
    expect([...result.value]).toEqual([0, 3, 0]);
  });

  it('covers the whole space with one candidate', () => {
    const all: CandidateRanges = {
      family: 4,
      count: 1,
      first: Uint32Array.of(0),
      last: Uint32Array.of(2 ** 32 - 1),
      value: Uint16Array.of(7),
      layer: Uint8Array.of(31),
    };
    expect([...mergeRanges(all).value]).toEqual([7]);
    expect([...mergeRanges(all).layers]).toEqual([2 ** 31]);
  });
});

describe('sortedOrder', () => {
  it('sorts stably, for any runs', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9)), (values) => {
        const order = [...sortedOrder(values.length, (a, b) => values[a]! - values[b]!)];
        const expected = values.map((_, i) => i).sort((a, b) => values[a]! - values[b]! || a - b);
        expect(order).toEqual(expected);
      }),
    );
  });
});
