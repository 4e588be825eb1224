/** Forward auth: the decisions, against other ways to ask for the same, and proxies that ask. */
import type { ChildProcess } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { createServer, METHODS } from 'node:http';
import { type AddressInfo, BlockList, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { gateOf, parseGateRule } from '../../src/api/forward-auth.js';
import type { ApiHttpServer } from '../../src/api/http-server.js';
import { RequestMetrics } from '../../src/api/metrics.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { readSettings } from '../../src/cli/serve.js';
import { openDatabase } from '../../src/database/database.js';
import { missingProgram, stopServer, testWith } from '../export/tools.js';
import { type AppChanges, appDeps, portOf, startServer, testApp } from '../support/api.js';
import { ipatlas } from '../support/in-process.js';
import { addressesIn, addressesNear } from '../support/near-addresses.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { freePort } from '../support/ports.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { exchange, until } from '../support/serve.js';
import { startService } from '../support/service.js';
import { startCaddy, startNginx } from './gate-proxies.js';

let dataDir: string;
let withoutNetworks: string;
beforeAll(async () => {
  [dataDir, withoutNetworks] = [temporaryDir(), temporaryDir()];
  chmodSync(dataDir, 0o755);
  await publishBlocks(dataDir, SMALL_WORLD, '2026-01-01', 0, SMALL_NETWORKS);
  await publishBlocks(withoutNetworks, SMALL_WORLD);
});

const PROXY = '192.0.2.9';
const app = (rules: string[], changes: AppChanges = {}) =>
  testApp(dataDir, { trustProxy: ['192.0.2.0/24'], forwardAuth: rules.map(parseGateRule), ...changes });
const HEADERS = ['x-country-code', 'x-in-eu', 'x-asn'] as const;

/** Asks as a proxy does; returns the status and the three headers. */
async function ask(of: ReturnType<typeof app>, client: string | undefined, url = '/forward-auth/r', more: object = {}) {
  const headers = { host: 'evil.example', ...(client !== undefined && { 'x-forwarded-for': client }) };
  const response = await of.inject({ url, remoteAddress: PROXY, headers, ...more });
  return [response.statusCode, ...HEADERS.map((name) => response.headers[name])];
}

describe('a rule', () => {
  it.each([
    ['r=allow:EU,CH', '193.0.0.1', [200, 'NL', 'true', '3333']],
    ['r=allow:EU,CH', '8.8.8.8', [403, 'US', 'false', '15169']],
    ['r=allow:EU,CH', '8.200.0.1', [403, 'US', 'false', '']],
    ['r=deny:EU', '2a00::1', [403, 'DE', 'true', '']],
    ['r=deny:EU', '81.0.0.1', [200, 'GB', 'false', '64496']],
    ['r=deny:eea', '80.0.0.1', [403, 'DE', 'true', '64496']],
    ['r=allow:US', '::ffff:8.8.8.8', [200, 'US', 'false', '15169']],
    ['r=allow:AS15169', '2001:4860::8888', [200, 'US', 'false', '15169']],
    ['r=deny:as64496', '81.0.0.1', [403, 'GB', 'false', '64496']],
    ['r=deny:AS64496,US', '8.8.8.8', [403, 'US', 'false', '15169']],
    ['r=allow:EU', '9.9.9.9', [403, '', '', '']],
    ['r=allow:EU,none', '9.9.9.9', [200, '', '', '']],
    ['r=deny:none', '9.9.9.9', [403, '', '', '']],
    ['r=deny:EU', '9.9.9.9', [200, '', '', '']],
    ['r=allow:EU', '10.0.0.1', [200, '', '', '']],
    ['r=deny:none', '10.0.0.1', [200, '', '', '']],
    ['r=deny:EU;private=deny', '10.0.0.1', [403, '', '', '']],
    ['r=allow:none;private=deny', '::1', [403, '', '', '']],
    ['r=allow:NL', '193.0.0.1:4711', [200, 'NL', 'true', '3333']],
    ['r=allow:NL', '8.8.8.8, 193.0.0.1, 192.0.2.7', [200, 'NL', 'true', '3333']],
    ['r=allow:US', '8.8.8.8, 193.0.0.1', [403, 'NL', 'true', '3333']],
    ['r=allow:US', '8.8.8.8, unknown', [403, '', '', '']],
    ['r=allow:US', 'unknown', [403, '', '', '']],
    ['r=allow:US', '', [403, '', '', '']],
    ['r=allow:US', undefined, [403, '', '', '']],
  ])('%s: %s', async (rule, client, expected) => {
    const of = app([rule]);
    expect(await ask(of, client)).toEqual(expected);
    await of.close();
  });

  it('does not depend on the method, the query, what follows the name, or the body', async () => {
    const of = app(['r=allow:NL', 'other=deny:NL']);
    for (const method of METHODS.filter((each) => each !== 'CONNECT')) {
      for (const url of [
        '/forward-auth/r',
        '/forward-auth/r/',
        '/forward-auth/r/other/%?rule=deny:NL&x=/forward-auth/other',
      ])
        expect([method, url, ...(await ask(of, '193.0.0.1', url, { method }))]).toEqual([
          ...[method, url, 200],
          ...['NL', 'true', '3333'],
        ]);
    }
    const headers = { 'x-forwarded-for': '193.0.0.1', 'content-type': 'a/b' };
    expect((await ask(of, '', '/forward-auth/r', { method: 'POST', payload: 'x', headers }))[0]).toBe(200);
    expect(await ask(of, '193.0.0.1', '/forward-auth/other')).toEqual([403, 'NL', 'true', '3333']);
    expect(await ask(of, '193.0.0.1', '/forward-auth/unknown')).toEqual([404, '', '', '']);
    expect((await ask(of, '193.0.0.1', '/forward-auth'))[0]).toBe(404);
    await of.close();
  });

  it('is only for trusted proxies, and counted', async () => {
    const metrics = new RequestMetrics();
    const of = app(['r=allow:NL'], { metrics });
    const stranger = { remoteAddress: '198.51.100.1' };
    expect(await ask(of, '193.0.0.1', '/forward-auth/r', stranger)).toEqual([403, '', '', '']);
    await ask(of, '193.0.0.1');
    await ask(of, '8.8.8.8');
    const text = await metrics.registry.metrics();
    for (const decision of ['allowed', 'refused', 'untrusted'])
      expect(text).toContain(`ipatlas_forward_auth_total{rule="r",decision="${decision}"} 1`);
    await of.close();
  });

  it('is 503 without a database, or 200 with fail=open; lets nobody in if the networks that it needs are gone', async () => {
    const empty = app(['r=allow:NL', 'open=allow:NL;fail=open'], { release: () => undefined });
    expect(await ask(empty, '193.0.0.1')).toEqual([503, '', '', '']);
    expect(await ask(empty, '193.0.0.1', '/forward-auth/open')).toEqual([200, '', '', '']);
    await empty.close();
    const served = new ServedRelease(openDatabase(withoutNetworks));
    const blind = app(['r=deny:AS64496;fail=open'], { release: () => served });
    expect(await ask(blind, '193.0.0.1')).toEqual([403, 'NL', 'true', '']);
    await blind.close();
    served.close();
    const values = { 'trust-proxy': '127.0.0.1/32', 'forward-auth': ['r=deny:AS64496'] };
    await expect(startService(withoutNetworks, values)).rejects.toMatchObject({
      code: 'E_USAGE',
      message: expect.stringMatching(/--forward-auth r names networks, and the release \S+ has none/),
    });
  });

  it.each([
    [['r=allow:QQ'], /QQ is not a country/],
    [['r=allow:DE,'], /has ""/],
    [['r=allow:'], /has ""/],
    [['r=allow:DEU'], /has "DEU"/],
    [['r=allow:AS4294967296'], /has "AS4294967296"/],
    [['r=permit:DE'], /it is not a rule/],
    [['allow:DE'], /it is not a rule/],
    [['a b=allow:DE'], /it is not a rule/],
    [['r=allow:DE;deny:FR'], /"deny:FR" is no option/],
    [['r=allow:DE;fail=maybe'], /"fail=maybe" is no option/],
    [['r=allow:DE;fail=open;fail=open'], /fail is there twice/],
    [['r=allow:kind:vpn'], /kind:vpn is no kind of network/],
    [['r=allow:DE', 'r=deny:FR'], /r is there twice/],
  ])('%j is refused at the start', (rules, message) => {
    const values = { 'forward-auth': rules, 'trust-proxy': '127.0.0.1/32' };
    const read = () => readSettings({ dataDir, seed: 'never', values, positionals: [] });
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });

  it('needs trusted proxies', () => {
    const values = { 'forward-auth': ['r=allow:DE'] };
    expect(() => readSettings({ dataDir, seed: 'never', values, positionals: [] })).toThrow(/needs --trust-proxy/);
  });
});

it('forward auth, filter, export cidr and a lookup agree for random addresses and lists', async () => {
  const words = ['US', 'NL', 'DE', 'GB', 'CI', 'FR', 'EU', 'EEA'];
  const anyList = fc.uniqueArray(fc.constantFrom(...words), { minLength: 1, maxLength: 4 });
  const lists = fc.sample(anyList, 4);
  const count = Number(process.env.FUZZ_RUNS ?? 600);
  const cidrs = SMALL_WORLD.map(([cidr]) => cidr);
  const inside = addressesIn([...cidrs, '0.0.0.0/0', '2000::/3', '::/0']);
  const addresses = [...new Set([...fc.sample(addressesNear(cidrs), count / 2), ...fc.sample(inside, count)])];
  expect(addresses.length).toBeGreaterThan(count / 2);
  const served = new ServedRelease(openDatabase(dataDir));
  using database = openDatabase(dataDir);
  const forwardAuth = lists.map((list, i) => parseGateRule(`r${i}=allow:${list};private=deny`));
  const server = await startServer(appDeps(dataDir, { trustProxy: ['127.0.0.1/32'], forwardAuth }));
  for (const [index, list] of lists.entries()) {
    const decide = gateOf(forwardAuth[index]!);
    const flags = ['--country', list.join(), '--format', 'list', '--data', dataDir];
    const filtered = await ipatlas(['filter', ...flags], { input: `${addresses.join('\n')}\n` });
    const exported = await ipatlas(['export', 'cidr', '--countries', list.join(), '--data', dataDir]);
    expect([filtered.code, exported.code]).toEqual([0, 0]);
    const passed = new Set(filtered.stdout.split('\n'));
    const blocks = new BlockList();
    for (const [, start, bits] of exported.stdout.matchAll(/^([\da-f.:]+)\/(\d+)\b/gim))
      blocks.addSubnet(start!, Number(bits), isIPv6(start!) ? 'ipv6' : 'ipv4');
    expect(blocks.rules.length).toBeGreaterThan(0);
    const hasUnion = list.includes('EU') || list.includes('EEA');
    for (const ip of addresses) {
      const allowed = decide(ip, served)!.isAllowed;
      const { country_code: code, is_eu } = database.lookup(ip)!;
      const isListed = code !== null && (list.includes(code) || (is_eu && hasUnion));
      expect([list, ip, passed.has(ip), isListed]).toEqual([list, ip, allowed, allowed]);
      // Blocks are of addresses as they are routed; a look-up also finds the IPv4 address inside an IPv6 address.
      const hasIPv4Inside = isIPv6(ip) && /^(2002|0*64:0*ff9b|2001:0*:|::ffff|0*:0*:0*:0*:0*:ffff)/i.test(ip);
      if (!hasIPv4Inside)
        expect([list, ip, blocks.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4')]).toEqual([list, ip, allowed]);
    }
    const sample = addresses.slice(0, 100);
    const requests = [...sample, '127.0.0.1'].map(
      (ip, i) =>
        `GET /forward-auth/r${index} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${ip}\r\n${i === sample.length ? 'Connection: close\r\n' : ''}\r\n`,
    );
    const text = await exchange(portOf(server), requests.join(''));
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    const expected = sample.map((ip) => (decide(ip, served)!.isAllowed ? 200 : 403));
    expect(statuses).toEqual([...expected, 403]);
  }
  server.close();
  served.close();
});

describe('proxies with the configuration of docs/gate.md', () => {
  let gate: ApiHttpServer | undefined;
  let program: ChildProcess | undefined;
  const site = createServer((request, response) => {
    response.end(HEADERS.map((name) => `${name}=${request.headers[name] ?? ''}`).join(' '));
  });
  let sitePort: number;
  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    sitePort = (site.address() as AddressInfo).port;
  });
  afterEach(async () => {
    await stopServer(program);
    stopGate();
  });
  afterAll(() => site.close());

  async function startGate(port = 0): Promise<number> {
    const forwardAuth = [parseGateRule('shop=allow:EU,CH;private=deny')];
    const deps = appDeps(dataDir, { trustProxy: ['127.0.0.1/32', '::1/128'], forwardAuth });
    gate = await startServer(deps, {}, port);
    return portOf(gate);
  }

  function stopGate(): void {
    gate?.closeAllConnections();
    gate?.close();
  }

  const FORGED = { 'X-Country-Code': 'CH', 'X-In-EU': 'true', 'X-ASN': '1' };

  /** Compares what clients get. @param header has the address of the client, as the test tells the proxy */
  async function compare(url: string, header: string, gatePort: number, whenGone: number): Promise<void> {
    const get = async (client: string): Promise<[number, string]> => {
      const response = await fetch(`${url}/a?x=1`, { headers: { ...FORGED, [header]: client } });
      return [response.status, response.status === 200 ? await response.text() : ''];
    };
    const all = async (): Promise<void> => {
      expect(await get('193.0.0.1')).toEqual([200, 'x-country-code=NL x-in-eu=true x-asn=3333']);
      expect(await get('2a00::1')).toEqual([200, 'x-country-code=DE x-in-eu=true x-asn=']);
      for (const client of ['8.8.8.8', '2001:4860::1', '9.9.9.9', '10.0.0.1'])
        expect([client, ...(await get(client))]).toEqual([client, 403, '']);
    };
    await all();
    for (let kills = 0; kills < 2; kills++) {
      stopGate();
      expect((await get('193.0.0.1'))[0]).toBe(whenGone);
      await startGate(gatePort);
      await until(async () => (await get('193.0.0.1'))[0] === 200, 'the return of the gate');
    }
    await all();
  }

  testWith(missingProgram('nginx', 'nginx', ['-v']), 'nginx', async () => {
    const [port, gatePort] = [await freePort(), await startGate()];
    const open = { port: await freePort(), gatePort, sitePort, letsIn: true };
    program = await startNginx(dataDir, [{ port, gatePort, sitePort }, open]);
    // Without the header of the test, nginx reports this process, whatever X-Forwarded-For claims.
    for (const headers of [FORGED, { ...FORGED, 'X-Forwarded-For': '193.0.0.1' }])
      expect((await fetch(`http://127.0.0.1:${port}/`, { headers, method: 'POST', body: 'x' })).status).toBe(403);
    const viaIPv6 = await fetch(`http://[::1]:${port}/`, { headers: { 'X-Test-Client': '193.0.0.1' } });
    expect(viaIPv6.status).toBe(200);
    await compare(`http://127.0.0.1:${port}`, 'X-Test-Client', gatePort, 500);
    const ask = (client: string) =>
      fetch(`http://127.0.0.1:${open.port}`, { headers: { ...FORGED, 'X-Test-Client': client } });
    expect((await ask('8.8.8.8')).status).toBe(403);
    stopGate();
    expect(await (await ask('8.8.8.8')).text()).toBe('x-country-code= x-in-eu= x-asn=');
  });

  testWith(missingProgram('caddy', 'caddy', ['version']), 'Caddy', async () => {
    const [port, gatePort] = [await freePort(), await startGate()];
    const url = `http://127.0.0.1:${port}`;
    const start = async (trustsTest: boolean): Promise<void> => {
      program = await startCaddy(dataDir, [{ port, gatePort, sitePort }], trustsTest);
      await until(() => fetch(url).catch(() => undefined), 'the start of Caddy');
    };
    await start(false);
    // Caddy reports this process, whatever X-Forwarded-For claims.
    for (const headers of [FORGED, { ...FORGED, 'X-Forwarded-For': '193.0.0.1' }])
      expect((await fetch(url, { headers, method: 'POST', body: 'x' })).status).toBe(403);
    await stopServer(program);
    await start(true);
    await compare(url, 'X-Forwarded-For', gatePort, 502);
  });
});
