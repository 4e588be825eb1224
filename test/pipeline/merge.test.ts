import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Override } from '../../pipeline/config/overrides.js';
import { loadReference } from '../../pipeline/config/reference.js';
import { type MergeInput, mergeSources } from '../../pipeline/merging/range-merger.js';
import type { IngestedSource } from '../../pipeline/stage.js';
import { parseAddress } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { countryTable } from '../../src/country/country.js';

const reference = loadReference();
const countries = countryTable(reference, '2026-01-01');

type Row = [first: string, last: string, code: string];

function words(text: string): number[] {
  const scratch = new Uint32Array(4);
  const family = parseAddress(text, scratch);
  return [...scratch.slice(0, family === 4 ? 1 : 4)];
}

function source(id: string, rows: Row[]): IngestedSource {
  const codes = [...new Set(rows.map(([, , code]) => code))];
  const family = (wanted: 4 | 6) => {
    const mine = rows.filter(([first]) => first.includes(':') === (wanted === 6));
    return {
      family: wanted,
      count: mine.length,
      first: Uint32Array.from(mine.flatMap(([first]) => words(first))),
      last: Uint32Array.from(mine.flatMap(([, last]) => words(last))),
      value: Uint16Array.from(mine.map(([, , code]) => codes.indexOf(code))),
    };
  };
  return { id, v4: family(4), v6: family(6), codes, rows: rows.length, rejected: 0 };
}

function override([first, last, code]: Row): Override {
  const family = first.includes(':') ? 6 : 4;
  const result = code === '' ? ({ kind: 'none', reason: 'unknown' } as const) : ({ kind: 'country', code } as const);
  return {
    family,
    first: Uint32Array.from(words(first)),
    last: Uint32Array.from(words(last)),
    result,
    text: '',
    note: '',
    line: 1,
  };
}

/** Returns the code, reason or scheme that the merged ranges have for an address, by a scan from the end. */
function answerer(input: Pick<MergeInput, 'sources' | 'overrides'>) {
  const result = mergeSources({ ...input, sources: [...input.sources], reference, countries });
  return (text: string): string => {
    const address = words(text);
    const { family, count, first, value } = address.length === 1 ? result.v4 : result.v6;
    const size = addressWords(family);
    const key = (list: ArrayLike<number>): string =>
      Array.from(list, (word) => word.toString(16).padStart(8, '0')).join('');
    for (let range = count - 1; ; range--) {
      if (key(first.slice(range * size, (range + 1) * size)) > key(address)) continue;
      const record = result.records[value[range]!]!;
      return record.kind === 'country' ? record.code : record.kind === 'none' ? record.reason : record.scheme;
    }
  };
}

describe('merging sources', () => {
  it.each([
    ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2002:808:808::1'],
    ['Teredo', '2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff', '2001:0:4136:e378:8000:63bf:f7f7:f7f7'],
    ['NAT64', '64:ff9b::', '64:ff9b::ffff:ffff', '64:ff9b::808:808'],
  ])('a row that equals the prefix of %s says nothing about the addresses inside', (_name, first, last, ip) => {
    const answer = answerer({ sources: [source('row', [[first, last, 'DE']])], overrides: [] });
    expect(answer(ip)).toMatch(/^(6to4|teredo|nat64)$/);
  });

  it('resolves codes to ISO codes, uses a lower source if a higher one names no country, and reports unknown codes', () => {
    const sources = [
      source('high', [
        ['11.0.0.0', '11.0.0.255', 'UK'],
        ['11.0.1.0', '11.0.1.255', 'EU'],
        ['11.0.2.0', '11.0.2.255', 'EU'],
        ['11.0.3.0', '11.0.3.255', 'QQ'],
      ]),
      source('low', [['11.0.0.0', '11.0.1.255', 'DE']]),
    ];
    const answer = answerer({ sources, overrides: [] });
    expect(['11.0.0.1', '11.0.1.1', '11.0.2.1', '11.0.3.1', '11.0.4.1'].map(answer)).toEqual([
      'GB',
      'DE',
      'unknown',
      'unknown',
      'unallocated',
    ]);
    expect([...mergeSources({ sources, reference, countries, overrides: [] }).unknownCodes]).toEqual([['QQ', 1]]);
  });

  it('puts special-purpose ranges over sources, and overrides over both', () => {
    const answer = answerer({
      sources: [source('wide', [['0.0.0.0', '255.255.255.255', 'US']])],
      overrides: [override(['10.9.0.0', '10.9.255.255', 'DE']), override(['12.0.0.0', '12.0.0.0', ''])],
    });
    expect(
      ['10.0.0.1', '10.9.0.1', '12.0.0.0', '12.0.0.1', '224.0.0.1', '192.0.2.1', '255.255.255.255'].map(answer),
    ).toEqual(['private', 'DE', 'unknown', 'US', 'multicast', 'documentation', 'broadcast']);
  });

  it('uses a source for an embedded prefix only if its range is inside the prefix', () => {
    const answer = answerer({
      sources: [
        source('ranges', [
          ['2000::', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'US'],
          ['2002:1::', '2002:1:ffff:ffff:ffff:ffff:ffff:ffff', 'FR'],
          ['2002:ffff::', '2003:0:ffff:ffff:ffff:ffff:ffff:ffff', 'DE'],
        ]),
      ],
      overrides: [],
    });
    expect(
      [
        '2001:ffff::',
        '2002::',
        '2002:1::',
        '2002:2::',
        '2002:ffff::',
        '2003::',
        '2003:1::',
        '2001::1',
        '2001:1::',
        '64:ff9b::1',
      ].map(answer),
    ).toEqual(['US', '6to4', 'FR', '6to4', '6to4', 'DE', 'US', 'teredo', 'protocol', 'nat64']);
  });

  // 64 addresses, filled one by one: sources from the lowest priority, then overrides; of each, the narrower ranges last.
  it('agrees with a model that fills an array, for any ranges, codes and priorities', () => {
    const BASE = 11 * 2 ** 24;
    const text = (offset: number): string => `11.0.0.${offset}`;
    const range = fc
      .tuple(fc.nat(63), fc.nat(63), fc.constantFrom('DE', 'UK', 'EU', 'FR', '??'))
      .map(([a, b, code]): Row => [text(Math.min(a, b)), text(Math.max(a, b)), code]);
    const own = fc
      .tuple(fc.nat(63), fc.nat(63), fc.constantFrom('AT', ''))
      .map(([a, b, code]): Row => [text(Math.min(a, b)), text(Math.max(a, b)), code]);
    const meaning: Record<string, string> = { DE: 'DE', UK: 'GB', FR: 'FR', AT: 'AT' };
    fc.assert(
      fc.property(
        fc.array(fc.array(range, { maxLength: 8 }), { minLength: 1, maxLength: 3 }),
        fc.array(own, { maxLength: 3 }),
        (lists, owned) => {
          const cells: string[] = Array(64).fill('unallocated');
          const numbers = ([first, last]: Row): [number, number] => [words(first)[0]! - BASE, words(last)[0]! - BASE];
          const paint = (rows: Row[], color: (code: string) => string | undefined): void => {
            const size = (row: Row): number => numbers(row)[1] - numbers(row)[0];
            for (const row of [...rows].sort((a, b) => size(b) - size(a))) {
              const [from, to] = numbers(row);
              const value = color(row[2]);
              if (value !== undefined) cells.fill(value, from, to + 1);
            }
          };
          for (const rows of lists) paint(rows, (code) => (meaning[code] === undefined ? 'unknown' : undefined));
          for (const rows of [...lists].reverse()) paint(rows, (code) => meaning[code]);
          paint(owned, (code) => meaning[code] ?? 'unknown');
          const answer = answerer({
            sources: lists.map((rows, i) => source(`s${i}`, rows)),
            overrides: owned.map(override),
          });
          expect(cells.map((_, offset) => answer(text(offset)))).toEqual(cells);
        },
      ),
      { numRuns: Number(process.env.FUZZ_RUNS ?? 60) },
    );
  });
});
