/** The gates that weigh IPv6 by delegation. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { delegationFlows } from '../../pipeline/gates/delegations.js';
import { isCountryLabel, type RangeList } from '../../src/database/diff.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, madeUpWorld, type Row, rowsText } from '../support/sources.js';

/** A tiny IPv6 space: 32 cells of a /48 each, the last one at the end of the address space. */
const CELLS = 32;
const LABELS = ['unallocated', 'DE', 'FR', 'reserved'];
const isCountry = (record: number): boolean => record === 1 || record === 2;

/** Returns the first address of a cell, or one past the last address for the cell after the last. */
const firstOf = (cell: number): bigint =>
  cell < CELLS - 1 ? BigInt(cell) << 80n : (1n << 128n) - (BigInt(CELLS - cell) << 80n);
const wordsOf = (address: bigint): number[] =>
  [96n, 64n, 32n, 0n].map((shift) => Number((address >> shift) & 0xffffffffn));

function listOf(records: readonly number[]): RangeList {
  const first: number[] = [];
  const value: number[] = [];
  records.forEach((record, cell) => {
    if (cell > 0 && record === records[cell - 1]) return;
    first.push(...(cell === 0 ? [0, 0, 0, 0] : wordsOf(firstOf(cell))));
    value.push(record);
  });
  const columns = { first: Uint32Array.from(first), value: Uint16Array.from(value), count: value.length };
  return { family: 6, ...columns, labels: LABELS };
}

const cells = fc.array(fc.nat(LABELS.length - 1), { minLength: CELLS, maxLength: CELLS });
// The next-to-last cell has nearly all of the address space.
const block = fc.tuple(fc.nat(CELLS - 2), fc.nat(CELLS - 2)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

it('counts each delegation once, with the part of it that changed', () => {
  fc.assert(
    fc.property(cells, cells, fc.array(block, { maxLength: 10 }), (before, after, blocks) => {
      const builder = new RangeBuilder(6);
      for (const [a, b] of blocks) {
        const last = wordsOf(firstOf(b + 1) - 1n);
        builder.add(Uint32Array.from(wordsOf(firstOf(a))), Uint32Array.from(last), 0, 0);
      }
      // Naively: of overlapping delegations the first, and of those the widest, counts.
      const counted: (readonly [number, number])[] = [];
      for (const [a, b] of [...blocks].sort((x, y) => x[0] - y[0] || y[1] - x[1])) {
        if (counted.every(([, end]) => a > end)) counted.push([a, b]);
      }
      // The runs of one country outside of them count as well.
      const isCovered = (cell: number): boolean => counted.some(([a, b]) => cell >= a && cell <= b);
      const runs: [number, number][] = [];
      for (let cell = 0; cell < CELLS; cell++) {
        if (isCovered(cell)) continue;
        const continues = cell > 0 && !isCovered(cell - 1) && before[cell] === before[cell - 1];
        if (continues) runs.at(-1)![1] = cell;
        else runs.push([cell, cell]);
      }
      counted.push(...runs);
      const expected = { count: 0, changed: 0, lost: 0 };
      for (const [a, b] of counted) {
        const assigned = Array.from({ length: b - a + 1 }, (_, i) => a + i).filter((cell) => isCountry(before[cell]!));
        if (assigned.length === 0) continue;
        expected.count++;
        const size = (list: number[]): number =>
          list.reduce(
            (sum, cell) => sum + Number(cell === CELLS - 1 ? 1n << 80n : firstOf(cell + 1) - firstOf(cell)),
            0,
          );
        const different = assigned.filter((cell) => before[cell] !== after[cell]);
        expected.changed += size(different.filter((cell) => isCountry(after[cell]!))) / size(assigned);
        expected.lost += size(different.filter((cell) => !isCountry(after[cell]!))) / size(assigned);
      }
      const { total, pairs } = delegationFlows(listOf(before), listOf(after), builder.finish());
      expect(total).toBe(expected.count);
      const sum = (isLost: boolean): number =>
        pairs.filter(({ to }) => isCountryLabel(to) !== isLost).reduce((amount, pair) => amount + pair.amount, 0);
      expect(sum(false)).toBeCloseTo(expected.changed, 9);
      expect(sum(true)).toBeCloseTo(expected.lost, 9);
    }),
    { numRuns: 1000 },
  );
});

it('counts the ranges of the earlier release if no delegations are known, those in one /32 as one', () => {
  const list = (rows: readonly [at: number, value: number][]): RangeList => ({
    ...{ family: 6, count: rows.length, labels: LABELS, value: Uint16Array.from(rows.map(([, value]) => value)) },
    first: Uint32Array.from(rows.flatMap(([at]) => [Math.floor(at), (at % 1) * 2 ** 32, 0, 0])),
  });
  // The address is in units of a /32: a /31; a /32 with a customer; one of half a /32, reserved space, and a quarter.
  const before = list([
    [0, 0],
    [8, 1],
    [10, 2],
    [10.5, 1],
    [11, 0],
    [12, 1],
    [12.5, 3],
    [12.75, 2],
    [13, 0],
  ]);
  const after = list([
    [0, 0],
    [8, 1],
    [10, 2],
    [10.75, 1],
    [11, 0],
    [12, 1],
    [12.5, 3],
    [13, 0],
  ]);
  expect(delegationFlows(before, after, undefined)).toEqual({
    total: 3,
    pairs: [
      { from: 'DE', to: 'FR', amount: 0.25 },
      { from: 'FR', to: 'reserved', amount: expect.closeTo(1 / 3, 9) },
    ],
  });
});

describe('a release', () => {
  let dir: string;
  beforeEach(() => {
    dir = temporaryDir();
  });

  const WORLD = madeUpWorld();
  /** A thousand networks with a /32 each, next to the /24s of the world. */
  const networks = (codeOf: (index: number) => string | undefined): Row[] =>
    Array.from({ length: 1000 }, (_, index) => {
      const prefix = `2c01:${index.toString(16)}`;
      const last = `${prefix}:ffff:ffff:ffff:ffff:ffff:ffff`;
      return { first: `${prefix}::`, last, code: codeOf(index) ?? '' };
    }).filter(({ code }) => code !== '');

  /** Builds from the world with these networks; `kind` is that of the source. */
  async function build(rows: Row[], kind: string) {
    writeFileSync(join(dir, 'world.csv'), rowsText([...WORLD, ...rows]).join('\n'));
    const source = { id: 'world', license: 'x', kind, fetch: { file: 'world.csv' }, format: 'ip-location-db' };
    writeFileSync(join(dir, 'sources.json'), JSON.stringify({ merge: 'evidence', sources: [source] }));
    return buildOnce(join(dir, 'data'), join(dir, 'sources.json'));
  }
  const everyFortieth = (code: string | undefined) => (index: number) =>
    index % 40 === 0 ? code : index % 2 ? 'DE' : 'FR';

  it('is refused if many small networks moved; the delegations are those of the registry', async () => {
    await build(networks(everyFortieth('FR')), 'registry');
    const { outcome, message } = await build(networks(everyFortieth('AU')), 'registry');
    expect(outcome).toBe('E_REFUSED');
    // By addresses, these are 25 of more than a million /32s.
    expect(message).not.toMatch(/IPv6 \/48s with a country/);
    expect(message).toMatch(
      /\d\.\d+ % of the IPv6 delegations with a country have another one after 0 days; the limit is 0\.\d+ %/,
    );
  });

  it('is refused if many small networks are gone; there is no registry among the sources', async () => {
    await build(networks(everyFortieth('FR')), 'geolocation');
    const { outcome, message } = await build(networks(everyFortieth(undefined)), 'geolocation');
    expect([outcome, message]).toEqual([
      'E_REFUSED',
      expect.stringMatching(
        /\d\.\d+ % of the IPv6 delegations with a country have none after 0 days; the limit is 0\.\d+ %/,
      ),
    ]);
  });

  it('is published if a few networks moved', async () => {
    const few = (code: string | undefined) => (index: number) => (index < 5 ? code : index % 2 ? 'DE' : 'FR');
    await build(networks(few('FR')), 'registry');
    expect((await build(networks(few('AU')), 'registry')).outcome).toBe('published');
    expect((await build(networks(few(undefined)), 'registry')).outcome).toBe('published');
  });
});
