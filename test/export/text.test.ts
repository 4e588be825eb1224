import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { FormatName } from '../../src/export/formats.js';
import { parseCidr, rangeToCidrs } from '../../src/range/cidr.js';
import { numberOf } from '../support/networks.js';
import { type Block, country, SMALL_WORLD } from '../support/release.js';
import { answers, largeWorld, sampleAddresses, type World, worldOf } from './support.js';

const LISTABLE = new Set(['6to4', 'nat64'] as const);
const NONE = new Set<never>();

const ODD_NAMES: Block[] = [
  ['1.0.0.0/8', country('AA', 'Comma, Land')],
  ['2.0.0.0/8', country('BB', 'A "quoted" land')],
];

describe('small data', () => {
  let world: World;
  beforeAll(() => {
    world = worldOf(SMALL_WORLD);
  });
  const lines = (format: FormatName, options = {}): string[] => world.exported(format, options).toString().split('\n');

  it('is exported as csv', () => {
    expect(lines('csv')).toEqual([
      'start,end,country_code,country,is_eu',
      '8.0.0.0,8.255.255.255,US,United States,false',
      '80.0.0.0,80.255.255.255,DE,Germany,true',
      '81.0.0.0,81.255.255.255,GB,United Kingdom,false',
      "90.0.0.0,90.0.255.255,CI,Côte d'Ivoire,false",
      '193.0.0.0,193.0.7.255,NL,Netherlands,true',
      '2001:4860::,2001:4860:ffff:ffff:ffff:ffff:ffff:ffff,US,United States,false',
      '2a00::,2a00:0:ffff:ffff:ffff:ffff:ffff:ffff,DE,Germany,true',
      '2a00:1::,2a00:1:0:1::41,FR,France,true',
      '2a00:1:0:1::42,2a00:1:0:1::42,GB,United Kingdom,false',
      '2a00:1:0:1::43,2a00:1:0:ffff:ffff:ffff:ffff:ffff,FR,France,true',
      '2a00:1:1::,2a00:ffff:ffff:ffff:ffff:ffff:ffff:ffff,DE,Germany,true',
      '',
    ]);
  });

  it('is exported as lines for nginx, with embedded addresses', () => {
    expect(lines('nginx', { countries: new Set(['NL', 'CI']) })).toEqual([
      '# a title',
      '90.0.0.0/16 CI;',
      '193.0.0.0/21 NL;',
      '64:ff9b::5a00:0/112 CI;',
      '64:ff9b::c100:0/117 NL;',
      '2002:5a00::/32 CI;',
      '2002:c100::/37 NL;',
      '',
    ]);
  });

  it('is exported as sets of all countries for nftables', () => {
    expect(lines('nft', { countries: new Set(['DE', 'GB']), setName: 'some' })).toEqual([
      '# a title',
      'add table inet ipatlas',
      'add set inet ipatlas some4 { type ipv4_addr; flags interval; }',
      'flush set inet ipatlas some4',
      'add element inet ipatlas some4 {',
      '80.0.0.0/7,',
      '}',
      'add set inet ipatlas some6 { type ipv6_addr; flags interval; }',
      'flush set inet ipatlas some6',
      'add element inet ipatlas some6 {',
      '2a00::/32,',
      '2a00:1:0:1::42/128,',
      ...lines('cidr', { families: [6], countries: new Set(['DE']) })
        .slice(2, -1)
        .map((line) => `${line.split(',')[0]},`),
      '}',
      '',
    ]);
  });

  it.each<[FormatName, string[]]>([
    [
      'ipset',
      [
        '# a title',
        'create gb4 hash:net family inet hashsize 4096 maxelem 4194304',
        'create gb4+ hash:net family inet hashsize 4096 maxelem 4194304',
        'flush gb4+',
        'add gb4+ 81.0.0.0/8',
        'swap gb4 gb4+',
        'destroy gb4+',
        'create gb6 hash:net family inet6 hashsize 4096 maxelem 4194304',
        'create gb6+ hash:net family inet6 hashsize 4096 maxelem 4194304',
        'flush gb6+',
        'add gb6+ 2a00:1:0:1::42/128',
        'swap gb6 gb6+',
        'destroy gb6+',
        '',
      ],
    ],
    ['pf', ['# a title', '81.0.0.0/8', '2a00:1:0:1::42/128', '']],
    [
      'mikrotik',
      [
        '# a title',
        '/ip firewall address-list',
        'remove [find where list="gb4"]',
        'add list="gb4" address=81.0.0.0/8',
        '/ipv6 firewall address-list',
        'remove [find where list="gb6"]',
        'add list="gb6" address=2a00:1:0:1::42/128',
        '',
      ],
    ],
  ])('is exported as sets for %s', (format, expected) => {
    expect(lines(format, { countries: new Set(['GB']), setName: 'gb' })).toEqual(expected);
  });

  it('is exported as an ipset of firewalld, whose title ends no comment', () => {
    const file = lines('firewalld', {
      families: [4],
      countries: new Set(['GB']),
      setName: 'gb',
      title: 'a -- title -->',
    });
    expect(file).toEqual([
      '<?xml version="1.0" encoding="utf-8"?>',
      '<!-- a - - title - -> -->',
      '<ipset type="hash:net">',
      '  <short>gb4</short>',
      '  <option name="family" value="inet"/>',
      '  <option name="maxelem" value="4194304"/>',
      '  <entry>81.0.0.0/8</entry>',
      '</ipset>',
      '',
    ]);
  });

  it('omits the elements of an empty set, which nft would refuse', () => {
    expect(lines('nft', { families: [6], countries: new Set(['CI']) })).toEqual([
      '# a title',
      'add table inet ipatlas',
      'add set inet ipatlas countries6 { type ipv6_addr; flags interval; }',
      'flush set inet ipatlas countries6',
      '',
    ]);
  });
});

it('quotes names in CSV if necessary', () => {
  const world = worldOf(ODD_NAMES);
  expect(world.exported('csv').toString()).toBe(
    'start,end,country_code,country,is_eu\n' +
      '1.0.0.0,1.255.255.255,AA,"Comma, Land",false\n' +
      '2.0.0.0,2.255.255.255,BB,"A ""quoted"" land",false\n',
  );
});

/** Parses an address or block into numbers. */
function numbers(text: string): { family: 4 | 6; first: bigint; last: bigint } {
  const [address, prefix] = text.split('/') as [string, string | undefined];
  const family = address.includes(':') ? 6 : 4;
  const bits = family === 4 ? 32 : 128;
  const first = numberOf(address);
  return { family, first, last: first + 2n ** BigInt(bits - Number(prefix ?? bits)) - 1n };
}

/** Sorted, disjoint ranges of one family, and a search for the range of an address. */
class Ranges {
  readonly #rows: { first: bigint; last: bigint; code: string }[];
  constructor(rows: { first: bigint; last: bigint; code: string }[]) {
    this.#rows = rows;
    for (let i = 1; i < rows.length; i++) {
      if (rows[i]!.first <= rows[i - 1]!.last) throw new Error(`row ${i} does not follow the one before`);
    }
  }
  at(address: bigint): string {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#rows[middle]!.first <= address) low = middle + 1;
      else high = middle;
    }
    const row = this.#rows[low - 1];
    return row !== undefined && address <= row.last ? row.code : '';
  }
}

/** Reads blocks within blocks, of which the smallest around an address counts; returns a function that looks up an address. */
function readingNested(text: string): (ip: string) => string {
  const codes = new Map<string, string>();
  const sizes = { 4: new Set<bigint>(), 6: new Set<bigint>() };
  for (const [, block, code] of text.matchAll(/^([\da-f]*[.:][^ ]*) (\w+);?$/gm)) {
    const { family, first, last } = numbers(block!);
    expect(codes.has(`${family} ${first} ${last - first}`)).toBe(false);
    codes.set(`${family} ${first} ${last - first}`, code!);
    sizes[family].add(last - first);
  }
  const ascending = { 4: [...sizes[4]].sort(byNumber), 6: [...sizes[6]].sort(byNumber) };
  return (ip) => {
    const { family, first } = numbers(ip);
    for (const size of ascending[family]) {
      const code = codes.get(`${family} ${first - (first % (size + 1n))} ${size}`);
      if (code !== undefined) return code;
    }
    return '';
  };
}

const byNumber = (a: bigint, b: bigint): number => (a < b ? -1 : 1);

/** Reads an export; returns a function that looks up an address in it. */
function reading(format: FormatName, text: string): (ip: string) => string {
  if (format === 'nginx' || format === 'haproxy') return readingNested(text);
  const rows: Record<4 | 6, { first: bigint; last: bigint; code: string }[]> = { 4: [], 6: [] };
  for (const line of text.split('\n')) {
    const [from, to] = line.split(/[ ,;]/) as [string, string];
    if (!/^[\da-f]*[.:]/.test(from)) continue;
    const { family, first, last } = numbers(from);
    if (format === 'csv') rows[family].push({ first, last: numbers(to).first, code: line.split(',')[2]! });
    else rows[family].push({ first, last, code: to === '' ? 'member' : to });
  }
  const ranges = { 4: new Ranges(rows[4]), 6: new Ranges(rows[6]) };
  return (ip) => {
    const { family, first } = numbers(ip);
    return ranges[family].at(first);
  };
}

describe('large data', () => {
  let world: World;
  let addresses: string[];
  let expected: string[];
  beforeAll(() => {
    world = worldOf(largeWorld(1000));
    // Every engine treats mapped addresses as IPv4 addresses; no text format has lines for them.
    addresses = sampleAddresses(world, 10_000).filter((ip) => !ip.startsWith('::ffff:'));
    expected = answers(world, addresses);
  });

  const isTeredo = (ip: string): boolean => ip.startsWith('2001:0:') || ip.startsWith('2001::');
  const isCarrier = (ip: string): boolean => isTeredo(ip) || ip.startsWith('2002:') || ip.startsWith('64:ff9b::');

  it.each(['csv', 'cidr', 'nginx', 'haproxy'] as const)('gives the same results as the release in %s', (format) => {
    const answer = reading(format, world.exported(format).toString());
    const isLeftOut = ['csv', 'cidr'].includes(format) ? isCarrier : isTeredo;
    const asked = addresses.map((_, i) => i).filter((i) => !isLeftOut(addresses[i]!));
    expect(asked.length).toBeGreaterThan(5000);
    expect(asked.map((i) => [addresses[i], answer(addresses[i]!)])).toEqual(
      asked.map((i) => [addresses[i], expected[i]]),
    );
  });

  it('has the right members in nft', () => {
    const countries = new Set(['DE', 'FR', 'RE']);
    const answer = reading('nft', world.exported('nft', { countries, embedded: LISTABLE }).toString());
    const asked = addresses.map((_, i) => i).filter((i) => !isTeredo(addresses[i]!));
    expect(asked.map((i) => [addresses[i], answer(addresses[i]!)])).toEqual(
      asked.map((i) => [addresses[i], countries.has(expected[i]!) ? 'member' : '']),
    );
  });

  it('ranges inside an embedded prefix that have their own country are exported in order', () => {
    const answer = reading('nginx', world.exported('nginx').toString());
    expect(answer('2002:808:809:1::5')).toBe('FR');
    expect(answer('2002:808:808:1::1')).toBe('');
    expect(answer('2001:0:abcd::1')).toBe('SE');
  });
});

/**
 * Returns the fewest blocks that cover exactly the painted addresses, counted by halving the space: none if nothing is painted,
 * one if everything is, else those of both halves.
 */
function fewestBlocks(painted: ReadonlySet<bigint>, bits: number, low = 0n, depth = 0): number {
  const size = 2n ** BigInt(bits - depth);
  const inside = [...painted].filter((address) => address >= low && address < low + size);
  if (inside.length === 0) return 0;
  if (BigInt(inside.length) === size) return 1;
  const half = new Set(inside);
  return fewestBlocks(half, bits, low, depth + 1) + fewestBlocks(half, bits, low + size / 2n, depth + 1);
}

/**
 * Returns the fewest blocks within blocks of which the smallest around an address has its value: none for a part whose addresses
 * all have the inherited value, else those of both halves, below a block of its own or not.
 */
function fewestNested(painted: readonly string[], inherited = '', known = new Map<string, number>()): number {
  if (painted.every((value) => value === inherited)) return 0;
  if (painted.length === 1) return painted[0] === '' ? Number.POSITIVE_INFINITY : 1;
  const name = `${painted.join()} ${inherited}`;
  const least = known.get(name);
  if (least !== undefined) return least;
  const halves = [painted.slice(0, painted.length / 2), painted.slice(painted.length / 2)];
  const below = (value: string): number =>
    halves.reduce((sum, half) => sum + fewestNested(half, value, known), value === inherited ? 0 : 1);
  const found = Math.min(...[...new Set([inherited, ...painted.filter((value) => value !== '')])].map(below));
  known.set(name, found);
  return found;
}

describe('blocks', () => {
  // Windows of 256 addresses across every boundary between words, and at both ends of the spaces.
  const WINDOWS: [4 | 6, bigint][] = [
    [4, 0n],
    [4, 2n ** 31n - 128n],
    [4, 2n ** 32n - 256n],
    [6, 0n],
    [6, 2n ** 32n - 128n],
    [6, 2n ** 64n - 128n],
    [6, 2n ** 96n * 7n - 77n],
    [6, 2n ** 128n - 256n],
  ];
  const words = (family: 4 | 6, address: bigint): Uint32Array =>
    Uint32Array.from({ length: family === 4 ? 1 : 4 }, (_, k) =>
      Number(BigInt.asUintN(32, address >> BigInt(32 * ((family === 4 ? 0 : 3) - k)))),
    );

  it('of a range are the fewest that cover it exactly', () => {
    fc.assert(
      fc.property(fc.constantFrom(...WINDOWS), fc.nat(255), fc.nat(255), ([family, base], a, b) => {
        const [from, to] = [base + BigInt(Math.min(a, b)), base + BigInt(Math.max(a, b))];
        const painted = new Set<bigint>();
        for (let address = from; address <= to; address++) painted.add(address);
        const bits = family === 4 ? 32 : 128;
        const covered: bigint[] = [];
        let blocks = 0;
        rangeToCidrs(family, words(family, from), words(family, to), (first, prefix) => {
          blocks++;
          const start = first.reduce((sum, word) => sum * 2n ** 32n + BigInt(word), 0n);
          expect(start % 2n ** BigInt(bits - prefix)).toBe(0n);
          for (let i = 0n; i < 2n ** BigInt(bits - prefix); i++) covered.push(start + i);
        });
        expect(covered).toEqual([...painted]);
        expect(blocks).toBe(fewestBlocks(painted, bits));
      }),
      { numRuns: 300 },
    );
  });

  it('of wide ranges are the fewest as well', () => {
    const list: string[] = [];
    rangeToCidrs(6, words(6, 1n), words(6, 2n ** 128n - 2n), (_, prefix) => list.push(`/${prefix}`));
    expect(list).toEqual([
      ...Array.from({ length: 127 }, (_, i) => `/${128 - i}`),
      ...Array.from({ length: 127 }, (_, i) => `/${i + 2}`),
    ]);
  });

  it('of an export are the fewest for lookups of the smallest block, and in nft for all countries together', () => {
    const codes = ['DE', 'FR', 'US'] as const;
    const painting = fc.array(fc.tuple(fc.nat(255), fc.nat(5), fc.constantFrom(...codes)), {
      minLength: 1,
      maxLength: 10,
    });
    fc.assert(
      fc.property(fc.constantFrom('10.9.8.', '2a00::ffff:ff'), painting, (base, strokes) => {
        const isIPv4 = base.endsWith('.');
        const blocks = strokes.map(([low, width, code]): Block => {
          const address = isIPv4 ? `${base}${low}` : `${base}${low.toString(16).padStart(2, '0')}`;
          return [`${address}/${(isIPv4 ? 32 : 128) - width}`, country(code, code)];
        });
        const painted = { DE: new Set<bigint>(), FR: new Set<bigint>(), US: new Set<bigint>() };
        const first = new Uint32Array(4);
        const last = new Uint32Array(4);
        const order = blocks
          .map((block, i) => ({ block, i }))
          .sort((a, b) => widthOf(b.block) - widthOf(a.block) || a.i - b.i);
        for (const { block } of order) {
          parseCidr(block[0], first, last);
          const word = isIPv4 ? 0 : 3;
          for (let low = first[word]!; low <= last[word]!; low++) {
            const address = isIPv4 ? BigInt(low) : (0x2a00n << 112n) + BigInt(low);
            for (const code of codes) painted[code].delete(address);
            painted[block[1].kind === 'country' ? (block[1].code as 'DE') : 'DE'].add(address);
          }
        }
        const world = worldOf(blocks);
        const bits = isIPv4 ? 32 : 128;
        const text = world.exported('nginx', { embedded: NONE }).toString();
        const low = isIPv4 ? BigInt(0x0a090800) : (0x2a00n << 112n) + 0xffffff00n;
        const values = Array.from(
          { length: 256 },
          (_, at) => codes.find((code) => painted[code].has(low + BigInt(at))) ?? '',
        );
        expect(text.split(';').length - 1).toBe(fewestNested(values));
        const answer = readingNested(text);
        for (const [at, value] of values.entries())
          expect(answer(isIPv4 ? `${base}${at}` : `${base}${at.toString(16).padStart(2, '0')}`)).toBe(value);
        const all = new Set([...painted.DE, ...painted.FR, ...painted.US]);
        const nft = world.exported('nft').toString();
        expect(nft.match(/^[\da-f.:/]+,$/gm)?.length ?? 0).toBe(fewestBlocks(all, bits));
      }),
      { numRuns: 200 },
    );
  });

  const widthOf = ([cidr]: Block): number => -Number(cidr.split('/')[1]);
});
