import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CandidateRanges } from '../../src/range/columns.js';
import { type Voter, voteRanges } from '../../src/range/vote.js';

/** Addresses of a step, a quarter of a /12; rows begin at multiples of it. */
const STEP = 2 ** 18;
const STEPS = 160;

interface Row {
  source: 'users' | 'locations' | 'registry';
  first: number;
  last: number;
  country: number;
}

/** The sources in the order in which they are listed. */
const LAYERS = { users: 4, locations: 3, registry: 2 };
const VOTERS: Voter[] = [
  { layer: LAYERS.users, lineage: 'registry', kind: 'geolocation' },
  { layer: LAYERS.locations, lineage: 'locations', kind: 'geolocation' },
  { layer: LAYERS.registry, lineage: 'registry', kind: 'registry' },
];

const row = (source: Row['source'], step: number, addresses: number, country: number): Row => ({
  ...{ source, country, first: step * STEP },
  last: step * STEP + addresses - 1,
});

function candidatesOf(rows: readonly Row[]): CandidateRanges {
  return {
    family: 4,
    count: rows.length,
    first: Uint32Array.from(rows, ({ first }) => first),
    last: Uint32Array.from(rows, ({ last }) => last),
    value: Uint16Array.from(rows, ({ country }) => country),
    layer: Uint8Array.from(rows, ({ source }) => LAYERS[source]),
  };
}

/** Returns the country at each address of a list by merging. */
function merged(rows: readonly Row[], addresses: readonly number[], voters = VOTERS): number[] {
  const { first, value } = voteRanges(candidatesOf(rows), voters);
  return addresses.map((address) => value[first.findLastIndex((start) => start <= address)]!);
}

const width = ({ first, last }: Row): number => last - first + 1;

/** The model: looks at all rows of a source for each address. */
class Model {
  readonly #rows: readonly Row[];
  /** The locations that contradict the registry at their first address, and what the registry's lineage has there. */
  readonly #counted: { location: Row; registered: number; isConfirmed: boolean }[];

  constructor(rows: readonly Row[]) {
    this.#rows = rows;
    this.#counted = rows.flatMap((location) => {
      const registered = this.#rowAt('registry', location.first)?.country;
      const counts = location.source === 'locations' && this.#rowAt('locations', location.first) === location;
      if (!counts || registered === undefined || registered === location.country) return [];
      const isConfirmed = this.#registryVote(location.first)!.country === location.country;
      return [{ location, registered, isConfirmed }];
    });
  }

  /** The narrowest row of a source at an address; the last of equally wide ones. */
  #rowAt(source: Row['source'], address: number): Row | undefined {
    const covering = this.#rows.filter((r) => r.source === source && r.first <= address && address <= r.last);
    return covering.reduce<Row | undefined>((best, r) => (best && width(best) < width(r) ? best : r), undefined);
  }

  /** The row that has the vote of the registry's lineage. */
  #registryVote(address: number): Row | undefined {
    const byUsers = this.#rowAt('users', address);
    const registry = this.#rowAt('registry', address);
    return byUsers && registry && width(registry) < width(byUsers) ? registry : (byUsers ?? registry);
  }

  #isDoubtful(doubted: Row, registered: number): boolean {
    const named = this.#counted.filter(({ location }) => location.country === doubted.country);
    const pair = named.filter((counted) => counted.registered === registered);
    const block = named.filter(
      ({ location }) => Math.floor(location.first / 2 ** 20) === Math.floor(doubted.first / 2 ** 20),
    );
    const confirmedRows = pair.filter(({ isConfirmed }) => isConfirmed).length;
    const addresses = block.reduce((sum, { location }) => sum + width(location), 0);
    const confirmed = block.reduce((sum, { location, isConfirmed }) => sum + (isConfirmed ? width(location) : 0), 0);
    const isRareInBlock = block.length === 0 || confirmed < addresses / 6;
    return width(doubted) !== 256 && pair.length >= 30 && confirmedRows < pair.length / 6 && isRareInBlock;
  }

  countryAt(address: number): number {
    const ours = this.#registryVote(address);
    const location = this.#rowAt('locations', address);
    const registry = this.#rowAt('registry', address);
    if (ours === undefined || location === undefined) return (ours ?? location)?.country ?? 0;
    if (registry !== undefined && location.country !== ours.country) {
      if (width(location) >= 2 ** 20) return ours.country;
      if (location.country !== registry.country && this.#isDoubtful(location, registry.country)) return ours.country;
    }
    if (width(location) === width(ours)) return ours.source === 'users' ? ours.country : location.country;
    return width(location) < width(ours) ? location.country : ours.country;
  }
}

/** Rows at many places: mostly one country in the registry and one other location, so that a pair has enough rows. */
const location = fc
  .record({
    step: fc.nat(STEPS - 1),
    addresses: fc.constantFrom(256, 255, STEP, STEP, STEP + 1, 3 * STEP, 4 * STEP - 1, 4 * STEP),
    country: fc.constantFrom(2, 2, 2, 2, 2, 3, 1),
  })
  .map(({ step, addresses, country }) => row('locations', step, addresses, country));
const users = fc
  .record({
    step: fc.nat(STEPS - 1),
    addresses: fc.constantFrom(64, 256, STEP, 8 * STEP, 40 * STEP),
    country: fc.constantFrom(1, 1, 2, 3),
  })
  .map(({ step, addresses, country }) => row('users', step, addresses, country));
const registered = fc
  .record({ step: fc.nat(STEPS - 1), addresses: fc.constantFrom(2 * STEP, 16 * STEP), country: fc.nat(2) })
  .map(({ step, addresses, country }) => row('registry', step, addresses, country + 1));

describe('locations that the lineage of the registry seldom confirms', () => {
  it('lose and win as in a model that looks at all rows for each address', () => {
    let losses = 0;
    const lists = fc.tuple(
      fc.array(location, { minLength: 30, maxLength: 90 }),
      fc.array(users, { maxLength: 12 }),
      fc.array(registered, { maxLength: 6 }),
    );
    fc.assert(
      fc.property(lists, ([locations, byUsers, byRegistry]) => {
        const rows = [row('registry', 0, STEPS * STEP, 1), ...byRegistry, ...byUsers, ...locations];
        const addresses = [...new Set(rows.flatMap(({ first, last }) => [first, last, last + 1]))];
        const model = new Model(rows);
        const expected = addresses.map((address) => model.countryAt(address));
        expect(merged(rows, addresses)).toEqual(expected);
        // Without the users' rows nothing can confirm a location, so the rule does not apply.
        const plain = merged(rows, addresses, [{ ...VOTERS[0]!, lineage: 'users' }, ...VOTERS.slice(1)]);
        if (plain.some((country, i) => country !== expected[i])) losses++;
      }),
      { numRuns: 400 },
    );
    expect(losses).toBeGreaterThan(50);
  });

  /** Locations in country 2 at every fifth step, of one step each, inside a delegation to country 1. */
  const unconfirmed = (count: number): Row[] => [
    row('registry', 0, STEPS * STEP, 1),
    row('users', 0, 1, 1),
    ...Array.from({ length: count }, (_, index) => row('locations', 5 * index, STEP, 2)),
  ];
  const probes = [0, 5 * STEP, 6 * STEP];

  it('have no vote from 30 rows of the pair of countries on', () => {
    expect(merged(unconfirmed(29), probes)).toEqual([1, 2, 1]);
    expect(merged(unconfirmed(30), probes)).toEqual([1, 1, 1]);
  });

  it('have a vote again if one in six is confirmed', () => {
    const confirmed = (count: number): Row[] =>
      Array.from({ length: count }, (_, index) => row('users', 5 * (index + 20), STEP, 2));
    expect(merged([...unconfirmed(30), ...confirmed(4)], probes)).toEqual([1, 1, 1]);
    expect(merged([...unconfirmed(30), ...confirmed(5)], probes)).toEqual([1, 2, 1]);
  });

  it('have a vote in the /12 in which a sixth of the addresses is confirmed', () => {
    const near = [row('locations', 6, STEP / 4, 2), row('users', 6, STEP / 4, 2)];
    const far = [row('locations', 9, STEP / 4, 2), row('users', 9, STEP / 4, 2)];
    expect(merged([...unconfirmed(30), ...near], probes)[1]).toBe(2);
    expect(merged([...unconfirmed(30), ...far], probes)[1]).toBe(1);
    const few = [row('locations', 6, STEP / 8, 2), row('users', 6, STEP / 8, 2)];
    expect(merged([...unconfirmed(30), ...few], probes)[1]).toBe(1);
  });

  it('have a vote if they have the size of an announced network', () => {
    const rows = [255, 256, 257].map((addresses, index) => row('locations', 150 + 4 * index, addresses, 2));
    const addresses = rows.map(({ first }) => first);
    expect(merged([...unconfirmed(30), ...rows], addresses)).toEqual([1, 2, 1]);
  });

  it('have a vote if nothing in the lineage of the registry could confirm them', () => {
    const withoutUsers = unconfirmed(30).filter(({ source }) => source !== 'users');
    expect(merged(withoutUsers, probes, VOTERS.slice(1))).toEqual([2, 2, 1]);
    const routing: Voter[] = [{ ...VOTERS[0]!, kind: 'routing' }, ...VOTERS.slice(1)];
    expect(merged(unconfirmed(30), probes, routing)).toEqual([1, 2, 1]);
  });

  it('have a vote in IPv6', () => {
    const locations = Array.from({ length: STEPS - 1 }, (_, step) => row('locations', step, STEP / 2, 2));
    const rows = [...unconfirmed(0), ...locations];
    const column = (name: 'first' | 'last', low: number): Uint32Array =>
      Uint32Array.from(rows.flatMap((r) => [2 ** 29, r[name], low, low]));
    const candidates: CandidateRanges = {
      ...candidatesOf(rows),
      ...{ family: 6, first: column('first', 0), last: column('last', 2 ** 32 - 1) },
    };
    const winners = [...voteRanges(candidates, VOTERS).value].filter((country) => country === 2);
    expect(winners).toHaveLength(locations.length);
  });
});
