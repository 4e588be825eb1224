/** The short way answers what the app answers, byte for byte: the app is its oracle. */
import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildApp, buildListener } from '../../src/api/app.js';
import { createHttpServer, listen } from '../../src/api/http-server.js';
import { RequestMetrics } from '../../src/api/metrics.js';
import { MemoryRateStore, RateLimiter } from '../../src/api/rate-limit.js';
import { type AppChanges, appDeps, KEY } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { exchange } from '../support/serve.js';

/** Times in the answers are the same for both. */
const NOW = Date.parse('2026-01-01T00:00:00Z');
const changes = (more: AppChanges = {}): AppChanges => ({
  limiter: new RateLimiter(new MemoryRateStore(() => NOW), 0, () => NOW),
  defaultRate: 1_000,
  ...more,
});

let dataDir: string;
const servers: Server[] = [];
const start = async (listener: Parameters<typeof createHttpServer>[0]): Promise<number> => {
  const server = createHttpServer(listener, () => {});
  servers.push(server);
  await listen(server, '127.0.0.1', 0);
  return (server.address() as AddressInfo).port;
};

/** The same service both ways. */
async function pair(more: AppChanges = {}): Promise<[short: number, long: number]> {
  const { listener } = await buildListener(appDeps(dataDir, changes(more)));
  const app = buildApp(appDeps(dataDir, changes(more)));
  await app.ready();
  return [await start(listener), await start(app.routing)];
}

/** An answer with its headers in alphabetical order and without its date. */
const comparable = (answer: string): unknown => {
  const [head, body] = answer.split('\r\n\r\n');
  const [status, ...headers] = head!.split('\r\n');
  return {
    status,
    headers: headers
      .filter((line) => !/^date:/i.test(line))
      .map((line) => line.toLowerCase())
      .sort(),
    body,
  };
};

beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, SMALL_WORLD);
});
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(dataDir, { recursive: true });
});

const LOOKUP = 'GET /api/lookup/8.8.8.8 HTTP/1.1';
const REQUESTS: [what: string, lines: string[]][] = [
  ['IPv4', [LOOKUP, `X-API-Key: ${KEY}`]],
  ['IPv6', ['GET /api/lookup/2001:4860::1 HTTP/1.1', `x-api-key: ${KEY}`]],
  ['a mapped address', ['GET /api/lookup/::ffff:193.0.6.139 HTTP/1.1', `X-Api-Key: ${KEY}`]],
  ['no country', ['GET /api/lookup/10.0.0.1 HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['a host and other headers', [LOOKUP, 'Host: ip.example', 'Accept: */*', `X-API-Key: ${KEY}`, 'Cookie: a=b']],
  ['HTTP/1.0', ['GET /api/lookup/8.8.8.8 HTTP/1.0', `X-API-Key: ${KEY}`]],
  ['a browser', [LOOKUP, 'Origin: https://shop.example', `X-API-Key: ${KEY}`]],
  ['HEAD', ['HEAD /api/lookup/8.8.8.8 HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['the key in the query', [`GET /api/lookup/8.8.8.8?apikey=${KEY} HTTP/1.1`]],
  ['both ways', [`GET /api/lookup/8.8.8.8?apikey=${KEY} HTTP/1.1`, `X-API-Key: ${KEY}`]],
  ['another query', ['GET /api/lookup/8.8.8.8?a=1 HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['an empty query', ['GET /api/lookup/8.8.8.8? HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['a fragment', ['GET /api/lookup/8.8.8.8#a HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['the key twice', [LOOKUP, `X-API-Key: ${KEY}`, `x-api-key: ${KEY}`]],
  ['no key', [LOOKUP]],
  ['an empty key', [LOOKUP, 'X-API-Key:']],
  ['a wrong key', [LOOKUP, 'X-API-Key: wrong']],
  ['no address', ['GET /api/lookup/nonsense HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['percent-encoding', ['GET /api/lookup/%3A%3A1 HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['the absolute form', ['GET http://ip.example/api/lookup/8.8.8.8 HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['the own address', ['GET /api/lookup/ HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['another path', ['GET /api/lookup/8.8.8.8/ HTTP/1.1', `X-API-Key: ${KEY}`]],
  ['another method', ['POST /api/lookup/8.8.8.8 HTTP/1.1', `X-API-Key: ${KEY}`, 'Content-Length: 0']],
];

it('is taken: the release is asked for once, and not again by the app', async () => {
  const deps = appDeps(dataDir, changes());
  let asked = 0;
  const release = () => {
    asked++;
    return deps.release();
  };
  const port = await start((await buildListener({ ...deps, release })).listener);
  for (const [lines, times] of [
    [[LOOKUP, `X-API-Key: ${KEY}`], 1],
    [[`GET /api/lookup/8.8.8.8?apikey=${KEY} HTTP/1.1`], 2],
  ] as const) {
    asked = 0;
    expect(await exchange(port, `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`)).toContain(' 200 OK');
    expect(asked).toBe(times);
  }
});

describe('both ways answer alike', () => {
  it.each<[string, AppChanges]>([
    ['by default', {}],
    ['in a region', { region: 'fra-1' }],
    ['without a rate limit', { defaultRate: 0 }],
    ['at the end of a rate', { defaultRate: 3 }],
    ['without a database', { release: () => undefined }],
    ['when stopping', { phase: () => 'closing' }],
  ])('%s', async (_, more) => {
    const [short, long] = await pair(more);
    for (const [what, lines] of REQUESTS) {
      const bytes = `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`;
      const [one, other] = await Promise.all([exchange(short, bytes), exchange(long, bytes)]);
      expect([what, comparable(one)]).toEqual([what, comparable(other)]);
      expect(one).toMatch(/^HTTP\/1\.1 \d{3} /);
    }
  });

  it('keeps a connection for several requests', async () => {
    const [short, long] = await pair();
    const keep = `${LOOKUP}\r\nX-API-Key: ${KEY}\r\n\r\n`;
    const last = `${LOOKUP}\r\nX-API-Key: ${KEY}\r\nConnection: close\r\n\r\n`;
    for (const port of [short, long]) {
      const answer = await exchange(port, keep + keep + last);
      expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
      expect([...answer.matchAll(/x-ratelimit-remaining: (\d+)/gi)].map(([, left]) => left)).toEqual([
        '999',
        '998',
        '997',
      ]);
    }
  });

  it('is counted alike', async () => {
    const counted: string[] = [];
    for (const shortWay of [true, false]) {
      const metrics = new RequestMetrics();
      const accesses: unknown[] = [];
      const accessLog = {
        write: ({ duration_ms, ...rest }: { duration_ms: number }) => accesses.push(rest),
        flush() {},
      };
      const deps = appDeps(dataDir, changes({ metrics, accessLog }));
      const app = buildApp(deps);
      await app.ready();
      const port = await start(shortWay ? (await buildListener(deps)).listener : app.routing);
      for (const [, lines] of REQUESTS) await exchange(port, `${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`);
      const text = await metrics.registry.metrics();
      const numbers = text.split('\n').filter((line) => /^ipatlas_(requests_total|lookups_total|.*_count)/.test(line));
      counted.push(JSON.stringify([numbers.sort(), accesses]));
    }
    expect(counted[0]).toContain('ipatlas_lookups_total{outcome=\\"found\\"}');
    expect(counted[0]).toBe(counted[1]);
  });
});
