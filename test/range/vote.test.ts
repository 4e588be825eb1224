import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressWords, isAsWideAs, previousAddress } from '../../src/address/words.js';
import { mergeRanges } from '../../src/range/merge.js';
import { SOURCE_KINDS, type SourceKind, UNDELEGATED_LAYER, type Voter, voteRanges } from '../../src/range/vote.js';
import { PLACES, type Place, SIZE, sortKey, type TinyCandidate, toCandidates } from '../support/tiny-space.js';

/** Layers of the voters, the first listed highest, as in a build; 0 and 31 belong to no voter. */
const VOTER_LAYERS = [6, 5, 4, 3, 2];

interface Outcome {
  value: number;
  layers: number;
  confidence: number;
}

const width = ({ from, to }: TinyCandidate): number => to - from;

/** Returns the narrowest candidate; of equally wide ones the last if `latest`, else the first. */
function narrowest(list: readonly TinyCandidate[], latest: boolean): TinyCandidate | undefined {
  const least = Math.min(...list.map(width));
  const narrow = list.filter((candidate) => width(candidate) === least);
  return latest ? narrow.at(-1) : narrow[0];
}

/**
 * The model: a naive form of the rules of the vote at one address.
 *
 * @param network offsets in the smallest network that is announced
 * @param wide offsets in a range that is too wide to contradict the registry
 */
function elect(
  covering: readonly TinyCandidate[],
  voters: readonly Voter[],
  network: number,
  wide = Number.POSITIVE_INFINITY,
): Outcome {
  const bit = (layer: number): number => (1 << layer) >>> 0;
  const top = covering.filter(({ layer }) => layer === 31);
  if (top.length > 0) return { value: narrowest(top, true)!.value, layers: bit(31), confidence: 100 };

  const isAnycast = voters.some(({ kind, layer }) => kind === 'anycast' && covering.some((row) => row.layer === layer));
  const isUndelegated = covering.some(({ layer }) => layer === UNDELEGATED_LAYER);
  const isOperator = ({ voter }: { voter: Voter }): boolean => voter.kind === 'operator' || voter.kind === 'geofeed';
  const rows = voters.flatMap((voter) => {
    if (voter.kind === 'anycast') return [];
    const row = narrowest(
      covering.filter(({ layer }) => layer === voter.layer),
      true,
    );
    return row === undefined ? [] : [{ ...row, voter }];
  });
  if (isUndelegated && !rows.some(isOperator)) return { value: 0, layers: 0, confidence: 100 };
  const lineages = [...new Set(rows.map(({ voter }) => voter.lineage))];
  const votes = lineages.map((lineage) => {
    const ofLineage = rows.filter(({ voter }) => voter.lineage === lineage);
    return narrowest(ofLineage, false) as (typeof rows)[number];
  });
  if (votes.length === 0) {
    const bottom = narrowest(
      covering.filter(({ layer }) => layer === 0),
      true,
    );
    return bottom === undefined
      ? { value: 0, layers: 0, confidence: 100 }
      : { value: bottom.value, layers: bit(0), confidence: 100 };
  }

  const share = (value: number): number =>
    Math.floor((100 * votes.filter((vote) => vote.value === value).length) / votes.length);
  const word = narrowest(rows.filter(isOperator), false) as (typeof rows)[number] | undefined;
  if (word !== undefined) {
    return { value: word.value, layers: bit(word.voter.layer), confidence: share(word.value) };
  }
  const registries = rows.filter(({ voter }) => voter.kind === 'registry');
  const registered = narrowest(registries, false) as (typeof rows)[number] | undefined;
  const registryVote = votes.find(({ voter }) => voter.lineage === registered?.voter.lineage);
  const isTooWide = (vote: (typeof rows)[number]): boolean =>
    vote.voter.kind === 'geolocation' &&
    registryVote !== undefined &&
    vote.value !== registryVote.value &&
    width(vote) + 1 >= wide;
  const repeats = ({ voter }: (typeof rows)[number]): boolean =>
    voters.some(({ lineage, kind }) => kind === 'registry' && lineage === voter.lineage);
  const isOperatorsWord = (vote: (typeof rows)[number]): boolean =>
    vote.voter.kind === 'geolocation' && repeats(vote) && width(vote) + 1 < network;
  const narrowEnough = votes.filter((vote) => !isTooWide(vote));
  const notLocated = narrowEnough.filter((vote) => vote.voter.kind !== 'geolocation' || repeats(vote));
  const isDecided = (isAnycast || votes.some(isOperatorsWord)) && notLocated.length > 0;
  const allowed = isDecided ? notLocated : narrowEnough;
  const isInterpolated = ({ voter, from, to }: (typeof rows)[number]): boolean =>
    voter.interpolates === true && (from % network !== 0 || (to + 1) % network !== 0);
  const sure = allowed.filter((vote) => !isInterpolated(vote));
  const eligible = sure.length > 0 ? sure : allowed;
  const countries = [...new Set(eligible.map(({ value }) => value))].map((value) => {
    const supporters = eligible.filter((vote) => vote.value === value);
    const located = supporters.some(
      (vote) => vote.voter.kind === 'geolocation' && !repeats(vote) && !isInterpolated(vote),
    );
    return { value, supporters, located, first: Math.min(...supporters.map(({ voter }) => voters.indexOf(voter))) };
  });
  countries.sort((a, b) => b.supporters.length - a.supporters.length || +b.located - +a.located || a.first - b.first);
  const { value } = countries[0]!;
  const agreeing = votes.filter((vote) => vote.value === value);
  const layers = agreeing.reduce((bits, { voter }) => bits | bit(voter.layer), 0);
  return { value, layers, confidence: share(value) };
}

const candidate = fc
  .record({
    a: fc.nat(SIZE - 1),
    b: fc.nat(SIZE - 1),
    value: fc.nat(4),
    layer: fc.constantFrom(0, ...VOTER_LAYERS, ...VOTER_LAYERS, UNDELEGATED_LAYER, 31),
  })
  .map(({ a, b, value, layer }) => ({
    from: Math.min(a, b),
    to: Math.max(a, b),
    value: layer === UNDELEGATED_LAYER ? 0 : value,
    layer,
  }));

const electorate = fc
  .array(
    fc.record({
      lineage: fc.constantFrom('a', 'b', 'c'),
      kind: fc.constantFrom<SourceKind>(...SOURCE_KINDS),
      interpolates: fc.boolean(),
    }),
    {
      minLength: VOTER_LAYERS.length,
      maxLength: VOTER_LAYERS.length,
    },
  )
  .map((list): Voter[] => list.map((voter, index) => ({ ...voter, layer: VOTER_LAYERS[index]! })));

const RUNS = Number(process.env.FUZZ_RUNS ?? 24);

describe.each(Object.entries(PLACES))('voteRanges, %s', (_, { family, place }) => {
  const words = addressWords(family);

  it('agrees with the model at every address; the result has no gaps, is sorted and merged', () => {
    fc.assert(
      fc.property(fc.array(candidate, { maxLength: 30 }), electorate, (list, voters) => {
        const result = voteRanges(toCandidates(family, place, list), voters);
        const firsts = Array.from({ length: result.count }, (_, i) =>
          sortKey(result.first.slice(i * words, (i + 1) * words)),
        );
        expect(firsts[0]).toBe(sortKey(Array(words).fill(0)));
        expect(firsts).toEqual([...new Set(firsts)].sort());
        for (let i = 1; i < result.count; i++) expect(result.value[i]).not.toBe(result.value[i - 1]);

        const outcomes = new Map<number, Outcome[]>();
        for (let offset = 0; offset < SIZE; offset++) {
          const covering = list.filter(({ from, to }) => from <= offset && offset <= to);
          const range = firsts.findLastIndex((first) => first <= sortKey(place(offset)));
          outcomes.set(range, [...(outcomes.get(range) ?? []), elect(covering, voters, Number.POSITIVE_INFINITY)]);
        }
        for (const [range, expected] of outcomes) {
          for (const { value } of expected) expect(result.value[range]).toBe(value);
          expect(result.layers[range]).toBe(expected.reduce((bits, { layers }) => (bits | layers) >>> 0, 0));
          expect(result.confidence[range]).toBe(Math.min(...expected.map(({ confidence }) => confidence)));
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('does not depend on the order of rows with different bounds', () => {
    const distinct = fc.uniqueArray(candidate, {
      maxLength: 20,
      selector: ({ from, to, layer }) => `${from} ${to} ${layer}`,
    });
    const shuffled = distinct.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }), electorate),
    );
    fc.assert(
      fc.property(shuffled, ([list, other, voters]) => {
        // Equally wide rows of one source are resolved by their order, so they are left out.
        const widths = list.map((row) => `${row.layer} ${width(row)}`);
        fc.pre(new Set(widths).size === widths.length);
        const [a, b] = [list, other].map((rows) => voteRanges(toCandidates(family, place, rows), voters));
        expect(b).toEqual(a);
      }),
      { numRuns: RUNS },
    );
  });
});

/** Offsets in a range of the size of WIDE_PREFIX, in {@link WIDE_STEPS}. */
const WIDE = 32;

/** Places in which an offset is a block of many addresses, and offsets in the smallest network and in a wide range. */
const BLOCKS: Record<string, { family: 4 | 6; place: Place; network: number; wide: number }> = {
  'half an IPv4 network': {
    family: 4,
    place: (offset) => [offset * 2 ** 7],
    network: 2,
    wide: Number.POSITIVE_INFINITY,
  },
  'half an IPv6 network': {
    family: 6,
    place: (offset) => [7, offset * 2 ** 15, 0, 0],
    network: 2,
    wide: Number.POSITIVE_INFINITY,
  },
  'a wide IPv4 block': { family: 4, place: (offset) => [offset * 2 ** 15], network: 1, wide: WIDE },
  'a wide IPv6 block': {
    family: 6,
    place: (offset) => [offset >>> 1, (offset % 2) * 2 ** 31, 0, 0],
    network: 1,
    wide: WIDE,
  },
};

/** Geolocation and registry rows for the most part, of which many are about as wide as the limit. */
const wideCandidate = fc
  .record({ from: fc.nat(SIZE / 2), size: fc.constantFrom(1, 8, WIDE - 1, WIDE, WIDE + 1), value: fc.nat(3) })
  .chain(({ from, size, value }) =>
    fc.constantFrom(...VOTER_LAYERS).map((layer) => ({ from, to: Math.min(from + size, SIZE) - 1, value, layer })),
  );

describe.each(Object.entries(BLOCKS))('voteRanges in blocks, %s', (_, { family, place, network, wide }) => {
  const words = addressWords(family);

  /** Returns the last address before the block at an offset. */
  const endBefore = (offset: number): number[] => {
    const last = new Uint32Array(words);
    previousAddress(Uint32Array.from(place(offset)), 0, words, last);
    return [...last];
  };

  it('agrees with the model', () => {
    fc.assert(
      fc.property(fc.array(wideCandidate, { maxLength: 12 }), electorate, (list, voters) => {
        const candidates = {
          ...toCandidates(family, place, list),
          last: Uint32Array.from(list.flatMap(({ to }) => endBefore(to + 1))),
        };
        const result = voteRanges(candidates, voters);
        const firsts = Array.from({ length: result.count }, (_, i) =>
          sortKey(result.first.slice(i * words, (i + 1) * words)),
        );
        for (let offset = 0; offset < SIZE; offset++) {
          const covering = list.filter(({ from, to }) => from <= offset && offset <= to);
          const range = firsts.findLastIndex((first) => first <= sortKey(place(offset)));
          const { value, layers, confidence } = elect(covering, voters, network, wide);
          expect(result.value[range]).toBe(value);
          expect((result.layers[range]! & layers) >>> 0).toBe(layers);
          expect(result.confidence[range]).toBeLessThanOrEqual(confidence);
        }
      }),
      { numRuns: RUNS },
    );
  });

  if (wide === WIDE)
    it('counts a row as wide from the size of the prefix on', () => {
      const registry = { from: 0, to: SIZE - 1, value: 1, layer: VOTER_LAYERS[1]! };
      const geolocation = { from: 2, to: WIDE + 1, value: 2, layer: VOTER_LAYERS[0]! };
      const voters: Voter[] = [
        { lineage: 'geo', kind: 'geolocation', layer: VOTER_LAYERS[0]! },
        { lineage: 'rir', kind: 'registry', layer: VOTER_LAYERS[1]! },
      ];
      const list = [registry, geolocation];
      const candidates = {
        ...toCandidates(family, place, list),
        last: Uint32Array.from(list.flatMap(({ to }) => endBefore(to + 1))),
      };
      const refused = voteRanges(candidates, voters);
      expect([...refused.value]).toEqual([1, 0]);
      expect(refused.confidence[0]).toBe(50);
      // One network less.
      const { last } = candidates;
      if (family === 4) last[1]! -= 2 ** 8;
      else last[5]! -= 2 ** 16;
      expect([...voteRanges(candidates, voters).value]).toEqual([1, 2, 1, 0]);
    });
});

describe('voteRanges', () => {
  const vote = (list: TinyCandidate[], ...voters: [string, SourceKind][]) =>
    voteRanges(
      toCandidates(4, (offset) => [offset], list),
      voters.map(([lineage, kind], index) => {
        return { lineage, kind, layer: VOTER_LAYERS[index]!, interpolates: kind === 'geolocation' };
      }),
    );
  const [first, second, third] = VOTER_LAYERS as [number, number, number, number, number];

  it('equals merging by priority if there is one source and nothing to vote on', () => {
    fc.assert(
      fc.property(fc.array(candidate, { maxLength: 24 }), (list) => {
        const one = list
          .filter(({ layer }) => layer !== UNDELEGATED_LAYER)
          .map((row) => ({ ...row, layer: row.layer === 0 || row.layer === 31 ? row.layer : first }));
        const candidates = toCandidates(4, (offset) => [offset], one);
        const voted = voteRanges(candidates, [{ layer: first, lineage: 'a', kind: 'geolocation' }]);
        expect(voted).toEqual(mergeRanges(candidates));
      }),
    );
  });

  it('gives a row inside a network no vote against another lineage, and lets it decide alone', () => {
    const list = [
      { from: 0, to: 63, value: 1, layer: first },
      { from: 8, to: 15, value: 2, layer: second },
    ];
    expect([...vote(list, ['a', 'geolocation'], ['b', 'routing']).value]).toEqual([1, 2, 1, 0]);
    expect([...vote(list, ['a', 'geolocation'], ['b', 'geolocation']).value]).toEqual([1, 0]);
    expect([...vote(list, ['a', 'routing'], ['b', 'geolocation']).value]).toEqual([1, 0]);
  });

  it('gives a location no vote in anycast space, unless it is alone', () => {
    const list = [
      { from: 0, to: 1023, value: 2, layer: second },
      { from: 0, to: 511, value: 1, layer: third },
      { from: 256, to: 767, value: 0, layer: first },
    ];
    const result = vote(list, ['', 'anycast'], ['geo', 'geolocation'], ['rir', 'registry']);
    // The location wins the tie before 256; from 512 on there is no other.
    expect([...result.value]).toEqual([2, 1, 2, 0]);
  });
});

it('a range is as wide as a prefix if it has as many addresses', () => {
  // Words that carry.
  const word = fc.constantFrom(0, 1, 2, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff);
  const ends = fc.constantFrom(1, 4).chain((count) => {
    const address = fc.array(word, { minLength: count, maxLength: count });
    return fc.tuple(address, address);
  });
  const number = (list: readonly number[]): bigint => list.reduce((sum, each) => (sum << 32n) + BigInt(each), 0n);
  fc.assert(
    fc.property(ends, (pair) => {
      const [first, last] = [...pair].sort((a, b) => (number(a) < number(b) ? -1 : 1));
      const size = number(last!) - number(first!) + 1n;
      for (let length = 1; length <= 32 * first!.length; length++) {
        const isWide = isAsWideAs(Uint32Array.from(first!), Uint32Array.from(last!), 0, first!.length, length);
        expect([length, isWide]).toEqual([length, size >= 1n << BigInt(32 * first!.length - length)]);
      }
    }),
  );
});
