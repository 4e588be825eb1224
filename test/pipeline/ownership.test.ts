/** Which space belongs to a network, by the registries' files and by announcements, and which rows are inside it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type OwnedRange, OwnerSpace } from '../../pipeline/merging/evidence.js';
import { MAX_HOLDER_ASNS, parseAsn } from '../../pipeline/source-formats/ownership.js';
import { readSource } from '../../pipeline/source-formats/read-source.js';
import { formatAddress } from '../../src/address/format.js';
import { inputOf, withFiles } from './ingest-helper.js';

/** Reads files, and returns what belongs to some AS numbers as text. */
async function ownedBy(format: string, contents: Record<string, string>, asns: number[], maxRejectShare = 0) {
  const notes: string[] = [];
  const result = await withFiles(contents, (files) =>
    readSource({ ...inputOf(format, files, maxRejectShare), asns: new Set(asns) }, (text) => notes.push(text)),
  );
  const text = ({ asn, family, first, last }: OwnedRange): string =>
    `AS${asn} ${formatAddress(family, first)} ${formatAddress(family, last)}`;
  return { owned: result.owned.map(text), rows: result.ingested.rows, rejected: result.ingested.rejected, notes };
}

describe("the registries' files", () => {
  const RIPE = [
    '2|ripencc|20260301|7|19830705|20260228|+0100',
    'ripencc|*|asn|*|2|summary',
    'ripencc|NL|ipv4|193.0.0.0|2048|19930901|allocated|holder-a',
    'ripencc|NL|asn|3333|1|19930901|allocated|holder-a|e-stats',
    'ripencc|DE|asn|64496|4|19930901|allocated|holder-b',
    'ripencc|DE|ipv4|80.0.0.0|65536|19930901|allocated|holder-b',
    'ripencc|NL|ipv6|2001:67c:2e8::|48|20090101|assigned|holder-a',
    'ripencc||ipv4|90.0.0.0|256||available|holder-a',
    'ripencc|FR|ipv4|91.0.0.0|256|20090101|assigned|',
  ].join('\n');

  it('delegate ranges to the holder of a number by the opaque id', async () => {
    const { owned } = await ownedBy('rir-delegated-extended', { ripe: RIPE }, [3333]);
    expect(owned).toEqual([
      'AS3333 193.0.0.0 193.0.7.255',
      'AS3333 2001:67c:2e8:: 2001:67c:2e8:ffff:ffff:ffff:ffff:ffff',
    ]);
  });

  it('may list a range of numbers', async () => {
    const { owned } = await ownedBy('rir-delegated-extended', { ripe: RIPE }, [64495, 64499, 64500]);
    expect(owned).toEqual(['AS64499 80.0.0.0 80.0.255.255']);
  });

  it('have opaque ids of their own: the same id in another registry is another holder', async () => {
    const arin = 'arin|US|asn|15|1|19930901|allocated|holder-a\narin|US|ipv4|8.0.0.0|256|19930901|allocated|holder-c';
    expect((await ownedBy('rir-delegated-extended', { ripe: RIPE, arin }, [15])).owned).toEqual([]);
  });

  it('do not tell the members of a national registry apart, which share its opaque id', async () => {
    const numbers = (count: number) =>
      Array.from({ length: count }, (_, i) => `apnic|JP|asn|${64500 + i}|1|20000101|allocated|members`);
    const blocks = [
      'apnic|JP|ipv4|50.0.0.0|65536|20000101|allocated|members',
      'apnic|JP|asn|64000|2|20000101|allocated|one',
      'apnic|JP|ipv4|60.0.0.0|65536|20000101|allocated|one',
    ];
    const read = (count: number) =>
      ownedBy('rir-delegated-extended', { apnic: [...blocks, ...numbers(count)].join('\n') }, [64000, 64501, 64502]);
    const one = 'AS64000 60.0.0.0 60.0.255.255';
    const shared = ['AS64501 50.0.0.0 50.0.255.255', 'AS64502 50.0.0.0 50.0.255.255'];
    expect(await read(MAX_HOLDER_ASNS)).toMatchObject({ owned: [one, ...shared], notes: [] });
    expect(await read(MAX_HOLDER_ASNS + 1)).toMatchObject({
      owned: [one],
      notes: [expect.stringContaining('AS 64501, 64502: the members of a national registry share one holder')],
    });
  });

  it('give nothing for numbers that are not requested', async () => {
    expect((await ownedBy('rir-delegated-extended', { ripe: RIPE }, [])).owned).toEqual([]);
    expect((await ownedBy('rir-delegated-extended', { ripe: RIPE }, [1])).owned).toEqual([]);
  });
});

describe('announcements', () => {
  const CSV =
    '1.0.0.0,1.0.0.255,13335,"Cloudflare, Inc."\n1.0.4.0,1.0.7.255,AS38803,x\n2001:200::,2001:200::ff,13335,y\n';

  it('give the ranges of a network', async () => {
    expect(await ownedBy('origin-asn', { 'a.csv': CSV }, [13335])).toEqual({
      owned: ['AS13335 1.0.0.0 1.0.0.255', 'AS13335 2001:200:: 2001:200::ff'],
      rows: 3,
      rejected: 0,
      notes: [],
    });
  });

  it.each(['1.0.0.0,1.0.0.255', 'x,1.0.0.255,1,y', '1.0.0.0,1.0.0.255,DE,y', '1.0.0.9,1.0.0.1,1,y', '1.0.0.0,::1,1,y'])(
    'reject the row %s',
    async (row) => {
      expect(await ownedBy('origin-asn', { 'a.csv': `${CSV}${row}\n` }, [1], 0.5)).toMatchObject({
        owned: [],
        rejected: 1,
      });
      await expect(ownedBy('origin-asn', { 'a.csv': `${CSV}${row}\n` }, [1])).rejects.toThrow(
        /1 of 4 rows cannot be read/,
      );
    },
  );

  it.each(['', 'not a table', '\0\0\0\0', '{"a":1}', '"'])('are refused if the file is %j', async (content) => {
    await expect(ownedBy('origin-asn', { 'a.csv': content }, [1])).rejects.toThrow(
      expect.objectContaining({ code: 'E_BAD_INPUT' }),
    );
  });
});

it.each([
  ['0', 0],
  ['AS64496', 64496],
  ['as1', 1],
  ['4294967295', 4294967295],
  ['4294967296', Number.NaN],
  ['', Number.NaN],
  ['-1', Number.NaN],
  ['1.10', Number.NaN],
  ['AS', Number.NaN],
])('the AS number in %j is %d', (text, number) => {
  expect(parseAsn(text)).toBe(number);
});

describe('the space of an owner', () => {
  /** A tiny space at each end of a family, so that the first and the last address are part of it. */
  const SIZE = 64;
  const word = (offset: number): number => (offset < SIZE / 2 ? offset : 0xffffffff - (SIZE - 1 - offset));
  const range = fc.tuple(fc.nat(SIZE - 1), fc.nat(SIZE - 1)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const owned = ([from, to]: readonly [number, number], asn = 1): OwnedRange => ({
    ...{ asn, family: 4, first: Uint32Array.of(word(from)), last: Uint32Array.of(word(to)) },
  });

  it('has a range if and only if each of its addresses belongs to the owner', () => {
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 8 }),
        fc.array(range, { maxLength: 4 }),
        range,
        (own, others, [from, to]) => {
          const space = OwnerSpace.of({ space: [], asns: [1] }, [
            ...own.map((each) => owned(each)),
            ...others.map((each) => owned(each, 2)),
          ]);
          const covered = new Set<number>();
          for (const [a, b] of own) {
            for (let offset = a; offset <= b; offset++) covered.add(offset);
            // The addresses between the two ends of the tiny space.
            if (a < SIZE / 2 && b >= SIZE / 2) covered.add(-1);
          }
          const wanted = Array.from({ length: to - from + 1 }, (_, index) => from + index);
          if (from < SIZE / 2 && to >= SIZE / 2) wanted.push(-1);
          const expected = wanted.every((offset) => covered.has(offset));
          expect(space.contains(4, Uint32Array.of(word(from)), Uint32Array.of(word(to)), 0)).toBe(expected);
          expect(space.isEmpty).toBe(own.length === 0);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('contains everything if a source names no owner, and nothing if the space of its network is unknown', () => {
    const all = [Uint32Array.of(0), Uint32Array.of(0xffffffff)] as const;
    expect(OwnerSpace.of({ space: [], asns: [] }, []).contains(4, ...all, 0)).toBe(true);
    expect(OwnerSpace.of({ space: [], asns: [7] }, [owned([0, 63])]).contains(4, ...all, 0)).toBe(false);
  });
});
