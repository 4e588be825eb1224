import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { type Database, openDatabase } from '../../src/database/database.js';
import { packageFile } from '../../src/package-root.js';
import { GDNSD_SKIPPED, GdnsdProcess, gdnsdOptions, hasGdnsd } from '../support/gdnsd.js';
import { ipatlas } from '../support/in-process.js';
import { naiveOrder } from '../support/nearest.js';
import { freePort } from '../support/ports.js';
import { hasRedis, REDIS_SKIPPED, RedisProcess } from '../support/redis.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';
import { type ServeProcess, serve } from '../support/serve.js';

const available = hasGdnsd() && hasRedis();
if (!available) console.warn(hasGdnsd() ? REDIS_SKIPPED : GDNSD_SKIPPED);

const WORLD: Block[] = [
  ['80.0.0.0/8', country('DE', 'Germany', true)],
  ['90.0.0.0/8', country('FR', 'France', true)],
  ['91.0.0.0/8', country('IE', 'Ireland', true)],
  ['81.0.0.0/8', country('GB', 'United Kingdom')],
  ['8.0.0.0/8', country('US', 'United States')],
  ['99.0.0.0/8', country('CA', 'Canada')],
  ['177.0.0.0/8', country('BR', 'Brazil')],
  ['181.0.0.0/8', country('AR', 'Argentina')],
  ['101.0.0.0/8', country('SG', 'Singapore')],
  ['126.0.0.0/8', country('JP', 'Japan')],
  ['110.0.0.0/8', country('AU', 'Australia')],
  ['102.0.0.0/8', country('ZA', 'South Africa')],
  ['2a00::/16', country('DE', 'Germany', true)],
  ['2600::/16', country('US', 'United States')],
  ['2400::/16', country('JP', 'Japan')],
  ['2c00::/16', country('ZA', 'South Africa')],
];

/** One network of each block. */
const SUBNETS = WORLD.map(([block]) =>
  block.includes(':') ? block.replace('::/16', ':1234:5600::/40') : block.replace('0.0.0/8', '7.42.0/24'),
);

interface TestNode {
  name: string;
  country: string;
  eu: boolean;
  address: string;
}

const NODES: TestNode[] = [
  { name: 'fra', country: 'DE', eu: true, address: '127.0.0.11' },
  { name: 'dub', country: 'IE', eu: true, address: '127.0.0.12' },
  { name: 'iad', country: 'US', eu: false, address: '127.0.0.13' },
  { name: 'sin', country: 'SG', eu: false, address: '127.0.0.14' },
];
const EU_ADDRESSES = ['127.0.0.11', '127.0.0.12'];

/** Longer than any change of health can take on a busy machine. */
const PATIENCE = { timeout: 60_000, interval: 200 };

describe.skipIf(!available)('gdnsd with a release and four servers', { timeout: 300_000 }, () => {
  let dataDir: string;
  let directory: string;
  let database: Database;
  let redis: RedisProcess;
  let gdnsd: GdnsdProcess;
  let port: number;
  const servers = new Map<string, ServeProcess>();

  async function startNode({ name, country, eu, address }: TestNode): Promise<void> {
    const place = ['--region', name, '--country', country, ...(eu ? ['--eu'] : [])];
    const where = ['--host', address, '--port', `${port}`, '--redis', redis.url];
    servers.set(name, await serve(dataDir, ...where, ...place));
  }

  async function killNode(name: string): Promise<void> {
    await servers.get(name)!.stop('SIGKILL');
  }

  const node = (name: string): TestNode => NODES.find((one) => one.name === name)!;

  beforeAll(async () => {
    [dataDir, directory] = [temporaryDir(), temporaryDir()];
    await publishBlocks(dataDir, WORLD);
    database = openDatabase(dataDir);
    redis = await RedisProcess.start();
    port = await freePort();
    const dnsPort = await freePort();
    const file = join(directory, 'nodes.json');
    const nodes = {
      zone: 'geo.example',
      hostmaster: 'hostmaster@geo.example',
      nameservers: [{ name: 'ns.geo.example', addresses: ['127.0.0.1'] }],
      names: { default: 'api', eu: 'eu' },
      check: { port, interval: 2, timeout: 1, failures: 1, successes: 1 },
      options: gdnsdOptions(directory, dnsPort),
      nodes: NODES.map(({ address, ...rest }) => ({ ...rest, addresses: [address] })),
    };
    writeFileSync(file, JSON.stringify(nodes));
    const exported = await ipatlas([
      'export',
      'gdnsd',
      '--data',
      dataDir,
      '--nodes',
      file,
      '-o',
      join(directory, 'etc'),
    ]);
    expect(exported, exported.stderr).toMatchObject({ code: 0 });
    // One of the two EU nodes does not serve the EU base address yet.
    await Promise.all(NODES.map((one) => startNode(one.name === 'dub' ? { ...one, eu: false } : one)));
    gdnsd = await GdnsdProcess.start(join(directory, 'etc'), dnsPort);
  }, 300_000);

  afterAll(async () => {
    await gdnsd?.stop();
    await Promise.all([...servers.values()].map((server) => server.stop('SIGKILL')));
    await redis?.remove();
    database?.close();
    for (const folder of [dataDir, directory]) rmSync(folder, { recursive: true });
  });

  /** The addresses of the closest of some nodes, by the database's own answer and the naive order. */
  function closest(subnet: string, nodes: readonly TestNode[]): string {
    const code = database.lookup(subnet.split('/')[0]!)!.country_code!;
    const centroids = JSON.parse(readFileSync(packageFile('dist/centroids.json'), 'utf8')) as Record<
      string,
      [number, number]
    >;
    return naiveOrder(code, nodes, centroids)[0]!.address;
  }

  const asked = async (name: string) =>
    (await gdnsd.askAll(`${name}.geo.example`, SUBNETS)).map((addresses, index) => [SUBNETS[index]!, ...addresses]);
  const expected = (nodes: readonly TestNode[]) => SUBNETS.map((subnet) => [subnet, closest(subnet, nodes)]);

  it('leads 16 networks of 12 countries to the closest node', async () => {
    expect([SUBNETS.length, new Set(WORLD.map(([, record]) => JSON.stringify(record))).size]).toEqual([16, 12]);
    await expect.poll(() => asked('api'), PATIENCE).toEqual(expected(NODES));
    expect(new Set(expected(NODES).map(([, address]) => address)).size).toBe(4);
    expect(gdnsd.ask('api.geo.example', '80.7.42.0/24', 'AAAA')).toEqual([]);
    expect(gdnsd.ask('api.geo.example')).toEqual(['127.0.0.11']);
  });

  it('leads to an EU node only when it serves the EU base address', async () => {
    await expect
      .poll(async () => (await asked('eu')).map(([, address]) => address), PATIENCE)
      .toEqual(SUBNETS.map(() => '127.0.0.11'));
    await killNode('dub');
    await startNode(node('dub'));
    await expect.poll(() => asked('eu'), PATIENCE).toEqual(expected(NODES.filter(({ eu }) => eu)));
  });

  it('counts the rate of a key over all nodes', async () => {
    const key = createKey(dataDir, { rate: 80 }).key;
    const ask = async (address: string): Promise<number> =>
      (await fetch(`http://${address}:${port}/api/lookup/80.7.42.1`, { headers: { 'x-api-key': key } })).status;
    for (const { address } of NODES) await expect.poll(() => ask(address), PATIENCE).not.toBe(403);
    const statuses: number[] = [];
    for (let i = 0; i < 120; i++) statuses.push(await ask(NODES[i % NODES.length]!.address));
    // A busy machine may not run Redis for 50 ms. Then a node counts by itself, at most its share more.
    const isAlone = [...servers.values()].some((server) => /Redis does not answer/.test(server.stderr()));
    const least = NODES.length;
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual((isAlone ? 160 : 80) - least);
    expect(statuses.at(-1)).toBe(429);
  });

  it('leads away from a node that is killed, and back when it runs again', async () => {
    await killNode('fra');
    await expect.poll(() => asked('api'), PATIENCE).toEqual(expected(NODES.filter(({ name }) => name !== 'fra')));
    // Each name has its own checks of a node.
    await expect
      .poll(async () => new Set((await asked('eu')).map(([, address]) => address)), PATIENCE)
      .toEqual(new Set(['127.0.0.12']));
    await startNode(node('fra'));
    await expect.poll(() => asked('api'), PATIENCE).toEqual(expected(NODES));
  });

  it('leads nowhere outside the European Union by the EU name, even if all nodes there are killed', async () => {
    await Promise.all([killNode('fra'), killNode('dub')]);
    const outside = NODES.filter(({ eu }) => !eu);
    await expect.poll(() => asked('api'), PATIENCE).toEqual(expected(outside));
    for (const [, ...addresses] of await asked('eu')) {
      expect(addresses.length).toBeGreaterThan(0);
      for (const address of addresses) expect(EU_ADDRESSES).toContain(address);
    }
    await Promise.all([startNode(node('fra')), startNode(node('dub'))]);
    await expect.poll(() => asked('eu'), PATIENCE).toEqual(expected(NODES.filter(({ eu }) => eu)));
    await expect.poll(() => asked('api'), PATIENCE).toEqual(expected(NODES));
  });
});
