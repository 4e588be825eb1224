import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Family } from '../../src/address/parse.js';
import { continentTable } from '../../src/country/continents.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { byDistance, distance, readCentroids } from '../../src/export/gdnsd/distance.js';
import { exportForGdnsd } from '../../src/export/gdnsd/export.js';
import { gdnsdFiles } from '../../src/export/gdnsd/gdnsd.js';
import { type Countries, readNodes } from '../../src/export/gdnsd/nodes.js';
import { packageFile } from '../../src/package-root.js';
import { checkConfiguration, GDNSD_SKIPPED, gdnsdOptions, hasGdnsd } from '../support/gdnsd.js';
import { ipatlas } from '../support/in-process.js';
import { killedAt } from '../support/killed-writer.js';
import { naiveOrder } from '../support/nearest.js';
import { country, publishBlocks, SMALL_WORLD, smallRelease, temporaryDir } from '../support/release.js';

const available = hasGdnsd();
if (!available) console.warn(GDNSD_SKIPPED);

const CODES = readFileSync(packageFile('data/reference/countries.csv'), 'utf8').match(/^[A-Z]{2}(?=,)/gm)!;
const UNION = ['DE', 'IE', 'FR', 'NL', 'RE'];

/** All countries; a few of them are in the European Union. */
const COUNTRIES: Countries = {
  asOf: '2026-01-01',
  byCode: new Map(CODES.map((code) => [code, country(code, `Name of ${code}`, UNION.includes(code)) as never])),
};

const VALID = {
  zone: 'geo.example',
  hostmaster: 'dns.admin@geo.example',
  nameservers: [{ name: 'ns1.geo.example', addresses: ['192.0.2.53', '2001:db8::53'] }, { name: 'ns.other.example' }],
  names: { default: 'api', eu: 'eu.api' },
  nodes: [
    { name: 'fra1', region: 'fra', country: 'DE', eu: true, addresses: ['192.0.2.1', '2001:DB8:0::1'] },
    { name: 'fra2', region: 'fra', country: 'DE', eu: true, addresses: ['192.0.2.2'] },
    { name: 'fra3', region: 'fra', country: 'DE', addresses: ['192.0.2.3'] },
    { name: 'run1', country: 'RE', eu: true, addresses: ['192.0.2.4'] },
    { name: 'iad1', country: 'US', addresses: ['192.0.2.5'] },
    { name: 'syd1', country: 'AU', addresses: ['2001:db8::6'] },
    { name: 'lon1', country: 'GB', addresses: ['192.0.2.7'] },
  ],
};

let dir: string;
let file: string;
beforeEach(() => {
  file = join(dir, 'nodes.json');
});
beforeAll(() => {
  dir = temporaryDir();
});

function read(value: unknown, countries = COUNTRIES) {
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return readNodes(file, countries);
}

async function filesOf(value: unknown): Promise<{ config: string; zone: string }> {
  const [zone, config] = gdnsdFiles(await read(value), COUNTRIES, readCentroids(), 'the title');
  return { config: config!.text, zone: zone!.text };
}

/** Reads the maps of a configuration: map, country, order of the regions. */
function mapsOf(config: string): Map<string, Map<string, string[]>> {
  const maps = new Map<string, Map<string, string[]>>();
  for (const part of config.split(/^ {4}(?=\w+ => \{\n {6}geoip2_db)/m).slice(1)) {
    const orders = [...part.matchAll(/^ {10}([A-Z]{2}) => \[(.*)\]$/gm)].map(([, code, list]): [string, string[]] => [
      code!,
      list!.split(', '),
    ]);
    maps.set(/^\w+/.exec(part)![0], new Map(orders));
  }
  return maps;
}

describe('distances', () => {
  it.each<[string, [number, number], [number, number], number]>([
    ['a point and itself', [13, 52], [13, 52], 0],
    ['across the date line', [179.5, 0], [-179.5, 0], 111.2],
    ['Paris to New York', [2.35, 48.86], [-74.01, 40.71], 5_837],
  ])('of %s', (_, a, b, km) => {
    expect(distance(a, b)).toBeCloseTo(km, -1);
    expect(distance(b, a)).toBe(distance(a, b));
  });

  it('keep the order of equally close places', () => {
    expect(byDistance([0, 0], ['b', 'a', 'c'], (name) => (name === 'c' ? [0, 1] : [0, 2]))).toEqual(['c', 'b', 'a']);
  });
});

describe('the configuration of gdnsd', () => {
  it('has each country in its continent, with all regions, the closest first', async () => {
    const { config } = await filesOf(VALID);
    const centroids = Object.fromEntries(readCentroids()) as Record<string, [number, number]>;
    const maps = mapsOf(config);
    expect([...maps.keys()]).toEqual(['world', 'union']);
    const regions = ['fra1:DE', 'run1:RE', 'iad1:US', 'syd1:AU', 'lon1:GB'].map((text) => {
      const [name, code] = text.split(':');
      return { name: name === 'fra1' ? 'fra' : name!, country: code! };
    });
    for (const code of CODES) {
      const naive = (some: typeof regions) => {
        const order = naiveOrder(code, some, centroids).map(({ name }) => name);
        return order.flatMap((name) => {
          // fra has both families, syd1 IPv6 only, the others IPv4 only.
          if (name === 'fra') return [name];
          const [family, lenders] =
            name === 'syd1'
              ? [4, order.filter((one) => one !== 'syd1')]
              : [6, order.filter((one) => /fra|syd1/.test(one))];
          return [...lenders.slice(0, 2).map((lender) => `${name}_v${family}_${lender}`), name];
        });
      };
      expect([code, maps.get('world')!.get(code)]).toEqual([code, naive(regions)]);
      expect([code, maps.get('union')!.get(code)]).toEqual([code, naive(regions.slice(0, 2))]);
    }
    for (const [code, { code: continent }] of continentTable()) {
      const block = config.split(`        ${continent} => {\n`)[1]!.split('\n        }')[0]!;
      expect(block).toContain(`          ${code} => [`);
    }
  });

  it('has, for the EU name, only the addresses of EU nodes, also in a region with other nodes', async () => {
    const { config } = await filesOf(VALID);
    const union = config.split('  resources => {')[1]!.split('    union => {')[1]!;
    expect(mapsOf(config).get('union')!.get('RE')).toEqual(['run1_v6_fra', 'run1', 'fra']);
    expect(union).toMatch(
      /run1_v6_fra => \{[^{}]*addrs_v4 => \{ 1 => 192\.0\.2\.4 \}\s*addrs_v6 => \{ 1 => 2001:db8::1 \}/,
    );
    for (const address of ['192.0.2.1', '2001:db8::1', '192.0.2.2', '192.0.2.4'])
      expect(union).toContain(` ${address}`);
    for (const address of ['192.0.2.3', '192.0.2.5', '192.0.2.7', '2001:db8::6']) expect(union).not.toContain(address);
    const world = config.split('  resources => {')[1]!.split('    union => {')[0]!;
    for (const { addresses } of VALID.nodes) {
      for (const address of addresses) expect(world).toContain(address.toLowerCase().replace(':0::', '::'));
    }
  });

  it('asks EU nodes whether they serve the EU base address', async () => {
    const { config } = await filesOf(VALID);
    const checks = config.split('service_types => {')[1]!.split('plugins =>')[0]!;
    expect([...checks.matchAll(/^ {2}(\w+) => \{[^}]*url_path => "(.*)"/gm)].map(([, id, path]) => [id, path])).toEqual(
      [
        ['world', '/readyz'],
        ['union', '/readyz?eu'],
      ],
    );
  });

  it('has the zone with its name servers, their addresses, and the names that clients use', async () => {
    const { zone } = await filesOf({ ...VALID, names: { default: '@', eu: 'eu.api' }, ttl: 60 });
    expect(zone.split('\n').filter((line) => !line.startsWith(';'))).toEqual([
      '$TTL 3600',
      '@ 60 SOA ns1.geo.example. dns\\.admin.geo.example. 1 7200 900 1209600 60',
      '@ NS ns1.geo.example.',
      '@ NS ns.other.example.',
      'ns1.geo.example. A 192.0.2.53',
      'ns1.geo.example. AAAA 2001:db8::53',
      '@ 60/60 DYNA geoip!world',
      'eu.api 60/60 DYNA geoip!union',
      '',
    ]);
  });

  it('has no EU name if there is none', async () => {
    const nodes = VALID.nodes.map(({ eu: _, ...node }) => node);
    const { config, zone } = await filesOf({ ...VALID, names: { default: 'api' }, nodes });
    expect(config + zone).not.toContain('union');
  });

  it.skipIf(!available)('is accepted by gdnsd without a warning', async () => {
    const dataDir = await smallRelease();
    const etc = join(dir, 'accepted');
    const options = { ...gdnsdOptions(dir, 5353), udp_threads: 1, tcp_timeout: 60, disable_tcp_dso: true };
    const nodes = [
      { name: '1', country: 'DE', eu: true, addresses: ['127.0.0.11', '::1'] },
      { name: 'no', country: 'NL', eu: true, addresses: ['127.0.0.12'] },
      { name: 'default', country: 'GB', addresses: ['127.0.0.13', '127.0.0.14'] },
    ];
    writeFileSync(file, JSON.stringify({ ...VALID, names: { default: 'api', eu: '@' }, options, nodes }));
    const exported = await ipatlas(['export', 'gdnsd', '--data', dataDir, '--nodes', file, '-o', etc]);
    expect(exported, exported.stderr).toMatchObject({ code: 0, stdout: '' });
    const { ok, messages } = checkConfiguration(etc);
    expect(messages).not.toMatch(/warning|error|fatal/);
    expect(messages).toContain('Zone geo.example.');
    expect(ok).toBe(true);
  });
});

describe('too many regions with one family', () => {
  it('are refused in words: gdnsd would not start', async () => {
    const nodes = Array.from({ length: 90 }, (_, i) => {
      const name = `n${i}`;
      return { name, country: CODES[i]!, addresses: [i % 2 === 0 ? `192.0.2.${i}` : `2001:db8::${i}`] };
    });
    await expect(filesOf({ ...VALID, names: { default: 'api' }, nodes })).rejects.toMatchObject({
      code: 'E_CONFIG',
      message: expect.stringMatching(/at most 254 choices .* addresses of both families/),
    });
  });
});

describe('centers and continents', () => {
  it('are known of every country', () => {
    const centroids = readCentroids();
    expect(CODES.length).toBeGreaterThan(240);
    expect(CODES.filter((code) => !centroids.has(code))).toEqual([]);
    expect(CODES.filter((code) => !continentTable().has(code))).toEqual([]);
    for (const [lon, lat] of centroids.values()) expect(Math.abs(lon) <= 180 && Math.abs(lat) <= 90).toBe(true);
  });
});

describe('a file of nodes', () => {
  const node = VALID.nodes[0]!;
  const withNodes = (...nodes: unknown[]) => ({ ...VALID, nodes });

  it('is completed by defaults', async () => {
    const nodes = await read(VALID);
    expect(nodes).toMatchObject({
      ttl: 30,
      check: { port: 8080, interval: 2, timeout: 1, failures: 2, successes: 2 },
      options: {},
    });
    expect(nodes.nodes[0]).toEqual({
      name: 'fra1',
      region: 'fra',
      country: 'DE',
      eu: true,
      addresses: [
        { family: 4, text: '192.0.2.1' },
        { family: 6, text: '2001:db8::1' },
      ],
    });
    expect(nodes.nodes[4]).toMatchObject({ region: 'iad1', eu: false });
  });

  it('is refused if an EU node is not in the European Union on the date of the release', async () => {
    const nodes = withNodes(node, { name: 'lon1', country: 'GB', eu: true, addresses: ['192.0.2.9'] });
    await expect(read(nodes)).rejects.toThrow(
      `${file}: node lon1: "eu" is true, but Name of GB (GB) is not in the European Union as of 2026-01-01`,
    );
    const before = { asOf: '2019-01-01', byCode: new Map(COUNTRIES.byCode) };
    before.byCode.set('GB', country('GB', 'United Kingdom', true) as never);
    expect((await read(nodes, before)).nodes).toHaveLength(2);
  });

  it.each<[string, unknown, string]>([
    ['not JSON', '{', 'is not JSON'],
    ['a key twice', '{"zone":"a.example","zone":"b.example"}', 'keys that are given twice: zone'],
    ['empty', {}, 'zone is missing; expected the DNS zone, such as example.com'],
    ['an unknown key', { ...VALID, more: 1 }, 'more is not a known key'],
    ['no nodes', withNodes(), 'nodes'],
    ['a zone with a line break', { ...VALID, zone: 'a.example\n@ A 192.0.2.66' }, 'zone is'],
    ['a name that is a path', { ...VALID, names: { default: '../x' } }, 'names.default is'],
    ['an option that ends its quotes', { ...VALID, options: { run_dir: '/x" }' } }, 'options.run_dir'],
    ['a node with a brace in its name', withNodes({ ...node, name: 'a}' }), 'nodes[0].name is "a}"'],
    ['a country that does not exist', withNodes({ ...node, country: 'QQ' }), 'the release has no country QQ'],
    ['a host name as address', withNodes({ ...node, addresses: ['a.example'] }), '"a.example" is not the address'],
    ['the unspecified address', withNodes({ ...node, addresses: ['0.0.0.0'] }), 'is not the address'],
    [
      'the same address in another form',
      withNodes({ ...node, addresses: ['2001:db8::1', '2001:DB8:0:0::1'] }),
      'node fra1 also has 2001:db8::1',
    ],
    [
      'a region in two countries',
      withNodes(node, { name: 'x', region: 'fra', country: 'FR', addresses: ['192.0.2.9'] }),
      'region fra: node fra1 is in DE, node x in FR',
    ],
    ['an EU name without EU nodes', withNodes({ ...node, eu: false }), 'no node has "eu": true'],
    ['one name for both', { ...VALID, names: { default: 'api', eu: 'api' } }, 'must differ'],
    ['a name server without addresses', { ...VALID, nameservers: [{ name: 'ns.geo.example' }] }, 'it needs addresses'],
    [
      'addresses of a name server elsewhere',
      { ...VALID, nameservers: [{ name: 'ns.other.example', addresses: ['192.0.2.53'] }] },
      'is not in the zone',
    ],
    ['a name server with the name of clients', { ...VALID, names: { default: 'ns1', eu: 'eu' } }, 'that clients use'],
    ['a timeout as long as the interval', { ...VALID, check: { interval: 3, timeout: 3 } }, 'less than check.interval'],
  ])('is refused if it has %s', async (_, value, message) => {
    const error = await read(value).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'E_CONFIG', message: expect.stringContaining(message) });
    expect(String(error)).toContain('nodes.json');
  });

  it('names all problems at once', async () => {
    const error = await read(withNodes({ ...node, country: 'QQ' }, { ...node, addresses: ['x'] })).catch(String);
    expect(String(error).split('\n').length).toBeGreaterThanOrEqual(3);
  });
});

describe('ipatlas export gdnsd', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await smallRelease();
  });

  const nodes = {
    ...VALID,
    nodes: [
      { name: 'fra1', country: 'DE', eu: true, addresses: ['80.0.0.1'] },
      { name: 'lon1', country: 'GB', addresses: ['8.0.0.1', '10.0.0.1'] },
    ],
  };
  const run = (...args: string[]) => ipatlas(['export', 'gdnsd', '--data', dataDir, ...args]);

  it('writes what changed, and warns of nodes that the release has in another country', async () => {
    writeFileSync(file, JSON.stringify(nodes));
    const etc = join(dir, 'etc');
    const warning = [
      'node lon1 is said to be in GB, but the release has its address 8.0.0.1 in US',
      'api: region fra1 has no IPv6 address; its clients with IPv6 only get no address',
      'api: region lon1 has no IPv6 address; its clients with IPv6 only get no address',
      'eu.api: region fra1 has no IPv6 address; its clients with IPv6 only get no address',
    ]
      .map((text) => `warning: ${text}\n`)
      .join('');
    expect(await run('--nodes', file, '-o', etc)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: `${warning}${etc}: wrote geoip/ipatlas.mmdb, zones/geo.example, config\n`,
    });
    const { mtimeMs } = statSync(join(etc, 'config'));
    await publishBlocks(dataDir, [...SMALL_WORLD, ['11.0.0.0/8', country('GB', 'United Kingdom')]], '2026-02-02');
    const database = () => statSync(join(etc, 'geoip', 'ipatlas.mmdb')).ino;
    const before = database();
    expect((await run('--nodes', file, '-o', etc)).stderr).toContain('wrote geoip/ipatlas.mmdb\n');
    const written = database();
    expect((await run('--nodes', file, '-o', etc)).stderr).toContain(`${etc}: nothing changed\n`);
    expect([before === written, database() === written]).toEqual([false, true]);
    expect(statSync(join(etc, 'config')).mtimeMs).toBe(mtimeMs);
    writeFileSync(file, JSON.stringify({ ...nodes, check: { port: 9 } }));
    expect((await run('--nodes', file, '-o', etc)).stderr).toContain('wrote config\n');
  });

  it('removes the zone that it wrote under another name, and no other', async () => {
    const etc = join(dir, 'renamed');
    writeFileSync(file, JSON.stringify(nodes));
    await run('--nodes', file, '-o', etc);
    writeFileSync(join(etc, 'zones', 'other.example'), '; a zone of the operator\n@ SOA …\n');
    const nameservers = [{ name: 'ns.other.example' }];
    writeFileSync(file, JSON.stringify({ ...nodes, zone: 'new.example', nameservers }));
    expect((await run('--nodes', file, '-o', etc)).stderr).toContain(
      'wrote zones/new.example; removed zones/geo.example\n',
    );
    expect(readdirSync(join(etc, 'zones')).sort()).toEqual(['new.example', 'other.example']);
  });

  it.each([
    ['/proc/x', '/proc/x'],
    ['/dev/null', '/dev/null'],
  ])('fails at once if the directory is %s', async (etc, named) => {
    writeFileSync(file, JSON.stringify(nodes));
    expect(await run('--nodes', file, '-o', etc)).toMatchObject({ code: 2, stderr: expect.stringContaining(named) });
  });

  it('refuses wrong flags, files and directories, and writes nothing then', async () => {
    writeFileSync(file, JSON.stringify(nodes));
    const etc = join(dir, 'refused');
    expect(await run('-o', etc)).toMatchObject({ code: 2, stderr: expect.stringContaining('--nodes') });
    expect(await run('--nodes', file)).toMatchObject({ code: 2, stderr: expect.stringContaining('-o DIR') });
    expect(await run('--nodes', file, '-o', '-')).toMatchObject({ code: 2 });
    expect(await run('--nodes', file, '-o', etc, '--eu')).toMatchObject({ code: 2 });
    expect(await run('--nodes', join(dir, 'missing'), '-o', etc)).toMatchObject({ code: 2 });
    expect(await ipatlas(['export', 'csv', '--data', dataDir, '--nodes', file])).toMatchObject({ code: 2 });
    const outside = { ...nodes, nodes: nodes.nodes.map((one) => ({ ...one, eu: true })) };
    writeFileSync(file, JSON.stringify(outside));
    expect(await run('--nodes', file, '-o', etc)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('United Kingdom (GB) is not in the European Union'),
    });
    expect(existsSync(etc)).toBe(false);
    writeFileSync(file, JSON.stringify(nodes));
    writeFileSync(etc, 'a file');
    expect(await run('--nodes', file, '-o', etc)).toMatchObject({ code: 2, stderr: expect.stringContaining(etc) });
  });

  it.skipIf(!available)('leaves whole files if it is killed at any step', async () => {
    const etc = join(dir, 'killed');
    const write = async (name: string, tcp_timeout: number) => {
      const options = { ...gdnsdOptions(dir, 5353), tcp_timeout };
      const path = join(dir, `${name}.json`);
      writeFileSync(path, JSON.stringify({ ...nodes, options }));
      return path;
    };
    const [before, after] = [await write('before', 30), await write('after', 40)];
    await run('--nodes', before, '-o', etc);
    let steps = 0;
    for (let isKilled = true; isKilled; steps++) {
      isKilled = await killedAt(steps, () => exportTo(after, etc));
      const names = ['config', 'zones/geo.example', 'geoip/ipatlas.mmdb'];
      for (const name of names) expect(statSync(join(etc, name)).size, name).toBeGreaterThan(300);
      expect(readFileSync(join(etc, 'config'), 'utf8')).toMatch(/tcp_timeout => (30|40)\n[\s\S]*\}\n$/);
    }
    expect(steps).toBeGreaterThan(3);
    expect(checkConfiguration(etc)).toMatchObject({ ok: true });
  });

  /** Exports as the command does, without its streams. */
  async function exportTo(nodesFile: string, directory: string) {
    const release = join(dataDir, 'current');
    const { manifest, file } = openReleaseRanges(release);
    const families: Family[] = [4, 6];
    const database = { file, families, countries: undefined, embedded: new Set<never>(), title: 't', setName: 's' };
    const more = { dataDate: manifest.data_date, databaseType: 'x' };
    return exportForGdnsd({ release, nodesFile, directory, database: { ...database, ...more } });
  }
});
