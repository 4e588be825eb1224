/** Networks in a release: read from sources, merged, gated, verified, and carried over. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import type { Explanation } from '../../pipeline/explain/explain.js';
import { mergeNetworks } from '../../pipeline/merging/network-merger.js';
import { formatAddress } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { CompactCountries } from '../../src/compact/countries.js';
import { unpackCompact } from '../../src/database/compact.js';
import { PartitionFinder } from '../../src/database/finder.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { openReleasePartition } from '../../src/database/release-files.js';
import { verifyRelease } from '../../src/database/verify.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import { decodeFile, type NetworkFile } from '../../src/rangefile/reader.js';
import { encodeFile } from '../../src/rangefile/writer.js';
import { sqlite } from '../../src/sqlite.js';
import { serve } from '../pipeline/fetch-support.js';
import { ingestContents } from '../pipeline/ingest-helper.js';
import { ipatlas } from '../support/in-process.js';
import { ingestedNetworks } from '../support/networks.js';
import { dataDir, dir, filledOnce, giveFolders } from '../support/own-folder.js';
import { buildOnce, changeMirror, manifestOf } from '../support/sources.js';

giveFolders();

const COUNTRIES = '0.0.0.0,223.255.255.255,US\n2000::,3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff,US\n';

/** Rows of a table of announcements: 1,200 networks, each with a block of 65,536 addresses; the sentinels are as they should be. */
function announcements(): string[] {
  const rows = Array.from({ length: 1200 }, (_, index) => {
    const block = `${20 + (index >> 8)}.${index & 255}`;
    return `${block}.0.0,${block}.255.255,${70_000 + index},Network ${index}`;
  });
  rows.push('2a10::,2a10:ffff:ffff:ffff:ffff:ffff:ffff:ffff,70000,Network 0');
  for (const { ip, asn } of loadReference().networkSentinels) rows.push(`${ip},${ip},${asn},"Sentinel, ""${asn}"""`);
  return rows;
}

/** Builds from a list of countries and a table of announcements. */
async function build(table: string | Buffer | readonly string[], more: object = {}, routing: object = {}) {
  writeFileSync(join(dir, 'countries.csv'), COUNTRIES);
  writeFileSync(join(dir, 'routing.csv'), Array.isArray(table) ? `${table.join('\n')}\n` : (table as string | Buffer));
  const source = { license: 'CC0-1.0', lineage: 'x' };
  const sources = [
    { ...source, id: 'countries', fetch: { file: 'countries.csv' }, format: 'ip-location-db' },
    {
      ...source,
      id: 'routing',
      kind: 'routing',
      optional: true,
      fetch: { file: 'routing.csv' },
      format: 'origin-asn',
      ...routing,
    },
  ];
  // The countries are no world: their sentinels are not what is tested here.
  const gates = { maxWrongSentinels: 999 };
  const file = join(dir, 'sources.json');
  writeFileSync(file, JSON.stringify({ merge: 'evidence', gates, sources }));
  return buildOnce(dataDir, file, { asOf: '2026-01-01', offline: true, ...more });
}

/** Builds from {@link announcements}. */
const buildUsual = filledOnce(async () => {
  expect(await build(announcements())).toMatchObject({ outcome: 'published' });
});

/** Returns the network of an address in the current release. */
function networkOf(ip: string): string {
  return networkAt(openReleasePartition(join(dataDir, 'current'), manifestOf(dataDir), NETWORKS)!, ip);
}

/** Returns the network of an address that a table gives. */
async function networkIn(format: string | object, rows: readonly string[], ip: string): Promise<string> {
  const { ingested } = await ingestContents(format, { 'table.csv': rows.join('\n') });
  const { v4, v6, records } = mergeNetworks([ingested.networks!], loadReference());
  return networkAt(decodeFile(NETWORKS, encodeFile(NETWORKS, { asOf: '2026-01-01', v4, v6, records }), 'test'), ip);
}

/** Returns the network of an address: `15169 Google LLC`, or why there is none. */
function networkAt(file: NetworkFile, ip: string): string {
  const finder = new PartitionFinder(file, false);
  const words = new Uint32Array(4);
  if (parseAddress(ip, words) === 4) finder.findIPv4(words[0]!);
  else finder.findIPv6(words);
  const record = file.records[finder.record]!;
  return record.kind === 'network' ? `${record.asn} ${record.name}` : record.kind === 'none' ? record.reason : '?';
}

describe('a release with networks', () => {
  it('has them in a file and tables of their own; the countries stay as they are', async () => {
    await buildUsual();
    const counts = { networks: 1221, ipv4_addresses: String(1200 * 65_536 + 18) };
    expect(manifestOf(dataDir).counts.networks).toMatchObject(counts);
    expect(networkOf('20.3.4.5')).toBe('70003 Network 3');
    expect(networkOf('8.8.8.8')).toBe('15169 Sentinel, "15169"');
    expect(networkOf('::ffff:20.3.4.5')).toBe('70003 Network 3');
    expect(networkOf('2002:1403:405::1')).toBe('70003 Network 3');
    expect(networkOf('19.0.0.1')).toBe('unannounced');
    const mirror = new (sqlite())(join(dataDir, 'current', 'ranges.sqlite'), { readonly: true });
    const row = mirror
      .prepare(
        'SELECT asn, name, last FROM ipv4_network LEFT JOIN network USING (asn) WHERE first <= ? ORDER BY first DESC LIMIT 1',
      )
      .get(0x14030405);
    mirror.close();
    expect(row).toEqual({ asn: 70_003, name: 'Network 3', last: 0x1403ffff });
    const withNetworks = readFileSync(join(dataDir, 'current', RANGE_FILE));
    rmSync(dataDir, { recursive: true });
    await build(announcements(), { only: ['countries'] });
    expect(readFileSync(join(dataDir, 'current', RANGE_FILE)).equals(withNetworks)).toBe(true);
    expect(manifestOf(dataDir).counts.networks).toBeUndefined();
    expect(verifyRelease(join(dataDir, 'current')).others.get(NETWORKS)).toBeUndefined();
  });

  it('is described by info and verify', async () => {
    await buildUsual();
    const info = await ipatlas(['info', '--data', dataDir]);
    expect(info.stdout).toMatch(/^networks +1221$/m);
    expect(info.stdout).toMatch(/^IPv4 addresses with a network +78643218 \(\d\.\d+ % of those with a country\)$/m);
    expect((await ipatlas(['verify', '--data', dataDir])).stdout).toMatch(
      /\d+ IPv4 and \d+ IPv6 ranges of networks, \d+ IPv4 and \d+ IPv6 ranges of kinds, mirror/,
    );
    rmSync(dataDir, { recursive: true });
    await build(announcements(), { only: ['countries'] });
    expect((await ipatlas(['info', '--data', dataDir])).stdout).toMatch(/^networks +none: no source says/m);
  });

  it('has more networks than record numbers of 16 bits', () => {
    const count = 70_000;
    const block = (index: number): string => `${(index >> 16) + 20}.${(index >> 8) & 255}.${index & 255}.0/24`;
    const { v4, records } = mergeNetworks(
      [ingestedNetworks(Array.from({ length: count }, (_, i) => [block(i), i + 1, '']))],
      { special: [] },
    );
    expect(v4.count).toBe(count + 2);
    expect(records[v4.value[count]!]).toMatchObject({ asn: count });
  });

  it('takes the first source with the addresses, and the first name of a number', () => {
    const { v4, records } = mergeNetworks(
      [
        ingestedNetworks([['20.0.0.0/24', 1, '']]),
        ingestedNetworks([
          ['20.0.0.0/16', 2, 'two'],
          ['20.0.0.0/25', 1, 'one'],
        ]),
      ],
      { special: [] },
    );
    const text = Array.from({ length: v4.count }, (_, i) => {
      const record = records[v4.value[i]!]!;
      return `${formatAddress(4, v4.first, i)} ${record.kind === 'network' ? `${record.asn} ${record.name}` : record.kind}`;
    });
    expect(text).toEqual(['0.0.0.0 none', '20.0.0.0 1 one', '20.0.1.0 2 two', '20.1.0.0 none']);
  });
});

describe('a table of announcements', () => {
  it.each<[what: string, rows: string[], ip: string, network: string]>([
    ['a number with AS', ['20.0.0.0,20.0.0.255,as64496,x'], '20.0.0.1', '64496 x'],
    ['the largest number', ['20.0.0.0,20.0.0.255,4294967295,x'], '20.0.0.1', '4294967295 x'],
    [
      'AS 0, which announces nothing',
      ['20.0.0.0,20.0.0.255,0,x', '21.0.0.0,21.0.0.255,1,x'],
      '20.0.0.1',
      'unannounced',
    ],
    ['no name', ['20.0.0.0,20.0.0.255,1'], '20.0.0.1', '1 '],
    ['a name in a later row', ['20.0.0.0,20.0.0.255,1,', '20.0.1.0,20.0.1.255,1,one'], '20.0.0.1', '1 one'],
    ['two names', ['20.0.0.0,20.0.0.255,1,a', '20.0.1.0,20.0.1.255,1,b'], '20.0.1.1', '1 a'],
    ['a narrower row', ['20.0.0.0,20.0.0.255,1,a', '20.0.0.8,20.0.0.15,2,b'], '20.0.0.9', '2 b'],
    ['a later row for the same range', ['20.0.0.0,20.0.0.255,1,a', '20.0.0.0,20.0.0.255,2,b'], '20.0.0.9', '2 b'],
    ['a private range', ['10.0.0.0,10.255.255.255,1,a'], '10.0.0.1', 'unannounced'],
    ['the whole space', ['0.0.0.0,255.255.255.255,1,a'], '127.0.0.1', 'unannounced'],
    ['tabs and control characters', ['20.0.0.0,20.0.0.255,1,\ta\u0001\u0085 b\u2028c '], '20.0.0.1', '1 a b c'],
    ['a long name', [`20.0.0.0,20.0.0.255,1,${'🛰'.repeat(300)}`], '20.0.0.1', `1 ${'🛰'.repeat(256)}`],
    [
      '6to4 as a whole',
      ['2002::,2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff,1,a', '20.0.0.0,20.0.0.255,2,b'],
      '2002:1400::1',
      '2 b',
    ],
    ['a part of 6to4', ['2002:1400::,2002:1400:0:ffff:ffff:ffff:ffff:ffff,1,a'], '2002:1400::1', '1 a'],
  ])('may have %s', async (_what, rows, ip, network) => {
    expect(await networkIn('origin-asn', rows, ip)).toBe(network);
  });

  it('may be described: other notations, a header, other columns', async () => {
    const format = {
      ranges: [{ files: ['*'], cidr: { network: 'prefix' } }],
      delimiter: ';',
      asn: 'origin',
      name: 'who',
    };
    const rows = ['who;prefix;origin', 'Ünïcode;20.0.0.0/24;AS64496', 'x;2a10::/32;64497'];
    expect(await networkIn(format, rows, '20.0.0.9')).toBe('64496 Ünïcode');
    expect(await networkIn(format, rows, '2a10::1')).toBe('64497 x');
  });

  it('that is damaged is refused', async () => {
    const rows = announcements();
    expect(await build(rows.map((row) => row.replace(/,\d+,/, ',x,')))).toMatchObject({ outcome: 'E_BAD_INPUT' });
    expect(await build(Buffer.from(rows.join('\n')).subarray(0, 0))).toMatchObject({ outcome: 'E_BAD_INPUT' });
    expect(await build(rows, {}, { format: { ranges: [{ files: ['*'], cidr: { network: 0 } }] } })).toMatchObject({
      outcome: 'E_CONFIG',
      message: expect.stringContaining('or "asn", that of the AS number'),
    });
  });
});

describe('gates', () => {
  it('refuse a night in which many addresses lose or change their network', async () => {
    await buildUsual();
    const lost = await build(announcements().filter((row) => !/^2[12]\./.test(row)));
    expect(lost.outcome).toBe('E_REFUSED');
    expect(lost.message).toMatch(
      /12\.5 % of the IPv4 addresses with a network have none after 0 days; the limit is 0\.3 %\n +AS70256 → unannounced: 65,536 addresses/,
    );
    expect(lost.message).toMatch(/512 of 1,221 networks have no addresses any more after 0 days; the limit is 1 %/);
    const moved = await build(announcements().map((row) => row.replace(/,70(2\d\d),/, ',13335,')));
    expect(moved.message).toMatch(/2\.44 % of the IPv4 addresses with a network have another one/);
    // A few networks are as every night.
    expect(await build(announcements().map((row) => row.replace(/,7001\d,/, ',13335,')))).toMatchObject({
      outcome: 'published',
    });
  });

  it('refuse wrong AS numbers of two sentinels, also in a first release', async () => {
    const wrong = announcements().map((row) => row.replace(/,(15169|13335),/, ',3356,'));
    const refused = await build(wrong);
    expect(refused.message).toMatch(
      /4 of 23 sentinel addresses have a wrong result; the limit is 1\n +8\.8\.8\.8: expected AS15169, got AS3356/,
    );
    expect(await build(wrong, { force: true })).toMatchObject({ outcome: 'published' });
    expect(await build(announcements())).toMatchObject({ outcome: 'published' });
  });

  it('refuse a release without networks after one with networks', async () => {
    await buildUsual();
    const refused = await build(announcements(), { only: ['countries'] });
    expect(refused.message).toMatch(/the release to compare with has networks, and this one has none; the limit is/);
  });
});

describe('a routing source that fails', () => {
  it('is used as the current release has it, with its date', async () => {
    let body: string | undefined = `${announcements().join('\n')}\n`;
    let modified = 'Wed, 31 Dec 2025 10:00:00 GMT';
    const { url } = await serve((_request, response) => {
      const headers = { 'last-modified': modified };
      response.writeHead(body === undefined ? 404 : 200, headers).end(body);
    });
    const routing = { fetch: { https: `${url}/table.csv` } };
    expect(await build('', { offline: false }, routing)).toMatchObject({ outcome: 'published' });
    const networks = readFileSync(join(dataDir, 'current', NETWORKS.file));
    body = undefined;
    // Another address, so that the cache has no copy for it; another list of countries, so that there is something to build.
    const moved = { fetch: { https: `${url}/moved.csv` }, title: 'moved' };
    const built = await build('', { offline: false, asOf: '2026-01-02', force: true }, moved);
    expect(built.notes).toContainEqual(
      'routing: the files of the current release are used again, with data of 2025-12-31',
    );
    const manifest = manifestOf(dataDir);
    expect(manifest).toMatchObject({ as_of: '2026-01-02', networks_date: '2025-12-31' });
    expect(manifest.missing).toBeUndefined();
    // The date in the header and its checksums differ, nothing else.
    expect(
      readFileSync(join(dataDir, 'current', NETWORKS.file))
        .subarray(500)
        .equals(networks.subarray(500)),
    ).toBe(true);
    // An unusable table is no other case.
    body = 'nothing\n';
    expect(await build('', { offline: false, asOf: '2026-01-03', force: true }, moved)).toMatchObject({
      outcome: 'published',
    });
    expect(manifestOf(dataDir)).toMatchObject({ as_of: '2026-01-03', networks_date: '2025-12-31' });
    // A month later: no build has failed for it, and `info` tells the age of the networks beside that of the data.
    const late = await build('', { offline: false, asOf: '2026-02-01', force: true }, moved);
    expect(late.outcome).toBe('published');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-02-01T12:00:00Z') });
    try {
      const { stdout } = await ipatlas(['info', '--data', dataDir]);
      expect(stdout).toMatch(/^date of the networks +2025-12-31\nage of the networks +32 days old$/m);
    } finally {
      vi.useRealTimers();
    }
    // The table that comes back may differ by what its own days bring, and not by more.
    const changed = announcements().map((row) => row.replace(/,701(0\d|1[0-3]),/, ',13335,'));
    body = `${changed.join('\n')}\n`;
    modified = 'Thu, 01 Jan 2026 10:00:00 GMT';
    const back = () => build('', { offline: false, asOf: '2026-02-01' }, moved);
    expect((await back()).message).toMatch(
      /14 of 1,221 networks have no addresses any more after 1 day; the limit is 1\.03 %/,
    );
    modified = 'Sun, 01 Feb 2026 10:00:00 GMT';
    expect(await back()).toMatchObject({ outcome: 'published' });
    expect(manifestOf(dataDir).networks_date).toBe('2026-02-01');
  });
});

describe('explain', () => {
  it('shows who announces an address, and the rows that say so', async () => {
    const rows = [...announcements(), '20.3.4.0,20.3.4.255,64496,Narrow', '10.0.0.0,10.255.255.255,64497,Bogon'];
    await build(rows);
    const explained = async (ip: string) => {
      const { stdout, stderr } = await ipatlas(['explain', ip, '--data', dataDir, '--json']);
      expect(stderr).toBe('');
      return JSON.parse(stdout) as Explanation;
    };
    const { network, steps } = await explained('20.3.4.5');
    expect(network).toMatchObject({ asn: 64496, as_name: 'Narrow', first: '20.3.4.0', last: '20.3.4.255' });
    expect(network!.rows.map(({ asn, line, outcome, why }) => [asn, line, outcome, why])).toEqual([
      [64496, rows.length - 1, 'won', null],
      [70_003, 4, 'lost', 'its range is wider'],
    ]);
    // The rows of networks say nothing about the country.
    expect(steps[0]!.rows.map(({ source }) => source)).toEqual(['countries']);
    expect(steps[0]!.sources_without_row).toEqual([]);
    expect((await explained('2002:1403:405::1')).network).toMatchObject({ address: '20.3.4.5', asn: 64496 });
    expect((await explained('10.0.0.1')).network).toMatchObject({
      ...{ asn: null, as_name: null, rows: [{ asn: 64497, why: 'special-purpose ranges have no network' }] },
    });
    expect((await explained('19.0.0.1')).network).toMatchObject({ asn: null, first: '18.9.22.70', rows: [] });
    const { stdout } = await ipatlas(['explain', '8.8.8.8', '--data', dataDir]);
    expect(stdout).toMatch(
      /\nnetwork of 8\.8\.8\.8: AS15169 Sentinel, "15169", range 8\.8\.8\.8 – 8\.8\.8\.8\n {2}✓ routing/,
    );
  });
});

describe('verify', () => {
  it.each([
    ['UPDATE ipv4_network SET asn = 70001 WHERE asn = 70003', /networks\.ipr: IPv4 range \d+ is /],
    ["UPDATE ipv6_network SET reason = 'x' WHERE reason = 'teredo'", /networks\.ipr: IPv6 range \d+ is /],
    ["UPDATE network SET name = 'x' WHERE asn = 70001", /networks\.ipr: network \[70001,"x"\]/],
    ["INSERT INTO network VALUES (1, 'x')", /networks\.ipr: 1222 rows of network, not 1221/],
    ['DELETE FROM ipv4_network WHERE first = 0', /networks\.ipr: /],
  ])('finds what %s changes', async (sql, message) => {
    await buildUsual();
    verifyRelease(join(dataDir, 'current'));
    changeMirror(join(dataDir, 'current'), sql);
    expect(() => verifyRelease(join(dataDir, 'current'))).toThrow(message);
  });
});

it('a file of countries credits the sources of countries, one of networks those of networks', async () => {
  await build(announcements(), {}, { attribution: 'the routers' });
  const list = join(dir, 'list');
  expect((await ipatlas(['export', 'cidr', '--data', dataDir, '-o', list])).stderr).not.toContain('the routers');
  const compact = join(dir, 'compact');
  await ipatlas(['export', 'compact', '--with', 'networks', '--gzip', '--data', dataDir, '-o', compact]);
  const { about } = new CompactCountries(unpackCompact(readFileSync(compact), 'x'), 'x');
  expect(about.attribution).toEqual(['the routers']);
  await ipatlas(['export', 'compact', '--gzip', '--data', dataDir, '-o', compact]);
  expect(new CompactCountries(unpackCompact(readFileSync(compact), 'x'), 'x').about.attribution).toEqual([]);
});
