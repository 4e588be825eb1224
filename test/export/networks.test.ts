/** Exports of networks: `asn-mmdb`, read by the readers that it is for, and `--asn`, compared with lookups of fields. */
import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { parquetReadObjects } from 'hyparquet';
import { type AsnResponse, type CountryResponse, open } from 'maxmind';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import type { ResultField } from '../../src/database/fields.js';
import { ipatlas } from '../support/in-process.js';
import { type NetworkBlock, SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { sampleAddresses, worldOf } from './support.js';
import { goRun, missingGo, missingProgram, missingPythonModule, PYTHON, run, testWith } from './tools.js';

/** Networks inside of each other, at the ends, of single addresses, and in no country. */
const NETWORKS: NetworkBlock[] = [
  ...SMALL_NETWORKS,
  ['8.8.8.8/32', 13335, 'Cloudflare, Inc.'],
  ['80.128.0.0/9', 13335, 'Cloudflare, Inc.'],
  ['200.0.0.0/8', 64499, 'Nowhere'],
  ['2a00:1:0:1::/64', 13335, 'Cloudflare, Inc.'],
  ['2a10::/29', 64499, 'Nowhere'],
];

let dir: string;
let database: Database;
let addresses: string[];
let expected: string[];
beforeAll(async () => {
  dir = temporaryDir();
  await publishBlocks(join(dir, 'data'), SMALL_WORLD, undefined, 0, NETWORKS);
  await publishBlocks(join(dir, 'without'), SMALL_WORLD);
  database = openDatabase(join(dir, 'data'));
  const near = NETWORKS.map(([cidr]) => cidr.split('/')[0]!);
  addresses = [...near, ...sampleAddresses(worldOf(SMALL_WORLD), 2000)];
  const find = database.fields(['asn', 'as_name']);
  expected = addresses.map((ip) => {
    const { asn, as_name } = find(ip)!;
    return asn === null ? '' : `${asn} ${as_name ?? ''}`;
  });
});
afterAll(() => {
  database.close();
});

async function exported(format: string, file: string, ...args: string[]): Promise<string> {
  const path = join(dir, file);
  const result = await ipatlas(['--data', join(dir, 'data'), 'export', format, ...args, '-o', path]);
  expect(result).toMatchObject({ code: 0 });
  return path;
}

/**
 * Returns country code, number, name and length of the prefix of an address, as a reader of an export has to tell them.
 *
 * The prefix only of an address that has the rest: the blocks of a file around the others depend on what it has none of, such as
 * Teredo. And not of a Teredo address, which is in no block.
 */
function answerOf(ip: string, fields: readonly ResultField[]): string {
  const { country_code, asn, as_name, network } = database.fields([...fields, 'network'])(ip)!;
  const prefix = (country_code ?? asn ?? null) === null ? '' : (network?.split('/')[1] ?? '');
  return [country_code, asn, as_name, prefix].map((value) => value ?? '').join('|');
}

/** Compares the results for addresses; a failure names the address. */
function expectAnswers(got: string[], holds: (ip: string) => boolean = () => true): void {
  expect(got.length).toBe(addresses.length);
  const told = (list: string[]) => addresses.map((ip, i) => `${ip}: ${list[i]}`).filter((_, i) => holds(addresses[i]!));
  expect(told(got)).toEqual(told(expected));
}

describe('asn-mmdb', () => {
  let path: string;
  beforeAll(async () => {
    path = await exported('asn-mmdb', 'asn.mmdb', '--embedded', 'all');
  });

  it('maxmind, from npm', async () => {
    const reader = await open<AsnResponse>(path);
    expectAnswers(
      addresses.map((ip) => {
        const data = reader.get(ip);
        return data ? `${data.autonomous_system_number} ${data.autonomous_system_organization ?? ''}` : '';
      }),
    );
    expect(reader.metadata.databaseType).toBe('ipatlas-ASN (compat=GeoLite2-ASN)');
    // The length of the prefix is that of the block of the network.
    const find = database.fields(['asn', 'network']);
    for (const ip of ['8.8.8.8', '8.8.8.9', '80.1.1.1', '2a00:1::1', '200.1.1.1']) {
      expect([ip, reader.getWithPrefixLength(ip)[1]]).toEqual([ip, Number(find(ip)!.network!.split('/')[1])]);
    }
  });

  testWith(missingPythonModule('geoip2.database', 'python3-geoip2'), 'python3-geoip2', () => {
    const script = `import sys, geoip2.database, geoip2.errors
reader = geoip2.database.Reader(sys.argv[1])
for line in sys.stdin:
    try:
        found = reader.asn(line.strip())
        print(found.autonomous_system_number, found.autonomous_system_organization or "")
    except geoip2.errors.AddressNotFoundError:
        print()
`;
    const { stdout, stderr } = run(PYTHON, ['-c', script, path], `${addresses.join('\n')}\n`);
    expect(stderr).toBe('');
    expectAnswers(stdout.split('\n').slice(0, -1));
  });

  testWith(missingProgram('mmdblookup', 'mmdb-bin'), 'mmdblookup, of libmaxminddb', () => {
    for (const [i, ip] of addresses.slice(0, 40).entries()) {
      const { stdout } = run('mmdblookup', ['--file', path, '--ip', ip, 'autonomous_system_number']);
      expect([ip, /(\d+) <uint32>/.exec(stdout)?.[1] ?? '']).toEqual([ip, expected[i]!.split(' ')[0]]);
    }
  });
});

/** Exports, and the fields that they have. */
const FILES = [
  ['mmdb', [], ['country_code', 'country']],
  ['mmdb', ['--with', 'networks'], ['country_code', 'asn', 'as_name']],
  ['asn-mmdb', [], ['asn', 'as_name']],
] as const;

async function exportFiles(...more: string[]): Promise<string[]> {
  const paths: string[] = [];
  for (const [i, [format, args]] of FILES.entries()) {
    paths.push(await exported(format, `files${i}.mmdb`, ...args, ...more));
  }
  return paths;
}

/** Compares lines for each file and, in it, each address. */
function expectFiles(stdout: string, asked: readonly string[]): void {
  const got = stdout.split('\n');
  const wanted = FILES.flatMap(([, , fields]) => asked.map((ip) => answerOf(ip, fields)));
  expect(got.length).toBe(wanted.length + 1);
  const wrong = wanted.flatMap((answer, i) => (got[i] === answer ? [] : [[asked[i % asked.length], got[i], answer]]));
  expect(wrong.slice(0, 10)).toEqual([]);
}

describe('prefixes', () => {
  testWith(missingGo(), "Go's maxminddb, after its verifier", async () => {
    const paths = await exportFiles();
    // The verifier does not end with Teredo in the file (docs/exports.md).
    const asked = addresses.filter((ip) => !/^2001:(0:|:)/.test(ip));
    const { stdout, stderr } = goRun('test/export/mmdb.go', paths, `${asked.join('\n')}\n`);
    expect(stderr).toBe('');
    expectFiles(stdout, asked);
  });
});

describe('--with networks', () => {
  const FIELDS = ['country_code', 'country', 'is_eu', 'asn', 'as_name'] as const;
  /** What lookups find, as the fields of a table. */
  const cellsOf = (ip: string): string[] => {
    const found = database.fields(FIELDS)(ip)!;
    return FIELDS.map((field) => String(found[field] ?? ''));
  };
  const isListed = (cells: string[]): boolean => cells[0] !== '' || cells[3] !== '';

  async function rowsOf(format: string, ...args: string[]): Promise<string[][]> {
    const text = readFileSync(await exported(format, `both.${format}`, '--with', 'networks', ...args), 'utf8');
    return parse(text) as string[][];
  }

  it.each([
    ['cidr', []],
    ['cidr', ['--countries', 'US,DE']],
    ['csv', []],
  ])('%s %j has what lookups of both find', async (format, args) => {
    const [header, ...rows] = await rowsOf(format, '--embedded', '6to4,nat64', ...args);
    const place = format === 'csv' ? ['start', 'end'] : ['network'];
    expect(header).toEqual([...place, ...FIELDS]);
    // A list for each answer, because a list for each row would be slow.
    const lists = new Map<string, BlockList>();
    for (const row of rows) {
      const cells = JSON.stringify(row.slice(place.length));
      const list = lists.get(cells) ?? new BlockList();
      lists.set(cells, list);
      const [first, last] = row as [string, string];
      const family = first.includes(':') ? 'ipv6' : 'ipv4';
      if (format === 'csv') list.addRange(first, last, family);
      else list.addSubnet(first.split('/')[0]!, Number(first.split('/')[1]), family);
    }
    for (const ip of addresses.filter((one) => !/^(2001:(0:|:)|::ffff:)/.test(one))) {
      const family = isIPv6(ip) ? 'ipv6' : 'ipv4';
      const found = [...lists].filter(([, list]) => list.check(ip, family)).map(([cells]) => JSON.parse(cells));
      const cells = cellsOf(ip);
      const isAsked = args.length > 0 ? ['US', 'DE'].includes(cells[0]!) : isListed(cells);
      expect([ip, found]).toEqual([ip, isAsked ? [cells] : []]);
    }
  });

  it('parquet has the rows of csv', async () => {
    const [, ...rows] = await rowsOf('csv');
    const file = readFileSync(await exported('parquet', 'both.parquet', '--with', 'networks'));
    const read = await parquetReadObjects({ file: Uint8Array.from(file).buffer });
    expect(read.map((row) => FIELDS.map((field) => String(row[field] ?? '')))).toEqual(rows.map((row) => row.slice(2)));
    expect(read.some(({ asn }) => asn === 4294967295n)).toBe(true);
  });

  it('mmdb has both in a record', async () => {
    const reader = await open<CountryResponse & AsnResponse>(
      await exported('mmdb', 'both.mmdb', '--with', 'networks', '--embedded', 'all'),
    );
    for (const ip of addresses) {
      const data = reader.get(ip);
      const { country } = data ?? {};
      const cells = [country?.iso_code, country?.names.en, country?.is_in_european_union ?? false];
      const network = [data?.autonomous_system_number, data?.autonomous_system_organization];
      expect([ip, ...[...cells, ...network].map((value) => String(value ?? ''))]).toEqual([ip, ...cellsOf(ip)]);
    }
    expect(reader.metadata.databaseType).toBe('ipatlas-Country-ASN (compat=GeoLite2-ASN)');
  });

  testWith(missingPythonModule('geoip2.database', 'python3-geoip2'), 'geoip2, country() and asn()', async () => {
    const path = await exported('mmdb', 'python.mmdb', '--with', 'networks', '--embedded', 'all');
    const script = `import sys, geoip2.database, geoip2.errors
reader = geoip2.database.Reader(sys.argv[1])
for line in sys.stdin:
    ip = line.strip()
    try:
        country, asn = reader.country(ip).country, reader.asn(ip)
        print("|".join(str(value if value is not None else "") for value in
            (country.iso_code, asn.autonomous_system_number, asn.autonomous_system_organization)))
    except geoip2.errors.AddressNotFoundError:
        print("||")
`;
    const { stdout, stderr } = run(PYTHON, ['-c', script, path], `${addresses.join('\n')}\n`);
    expect(stderr).toBe('');
    const wanted = addresses.map(cellsOf).map(([code, , , asn, name]) => `${code}|${asn}|${name}`);
    expect(stdout.split('\n').slice(0, -1)).toEqual(wanted);
  });
});

describe('--asn', () => {
  const WANTED = ['13335', '64499'];
  const isWanted = (ip: string): boolean => WANTED.includes(expected[addresses.indexOf(ip)]!.split(' ')[0]!);
  /** Embedded addresses are not in tables by default. */
  const isPlain = (ip: string): boolean => !/^(2002:|64:ff9b:|2001:0:|2001::|::ffff:)/.test(ip);

  it('cidr has the blocks of these networks, in countries or not', async () => {
    const rows = readFileSync(await exported('cidr', 'a.csv', '--asn', WANTED.join()), 'utf8')
      .trimEnd()
      .split('\n');
    expect(rows[0]).toBe('network,asn,as_name');
    expect(rows).toContain('8.8.8.8/32,13335,"Cloudflare, Inc."');
    expect(rows).toContain('200.0.0.0/8,64499,Nowhere');
    const list = new BlockList();
    for (const row of rows.slice(1)) {
      const [address, prefix] = row.split(',')[0]!.split('/') as [string, string];
      list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4');
    }
    const plain = addresses.filter(isPlain);
    expect(plain.filter((ip) => list.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'))).toEqual(plain.filter(isWanted));
  });

  it('haproxy and nft have the same blocks', async () => {
    const blocks = readFileSync(await exported('cidr', 'b.csv', '--asn', WANTED.join()), 'utf8')
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((row) => row.split(',').slice(0, 2) as [string, string]);
    const map = readFileSync(
      await exported('haproxy', 'b.map', '--asn', 'AS13335,64499', '--embedded', 'none'),
      'utf8',
    );
    expect(map).toContain('AS13335 AS64499');
    expect(map.trimEnd().split('\n').slice(1)).toEqual(blocks.map(([block, asn]) => `${block} AS${asn}`));
    const sets = readFileSync(await exported('nft', 'b.nft', '--asn', WANTED.join()), 'utf8');
    expect(sets).toContain('add set inet ipatlas networks4 { type ipv4_addr; flags interval; }');
    expect([...sets.matchAll(/^([\da-f.:]+\/\d+),$/gm)].map(([, block]) => block)).toEqual(
      blocks.map(([block]) => block),
    );
  });

  it.each([
    [['csv', '--asn', '1'], '--asn does not go with csv'],
    [['nft', '--with', 'networks'], '--with does not go with nft'],
    [['csv', '--with', 'confidence'], '--with is "confidence"; here it can be networks, kinds'],
    [['csv', '--with', 'networks', '--at', '2026-01-01'], '--with does not go with --at'],
    [['cidr', '--asn', '1', '--eu'], '--eu does not go with networks'],
    [['asn-mmdb', '--countries', 'DE'], '--countries does not go with networks'],
    [['cidr', '--asn', 'x'], '--asn has "x"'],
  ])('refuses %j', async (args, message) => {
    const result = await ipatlas(['--data', join(dir, 'data'), 'export', ...args]);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });

  it.each([[['asn-mmdb', '-o', '/dev/null']], [['nft', '--asn', '1']], [['csv', '--with', 'networks']]])(
    'without networks, %j ends with exit code 5',
    async (args) => {
      const result = await ipatlas(['--data', join(dir, 'without'), 'export', ...args]);
      expect(result).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('has no networks') });
    },
  );
});
