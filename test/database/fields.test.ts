/** Lookups of chosen fields, and the block of addresses within which they are the same. */
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import type { ResultField } from '../../src/database/fields.js';
import { PartitionFinder } from '../../src/database/finder.js';
import { mergeRanges } from '../../src/range/merge.js';
import { partitionInMemory } from '../../src/rangefile/memory.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { PLACES, SIZE, sortKey, toCandidates } from '../support/tiny-space.js';

const dataDir = temporaryDir();
const without = temporaryDir();
await publishBlocks(dataDir, SMALL_WORLD, '2026-01-01', 0, SMALL_NETWORKS);
await publishBlocks(without, SMALL_WORLD);
const database = openDatabase(dataDir);
afterAll(() => {
  database.close();
});

describe('fields of an address', () => {
  it.each<[ip: string, fields: ResultField[], result: object]>([
    ['8.8.8.8', ['asn', 'as_name', 'country_code'], { asn: 15169, as_name: 'Google LLC', country_code: 'US' }],
    [
      '8.8.8.8',
      ['network', 'country', 'continent'],
      { network: '8.0.0.0/8', country: 'United States', continent: 'NA' },
    ],
    ['8.8.8.8', ['asn', 'network'], { asn: 15169, network: '8.8.8.0/24' }],
    ['8.8.9.1', ['asn', 'network'], { asn: 3356, network: '8.8.9.0/24' }],
    ['80.1.1.1', ['asn', 'network'], { asn: 64496, network: '80.0.0.0/7' }],
    ['80.1.1.1', ['asn', 'is_eu', 'network'], { asn: 64496, is_eu: true, network: '80.0.0.0/8' }],
    ['90.0.0.1', ['asn', 'as_name'], { asn: 4294967295, as_name: null }],
    ['10.0.0.1', ['asn', 'as_name', 'reason'], { asn: null, as_name: null, reason: 'private' }],
    ['::ffff:8.8.8.8', ['asn', 'network'], { asn: 15169, network: '8.8.8.0/24' }],
    ['2002:808:808::1', ['asn', 'network'], { asn: 15169, network: '2002:808:800::/40' }],
    ['64:ff9b::8.8.8.8', ['asn', 'network'], { asn: 15169, network: '64:ff9b::808:800/120' }],
    ['2001:0:1::f7f7:f7f7', ['asn', 'network'], { asn: 15169, network: null }],
    ['2a00:1::1', ['network', 'asn'], { network: '2a00:1::/47', asn: 64496 }],
    ['2a00:1::1', ['asn', 'network', 'country_code'], { asn: 64496, network: '2a00:1::/64', country_code: 'FR' }],
  ])('%s, %j', (ip, fields, result) => {
    const found = database.fields(fields)(ip);
    expect(found).toEqual({ ip: database.lookup(ip)!.ip, ...result });
    expect(Object.keys(found!)).toEqual(['ip', ...fields]);
  });

  it('are null without networks, and the block is that of the rest', () => {
    const other = openDatabase(without);
    expect(other.hasNetworks).toBe(false);
    expect(other.fields(['asn', 'as_name', 'country_code', 'network'])('8.8.8.8')).toEqual({
      ...{ ip: '8.8.8.8', asn: null, as_name: null, country_code: 'US', network: '8.0.0.0/8' },
    });
    other.close();
  });

  it('are undefined for what is not an address, and must be known', () => {
    expect(database.fields(['asn'])('8.8.8.256')).toBeUndefined();
    for (const fields of [[], ['asn', 'asn'], ['city']]) {
      expect(() => database.fields(fields as ResultField[])).toThrow(/fields is .*; choose from country, /);
    }
    const mirror = openDatabase(dataDir, { engine: 'sqlite' });
    expect(() => mirror.fields(['asn'])).toThrow(/engine binary only/);
    mirror.close();
  });
});

describe.each(Object.entries(PLACES))('blocks of a partition, %s', (_, { family, place }) => {
  const range = fc
    .record({ a: fc.nat(SIZE - 1), b: fc.nat(SIZE - 1), value: fc.nat(4) })
    .map(({ a, b, value }) => ({ from: Math.min(a, b), to: Math.max(a, b), value, layer: 2 }));

  it('are those that trying every prefix gives', () => {
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 8 }), (list) => {
        const merged = mergeRanges(toCandidates(family, place, list));
        const other = {
          family: family === 4 ? 6 : 4,
          count: 1,
          first: new Uint32Array(4),
          value: new Uint32Array(1),
        } as const;
        const records = Array.from({ length: 5 }, (_, index) => ({
          kind: 'network' as const,
          asn: index + 1,
          name: '',
        }));
        const columns = family === 4 ? { v4: merged, v6: other } : { v4: other, v6: merged };
        const file = partitionInMemory({ asOf: '2026-01-01', ...columns, records }, 'tiny');
        // A release can have a million records of labels: they must not all be decoded for a block.
        Object.defineProperty(file, 'records', { get: () => expect.unreachable() });
        // Two of the five have the same answer.
        const finder = new PartitionFinder(file, true, ({ asn }) => String(Math.min(asn, 4)));
        const answerAt = (key: string): number => {
          let at = 0;
          const words = family === 4 ? 1 : 4;
          for (let i = 0; i < merged.count; i++) {
            if (sortKey(merged.first.subarray(i * words, (i + 1) * words)) <= key) at = i;
          }
          return Math.min(records[merged.value[at]!]!.asn, 4);
        };
        const starts = Array.from({ length: merged.count }, (_, i) => {
          const words = family === 4 ? 1 : 4;
          return BigInt(`0x${sortKey(merged.first.subarray(i * words, (i + 1) * words))}`);
        });
        const bits = family === 4 ? 32 : 128;
        const keyOf = (address: bigint): string => address.toString(16).padStart(bits / 4, '0');
        for (let offset = 0; offset < SIZE; offset += 3) {
          const words = Uint32Array.from(place(offset));
          if (family === 4) finder.findIPv4(words[0]! | 0);
          else finder.findIPv6(words);
          const value = BigInt(`0x${sortKey(words)}`);
          const own = answerAt(keyOf(value));
          let prefix = 0;
          for (; ; prefix++) {
            const host = (1n << BigInt(bits - prefix)) - 1n;
            const first = value & ~host;
            const inside = starts.filter((start) => start > first && start <= (first | host));
            if ([first, ...inside].every((address) => answerAt(keyOf(address)) === own)) break;
          }
          expect(finder.prefix).toBe(prefix);
          expect(Math.min(records[finder.record]!.asn, 4)).toBe(own);
        }
      }),
      { numRuns: Math.ceil(Number(process.env.FUZZ_RUNS ?? 240) / 60) },
    );
  });
});

describe('lookup --add', () => {
  const lookup = (...args: string[]) => ipatlas(['lookup', '--data', dataDir, ...args]);

  it('prints the fields asked for, in this order', async () => {
    const { stdout, code } = await lookup('--add', 'asn,as_name,country_code,network', '8.8.8.8', '10.0.0.1', 'x');
    expect(jsonLines(stdout)).toEqual([
      { ip: '8.8.8.8', asn: 15169, as_name: 'Google LLC', country_code: 'US', network: '8.8.8.0/24' },
      { ip: '10.0.0.1', asn: null, as_name: null, country_code: null, network: '10.0.0.0/7' },
      { ip: 'x', error: 'invalid ip' },
    ]);
    expect(code).toBe(4);
    expect((await lookup('--add', 'asn', '--reason', '10.0.0.1')).stdout).toBe(
      '{"ip":"10.0.0.1","asn":null,"reason":"private"}\n',
    );
  });

  it('says once that a release has no networks, and refuses what it does not know', async () => {
    const none = await ipatlas(['lookup', '--data', without, '--add', 'asn,country_code', '8.8.8.8']);
    expect(none).toMatchObject({ code: 0, stdout: '{"ip":"8.8.8.8","asn":null,"country_code":"US"}\n' });
    expect(none.stderr).toMatch(/^ipatlas: release \S+ has no networks, so asn and as_name are null: .*\n$/);
    expect((await lookup('--add', 'city', '8.8.8.8')).stderr).toMatch(/--add is "city"; choose from country, /);
    expect((await lookup('--add', 'asn', '--engine', 'sqlite', '8.8.8.8')).stderr).toMatch(/engine binary only/);
  });
});
