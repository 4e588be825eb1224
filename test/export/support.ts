/** Test data for the exports: a large world, addresses to look up, and the results of the release. */
import { randomWords } from '../../bench/measure.js';
import { formatAddress } from '../../src/address/format.js';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Database } from '../../src/database/database.js';
import type { Manifest } from '../../src/database/release.js';
import { type ExportRequest, FORMATS, type FormatName } from '../../src/export/formats.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { decodeRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { type Block, country, embedded, partitionOf, reason, SMALL_WORLD } from '../support/release.js';

const DE = country('DE', 'Germany', true);
const FR = country('FR', 'France', true);
const GB = country('GB', 'United Kingdom');
const COUNTRIES = [
  ...[DE, FR, GB, country('NL', 'Netherlands', true), country('US', 'United States')],
  ...['IT', 'ES', 'PL', 'SE', 'RE'].map((code) => country(code, `Member ${code}`, true)),
  ...['CH', 'NO', 'JP', 'BR', 'AU', 'ZA', 'XK'].map((code) => country(code, `Country ${code}`)),
  reason('reserved'),
];

/**
 * Blocks with everything that an export can contain: ranges of every width in both families, single addresses, reasons, and
 * each scheme of embedded IPv4 addresses with ranges inside its prefix, one with a country and one with a reason.
 */
export function largeWorld(blocks = 3000): Block[] {
  const random = randomWords(20_261_121);
  const any = () => COUNTRIES[random() % COUNTRIES.length]!;
  const world: Block[] = [
    ...SMALL_WORLD,
    ['::/8', reason('reserved')],
    ['2001::/32', embedded('teredo')],
    ['2002:808:100::/40', DE],
    ['2002:808:808:1::/64', reason('anycast')],
    ['2002:808:809:1::5/128', FR],
    ['64:ff9b::808:800/120', GB],
    ['64:ff9b::808:900/121', reason('protocol')],
    ['2001:0:abcd::/48', country('SE', 'Member SE', true)],
    ['2001:0:1:2:3:4:5:6/128', reason('anycast')],
    ['fc00::/7', reason('private')],
  ];
  for (let i = 0; i < blocks; i++) {
    const [a, b, c, d] = [random(), random(), random(), random()];
    if (i % 2 === 0) {
      world.push([cidr(4, [a], 4 + (b % 29)), any()]);
    } else {
      // 2400::/6 and 2a00::/11, so that the prefixes of the schemes are not covered.
      const top = (i % 4 === 1 ? 0x24000000 | (a >>> 6) : 0x2a000000 | (a >>> 11)) >>> 0;
      world.push([cidr(6, [top, b, c, d], 12 + (random() % 117)), any()]);
    }
  }
  return world;
}

function cidr(family: 4 | 6, words: number[], prefix: number): string {
  const masked = words.map((word, k) => {
    const bits = Math.min(32, Math.max(0, prefix - 32 * k));
    return bits === 0 ? 0 : (word & (0xffffffff << (32 - bits))) >>> 0;
  });
  return `${formatAddress(family, masked)}/${prefix}`;
}

/** Returns addresses to look up: the ends of ranges with their neighbors, addresses of every scheme, and random ones. */
export function sampleAddresses({ file }: World, count: number): string[] {
  const random = randomWords(2_463_534_242);
  const near = (words: number[]): number[] => {
    const result = [...words];
    result[result.length - 1] = (result.at(-1)! + (random() % 3) - 1) >>> 0;
    return result;
  };
  const kinds: (() => string)[] = [
    () => formatAddress(4, [random()]),
    () => formatAddress(4, near([file.start4[random() % file.count4]!])),
    () => {
      const i = random() % file.count6;
      const start = [file.high6[2 * i + 1]!, file.high6[2 * i]!, file.low6[2 * i + 1]!, file.low6[2 * i]!];
      return formatAddress(6, near(start));
    },
    () => formatAddress(6, [random(), random(), random(), random()]),
    () => formatAddress(6, [(0x2a000000 | (random() >>> 11)) >>> 0, random(), random(), random()]),
    () => {
      const address = file.start4[random() % file.count4]!;
      return formatAddress(6, near([(0x20020000 | (address >>> 16)) >>> 0, (address << 16) >>> 0, 0, 1]));
    },
    () => formatAddress(6, [0x0064ff9b, 0, 0, near([file.start4[random() % file.count4]!])[0]!]),
    () => formatAddress(6, [0x20010000, random(), random(), ~near([file.start4[random() % file.count4]!])[0]! >>> 0]),
    () => formatAddress(6, [0, 0, 0xffff, near([file.start4[random() % file.count4]!])[0]!]),
  ];
  const special = [
    ...['0.0.0.0', '255.255.255.255', '127.0.0.1', '10.1.2.3', '8.8.8.8', '193.0.6.139', '224.0.0.1'],
    ...['2002:808:808::1', '2002:808:100::', '2002:808:1ff::', '2002:808:200::', '2002:808:808:1::1'],
    ...['2002:808:809:1::5', '2002:808:809:1::4', '2001:ffff::', '2003::', '2002::', '2002:ffff:ffff:ffff::ffff'],
    ...['64:ff9b::808:808', '64:ff9b::808:8ff', '64:ff9b::808:900', '64:ff9b::808:980', '64:ff9b::1:0:0', '64:ff9a::'],
    ...['2001::f7f7:f7f7', '2001:0:ffff:ffff:ffff:ffff:f7f7:f7f7', '2001:0:abcd::f7f7:f7f7', '2001:0:abce::f7f7:f7f7'],
    ...['2001:0:1:2:3:4:5:6', '2001:0:1:2:3:4:5:7', '2001:1::', '2000:ffff::', '::ffff:8.8.8.8', '::ffff:0:0'],
    ...['::fffe:ffff:ffff', '::1:0:0:0', '::1:0:0', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'fc00::1', '4000::'],
  ];
  const drawn = Array.from({ length: count - special.length }, (_, i) => kinds[i % kinds.length]!());
  return [...special, ...drawn].filter((ip) => !isCompatible(ip));
}

/** `::/96`, in which the MMDB format stores the IPv4 addresses, so it has no results for these as IPv6 addresses. */
function isCompatible(ip: string): boolean {
  return /^::([0-9a-f]{1,4}(:[0-9a-f]{1,4})?)?$/.test(ip);
}

/** Returns the results of the release: country codes, empty for no country. */
export function answers({ database }: World, addresses: readonly string[]): string[] {
  return addresses.map((ip) => database.lookup(ip)!.country_code ?? '');
}

export interface World {
  file: RangeFile;
  database: Database;
  /** The whole export of a format. */
  exported(format: FormatName, options?: Partial<ExportRequest>): Buffer;
}

/** Returns blocks as an open release in memory. */
export function worldOf(blocks: Block[]): World {
  const records: RangeRecord[] = [reason('unallocated')];
  const v4 = partitionOf(4, blocks, records);
  const v6 = partitionOf(6, blocks, records);
  const file = decodeRangeFile(encodeRangeFile({ asOf: '2026-01-01', v4, v6, records }), 'memory');
  return {
    file,
    database: new Database('', { id: 'memory' } as Manifest, new BinaryEngine(file)),
    exported(format, options = {}) {
      const request: ExportRequest = {
        file,
        families: [4, 6],
        countries: undefined,
        embedded: new Set(FORMATS[format].embedded),
        title: 'a title',
        databaseType: 'ipatlas-Country',
        setName: 'countries',
        ...options,
      };
      return Buffer.concat([...FORMATS[format].write(request)].map((piece) => Buffer.from(piece as string)));
    },
  };
}
