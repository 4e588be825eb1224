/** Differences of two releases, on tiny ones. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Family } from '../../src/address/parse.js';
import { rangeSize } from '../../src/address/words.js';
import { computeDelta } from '../../src/database/delta.js';
import {
  countryChanges,
  formatSize,
  LargestBlocks,
  PairTotals,
  type RangeList,
  rangeList,
  segments,
} from '../../src/database/diff.js';
import { BLOCKS_SHOWN } from '../../src/limits.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { decodeRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { country, embedded, reason } from '../support/release.js';

const RECORDS: RangeRecord[] = [
  reason('unallocated'),
  country('DE', 'Germany', true),
  country('FR', 'France', true),
  country('US', 'United States'),
  reason('private'),
  embedded('6to4'),
];
const LABELS = ['unallocated', 'DE', 'FR', 'US', 'private', '6to4'];
const isCountry = (record: number): boolean => record >= 1 && record <= 3;

/** Number of addresses in the tiny space. Addresses after it are unallocated. */
const SPACE = 48;

/** A cell is one IPv4 address, or 2^27 IPv6 addresses: so the tiny space of IPv6 spans two words. */
const CELL = { 4: 1n, 6: 1n << 27n } as const;

/** Returns the starts of the ranges for the cells, the first cell at `base`; all other addresses are unallocated. */
function starts(cells: number[], base: number): [at: number, record: number][] {
  const list: [number, number][] = base > 0 ? [[0, 0]] : [];
  [...cells, 0].forEach((record, i) => {
    if (list.at(-1)?.[1] !== record) list.push([base + i, record]);
  });
  return list;
}

function columnsOf(family: Family, cells: number[], base: number) {
  const list = starts(cells, base);
  const words = (at: number): number[] => [0, 0, Math.floor(at / 32), (at % 32) * 2 ** 27];
  const first = Uint32Array.from(list.flatMap(([at]) => (family === 4 ? [at] : words(at))));
  return { family, count: list.length, first, value: Uint16Array.from(list, ([, record]) => record) };
}

function listOf(family: Family, cells: number[], base: number): RangeList {
  return { ...columnsOf(family, cells, base), labels: LABELS };
}

function fileOf(cells: number[], records = RECORDS): RangeFile {
  const content = { asOf: '2026-01-01', v4: columnsOf(4, cells, 9), v6: columnsOf(6, cells, 9), records };
  return decodeRangeFile(encodeRangeFile(content), 'test');
}

/** Cells in runs: neighbors are often equal, as in real data. */
const cells = fc
  .array(fc.tuple(fc.nat(LABELS.length - 1), fc.integer({ min: 1, max: 9 })), { minLength: 1, maxLength: 20 })
  .map((runs) => {
    const list = runs.flatMap(([record, length]) => Array<number>(length).fill(record));
    return Array.from({ length: SPACE }, (_, i) => list[i] ?? 0);
  });

/** Result of a naive comparison, address by address: cells by pair of results, and runs of cells. */
function naive(before: number[], after: number[]) {
  const pairs: Record<string, bigint> = {};
  const changed: string[] = [];
  before.forEach((record, i) => {
    const pair = `${LABELS[record]} ${LABELS[after[i]!]}`;
    if (record === after[i]) return;
    pairs[pair] = (pairs[pair] ?? 0n) + 1n;
    changed.push(`${i} ${pair}`);
  });
  return { pairs, changed };
}

describe('a diff agrees with a comparison address by address', () => {
  it.each([4, 6] as const)('IPv%d', (family) => {
    fc.assert(
      fc.property(cells, cells, fc.constantFrom(0, 1000), (a, b, base) => {
        const lists = [a, b].map((each) => listOf(family, each, base));
        const totals = new PairTotals();
        const changed: string[] = [];
        let expected = 0n;
        for (const { first, last, from, to } of segments(lists[0]!, lists[1]!)) {
          const start = [...first].reduce((sum, word) => (sum << 32n) + BigInt(word), 0n);
          expect(start).toBe(expected); // no gap, no overlap
          const size = rangeSize(first, last);
          expected = start + size;
          if (from === to) continue;
          totals.add({ family, first, last, from, to }, size);
          const cell = Number(start / CELL[family]) - base;
          for (let i = 0; i < Number(size / CELL[family]); i++) changed.push(`${cell + i} ${from} ${to}`);
        }
        expect(expected).toBe(1n << (family === 4 ? 32n : 128n));
        const oracle = naive(a, b);
        expect(changed).toEqual(oracle.changed);
        const sorted = totals.sorted();
        expect(
          Object.fromEntries(sorted.map(({ from, to, addresses }) => [`${from} ${to}`, addresses / CELL[family]])),
        ).toEqual(oracle.pairs);
        for (let i = 1; i < sorted.length; i++) expect(sorted[i - 1]!.addresses >= sorted[i]!.addresses).toBe(true);
      }),
    );
  });

  it.each([4, 6] as const)('and so does computeDelta of the gates, IPv%d', (family) => {
    fc.assert(
      fc.property(cells, cells, (a, b) => {
        const movement = computeDelta(listOf(family, a, 7), listOf(family, b, 7));
        const count = (test: (from: number, to: number) => boolean): bigint =>
          CELL[family] * BigInt(a.filter((record, i) => test(record, b[i]!)).length);
        expect(movement).toMatchObject({
          assigned: count((from) => isCountry(from)),
          changed: count((from, to) => isCountry(from) && isCountry(to) && from !== to),
          lost: count((from, to) => isCountry(from) && !isCountry(to)),
          gained: count((from, to) => !isCountry(from) && isCountry(to)),
        });
        expect([...movement.countryTotals.keys()].sort()).toEqual(
          [...new Set([...a, ...b].filter(isCountry))].map((r) => LABELS[r]).sort(),
        );
        for (const [code, { before, after, kept }] of movement.countryTotals) {
          const record = LABELS.indexOf(code);
          expect(before).toBe(count((from) => from === record));
          expect(after).toBe(count((_, to) => to === record));
          expect(kept).toBe(count((from, to) => from === record && to === record));
        }
        // The longest run: the number of changed cells between two cells that kept their country.
        let open = 0;
        let longest = 0;
        a.forEach((from, i) => {
          const to = b[i]!;
          if (from === to && isCountry(from)) open = 0;
          else if (from !== to && (isCountry(from) || isCountry(to))) open++;
          longest = Math.max(longest, open);
        });
        expect((movement.longestRun?.changed ?? 0n) / CELL[family]).toBe(BigInt(longest));
      }),
    );
  });
});

describe('the largest blocks', () => {
  it('do not depend on the order of the changes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(255), fc.integer({ min: 1, max: 60 })), { maxLength: 30 }), (ranges) => {
        const largest = new LargestBlocks();
        const sizes: number[] = [];
        ranges.forEach(([from, length], i) => {
          const start = i * 1024 + from;
          const [first, last] = [Uint32Array.of(start), Uint32Array.of(start + length - 1)];
          largest.add({ family: 4, first, last, from: 'DE', to: 'FR' }, BigInt(length));
          // Naive: repeatedly take the largest aligned power of two.
          for (let at = start, left = length; left > 0; ) {
            let size = 1;
            while (size * 2 <= left && at % (size * 2) === 0) size *= 2;
            sizes.push(size);
            at += size;
            left -= size;
          }
        });
        const expected = sizes.sort((a, b) => b - a).slice(0, BLOCKS_SHOWN);
        expect(largest.blocks.map(({ prefix }) => 2 ** (32 - prefix))).toEqual(expected);
      }),
    );
  });
});

describe('rangeList', () => {
  it.each([4, 6] as const)('returns the ranges of the file, IPv%d', (family) => {
    const cells = [1, 1, 2, 0, 3, 4, 5, 1];
    const { count, first, value, labels } = rangeList(fileOf(cells), family);
    const expected = listOf(family, cells, 9);
    expect({ count, first }).toEqual({ count: expected.count, first: expected.first });
    expect(Array.from(value, (number) => labels[number])).toEqual(
      Array.from(expected.value, (number) => LABELS[number]),
    );
  });
});

describe('countryChanges', () => {
  it('lists the countries of both releases whose name or membership differs', () => {
    const before = fileOf([1, 2, 3]);
    const records = [
      reason('unallocated'),
      country('FR', 'France'),
      country('US', 'America'),
      country('GB', 'Britain'),
    ];
    const after = fileOf([1, 2, 3], records);
    expect(countryChanges(before, after)).toEqual([
      { code: 'FR', name: ['France', 'France'], is_eu: [true, false] },
      { code: 'US', name: ['United States', 'America'], is_eu: [false, false] },
    ]);
    expect(countryChanges(before, before)).toEqual([]);
  });
});

describe('formatSize', () => {
  it.each([
    [4, 16_777_216n, '16,777,216'],
    [4, 0n, '0'],
    [6, 1n << 80n, '1'],
    [6, 3n << 79n, '1.5'],
    [6, 1n, '<0.001'],
    [6, 1n << 128n, '281,474,976,710,656'],
  ] as const)('IPv%d, %d addresses', (family, addresses, text) => {
    expect(formatSize(family, addresses)).toBe(text);
  });
});
