import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createKey } from '../../src/api/keys/key-store.js';
import { RateLimiter, type RateState } from '../../src/api/rates/rate-limit.js';
import { RateWindows } from '../../src/api/rates/rate-windows.js';
import { RedisRateStore, redisAddress } from '../../src/api/rates/redis-rate-store.js';
import { RATE_RESERVED_SHARE, RATE_STORE_TIMEOUT_MS, RATE_WINDOW_MS } from '../../src/limits.js';
import { keptLog } from '../support/api.js';
import { hasRedis, REDIS_SKIPPED, RedisProcess } from '../support/redis.js';
import { smallRelease, temporaryDir } from '../support/release.js';
import { type ServeProcess, serveWith, until } from '../support/serve.js';
import { type RunningService, startService } from '../support/service.js';

const available = hasRedis();
if (!available) console.warn(REDIS_SKIPPED);

/** Longest wait for Redis in tests that are not about it: a busy machine may not run Redis for a while. */
const LONG = 10_000;

/** Long enough for a busy machine to notice that Redis is back, and to settle. */
const PATIENCE = { timeout: 60_000, interval: 50 };

describe('the address of Redis', () => {
  it.each([
    ['redis://10.0.0.1', '10.0.0.1:6379'],
    ['rediss://user:secret@redis.example:6380/2', 'redis.example:6380'],
    ['redis://[2001:db8::1]:7000', '[2001:db8::1]:7000'],
  ])('of %s is %s, without user and password', (url, address) => {
    expect(redisAddress(url)).toBe(address);
  });

  it.each([
    '',
    'redis',
    'http://host',
    'redis://',
    'redis:///1',
    '//:secret@host',
    'redis://host/name',
    'redis://:a%zz@host',
  ])('is refused if the URL is %j; the message does not quote it', (url) => {
    expect(() => redisAddress(url)).toThrow('the address of Redis is not a URL such as');
  });
});

describe.skipIf(!available)('rates that servers share in Redis', { timeout: 240_000 }, () => {
  let redis: RedisProcess;
  const stores: RedisRateStore[] = [];

  beforeAll(async () => {
    redis = await RedisProcess.start();
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.stop();
  });
  afterAll(() => redis.remove());

  async function newStore(
    url = redis.url,
    log = keptLog(),
    timeout = LONG,
    now = () => performance.now(),
  ): Promise<RedisRateStore> {
    const store = new RedisRateStore({ url, log, timeout, now });
    stores.push(store);
    await store.start();
    return store;
  }

  it('are counted by the script as in the memory of one process', async () => {
    const store = await newStore();
    const step = fc.record({ needed: fc.nat(12), more: fc.nat(6) });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.array(step, { maxLength: 30 }), async (limit, steps) => {
        const key = `script-${++run}`;
        const model = new RateWindows();
        for (const { needed, more } of steps) {
          const { reserved, used, resetIn } = await store.reserve(key, limit, needed, needed + more);
          expect({ reserved, used }).toMatchObject(
            (({ reserved, used }) => ({ reserved, used }))(model.reserve(key, limit, needed, needed + more)),
          );
          expect(resetIn > 0).toBe(used > 0);
          expect(resetIn).toBeLessThanOrEqual(RATE_WINDOW_MS);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('begin anew when their window ends, and a counter without an end gets one', async () => {
    const client = await redis.client();
    const store = await newStore();
    expect(await store.reserve('ends', 10, 10, 10)).toMatchObject({ reserved: 10, used: 10 });
    expect(await store.reserve('ends', 10, 1, 1)).toMatchObject({ reserved: 0, used: 10 });
    await client.pExpire('ipatlas:rate:ends', 1);
    await expect.poll(async () => (await store.reserve('ends', 10, 1, 1)).used, PATIENCE).toBe(1);
    await client.set('ipatlas:rate:endless', '10');
    expect(await store.reserve('endless', 10, 1, 1)).toEqual({ reserved: 0, used: 10, resetIn: RATE_WINDOW_MS });
    expect(await client.pTTL('ipatlas:rate:endless')).toBeGreaterThan(0);
    client.destroy();
  });

  it('are bounded while Redis is away, and counted together again a window later', async () => {
    let now = 0;
    const log = keptLog();
    const all: RedisRateStore[] = [];
    for (const one of [log, keptLog(), keptLog()]) all.push(await newStore(redis.url, one, LONG, () => now));
    for (const store of all) await store.check();
    expect(all.map((store) => store.servers)).toEqual([3, 3, 3]);
    const limiters = all.map((store) => new RateLimiter(store, RATE_RESERVED_SHARE, () => now));
    const limit = 3_000;
    const allowed = [0, 0, 0];
    const take = async (server: number, cost: number): Promise<RateState> => {
      const state = await limiters[server]!.take('outage', cost, limit);
      if (state.allowed) allowed[server]! += cost;
      return state;
    };
    // The first server uses more than its share, the second less, the third nothing.
    for (let i = 0; i < 180; i++) await take(0, 10);
    for (let i = 0; i < 20; i++) await take(1, 10);
    expect(allowed).toEqual([1_800, 200, 0]);

    await redis.kill();
    for (const server of [0, 1, 2]) while ((await take(server, 10)).allowed);
    // Each has at most a third of the rate, or what it had before.
    expect(allowed).toEqual([1_800, 1_000, 1_000]);
    expect(all.map((store) => store.isShared)).toEqual([false, false, false]);
    const warnings = log.lines.filter(([, message]) => message.startsWith('Redis does not answer'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]![0]).toMatchObject({ redis: `127.0.0.1:${redis.port}`, servers: 3 });

    // It comes back without data: until the windows are over that it does not know, each goes on by itself.
    await redis.resume();
    now = RATE_WINDOW_MS / 2;
    const client = await redis.client();
    const isBack = async () => {
      for (const store of all) await store.check();
      return await client.zCard('ipatlas:servers');
    };
    // Each connects again by itself.
    await expect.poll(isBack, PATIENCE).toBe(all.length);
    client.destroy();
    for (const server of [0, 1, 2]) expect((await take(server, 1)).allowed).toBe(false);
    now += 2 * RATE_WINDOW_MS;
    for (const store of all) await store.check();
    expect(all.every((store) => store.isShared)).toBe(true);
    expect((await limiters[0]!.take('other', 3_000, 3_000)).allowed).toBe(true);
    expect((await limiters[1]!.take('other', 1, 3_000)).allowed).toBe(false);
    expect(log.lines.at(-1)![1]).toBe('rates are counted together with the other servers');
  });

  it('are counted by each server while Redis accepts connections and does not answer', async () => {
    let now = 0;
    const store = await newStore(redis.url, keptLog(), RATE_STORE_TIMEOUT_MS, () => now);
    // On a busy machine Redis may be late at first: then the server counts by itself until a window later.
    const isShared = async () => {
      now += RATE_WINDOW_MS;
      await store.check();
      return store.isShared;
    };
    await expect.poll(isShared, PATIENCE).toBe(true);
    const limiter = new RateLimiter(store, RATE_RESERVED_SHARE);
    redis.signal('SIGSTOP');
    try {
      expect((await limiter.take('stalled', 60, 100)).allowed).toBe(true);
      expect((await limiter.take('stalled', 60, 100)).allowed).toBe(false);
      expect(store.isShared).toBe(false);
    } finally {
      redis.signal('SIGCONT');
    }
  });

  it('are still limited if the data in Redis is not from a server', async () => {
    const client = await redis.client();
    await client.hSet('ipatlas:rate:garbage', 'a', 'b');
    await client.set('ipatlas:rate:string', 'x');
    const store = await newStore();
    // A server that could not say goodbye, because Redis was stopped, is forgotten after a while.
    const servers = async () => {
      await store.check();
      return store.servers;
    };
    await expect.poll(servers, PATIENCE).toBe(1);
    const limiter = new RateLimiter(store, RATE_RESERVED_SHARE);
    for (const key of ['garbage', 'string']) {
      expect((await limiter.take(key, 10, 10)).allowed).toBe(true);
      expect((await limiter.take(key, 1, 10)).allowed).toBe(false);
    }
    client.destroy();
  });

  it('take the password from the URL, and never print it', async () => {
    const locked = await RedisProcess.start('--requirepass', 'right-secret');
    try {
      const address = `127.0.0.1:${locked.port}`;
      const [right, wrong] = [keptLog(), keptLog()];
      expect((await newStore(`redis://:right-secret@${address}`, right)).isShared).toBe(true);
      expect((await newStore(`redis://:wrong-secret@${address}`, wrong)).isShared).toBe(false);
      expect(wrong.lines[0]).toMatchObject([{ redis: address, problem: expect.stringContaining('WRONGPASS') }, {}]);
      expect(JSON.stringify([right.lines, wrong.lines])).not.toContain('secret');
    } finally {
      for (const store of stores.splice(0)) await store.stop();
      await locked.remove();
    }
  });
});

describe.skipIf(!available)('serve --redis', { timeout: 240_000 }, () => {
  const running: (RunningService | ServeProcess)[] = [];
  let redis: RedisProcess;
  let dataDir: string;

  beforeAll(async () => {
    redis = await RedisProcess.start();
    dataDir = await smallRelease();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((one) => one.stop()));
  });
  afterAll(() => redis.remove());

  it('counts a key over servers, and each by itself while Redis is away', async () => {
    const services = [
      await startService(dataDir, { redis: redis.url, 'metrics-port': '0' }),
      await startService(dataDir, { redis: redis.url }),
    ];
    running.push(...services);
    const lookup = async ({ url }: RunningService, key: string): Promise<number> => {
      const response = await fetch(`${url}/api/lookup/8.8.8.8`, { headers: { 'x-api-key': key } });
      await response.arrayBuffer();
      return response.status;
    };
    const { key } = createKey(dataDir, { rate: 60 });
    for (const { url } of services) {
      const headers = { 'x-api-key': key };
      await until(async () => (await fetch(`${url}/api/keys/current`, { headers })).status === 200, 'the new key');
    }
    const statuses: number[] = [];
    for (let i = 0; i < 100; i++) statuses.push(await lookup(services[i % 2]!, key));
    const allowed = statuses.filter((status) => status === 200).length;
    expect(statuses.filter((status) => status === 429)).toHaveLength(100 - allowed);
    // On a busy machine that does not run Redis for 50 ms, a server counts by itself, up to its half.
    expect(allowed).toBeGreaterThanOrEqual(60);
    expect(allowed).toBeLessThanOrEqual(90);

    const { url: metricsUrl } = await services[0]!.logged('metrics');
    const metrics = async () => (await fetch(String(metricsUrl))).text();
    // Also a server that counted by itself counts with the others again, a window later.
    await until(async () => (await metrics()).includes('ipatlas_rates_shared 1'), 'the metric', 2 * RATE_WINDOW_MS);
    await redis.kill();
    await until(async () => (await metrics()).includes('ipatlas_rates_shared 0'), 'the metric of the fallback');
    const { key: free } = createKey(dataDir, { rate: 20 });
    await until(async () => (await lookup(services[0]!, free)) === 200, 'a lookup while Redis is away');
    expect(await services[0]!.stop()).toBe(true);
    await redis.resume();
  });

  it('connects by TLS, and takes the URL from the environment', async () => {
    const dir = temporaryDir();
    const [cert, certKey] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
    const made = spawnSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
      ...['-subj', '/CN=redis.test', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', certKey, '-out', cert],
    ]);
    expect(made.status, String(made.stderr)).toBe(0);
    const tls = await RedisProcess.startTls(cert, certKey);
    try {
      const url = `rediss://default:of-the-test@127.0.0.1:${tls.port}`;
      const trusting = await serveWith({ NODE_EXTRA_CA_CERTS: cert, IPATLAS_REDIS: url }, dataDir);
      running.push(trusting);
      await trusting.logged('rates are counted together with the other servers');
      const distrusting = await startService(dataDir, { redis: url });
      running.push(distrusting);
      expect(await distrusting.logged(/^Redis does not answer/)).toMatchObject({
        problem: expect.stringContaining('self-signed'),
      });
      expect(trusting.stderr() + JSON.stringify(distrusting.log)).not.toContain('of-the-test');
    } finally {
      await tls.remove();
    }
  });
});
