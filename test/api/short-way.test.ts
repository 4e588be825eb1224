/** The short way answers what the app answers, byte for byte: the app is its oracle. */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildApp, buildListener } from '../../src/api/app.js';
import { createHttpServer, listen } from '../../src/api/http-server.js';
import { RequestMetrics } from '../../src/api/metrics.js';
import { MemoryRateStore, RateLimiter, type RateStore } from '../../src/api/rate-limit.js';
import { type AppChanges, appDeps, KEY, OTHER_KEY } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { exchange } from '../support/serve.js';

/** Times in the answers are the same for both. */
const NOW = Date.parse('2026-01-01T00:00:00Z');
const changes = (more: AppChanges = {}, store: RateStore = inMemory()): AppChanges => ({
  limiter: new RateLimiter(store, 0, () => NOW),
  defaultRate: 1_000,
  ...more,
});

function inMemory(): RateStore {
  return new MemoryRateStore(() => NOW);
}

/** A store that answers later, as one of several machines would. */
function farAway(): RateStore {
  const near = inMemory();
  return {
    lease(keyId, limit, least, most, callback) {
      near.lease(keyId, limit, least, most, (grant) => setImmediate(callback, grant));
    },
  };
}

let dataDir: string;
const servers: Server[] = [];
const start = async (listener: Parameters<typeof createHttpServer>[0]): Promise<number> => {
  const server = createHttpServer(listener);
  servers.push(server);
  await listen(server, '127.0.0.1', 0);
  return (server.address() as AddressInfo).port;
};

/** The same service both ways. */
async function pair(more: AppChanges = {}, store = inMemory): Promise<[short: number, long: number]> {
  const { listener } = await buildListener(appDeps(dataDir, changes(more, store())));
  const app = buildApp(appDeps(dataDir, changes(more, store())));
  await app.ready();
  return [await start(listener), await start(app.routing)];
}

/** Asked for behind what is compared: ends a connection that was kept. Its own answer goes Fastify's way in both. */
const END = 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n';

/** All that comes back for some bytes, without what the clock says. */
async function answersTo(port: number, bytes: string): Promise<string> {
  const answers = await exchange(port, bytes + END);
  return answers
    .replaceAll(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/gm, 'Date: (a date)')
    .replaceAll(/^x-database-age: \d+\r$/gm, 'x-database-age: (a number)');
}

const message = (lines: readonly string[], body = ''): string => `${lines.join('\r\n')}\r\n\r\n${body}`;

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
  // The request behind it, where the connection is kept, asks once more.
  for (const [lines, times] of [
    [[LOOKUP, `X-API-Key: ${KEY}`], 1 + 1],
    [[`GET /api/lookup/8.8.8.8?apikey=${KEY} HTTP/1.1`], 2 + 1],
    [[LOOKUP, `X-API-Key: ${KEY}`, 'Connection: close'], 2],
  ] as const) {
    asked = 0;
    expect(await exchange(port, message(lines) + END)).toContain(' 200 OK');
    expect([lines, asked]).toEqual([lines, times]);
  }
});

/** A method, a target, a version, headers and a body, each ordinary in most cases. */
const anyRequest = fc
  .record({
    method: often('GET', ['HEAD', 'OPTIONS', 'POST', 'DELETE']),
    address: often('8.8.8.8', [
      '::1',
      '::FFFF:1.2.3.4',
      '2001:4860::8888',
      '10.0.0.1',
      '01.2.3.4',
      '%3A%3A1',
      '%',
      '',
      'a/b',
    ]),
    query: often('', ['?', '?x=1', `?apikey=${KEY}`, '?apikey=', '#x', `?apikey=${KEY}&apikey=${KEY}`]),
    version: often('1.1', ['1.0']),
    headers: fc.subarray(
      [
        `X-API-Key: ${KEY}`,
        `x-api-KEY:${OTHER_KEY}`,
        'X-API-Key: wrong',
        'Origin: https://shop.example',
        'Host: ip.example',
        'Connection: close',
        'Connection: keep-alive',
        'Expect: 100-continue',
        'Expect: the-unexpected',
        'X-Forwarded-For: 9.9.9.9',
        'Content-Length: 0',
        'TE: trailers',
        'Cookie: \u00e4=b',
      ],
      { maxLength: 4 },
    ),
    keyed: often(true, [false]),
    // A body that nobody reads, and that must not be taken for the next request.
    body: often('', ['GET /readyz HTTP/1.1\r\n\r\n']),
  })
  .map(({ method, address, query, version, headers, keyed, body }) =>
    message(
      [
        `${method} /api/lookup/${address}${query} HTTP/${version}`,
        ...(keyed ? [`X-API-Key: ${KEY}`] : []),
        ...headers,
        ...(body === '' ? [] : [`Content-Length: ${body.length}`]),
      ],
      body,
    ),
  );

function often<Value>(usual: Value, rare: Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...rare) });
}

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
      for (const last of [[], ['Connection: close']]) {
        const bytes = message([...lines, ...last]);
        const one = await answersTo(short, bytes);
        expect([what, one]).toEqual([what, await answersTo(long, bytes)]);
        expect(one).toMatch(/^HTTP\/1\.1 \d{3} /);
      }
    }
  });

  it.each<[string, () => RateStore]>([
    ['', inMemory],
    [', with the rates kept elsewhere', farAway],
  ])('byte for byte, whatever comes over a connection%s', async (_, store) => {
    const [short, long] = await pair({ defaultRate: 300, region: 'fra-1' }, store);
    await fc.assert(
      fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 4 }), async (requests) => {
        const bytes = requests.join('');
        expect(await answersTo(short, bytes)).toBe(await answersTo(long, bytes));
      }),
      // What a request answers depends on those before it, so a failure does not shrink.
      { numRuns: 200, endOnFailure: true },
    );
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

  it('minds no caller that is gone before the answer', async () => {
    const ports = await pair({}, farAway);
    for (const port of ports) {
      const bytes = message([LOOKUP, `X-API-Key: ${KEY}`]).repeat(20);
      const callers = Array.from({ length: 50 }, () => connect(port, '127.0.0.1'));
      await Promise.all(
        callers.map(async (caller) => {
          caller.on('error', () => {});
          await once(caller, 'connect');
          caller.write(bytes, () => caller.resetAndDestroy());
          await once(caller, 'close');
        }),
      );
      expect(await exchange(port, message([LOOKUP, `X-API-Key: ${KEY}`]) + END)).toContain(' 200 OK');
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
      for (const [, lines] of REQUESTS) await exchange(port, message(lines) + END);
      const text = await metrics.registry.metrics();
      const numbers = text.split('\n').filter((line) => /^ipatlas_(requests_total|lookups_total|.*_count)/.test(line));
      counted.push(JSON.stringify([numbers.sort(), accesses]));
    }
    expect(counted[0]).toContain('ipatlas_lookups_total{outcome=\\"found\\"}');
    expect(counted[0]).toBe(counted[1]);
  });
});
