/** Keys that people make for themselves. */
import { writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { createKey, importKeys, keysPath, listKeys } from '../../src/api/keys/key-store.js';
import { SignUps } from '../../src/api/keys/sign-up.js';
import { readSettings } from '../../src/cli/serve.js';
import { SIGN_UP_RATE, SIGN_UP_WINDOW_MS, SIGN_UPS_PER_NETWORK } from '../../src/limits.js';
import { sqlite } from '../../src/sqlite.js';
import { fixedKeys, KEY, keptLog, testApp } from '../support/api.js';
import { ipatlas } from '../support/in-process.js';
import { smallRelease, temporaryDir } from '../support/release.js';
import { startService } from '../support/service.js';

const dataDir = await smallRelease();

describe('sign-up', () => {
  let keysDir: string;
  let clock: number;
  let log: ReturnType<typeof keptLog>;
  const signUps = (options = {}) =>
    new SignUps({ dataDir: keysDir, isOpen: true, defaultRate: 0, log, now: () => clock, ...options });
  const create = (one: SignUps, caller: string) => Object.keys(one.handle({ do: 'create', caller }))[0];
  beforeEach(() => {
    keysDir = temporaryDir();
    clock = 0;
    log = keptLog();
  });

  it('makes a self-issued key with a rate, which is listed as such and has no label', () => {
    const outcome = signUps().handle({ do: 'create', caller: '192.0.2.1' });
    expect(outcome).toMatchObject({ created: { key: expect.stringMatching(/^ipa_/), rate: SIGN_UP_RATE } });
    expect(listKeys(keysDir)).toMatchObject([{ label: '', rate: SIGN_UP_RATE, self_issued: true, origins: null }]);
  });

  it('gives no more than the rate of the server', () => {
    expect(signUps({ defaultRate: 100 }).handle({ do: 'create', caller: '192.0.2.1' })).toMatchObject({
      created: { rate: 100 },
    });
  });

  it('makes no key if it is closed', () => {
    expect(signUps({ isOpen: false }).handle({ do: 'create', caller: '192.0.2.1' })).toEqual({
      refused: 'sign_up_closed',
    });
    expect(listKeys(keysDir)).toEqual([]);
  });

  it('makes some keys in an hour for one network, whatever the time of day, and also after a restart', () => {
    const start = 3_599_000;
    for (let i = 0; i < SIGN_UPS_PER_NETWORK[64]; i++) {
      clock = start + i * 1_000;
      expect(create(signUps(), '192.0.2.1')).toBe('created');
    }
    const refused = { refused: 'sign_up_limit', retryIn: start + SIGN_UP_WINDOW_MS - clock };
    expect(signUps().handle({ do: 'create', caller: '192.0.2.1' })).toEqual(refused);
    expect(signUps().handle({ do: 'create', caller: '::ffff:192.0.2.1' })).toHaveProperty('refused');
    expect(create(signUps(), '192.0.2.2')).toBe('created');
    expect(listKeys(keysDir)).toHaveLength(SIGN_UPS_PER_NETWORK[64] + 1);
    clock = start + SIGN_UP_WINDOW_MS;
    expect(create(signUps(), '192.0.2.1')).toBe('created');
  });

  it('limits an IPv6 /64, /56 and /48, and nobody else', () => {
    const one = signUps();
    const madeBy = (addresses: string[]) => addresses.filter((address) => create(one, address) === 'created').length;
    const range = (count: number, address: (i: number) => string) =>
      Array.from({ length: count }, (_, i) => address(i));
    expect(madeBy(range(20, (i) => `2001:db8:0:1::${i}`))).toBe(SIGN_UPS_PER_NETWORK[64]);
    expect(madeBy(range(50, (i) => `2001:db8:0:${(i + 2).toString(16)}::1`))).toBe(
      SIGN_UPS_PER_NETWORK[56] - SIGN_UPS_PER_NETWORK[64],
    );
    expect(madeBy(range(200, (i) => `2001:db8:0:${((i % 100) + 1).toString(16)}00::${i}`))).toBe(
      SIGN_UPS_PER_NETWORK[48] - SIGN_UPS_PER_NETWORK[56],
    );
    expect(madeBy(['2001:db8:1::1', '192.0.2.1'])).toBe(2);
  });

  it('keeps nothing that names a network, and no count for longer than an hour', () => {
    const counts = () => {
      const database = new (sqlite())(keysPath(keysDir));
      try {
        return database.prepare('SELECT network, made FROM sign_up').all() as { network: number; made: number }[];
      } finally {
        database.close();
      }
    };
    create(signUps(), '192.0.2.1');
    create(signUps(), '192.0.2.1');
    expect(counts()).toEqual([{ network: expect.any(Number), made: 2 }]);
    // 4,096 IPv4 addresses have the same number.
    expect(counts()[0]!.network).toBeLessThan(2 ** 20);
    clock += SIGN_UP_WINDOW_MS;
    create(signUps(), '192.0.2.2');
    expect(counts()).toHaveLength(1);
    // Set back by a day: what was counted would hold for a day and an hour.
    clock -= 86_400_000;
    create(signUps(), '192.0.2.3');
    expect(counts()).toHaveLength(1);
  });

  it('reports a key that cannot be stored, and does not count it', () => {
    const one = signUps({ dataDir: '/dev/null/keys' });
    for (let i = 0; i <= SIGN_UPS_PER_NETWORK[64]; i++) {
      expect(one.handle({ do: 'create', caller: '192.0.2.1' })).toEqual({ refused: 'internal' });
    }
    expect(log.lines[0]?.[1]).toBe('a key could not be stored');
  });

  it('does not wait long for another writer', () => {
    const one = signUps();
    one.handle({ do: 'create', caller: '192.0.2.1' });
    const writer = new (sqlite())(keysPath(keysDir));
    writer.exec('BEGIN EXCLUSIVE');
    for (const request of [
      { do: 'create', caller: '192.0.2.1' },
      { do: 'revoke', id: '1' },
    ] as const)
      expect(one.handle(request)).toEqual({ refused: 'keys_busy', retryIn: 1_000 });
    writer.exec('COMMIT');
    writer.close();
    expect(one.handle({ do: 'create', caller: '192.0.2.1' })).toHaveProperty('created');
  });

  it('makes and revokes no key if the keys are imported', () => {
    const one = signUps();
    importKeys(keysDir, [], true);
    expect(one.handle({ do: 'create', caller: '192.0.2.1' })).toEqual({ refused: 'sign_up_closed' });
    expect(one.handle({ do: 'revoke', id: '1' })).toEqual({ refused: 'key_not_self_issued' });
    expect(log.lines).toEqual([]);
  });

  it('revokes self-issued keys only', async () => {
    const one = signUps();
    const outcome = one.handle({ do: 'create', caller: '192.0.2.1' }) as { created: { id: string } };
    const { id } = outcome.created;
    const revoked = one.handle({ do: 'revoke', id });
    expect(revoked).toMatchObject({ revoked: { id, revoked: expect.stringMatching(/Z$/) } });
    expect(one.handle({ do: 'revoke', id })).toEqual(revoked);
    createKey(keysDir);
    const operators = listKeys(keysDir).find((key) => !key.self_issued)!;
    expect(one.handle({ do: 'revoke', id: operators.id })).toEqual({ refused: 'key_not_self_issued' });
    expect(one.handle({ do: 'revoke', id: 'nope' })).toEqual({ refused: 'key_not_self_issued' });
    expect(listKeys(keysDir).find(({ id }) => id === operators.id)?.revoked).toBeNull();
  });
});

const OPEN = { ipv4Url: undefined, ipv6Url: undefined, signUp: true, keyless: 'everyone', publicDb: true } as const;

describe('the routes of keys', () => {
  it('refuse other names of the server, so that a page of another site cannot let its own name mean it', async () => {
    const created = { id: '1', key: 'ipa_x', rate: 5, expires: '' };
    const app = testApp(dataDir, { page: OPEN, keyService: () => ({ created }) });
    const post = async (host: string) =>
      (await app.inject({ method: 'POST', url: '/api/keys', headers: { host, origin: `http://${host}` } })).statusCode;
    expect([await post('rebound.example'), await post('localhost:8080')]).toEqual([421, 201]);
    await app.close();
  });

  it('ask nobody for a network that was refused, until it may try again', async () => {
    let asked = 0;
    const keyService = () => {
      asked++;
      return { refused: 'sign_up_limit', retryIn: 3_600_000 } as const;
    };
    const app = testApp(dataDir, { page: OPEN, keyService });
    const post = async (remoteAddress: string) =>
      (await app.inject({ method: 'POST', url: '/api/keys', remoteAddress })).headers['retry-after'];
    expect([await post('2001:db8::1'), await post('2001:db8::2'), asked]).toEqual(['3600', '3600', 1]);
    await post('2001:db8:0:1::1');
    expect(asked).toBe(2);
    const closed = testApp(dataDir, { keyService });
    expect((await closed.inject({ method: 'POST', url: '/api/keys' })).statusCode).toBe(403);
    expect(asked).toBe(2);
    await app.close();
    await closed.close();
  });

  it('make no key for pages of other origins', async () => {
    const asked: unknown[] = [];
    const created = { id: '1', key: 'ipa_x', rate: 5, expires: '2027-02-21T00:00:00.000Z' };
    const app = testApp(dataDir, {
      page: OPEN,
      baseUrls: { default: 'https://ip.example' },
      keyService: (request) => {
        asked.push(request);
        return { created };
      },
    });
    const post = (headers: Record<string, string>) =>
      app.inject({ method: 'POST', url: '/api/keys', headers: { host: 'ip.example', ...headers } });
    for (const origin of ['https://other.example', 'null', ''])
      expect([(await post({ origin })).statusCode, asked]).toEqual([403, []]);
    for (const headers of [{ origin: 'https://ip.example' }, {}]) {
      const response = await post(headers);
      expect([response.statusCode, response.json()]).toEqual([201, created]);
      expect(response.headers['cache-control']).toBe('private, no-store');
    }
    expect(asked).toHaveLength(2);
    await app.close();
  });

  it.each([
    ['sign_up_closed', 403],
    ['sign_up_limit', 429],
    ['keys_busy', 503],
    ['internal', 500],
  ] as const)('answer %s with %i', async (refused, status) => {
    const app = testApp(dataDir, { page: OPEN, keyService: () => ({ refused, retryIn: 1_500 }) });
    const response = await app.inject({ method: 'POST', url: '/api/keys' });
    expect([response.statusCode, response.headers['retry-after']]).toEqual([status, '2']);
    expect(response.json()).toHaveProperty('error');
    await app.close();
  });

  it('show a key without counting, even if its rate is used up', async () => {
    const app = testApp(dataDir, { keys: fixedKeys({ [KEY]: { id: 'one', rate: 2, selfIssued: true } }) });
    const headers = { 'x-api-key': KEY };
    for (const left of ['2', '1', '0']) {
      const response = await app.inject({ url: '/api/keys/current', headers });
      expect([response.statusCode, response.json()]).toEqual([200, { id: 'one', rate: 2, self_issued: true }]);
      expect([response.headers['x-ratelimit-limit'], response.headers['x-ratelimit-remaining']]).toEqual(['2', left]);
      await app.inject({ url: '/api/lookup/8.8.8.8', headers });
    }
    expect((await app.inject('/api/keys/current')).statusCode).toBe(401);
    await app.close();
  });

  it('do not revoke a key that the operator made', async () => {
    const app = testApp(dataDir);
    const response = await app.inject({ method: 'DELETE', url: '/api/keys/current', headers: { 'x-api-key': KEY } });
    expect([response.statusCode, response.json()]).toEqual([403, { error: 'Only the operator can revoke this key' }]);
    const post = await app.inject({ method: 'POST', url: '/api/keys/current', headers: { 'x-api-key': KEY } });
    expect([post.statusCode, post.headers.allow]).toEqual([405, 'GET, HEAD, DELETE, OPTIONS']);
    await app.close();
  });
});

describe('ipatlas serve', () => {
  it.each([
    [['--sign-up', 'maybe'], /--sign-up is "maybe"; it can be open, closed/],
    [['--ipv4-url', 'ftp://x.example'], /--ipv4-url "ftp:\/\/x\.example" is not an http or https URL/],
    [['--ipv6-url', 'http://[::1]:8080'], /--ipv6-url .* must have the name of a host/],
  ])('refuses %j', async (flags, message) => {
    const result = await ipatlas(['serve', '--data', dataDir, '--port', '0', ...flags]);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });

  it('does not open sign-up if the keys are imported, or cannot be written', async () => {
    const dir = await smallRelease();
    const start = () => ipatlas(['serve', '--data', dir, '--port', '0', '--sign-up', 'open']);
    importKeys(dir, [], true);
    expect(await start()).toMatchObject({ code: 2, stderr: expect.stringMatching(/are imported/) });
    writeFileSync(keysPath(dir), 'no database at all, but long enough to be looked at');
    expect(await start()).toMatchObject({ code: 2, stderr: expect.stringMatching(/keys\.sqlite cannot be used/) });
  });
});

it('a service makes keys that work at once and can be revoked, if sign-up is open', async () => {
  const own = await smallRelease();
  const service = await startService(own, { 'sign-up': 'open' });
  const { key } = (await (await fetch(`${service.url}/api/keys`, { method: 'POST' })).json()) as { key: string };
  const status = async (path: string, method = 'GET') =>
    (await fetch(service.url + path, { method, headers: { 'x-api-key': key } })).status;
  expect(await status('/api/lookup/8.8.8.8')).toBe(200);
  expect(await status('/api/keys/current', 'DELETE')).toBe(200);
  expect(await status('/api/lookup/8.8.8.8')).toBe(403);
  await service.stop();
});

it('a service does not make keys by default', async () => {
  const app = testApp(dataDir, { page: readSettings({ dataDir, seed: 'never', values: {}, positionals: [] }).page });
  const response = await app.inject({ method: 'POST', url: '/api/keys' });
  expect([response.statusCode, response.json()]).toEqual([
    403,
    { error: 'Sign-up is closed; ask the operator for a key' },
  ]);
  const page = await app.inject({ url: '/', headers: { accept: 'text/html' } });
  expect([page.statusCode, page.body.includes('Make a key')]).toEqual([200, false]);
  await app.close();
});
