/** What the gates measure, and their limits, on made-up tables in memory; whole builds are in gate.test.ts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { delegationFlows } from '../../pipeline/gates/delegations.js';
import { judge, limitAt } from '../../pipeline/gates/limits.js';
import { measureChanges, shareOut } from '../../pipeline/gates/measures.js';
import { daysOfStep, describeSourceChanges, GATE_EXTRA_DAYS } from '../../pipeline/gates/step.js';
import { computeDelta } from '../../src/database/delta.js';
import { isCountryLabel, type RangeList } from '../../src/database/diff.js';
import type { Manifest, ManifestInput } from '../../src/database/release.js';
import { DEFAULT_GATES, type GateLimit, type GateName } from '../../src/limits.js';
import { SHARE } from '../support/seed.js';

const EU = new Set(['DE', 'FR', 'BE', 'IE', 'NL', 'PL', 'ES', 'IT', 'MT', 'CY']);
const COUNTRIES = [...EU, 'US', 'GB', 'CH', 'JP', 'BR', 'IN', 'ZA', 'CA', 'KR', 'LI'];
const LABELS = ['unallocated', ...COUNTRIES];
const isEu = (code: string): boolean => EU.has(code);

/** A table by cell: IPv4 /16s, or IPv6 /32s from 2000:: on. The value is an index into LABELS. */
type Cells = Uint8Array;
const CELLS = { 4: 56_000, 6: 40_000 };

/** Turns cells into ranges; the space after the last cell has no country. */
function listOf(family: 4 | 6, cells: Cells): RangeList {
  const first: number[] = [];
  const value: number[] = [];
  const add = (at: number, label: number): void => {
    if (value.at(-1) === label) return;
    if (family === 4) first.push(at * 65_536);
    else if (at === -1) first.push(0, 0, 0, 0);
    else first.push(0x20000000 + at, 0, 0, 0);
    value.push(label);
  };
  if (family === 6) add(-1, 0);
  for (const [at, label] of cells.entries()) add(at, label);
  add(cells.length, 0);
  const columns = { first: Uint32Array.from(first), value: Uint16Array.from(value), count: value.length };
  return { family, ...columns, labels: LABELS };
}

/** A good day: every country has its part of the cells, the two smallest a thousandth of it. */
const WORLD = ([4, 6] as const).map((family) =>
  Uint8Array.from({ length: CELLS[family] }, (_, at) => {
    const turn = (at * 7919) % 2000;
    if (turn < 2) return LABELS.indexOf(turn === 0 ? 'MT' : 'LI');
    return 1 + LABELS.slice(1).indexOf(COUNTRIES.filter((code) => !['MT', 'LI'].includes(code))[turn % 18]!);
  }),
) as [Cells, Cells];

type Change = (code: string, index: number) => string;

/** Returns the world with a share of one family's cells changed; a cell for which `change` returns its own code stays. */
function night(family: 4 | 6, share: number, change: Change): [Cells, Cells] {
  const world = WORLD.map((cells) => cells.slice()) as [Cells, Cells];
  const cells = world[family === 4 ? 0 : 1];
  let left = Math.round(share * cells.length);
  for (let index = 0; left > 0 && index < cells.length; index++) {
    const at = (index * 4999) % cells.length;
    const to = change(LABELS[cells[at]!]!, index);
    if (to === LABELS[cells[at]!]) continue;
    cells[at] = LABELS.indexOf(to);
    left--;
  }
  return world;
}

/** Returns the gates that refuse a night. IPv6 cells are delegations of one /32 each. */
function refusalsOf([v4, v6]: [Cells, Cells], days: number | undefined) {
  const lists = [listOf(4, WORLD[0]), listOf(6, WORLD[1])] as const;
  const later = [listOf(4, v4), listOf(6, v6)] as const;
  const deltas = lists.map((before, index) => computeDelta(before, later[index]!));
  const known = blocksOf(WORLD[1]);
  const flows = delegationFlows(lists[1], later[1], known);
  return judge(measureChanges(deltas, flows, isEu, days !== undefined), DEFAULT_GATES, days).refusals;
}

/** Each cell as a delegation. */
function blocksOf(cells: Cells) {
  const count = cells.length;
  const first = new Uint32Array(4 * count);
  const last = new Uint32Array(4 * count).fill(0xffffffff);
  for (let at = 0; at < count; at++) first[4 * at] = last[4 * at] = 0x20000000 + at;
  return { family: 6 as const, count, first, last, value: new Uint16Array(count) };
}

const from =
  (one: string, other: string): Change =>
  (code) =>
    code === one ? other : code;
const byLot: Change = (_code, index) => COUNTRIES[(index * 7) % 18]!;
const gains: Change = () => 'PL';
const lost: Change = () => 'unallocated';

describe('a bad night over three days is refused', () => {
  it.each<[string, 4 | 6, number, Change, GateName]>([
    ['a pair of neighbors', 4, 0.001, from('FR', 'BE'), 'maxPairShareIPv4'],
    ['a pair that flips membership', 4, 0.0015, from('GB', 'IE'), 'maxEuChangeShareIPv4'],
    [
      'flips, scattered',
      4,
      0.0015,
      (code, i) => (isEu(code) ? ['US', 'JP', 'BR'][i % 3]! : code),
      'maxEuChangeShareIPv4',
    ],
    ['one country gains', 4, 0.0015, gains, 'maxCountryShareIPv4'],
    ['scattered', 4, 0.004, byLot, 'maxChangedShareIPv4'],
    ['lost', 4, 0.0005, lost, 'maxLostShareIPv4'],
    ['a small country', 4, 0.0005, from('MT', 'IT'), 'maxCountryLossShare'],
    ['to a small country', 4, 0.0004, from('DE', 'LI'), 'maxCountryGainShare'],
    ['a country gone', 4, 1, from('LI', 'CH'), 'maxCountryLossShare'],
    ['a pair of neighbors', 6, 0.003, from('FR', 'BE'), 'maxCountryDelegationsIPv6'],
    ['one country gains', 6, 0.003, gains, 'maxCountryDelegationsIPv6'],
    ['scattered', 6, 0.01, byLot, 'maxChangedDelegationsIPv6'],
    ['lost', 6, 0.005, lost, 'maxLostDelegationsIPv6'],
  ])('%s, IPv%i, %d', (_what, family, share, change, gate) => {
    const refusals = refusalsOf(night(family, share, change), 3);
    expect(refusals.map((refusal) => refusal.gate)).toContain(gate);
  });

  it('with the value, the limit and the days', () => {
    const [refusal] = refusalsOf(night(4, 0.0056, byLot), 3);
    expect(refusal).toEqual({
      gate: 'maxChangedShareIPv4',
      message: '0.561 % of the IPv4 addresses with a country have another one after 3 days; the limit is 0.345 %',
    });
  });
});

it('a good night is published; what is normal after two months is refused after one night', () => {
  expect(refusalsOf(WORLD, 0)).toEqual([]);
  expect(refusalsOf(night(4, 0.0002, byLot), 1)).toEqual([]);
  const months = night(4, 0.0045, byLot);
  expect(refusalsOf(months, 60)).toEqual([]);
  expect(refusalsOf(months, 1).map(({ gate }) => gate)).toContain('maxChangedShareIPv4');
});

it('a change of sources may differ by six percent, not by twelve, and no country may vanish', () => {
  expect(refusalsOf(night(4, 0.06, byLot), undefined)).toEqual([]);
  expect(refusalsOf(night(6, 0.06, byLot), undefined)).toEqual([]);
  expect(refusalsOf(night(4, 0.12, byLot), undefined).map(({ gate }) => gate)).toEqual(['maxChangedShareIPv4']);
  expect(refusalsOf(night(4, 0.12, lost), undefined).map(({ gate }) => gate)).toEqual(['maxLostShareIPv4']);
  const half = night(4, 0.035, from('DE', 'FR'));
  expect(refusalsOf(half, undefined)).toEqual([
    { gate: 'maxCountryLossShare', message: expect.stringMatching(/^DE loses 6.* %.*; the limit is 50 %$/) },
  ]);
  const [v4, v6] = WORLD.map((cells) => cells.map((label) => (LABELS[label] === 'LI' ? LABELS.indexOf('CH') : label)));
  expect(refusalsOf([v4!, v6!], undefined)).toEqual([
    { gate: 'maxVanishedCountries', message: '1 country is gone: LI; the limit is 0' },
  ]);
});

describe('a limit', () => {
  const growing = fc.record({
    base: SHARE.map((share) => 0.8 * share),
    perDay: SHARE,
  });
  const days = fc.nat(10_000);

  it('never falls with more days, and never reaches a total loss', () => {
    const limits: fc.Arbitrary<GateLimit> = fc.oneof(
      growing,
      ...Object.values(DEFAULT_GATES).map((each) => fc.constant(each)),
    );
    fc.assert(
      fc.property(limits, days, days, (limit, a, b) => {
        const [fewer, more] = [limitAt(limit, Math.min(a, b)), limitAt(limit, Math.max(a, b))];
        expect(more).toBeGreaterThanOrEqual(fewer);
        if (typeof limit !== 'number') expect(more).toBeLessThan(1);
      }),
    );
  });

  it('of the defaults refuses a total loss after any number of days', () => {
    for (const change of [lost, from('DE', 'FR')]) {
      expect(refusalsOf(night(4, 1, change), 1_000_000)).not.toEqual([]);
      expect(refusalsOf(night(6, 1, change), 1_000_000)).not.toEqual([]);
    }
  });

  it('that is a number is that number', () => {
    expect([0, 5, 500].map((count) => limitAt(0.2, count))).toEqual([0.2, 0.2, 0.2]);
    expect(limitAt({ base: 0.002, perDay: 0.0001 }, 3)).toBeCloseTo(0.0023, 12);
  });
});

it('shares are those of a count of all flows', () => {
  const label = fc.constantFrom('DE', 'FR', 'US', 'GB', 'unallocated');
  const flow = fc.record({ from: label, to: label, amount: fc.nat(1000) }).filter((each) => each.from !== each.to);
  fc.assert(
    fc.property(
      fc.uniqueArray(flow, { selector: (each) => `${each.from} ${each.to}` }),
      fc.nat(5000),
      (pairs, total) => {
        const whole = Math.max(total, 1000);
        const sum = (test: (each: (typeof pairs)[number]) => boolean): number =>
          pairs.filter(test).reduce((amount, each) => amount + each.amount, 0) / whole;
        const isChanged = (each: (typeof pairs)[number]) => isCountryLabel(each.from) && isCountryLabel(each.to);
        const codes = ['DE', 'FR', 'US', 'GB'];
        const shares = shareOut({ total, pairs }, 1000, isEu);
        expect(shares.changed).toBeCloseTo(sum(isChanged), 9);
        expect(shares.lost).toBeCloseTo(
          sum(({ from, to }) => isCountryLabel(from) && !isCountryLabel(to)),
          9,
        );
        const flips = sum((each) => isChanged(each) && isEu(each.from) !== isEu(each.to));
        expect(shares.euChanged).toBeCloseTo(flips, 9);
        const most = (part: (code: string) => number): number => Math.max(...codes.map(part));
        expect(shares.loser[1]).toBeCloseTo(
          most((code) => sum(({ from }) => from === code)),
          9,
        );
        expect(shares.gainer[1]).toBeCloseTo(
          most((code) => sum((each) => isChanged(each) && each.to === code)),
          9,
        );
        expect(shares.pair[1]).toBeCloseTo(
          Math.max(0, ...pairs.filter(isChanged).map((each) => each.amount / whole)),
          9,
        );
      },
    ),
  );
});

describe('the days of a step', () => {
  const manifest = (as_of: string, dates: Record<string, string | undefined>): Manifest =>
    ({ as_of, inputs: Object.entries(dates).map(([id, data_date]) => ({ id, data_date })) }) as unknown as Manifest;
  const [before, now] = ['2026-09-23', '2026-09-26'];

  it.each<[string, Record<string, string | undefined>, Record<string, string | undefined>, number]>([
    ['of one source', { a: '2026-09-22' }, { a: '2026-09-26' }, 4],
    ['the most of several', { a: '2026-09-22', b: '2026-08-26' }, { a: '2026-09-22', b: '2026-09-26' }, 31],
    ['none, if all dates stay', { a: '2026-09-22', b: '2026-08-01' }, { a: '2026-09-22', b: '2026-08-01' }, 0],
    ['at most a month more than between the builds', { a: '2020-01-01' }, { a: '2026-09-26' }, 3 + GATE_EXTRA_DAYS],
    ['between the builds, if a date is missing', { a: undefined }, { a: '2026-09-26' }, 3],
    ['if it is missing now', { a: '2020-01-01' }, { a: undefined }, 3],
    ['if it is in the future', { a: '2026-09-01' }, { a: '2031-01-01' }, 3],
    ['if it was in the future', { a: '2031-01-01' }, { a: '2031-01-02' }, 3],
    ['if it is before 2000', { a: '1970-01-01' }, { a: '2026-09-26' }, 3],
    ['if it was before 2000, and still is', { a: '1970-01-01' }, { a: '1999-12-31' }, 3],
    ['if it goes back', { a: '2026-09-20' }, { a: '2026-08-01' }, 3],
    ['if there is no common source', {}, {}, 0],
  ])('%s', (_what, dates, later, expected) => {
    expect(daysOfStep(manifest(now, later), manifest(before, dates))).toBe(expected);
  });

  it('are never below 0 nor above those between the builds and a month, whatever the dates', () => {
    const date = fc.option(
      fc
        .date({ min: new Date('1960-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
        .map((day) => day.toISOString().slice(0, 10)),
      { nil: undefined },
    );
    const dates = fc.dictionary(fc.constantFrom('a', 'b', 'c'), date);
    const asOf = date.filter((day) => day !== undefined);
    fc.assert(
      fc.property(asOf, asOf, dates, dates, (a, b, earlier, later) => {
        const days = daysOfStep(manifest(b!, later), manifest(a!, earlier));
        const elapsed = Math.max(0, (Date.parse(b!) - Date.parse(a!)) / 86_400_000);
        expect(days).toBeGreaterThanOrEqual(0);
        expect(days).toBeLessThanOrEqual(elapsed + GATE_EXTRA_DAYS);
      }),
    );
  });
});

describe('the sources of a step', () => {
  const input = (id: string, more: object = {}): ManifestInput =>
    ({ id, place: `${id}.csv`, format: 'ip-location-db', rows: 1, ...more }) as unknown as ManifestInput;
  const manifest = (inputs: ManifestInput[], missing: string[] = []): Manifest =>
    ({ inputs, missing: missing.map((id) => ({ id, reason: 'none' })) }) as unknown as Manifest;
  const two = manifest([input('a'), input('b')]);

  it.each<[string, Manifest, Manifest, string[]]>([
    ['the same', two, two, []],
    ['an outage is no change', manifest([input('a')], ['b']), two, []],
    ['a source that was missing', two, manifest([input('a')], ['b']), ['source b was missing']],
    ['one more', two, manifest([input('a')]), ['source b is new']],
    ['one less', manifest([input('a')]), two, ['source b is gone']],
    ['another order', manifest([input('b'), input('a')]), two, ['the sources are in another order']],
    [
      'another location',
      manifest([input('a', { place: 'x' })]),
      manifest([input('a')]),
      ['source a is from another location or in another format'],
    ],
    [
      'another lineage',
      manifest([input('a', { lineage: 'x' })]),
      manifest([input('a')]),
      ['source a votes in another way'],
    ],
    [
      'no seed any more',
      manifest([input('a')]),
      manifest([input('a', { seed: 'old' })]),
      ['source a replaces its seed'],
    ],
  ])('%s', (_what, now, before, expected) => {
    expect(describeSourceChanges(now, before)).toEqual(expected);
  });
});
