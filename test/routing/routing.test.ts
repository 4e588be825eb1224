/** DNS routing by a real gdnsd to four nodes, with servers that answer its health checks as `serve` does. */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import { packageFile } from '../../src/package-root.js';
import { GDNSD_SKIPPED, GdnsdProcess, gdnsdOptions, hasGdnsd } from '../support/gdnsd.js';
import { ipatlas } from '../support/in-process.js';
import { naiveOrder } from '../support/nearest.js';
import { freePort } from '../support/ports.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';

const available = hasGdnsd();
if (!available) console.warn(GDNSD_SKIPPED);

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

/** The only address of IPv6: that of iad. */
const IPV6_ADDRESS = '::1';

const addressesOf = ({ name, address }: TestNode) => [address, ...(name === 'iad' ? [IPV6_ADDRESS] : [])];

/** Starts the servers of a node, and returns what kills them. */
async function startServers(node: TestNode, port: number): Promise<() => Promise<void>> {
  const started = addressesOf(node).map((host) => {
    const server = createServer((request, response) => {
      const isReady = request.url === '/readyz' || (request.url === '/readyz?eu' && node.eu);
      response.writeHead(isReady ? 200 : 503, { connection: 'close' }).end();
    });
    return server.listen(port, host);
  });
  await Promise.all(started.map((server) => once(server, 'listening')));
  return async () => {
    for (const server of started) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  };
}

class Routing {
  readonly dataDir = temporaryDir();
  gdnsd!: GdnsdProcess;
  port!: number;
  readonly #directory = temporaryDir();
  readonly #running = new Map<string, () => Promise<void>>();
  #database: Database | undefined;

  /** Publishes a release, starts the nodes and gdnsd. One of the two EU nodes does not serve the EU base address yet. */
  async open(): Promise<void> {
    await publishBlocks(this.dataDir, WORLD);
    this.#database = openDatabase(this.dataDir);
    this.port = await freePort();
    const dnsPort = await freePort();
    const [file, etc] = [join(this.#directory, 'nodes.json'), join(this.#directory, 'etc')];
    const nodes = {
      zone: 'geo.example',
      hostmaster: 'hostmaster@geo.example',
      nameservers: [{ name: 'ns.geo.example', addresses: ['127.0.0.1'] }],
      names: { default: 'api', eu: 'eu' },
      check: { port: this.port, interval: 2, timeout: 1, failures: 1, successes: 1 },
      options: gdnsdOptions(this.#directory, dnsPort),
      nodes: NODES.map((node) => {
        const { address: _, ...facts } = node;
        return { ...facts, addresses: addressesOf(node) };
      }),
    };
    writeFileSync(file, JSON.stringify(nodes));
    const exported = await ipatlas(['export', 'gdnsd', '--data', this.dataDir, '--nodes', file, '-o', etc]);
    expect(exported, exported.stderr).toMatchObject({ code: 0 });
    await Promise.all(NODES.map((one) => this.start(one.name === 'dub' ? { ...one, eu: false } : one)));
    this.gdnsd = await GdnsdProcess.start(etc, dnsPort);
  }

  async close(): Promise<void> {
    await this.gdnsd?.stop();
    await Promise.all([...this.#running.values()].map((kill) => kill()));
    this.#database?.close();
  }

  node(name: string): TestNode {
    return NODES.find((one) => one.name === name)!;
  }

  async start(node: TestNode): Promise<void> {
    this.#running.set(node.name, await startServers(node, this.port));
  }

  async kill(name: string): Promise<void> {
    await this.#running.get(name)!();
    this.#running.delete(name);
  }

  /** Returns each network with the addresses that its clients get for a name. */
  async asked(name: string): Promise<string[][]> {
    const answers = await this.gdnsd.askAll(`${name}.geo.example`, SUBNETS);
    return answers.map((addresses, index) => [SUBNETS[index]!, ...addresses]);
  }

  /** Returns each network with the address of the closest of some nodes, by the database's own answer and the naive order. */
  expected(nodes: readonly TestNode[]): string[][] {
    const centroids = JSON.parse(readFileSync(packageFile('dist/centroids.json'), 'utf8')) as Record<
      string,
      [number, number]
    >;
    return SUBNETS.map((subnet) => {
      const code = this.#database!.lookup(subnet.split('/')[0]!)!.country_code!;
      return [subnet, naiveOrder(code, nodes, centroids)[0]!.address];
    });
  }
}

// In their order: each leaves all nodes running.
describe.skipIf(!available)('gdnsd with a release and four servers', { timeout: 300_000 }, () => {
  const routing = new Routing();
  beforeAll(() => routing.open(), 300_000);
  afterAll(() => routing.close());

  it('leads 16 networks of 12 countries to the closest node', async () => {
    expect([SUBNETS.length, new Set(WORLD.map(([, record]) => JSON.stringify(record))).size]).toEqual([16, 12]);
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(NODES));
    expect(new Set(routing.expected(NODES).map(([, address]) => address)).size).toBe(4);
    await expect.poll(() => routing.gdnsd.ask('api.geo.example'), PATIENCE).toEqual(['127.0.0.11']);
  });

  it('leads to an EU node only when it serves the EU base address', async () => {
    await expect
      .poll(async () => (await routing.asked('eu')).map(([, address]) => address), PATIENCE)
      .toEqual(SUBNETS.map(() => '127.0.0.11'));
    await routing.kill('dub');
    await routing.start(routing.node('dub'));
    await expect.poll(() => routing.asked('eu'), PATIENCE).toEqual(routing.expected(NODES.filter(({ eu }) => eu)));
  });

  it('leads away from a node that is killed, and back when it runs again', async () => {
    await routing.kill('fra');
    await expect
      .poll(() => routing.asked('api'), PATIENCE)
      .toEqual(routing.expected(NODES.filter(({ name }) => name !== 'fra')));
    // Each name has its own checks of a node.
    await expect
      .poll(async () => new Set((await routing.asked('eu')).map(([, address]) => address)), PATIENCE)
      .toEqual(new Set(['127.0.0.12']));
    await routing.start(routing.node('fra'));
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(NODES));
  });

  it('leads nowhere outside the European Union by the EU name, even if all nodes there are killed', async () => {
    await Promise.all([routing.kill('fra'), routing.kill('dub')]);
    const outside = NODES.filter(({ eu }) => !eu);
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(outside));
    for (const [, ...addresses] of await routing.asked('eu')) {
      expect(addresses.length).toBeGreaterThan(0);
      for (const address of addresses) expect(EU_ADDRESSES).toContain(address);
    }
    await Promise.all([routing.start(routing.node('fra')), routing.start(routing.node('dub'))]);
    await expect.poll(() => routing.asked('eu'), PATIENCE).toEqual(routing.expected(NODES.filter(({ eu }) => eu)));
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(NODES));
  });

  it('gives clients with IPv6 only the addresses of the next region that has some', async () => {
    const ask = () => routing.gdnsd.askAll('api.geo.example', SUBNETS, 'AAAA');
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => [IPV6_ADDRESS]));
    // No node of the European Union has any.
    expect(routing.gdnsd.ask('eu.geo.example', SUBNETS[0]!, 'AAAA')).toEqual([]);
    // Without them, the clients with IPv4 are led as before.
    await routing.kill('iad');
    const others = NODES.filter(({ name }) => name !== 'iad');
    await expect.poll(() => routing.asked('api'), PATIENCE).toEqual(routing.expected(others));
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => []));
    await routing.start(routing.node('iad'));
    await expect.poll(ask, PATIENCE).toEqual(SUBNETS.map(() => [IPV6_ADDRESS]));
  });
});
