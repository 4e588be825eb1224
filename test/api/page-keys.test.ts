/** The short-lived keys of the page. */
import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { PageKeys, SECRET_BYTES } from '../../src/api/page/page-keys.js';
import { readSettings } from '../../src/cli/serve.js';
import { PAGE_KEY_MS, PAGE_RATE } from '../../src/limits.js';
import { testApp } from '../support/api.js';
import { smallRelease } from '../support/release.js';

const secret = randomBytes(SECRET_BYTES);
let clock = 1_800_000_000_000;
const pageKeys = (options = {}) => new PageKeys({ secret, defaultRate: 0, now: () => clock, ...options });

const find = (keys: PageKeys, key: string, caller = '8.8.8.8', isOwn = false) => keys.find(key, () => caller, isOwn);

describe('a key of the page', () => {
  it('is accepted by every process that knows the secret, until it expires', () => {
    const { key, rate, expires_in } = pageKeys().issue('8.8.8.8', 'ip.example');
    expect([rate, expires_in]).toEqual([PAGE_RATE, PAGE_KEY_MS / 1000]);
    const found = find(pageKeys(), key);
    expect(found).toMatchObject({
      rate: PAGE_RATE,
      origins: ['https://ip.example', 'http://ip.example'],
      selfIssued: false,
    });
    const start = clock;
    clock = start + PAGE_KEY_MS - 1_000;
    expect(find(pageKeys(), key)).toBeDefined();
    clock = start + PAGE_KEY_MS;
    expect(find(pageKeys(), key)).toBeUndefined();
    clock = start;
    expect(find(pageKeys({ secret: randomBytes(SECRET_BYTES) }), key)).toBeUndefined();
  });

  it('cannot be changed in any bit', () => {
    const keys = pageKeys();
    const { key } = keys.issue('8.8.8.8', 'ip.example');
    const bytes = Buffer.from(key.slice('page_'.length), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(find(keys, `page_${changed.toString('base64url')}`)).toBeUndefined();
    }
  });

  it.each(['', 'page_', 'page_x', 'page_%%%', `page_${'A'.repeat(38)}`, `page_${'A'.repeat(5_000)}`, 'ipa_x'])(
    'is refused if it is %j',
    (text) => {
      expect(find(pageKeys(), text)).toBeUndefined();
    },
  );

  it('is bound to no origin if the host is missing or not valid', () => {
    const keys = pageKeys({ origins: ['https://configured.example'] });
    for (const host of [undefined, '', 'a b', 'x/y', 'ä.example', 'a'.repeat(300)]) {
      expect(find(keys, keys.issue('8.8.8.8', host).key)?.origins).toEqual(['https://configured.example']);
    }
    expect(find(keys, keys.issue('8.8.8.8', 'IP.Example:8080').key)?.origins).toEqual([
      'https://ip.example:8080',
      'http://ip.example:8080',
      'https://configured.example',
    ]);
  });

  it('has the rate of the server if that is lower', () => {
    expect(pageKeys({ defaultRate: 500 }).issue('8.8.8.8', 'a').rate).toBe(500);
    expect(pageKeys({ defaultRate: 1e9 }).issue('8.8.8.8', 'a').rate).toBe(PAGE_RATE);
  });
});

describe('the network of a key', () => {
  it('is an IPv4 address, or 64 bits of an IPv6 address', () => {
    const keys = pageKeys();
    const isFound = (maker: string, user: string) => find(keys, keys.issue(maker, 'a').key, user) !== undefined;
    expect(isFound('::ffff:8.8.8.8', '8.8.8.8')).toBe(true);
    expect(isFound('2001:db8:0:1::1', '2001:db8:0:1:ffff::')).toBe(true);
    expect(isFound('8.8.8.8', '8.8.8.9')).toBe(false);
    expect(isFound('2001:db8:0:1::1', '2001:db8:0:2::1')).toBe(false);
    expect(isFound('8.8.8.8', '2001:db8:0:1::1')).toBe(false);
  });

  it('does not matter for a request about the own address, which counts for the network of the caller', () => {
    const keys = pageKeys();
    const { key } = keys.issue('2001:db8::1', 'a');
    expect(find(keys, key, '8.8.8.8', true)?.id).toBe(keys.visitor('8.8.8.8').id);
  });

  it('is in the key as a hash that does not change with the hour', () => {
    const { id } = pageKeys().visitor('8.8.8.8');
    expect(id).toMatch(/^[0-9a-f]{16}$/);
    clock += 3_600_000;
    expect(pageKeys().visitor('8.8.8.8').id).toBe(id);
    clock -= 3_600_000;
    expect(pageKeys({ secret: randomBytes(SECRET_BYTES) }).visitor('8.8.8.8').id).not.toBe(id);
  });
});

describe('requests with a key of the page', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await smallRelease();
  });

  it('work from the page only', async () => {
    const app = testApp(dataDir, { baseUrls: { default: 'https://ip.example' } });
    const response = await app.inject({ url: '/page/key', headers: { host: 'ip.example' } });
    // Pages of other origins cannot read it.
    expect(response.headers).not.toHaveProperty('access-control-allow-origin');
    const { key } = response.json();
    const status = async (headers: Record<string, string>) =>
      (await app.inject({ url: '/api/lookup/8.8.8.8', headers: { 'x-api-key': key, ...headers } })).statusCode;
    expect(await status({ origin: 'https://ip.example' })).toBe(200);
    expect(await status({ origin: 'http://ip.example' })).toBe(200);
    expect(await status({ origin: 'https://other.example' })).toBe(403);
    // The key is bound to the host of the page, not to that of the request.
    expect(await status({ origin: 'https://other.example', host: 'other.example' })).toBe(403);
    expect(await status({})).toBe(403);
    await app.close();
  });

  it('do not work from another network, except for the own address', async () => {
    const app = testApp(dataDir);
    const { key } = (await app.inject({ url: '/page/key', remoteAddress: '2001:db8::1' })).json();
    const status = async (url: string, remoteAddress: string) =>
      (await app.inject({ url, remoteAddress, headers: { 'x-api-key': key, origin: 'http://localhost:80' } }))
        .statusCode;
    expect(await status('/api/lookup/8.8.8.8', '2001:db8::2')).toBe(200);
    expect(await status('/api/lookup/8.8.8.8', '192.0.2.1')).toBe(403);
    expect(await status('/api/keys/current', '192.0.2.1')).toBe(403);
    expect(await status('/api/lookup/', '192.0.2.1')).toBe(200);
    await app.close();
  });

  it.each(['/', '/?ip=8.8.8.8', '/docs', '/page/key'])('are for the names of the server: %s', async (url) => {
    const app = testApp(dataDir, { baseUrls: { default: 'https://ip.example/api', eu: 'https://eu.ip.example' } });
    const status = async (host: string) =>
      (await app.inject({ url, headers: { host, accept: 'text/html' } })).statusCode;
    for (const host of ['ip.example', 'IP.example:8443', 'eu.ip.example', 'localhost:8080', '127.0.0.1', '[::1]:80'])
      expect([host, await status(host)]).toEqual([host, 200]);
    for (const host of ['rebound.example', 'ip.example.evil.example', '192.0.2.1:8080', 'localhost@evil', 'a b'])
      expect([host, await status(host)]).toEqual([host, 421]);
    expect((await app.inject({ url, headers: { host: 'rebound.example' } })).json().error).toContain('--base-url');
    const forBrowsers = await app.inject({ url, headers: { host: 'rebound.example', accept: 'text/html' } });
    expect(forBrowsers.headers['content-type']).toContain('text/html');
    expect(forBrowsers.body).toContain('ipatlas serve --base-url http://rebound.example<');
    // Load balancers and programs use any name.
    for (const path of ['/healthz', '/readyz', '/attribution', '/openapi.json'])
      expect((await app.inject({ url: path, headers: { host: '192.0.2.1' } })).statusCode).toBe(200);
    await app.close();
  });

  it('are not made with --no-keyless, and the page looks nothing up', async () => {
    const app = testApp(dataDir, {
      page: { ipv4Url: undefined, ipv6Url: undefined, signUp: true, keyless: 'nobody', publicDb: true },
    });
    const get = (url: string) => app.inject({ url, remoteAddress: '8.8.8.8', headers: { accept: 'text/html' } });
    for (const url of ['/page/key', '/?ip=193.0.6.139']) {
      const response = await get(url);
      expect([response.statusCode, response.json()]).toEqual([403, { error: 'Lookups need an API key here' }]);
    }
    const page = await get('/');
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toMatch(/United States|<form|app\.js/);
    await app.close();
  });

  it.each([
    ['127.0.0.1', {}, [], 200],
    ['::ffff:127.0.0.1', {}, [], 200],
    ['::1', {}, [], 200],
    ['192.0.2.1', { host: 'localhost', origin: 'http://localhost' }, [], 403],
    ['127.0.0.1', { 'x-forwarded-for': '192.0.2.1' }, [], 403],
    ['127.0.0.1', { 'x-forwarded-for': '127.0.0.1' }, [], 403],
    ['127.0.0.1', { 'x-forwarded-for': '127.0.0.1, 192.0.2.1' }, ['127.0.0.0/8'], 403],
    ['10.0.0.1', { 'x-forwarded-for': '192.0.2.1, 127.0.0.1' }, ['10.0.0.0/8'], 200],
  ])(
    'are for the own machine if the server has no name: %s with %j, proxies %j',
    async (peer, headers, trustProxy, expected) => {
      const settings = readSettings({ dataDir, seed: 'never', values: {}, positionals: [] });
      const app = testApp(dataDir, { page: settings.page, trustProxy });
      for (const url of ['/page/key', '/?ip=193.0.6.139']) {
        const response = await app.inject({ url, remoteAddress: peer, headers: { accept: 'text/html', ...headers } });
        expect([url, response.statusCode]).toEqual([url, expected]);
      }
      await app.close();
    },
  );

  it('share one rate, that of their network', async () => {
    const keys = new PageKeys({ secret, defaultRate: 3 });
    const app = testApp(dataDir, { pageKeys: keys, defaultRate: 3 });
    const ask = async (remoteAddress: string) => {
      const { key } = (await app.inject({ url: '/page/key', headers: { host: 'localhost' }, remoteAddress })).json();
      const headers = { 'x-api-key': key, origin: 'http://localhost' };
      return (await app.inject({ url: '/api/lookup/8.8.8.8', headers, remoteAddress })).statusCode;
    };
    expect([await ask('8.8.8.8'), await ask('8.8.8.8'), await ask('8.8.8.8'), await ask('8.8.8.8')]).toEqual([
      200, 200, 200, 429,
    ]);
    expect(await ask('8.8.8.9')).toBe(200);
    await app.close();
  });
});
