import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { MemoryRateStore, RateLimiter, type RateState } from '../../src/api/rates/rate-limit.js';
import { RedisRateStore, redisAddress, takeScript } from '../../src/api/rates/redis-rate-store.js';
import {
  RATE_LEASE_FREE_SHARE,
  RATE_LEASE_MS,
  RATE_LEASE_SHARE,
  RATE_STEP_MS,
  RATE_STORE_SETTLE_MS,
  RATE_STORE_TIMEOUT_MS,
  RATE_WINDOW_MS,
} from '../../src/limits.js';
import { keptLog } from '../support/api.js';
import { hasRedis, REDIS_SKIPPED, RedisProcess } from '../support/redis.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { makeKey, type ServeProcess, serve, serveWith, until } from '../support/serve.js';

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

  async function newStore(url = redis.url, log = keptLog(), timeout = LONG): Promise<RedisRateStore> {
    const store = new RedisRateStore({ url, log, timeout });
    stores.push(store);
    await store.start();
    return store;
  }

  const newStores = (): Promise<RedisRateStore[]> => Promise.all([1, 2, 3].map(() => newStore()));

  it('are counted by the script as a list of all grants would count them', async () => {
    const client = await redis.client();
    const script = takeScript().replace('time[1] * 1000 + math.floor(time[2] / 1000)', 'tonumber(ARGV[10])');
    expect(script).toContain('ARGV[10]');
    let run = 0;
    const pause = fc.constantFrom(0, 1, RATE_STEP_MS, RATE_WINDOW_MS / 2, RATE_WINDOW_MS - 1, RATE_WINDOW_MS);
    const step = fc.record({ server: fc.nat(2), least: fc.nat(12), more: fc.nat(6), pause });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.array(step, { maxLength: 30 }), async (limit, steps) => {
        const key = `test:${++run}`;
        let now = 1_700_000_000_000;
        const servers = [0, 1, 2].map(() => new MemoryRateStore(() => now));
        const grants: { at: number; count: number }[] = [];
        const usedSince = (start: number) =>
          grants.filter(({ at }) => at > start).reduce((sum, { count }) => sum + count, 0);
        for (const { server, least, more, pause } of steps) {
          now += pause;
          const { steps: counted, aheadFor } = servers[server]!.counted('key');
          const numbers = [limit, least, least + more, RATE_WINDOW_MS, RATE_LEASE_MS, RATE_LEASE_FREE_SHARE];
          const args = [`${server}`, ...numbers.map(String), JSON.stringify(counted), `${aheadFor}`, `${now}`];
          const reply = (await client.eval(script, { keys: [key], arguments: args })) as number[];
          const [granted, remaining, resetIn, retryIn, askAgainIn] = reply as [number, number, number, number, number];
          const used = usedSince(now - RATE_WINDOW_MS);
          expect(granted).toBeLessThanOrEqual(Math.max(0, limit - used));
          expect(granted === 0 || granted >= least).toBe(true);
          expect(granted).toBeLessThanOrEqual(least + more);
          // Addresses that were counted within one step may become free up to one step late.
          if (granted < least) expect(usedSince(now - RATE_WINDOW_MS - RATE_STEP_MS) + least).toBeGreaterThan(limit);
          expect(remaining).toBeLessThanOrEqual(limit - used - granted);
          if (granted > 0) {
            grants.push({ at: now, count: granted });
            servers[server]!.count('key', granted, granted > least);
          }
          const needed = Math.max(1, least);
          expect(retryIn > 0).toBe(granted < needed && remaining < needed);
          if (retryIn > 0 && limit >= needed) {
            expect(usedSince(now + retryIn - RATE_WINDOW_MS)).toBeLessThanOrEqual(limit - needed);
          }
          expect(askAgainIn).toBeLessThanOrEqual(retryIn);
          expect(usedSince(now + resetIn - RATE_WINDOW_MS)).toBe(0);
        }
      }),
      { numRuns: 150 },
    );
    client.destroy();
  });

  it('are exact over three servers, however their requests are mixed', async () => {
    const limiters = (await newStores()).map((store) => new RateLimiter(store, RATE_LEASE_SHARE));
    const limit = 20_000;
    let allowed = 0;
    const hammer = async (limiter: RateLimiter, seed: number): Promise<void> => {
      let refused = 0;
      for (let i = 0; refused < 20; i++) {
        const cost = 1 + ((i * 7 + seed) % 23);
        const { allowed: isAllowed } = await limiter.take('mixed', cost, limit);
        if (isAllowed) allowed += cost;
        else refused++;
      }
    };
    await Promise.all(limiters.flatMap((limiter, seed) => [hammer(limiter, seed), hammer(limiter, seed + 5)]));
    expect(allowed).toBeLessThanOrEqual(limit);
    // What was drawn ahead and not used comes back, and another server can use it.
    const last = limiters[2]!;
    await expect
      .poll(async () => {
        if ((await last.take('mixed', 1, limit)).allowed) allowed++;
        return allowed;
      }, PATIENCE)
      .toBe(limit);
    expect((await last.take('mixed', 1, limit)).allowed).toBe(false);
  });

  it('are drawn one lease at a time: a thousand requests at once ask Redis at most twice', async () => {
    const [one, other] = (await newStores()).map((store) => new RateLimiter(store, RATE_LEASE_SHARE));
    const limit = 1_000_000;
    const before = await redis.scriptCalls();
    const states = await Promise.all(Array.from({ length: 1_000 }, () => one!.take('many', 1, limit)));
    expect(states.every(({ allowed }) => allowed)).toBe(true);
    // Each of the three servers also notes once a second that it runs.
    expect((await redis.scriptCalls()) - before).toBeLessThan(50);
    const { remaining } = await other!.take('many', 0, limit);
    expect(remaining).toBeGreaterThanOrEqual(limit - 2 * limit * RATE_LEASE_SHARE);
  });

  it('are refused without asking Redis again', async () => {
    const limiter = new RateLimiter(await newStore(), RATE_LEASE_SHARE);
    expect((await limiter.take('refused', 100, 100)).allowed).toBe(true);
    const before = await redis.scriptCalls();
    for (let i = 0; i < 2_000; i++) expect((await limiter.take('refused', 1, 100)).allowed).toBe(false);
    expect((await redis.scriptCalls()) - before).toBeLessThan(50);
  });

  it('are bounded while Redis is away, and remembered when it comes back without data', async () => {
    const log = keptLog();
    const all = [await newStore(redis.url, log), await newStore(), await newStore()];
    await expect.poll(() => all.map((store) => store.servers), PATIENCE).toEqual([3, 3, 3]);
    const limiters = all.map((store) => new RateLimiter(store, RATE_LEASE_SHARE));
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
    // Each has at most a third of the rate, or what it had before; a lease that was drawn may be used.
    expect(allowed[0]).toBeLessThanOrEqual(1_810);
    expect(allowed.slice(1)).toEqual([1_000, 1_000]);
    expect(all.map((store) => store.isShared)).toEqual([false, false, false]);
    const warnings = log.lines.filter(([, message]) => message.startsWith('Redis does not answer'));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]![0]).toMatchObject({ redis: `127.0.0.1:${redis.port}`, servers: 3 });

    await redis.resume();
    await expect.poll(() => all.every((store) => store.isShared), PATIENCE).toBe(true);
    // Together they had more than the rate, and Redis knows it again.
    for (const server of [0, 1, 2]) expect((await take(server, 1)).allowed).toBe(false);
    expect((await limiters[0]!.take('other', 3_000, 3_000)).allowed).toBe(true);
    expect((await limiters[1]!.take('other', 1, 3_000)).allowed).toBe(false);
    expect(log.lines.at(-1)![1]).toBe('rates are counted together with the other servers');
  });

  it('are counted by each server while Redis accepts connections and does not answer', async () => {
    const store = await newStore(redis.url, keptLog(), RATE_STORE_TIMEOUT_MS);
    await expect.poll(() => store.isShared, PATIENCE).toBe(true);
    const limiter = new RateLimiter(store, RATE_LEASE_SHARE);
    redis.signal('SIGSTOP');
    try {
      expect((await limiter.take('stalled', 60, 100)).allowed).toBe(true);
      expect((await limiter.take('stalled', 60, 100)).allowed).toBe(false);
      expect(store.isShared).toBe(false);
    } finally {
      redis.signal('SIGCONT');
    }
    await expect.poll(() => store.isShared, PATIENCE).toBe(true);
    const other = new RateLimiter(await newStore(), RATE_LEASE_SHARE);
    expect((await other.take('stalled', 41, 100)).allowed).toBe(false);
    expect((await other.take('stalled', 40, 100)).allowed).toBe(true);
  });

  it('are still limited if the data in Redis is not from a server', async () => {
    const client = await redis.client();
    await client.hSet('ipatlas:rate:garbage', 'server', 'not JSON');
    await client.set('ipatlas:rate:string', 'x');
    const limiter = new RateLimiter(await newStore(), RATE_LEASE_SHARE);
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
  const servers: ServeProcess[] = [];
  let redis: RedisProcess;
  let dataDir: string;

  beforeAll(async () => {
    redis = await RedisProcess.start();
    dataDir = temporaryDir();
    await publishBlocks(dataDir, SMALL_WORLD);
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop('SIGKILL')));
  });
  afterAll(() => redis.remove());

  it('counts a key over servers and their workers, and each by itself while Redis is away', async () => {
    servers.push(await serve(dataDir, '--redis', redis.url, '--metrics-port', '0'));
    servers.push(await serve(dataDir, '--redis', redis.url, '--workers', '2'));
    const count = async (): Promise<number> => {
      const key = await makeKey(dataDir, '--rate', '60');
      for (const { url } of servers) {
        // A connection for each request, so that the workers take turns.
        const status = async () => {
          const headers = { 'x-api-key': key, connection: 'close' };
          return (await fetch(`${url}/api/batch`, { method: 'POST', headers })).status;
        };
        const isKnown = async () => !(await Promise.all(Array.from({ length: 9 }, status))).includes(403);
        await until(isKnown, 'the notice of the new key');
      }
      let allowed = 0;
      for (let i = 0; i < 100; i++) {
        const response = await fetch(`${servers[i % 2]!.url}/api/lookup/8.8.8.8`, { headers: { 'x-api-key': key } });
        if (response.status === 200) allowed++;
        else expect(response.status).toBe(429);
      }
      return allowed;
    };
    // A server counts by itself for a while if a busy machine does not run Redis for 50 ms.
    let allowed = 0;
    for (let attempt = 0; attempt < 15 && allowed !== 60; attempt++) {
      if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, 2 * RATE_STORE_SETTLE_MS));
      allowed = await count();
    }
    expect(allowed).toBe(60);

    const { url: metricsUrl } = await servers[0]!.logged('metrics');
    const metrics = async () => (await fetch(String(metricsUrl))).text();
    expect(await metrics()).toContain('ipatlas_rates_shared 1');
    await redis.kill();
    await until(async () => (await metrics()).includes('ipatlas_rates_shared 0'), 'the metric of the fallback');
    const free = await makeKey(dataDir, '--rate', '20');
    await until(async () => {
      const response = await fetch(`${servers[0]!.url}/api/lookup/8.8.8.8`, { headers: { 'x-api-key': free } });
      return response.status === 200;
    }, 'a lookup with the new key while Redis is away');
    expect(await servers[0]!.stop()).toBe(0);
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
      servers.push(trusting);
      await trusting.logged('rates are counted together with the other servers');
      const distrusting = await serveWith({ IPATLAS_REDIS: url }, dataDir);
      servers.push(distrusting);
      expect(await distrusting.logged(/^Redis does not answer/)).toMatchObject({
        problem: expect.stringContaining('self-signed'),
      });
      expect(trusting.stderr() + distrusting.stderr()).not.toContain('of-the-test');
    } finally {
      await tls.remove();
    }
  });
});
