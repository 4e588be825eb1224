import fc from 'fast-check';
import { type CountryResponse, Reader } from 'mmdb-lib';
import { beforeAll, describe, expect, it } from 'vitest';
import { EMBEDDED_SCHEMES } from '../../src/address/embedded.js';
import { parseAddress } from '../../src/address/parse.js';
import { continentTable } from '../../src/country/continents.js';
import { assemble, encodeNode } from '../../src/export/mmdb/mmdb.js';
import { leafOf, NO_DATA } from '../../src/export/mmdb/tree.js';
import { mapOf, ValueWriter } from '../../src/export/mmdb/values.js';
import { findIPv6 } from '../../src/rangefile/search.js';
import { type Block, country, embedded, reason, SMALL_WORLD } from '../support/release.js';
import { answers, largeWorld, sampleAddresses, type World, worldOf } from './support.js';

type Record = CountryResponse & { country_code: string; country_name: string; is_eu: boolean };

const ALL = new Set(EMBEDDED_SCHEMES);
const NONE = new Set<never>();

/** Counts the networks of a file with 24-bit records: the paths from the root to a leaf. */
function countNetworks(file: Buffer): bigint {
  const { nodeCount } = new Reader<Record>(file).metadata;
  const known = new Map<number, bigint>();
  const below = (node: number): bigint => {
    if (node >= nodeCount) return 1n;
    const count = known.get(node) ?? below(file.readUIntBE(6 * node, 3)) + below(file.readUIntBE(6 * node + 3, 3));
    known.set(node, count);
    return count;
  };
  return below(0);
}

function codes(reader: Reader<Record>, addresses: readonly string[]): string[] {
  return addresses.map((ip) => reader.get(ip)?.country?.iso_code ?? '');
}

describe('values', () => {
  const bytes = (value: Parameters<ValueWriter['append']>[0]): string => {
    const writer = new ValueWriter(true);
    writer.append(value);
    return Buffer.from(writer.bytes).toString('hex');
  };

  // Control bytes and sizes as in the specification of the format.
  it.each([
    [28, '5c'],
    [29, '5d00'],
    [284, '5dff'],
    [285, '5e0000'],
    [65_820, '5effff'],
    [65_821, '5f000000'],
  ])('encodes text of %d bytes', (length, head) => {
    expect(bytes('x'.repeat(length))).toBe(head + '78'.repeat(length));
  });

  it.each([
    ['é', '42c3a9'],
    [true, '0107'],
    [{ bits: 16, value: 0 } as const, 'a0'],
    [{ bits: 16, value: 28 } as const, 'a11c'],
    [{ bits: 32, value: 0x10000 } as const, 'c3010000'],
    [{ bits: 64, value: 1_795_219_200 } as const, `0402${(1_795_219_200).toString(16)}`],
    [['en', 'de'], '020442656e426465'],
    [mapOf({ a: 'b', c: undefined }), 'e141614162'],
  ])('encodes %j', (value, hex) => {
    expect(bytes(value)).toBe(hex);
  });

  it('refers to an earlier value if a pointer is shorter', () => {
    const writer = new ValueWriter(true);
    const names = mapOf({ en: 'Nowhere' });
    expect(writer.append(names)).toBe(0);
    // The key "en" (offset 1) and the map (offset 0) become pointers; "n" is as short as a pointer.
    expect(writer.append(mapOf({ en: names, n: 'n' }))).toBe(12);
    expect(Buffer.from(writer.bytes.slice(12)).toString('hex')).toBe('e220012000416e416e');
    expect(writer.append(names)).toBe(0);
  });

  it.each([
    [2047, '27ff'],
    [2048, '280000'],
    [526_335, '2fffff'],
    [526_336, '30000000'],
  ])('writes a pointer to offset %d', (offset, hex) => {
    const writer = new ValueWriter(true);
    // A string with four bytes of control and size, then the value that is pointed at.
    const filler = 'x'.repeat(offset - (offset < 65_825 ? 3 : 4));
    writer.append(filler);
    expect(writer.append('long enough to point at')).toBe(offset);
    const start = writer.append(['long enough to point at']);
    expect(Buffer.from(writer.bytes.slice(start + 2)).toString('hex')).toBe(hex);
  });
});

describe('nodes', () => {
  it.each([
    [24, 0x123456, 0xabcdef, '123456abcdef'],
    [28, 0x1234567, 0xabcdef0, '2345671abcdef0'],
    [28, 0xfffffff, 0, 'fffffff0000000'],
    [32, 0x12345678, 0xfedcba98, '12345678fedcba98'],
  ] as const)('of %d bits', (size, left, right, hex) => {
    const bytes = Buffer.alloc(size / 4);
    encodeNode(size, bytes, 0, left, right);
    expect(bytes.toString('hex')).toBe(hex);
  });

  it.each([24, 28, 32] as const)('are read back, with %d bits', (recordSize) => {
    // 0.0.0.0/2 has data, 64.0.0.0/2 has none, 128.0.0.0/1 has other data.
    const tree = { count: 2, left: Int32Array.of(1, leafOf(0)), right: Int32Array.of(leafOf(1), NO_DATA) };
    const data = new ValueWriter(true);
    const offsets = ['a', 'b'].map((code) => data.append(mapOf({ country: mapOf({ iso_code: code }) })));
    const labels = { title: 't', databaseType: 'x', asOf: '2026-01-01', ipVersion: 4 as const };
    const file = Buffer.concat([...assemble(tree, { bytes: data.bytes, offsets }, recordSize, labels)]);
    const reader = new Reader<Record>(file);
    expect(reader.metadata).toMatchObject({ recordSize, nodeCount: 2, ipVersion: 4 });
    expect(codes(reader, ['0.0.0.1', '63.255.255.255', '64.0.0.0', '127.1.1.1', '128.0.0.0'])).toEqual([
      ...['a', 'a', '', '', 'b'],
    ]);
  });
});

describe('a file', () => {
  let world: World;
  let file: Buffer;
  let reader: Reader<Record>;
  beforeAll(() => {
    world = worldOf(largeWorld());
    file = world.exported('mmdb', { embedded: ALL });
    reader = new Reader<Record>(file);
  });

  it('describes itself in its metadata', () => {
    expect(reader.metadata).toMatchObject({
      binaryFormatMajorVersion: 2,
      binaryFormatMinorVersion: 0,
      buildEpoch: new Date('2026-01-01T00:00:00Z'),
      databaseType: 'ipatlas-Country',
      description: { en: 'a title' },
      ipVersion: 6,
      languages: ['en'],
      recordSize: 24,
    });
  });

  it('has the date of the data as build time if that is known', () => {
    const dated = new Reader<Record>(world.exported('mmdb', { dataDate: '2025-11-30' }));
    expect(dated.metadata.buildEpoch).toEqual(new Date('2025-11-30T00:00:00Z'));
  });

  it('has GeoIP2 records and the flat fields', () => {
    expect(reader.get('2002:808:809:1::5')).toEqual({
      continent: { code: 'EU', names: { en: 'Europe' } },
      country: { is_in_european_union: true, iso_code: 'FR', names: { en: 'France' } },
      country_code: 'FR',
      country_name: 'France',
      is_eu: true,
    });
  });

  it('stores no value twice', () => {
    const text = file.toString('latin1');
    for (const word of ['is_in_european_union', 'country_name', 'Europe', 'France']) {
      expect([word, text.split(word).length - 1]).toEqual([word, 1]);
    }
  });

  it('gives the same results as the release', () => {
    const addresses = sampleAddresses(world, 20_000);
    const expected = answers(world, addresses);
    expect(new Set(expected).size).toBeGreaterThan(15);
    expect(codes(reader, addresses)).toEqual(expected);
  });

  it('can omit embedded addresses', () => {
    const plain = new Reader<Record>(world.exported('mmdb', { embedded: NONE }));
    expect(plain.get('193.0.6.139')).not.toBeNull();
    for (const ip of ['2002:c100:68b::1', '64:ff9b::c100:68b', '2001::3eff:f974']) expect(plain.get(ip)).toBeNull();
    expect(plain.get('::ffff:8.8.8.8')).toEqual(plain.get('8.8.8.8'));
    expect(plain.get('2002:808:809:1::5')?.country_code).toBe('FR');
  });

  it('omits Teredo by default, so that all networks of the file can be listed', () => {
    const usual = world.exported('mmdb');
    const { file: ranges } = world;
    const words = new Uint32Array(4);
    const isTeredo = (ip: string): boolean => {
      if (parseAddress(ip, words) !== 6) return false;
      const record = ranges.records[ranges.record6[findIPv6(ranges, words)]!]!;
      return record.kind === 'embedded' && record.scheme === 'teredo';
    };
    const addresses = sampleAddresses(world, 5000);
    const expected = answers(world, addresses).map((code, i) => (isTeredo(addresses[i]!) ? '' : code));
    expect(addresses.filter(isTeredo).length).toBeGreaterThan(10);
    expect(codes(new Reader<Record>(usual), addresses)).toEqual(expected);
    // The IPv4 networks occur four times: plain, mapped, 6to4 and NAT64. A range is at most 2 networks a bit of its address.
    const { count4, count6 } = ranges;
    expect(countNetworks(usual)).toBeLessThan(BigInt(4 * 2 * 32 * count4 + 2 * 128 * count6));
    expect(countNetworks(file)).toBeGreaterThan(1n << 64n);
  });

  it.each([
    [[4] as const, 4],
    [[6] as const, 6],
  ])('can have only the family %j', (families, ipVersion) => {
    const one = new Reader<Record>(world.exported('mmdb', { embedded: ALL, families }));
    expect(one.metadata.ipVersion).toBe(ipVersion);
    const addresses = sampleAddresses(world, 2000).filter((ip) => ip.includes(':') === (ipVersion === 6));
    const expected = answers(world, addresses);
    addresses.forEach((ip, i) => {
      if (ip.startsWith('::ffff:')) expected[i] = ''; // an IPv4 address
    });
    expect(codes(one, addresses)).toEqual(expected);
    if (ipVersion === 6) expect(one.get('8.8.8.8')).toBeNull();
  });

  it('can have only some countries', () => {
    const some = new Reader<Record>(world.exported('mmdb', { embedded: ALL, countries: new Set(['DE', 'US']) }));
    const addresses = sampleAddresses(world, 2000);
    const expected = answers(world, addresses).map((code) => (['DE', 'US'].includes(code) ? code : ''));
    expect(codes(some, addresses)).toEqual(expected);
  });
});

describe('unusual data', () => {
  const US = country('US', 'United States');
  it.each<[string, Block[]]>([
    ['nothing at all', []],
    ['all of IPv4 in one country', [['0.0.0.0/0', US]]],
    [
      'everything in one country',
      [
        ['0.0.0.0/0', US],
        ['::/0', US],
      ],
    ],
    [
      'a scheme wider than its IPv4 addresses',
      [
        ['2001::/16', embedded('teredo')],
        ['1.0.0.0/8', US],
      ],
    ],
  ])('%s', (_name, blocks) => {
    const world = worldOf(blocks);
    const reader = new Reader<Record>(world.exported('mmdb', { embedded: ALL }));
    const addresses = sampleAddresses(world, 1000);
    expect(codes(reader, addresses)).toEqual(answers(world, addresses));
  });

  it('gives the same results as the release for any small data', () => {
    const records = [US, country('DE', 'Germany', true), reason('private')];
    const place = fc.constantFrom(
      '0.0.0.',
      '8.8.8.',
      '255.255.255.',
      '2002:808:80',
      '64:ff9b::808:8',
      '2001::f7f7:f7',
      '2a00::ffff:ff',
    );
    const block = fc
      .tuple(place, fc.nat(255), fc.nat(12), fc.constantFrom(...records))
      .map(([prefix, low, width, record]): Block => {
        if (prefix.endsWith('.')) return [`${prefix}${low}/${32 - Math.min(width, 8)}`, record];
        const text = `${prefix}${low.toString(16).padStart(2, '0')}`;
        return prefix.startsWith('2002') ? [`${text}::/${48 - width}`, record] : [`${text}/${128 - width}`, record];
      });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
        const world = worldOf([...SMALL_WORLD, ...blocks]);
        const reader = new Reader<Record>(world.exported('mmdb', { embedded: ALL }));
        const addresses = sampleAddresses(world, 400);
        expect(codes(reader, addresses)).toEqual(answers(world, addresses));
      }),
      { numRuns: 100 },
    );
  });
});

describe('continents', () => {
  it('have each country once', () => {
    expect(continentTable().size).toBe(250);
    expect(continentTable().get('TR')).toEqual({ code: 'AS', name: 'Asia' });
  });
});
