/** The short-lived keys of the page. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PageKeys, SECRET_BYTES } from '../../src/api/page/page-keys.js';
import { PAGE_KEY_MS, PAGE_RATE } from '../../src/limits.js';
import { testApp } from '../support/api.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { makeKey, serve } from '../support/serve.js';

const secret = randomBytes(SECRET_BYTES);
let clock = 1_800_000_000_000;
const pageKeys = (options = {}) => new PageKeys({ secret, defaultRate: 0, now: () => clock, ...options });

describe('a key of the page', () => {
  it('is accepted by every process that knows the secret, until it expires', () => {
    const { key, rate, expires_in } = pageKeys().issue('8.8.8.8', 'ip.example');
    expect([rate, expires_in]).toEqual([PAGE_RATE, PAGE_KEY_MS / 1000]);
    const found = pageKeys().find(key);
    expect(found).toMatchObject({
      rate: PAGE_RATE,
      origins: ['https://ip.example', 'http://ip.example'],
      selfIssued: false,
    });
    const start = clock;
    clock = start + PAGE_KEY_MS - 1_000;
    expect(pageKeys().find(key)).toBeDefined();
    clock = start + PAGE_KEY_MS;
    expect(pageKeys().find(key)).toBeUndefined();
    clock = start;
    expect(pageKeys({ secret: randomBytes(SECRET_BYTES) }).find(key)).toBeUndefined();
  });

  it('cannot be changed in any bit', () => {
    const keys = pageKeys();
    const { key } = keys.issue('8.8.8.8', 'ip.example');
    const bytes = Buffer.from(key.slice('page_'.length), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(keys.find(`page_${changed.toString('base64url')}`)).toBeUndefined();
    }
  });

  it.each(['', 'page_', 'page_x', 'page_%%%', `page_${'A'.repeat(38)}`, `page_${'A'.repeat(5_000)}`, 'ipa_x'])(
    'is refused if it is %j',
    (text) => {
      expect(pageKeys().find(text)).toBeUndefined();
    },
  );

  it('is bound to no origin if the host is missing or not valid', () => {
    const keys = pageKeys({ origins: ['https://configured.example'] });
    for (const host of [undefined, '', 'a b', 'x/y', 'ä.example', 'a'.repeat(300)]) {
      expect(keys.find(keys.issue('8.8.8.8', host).key)?.origins).toEqual(['https://configured.example']);
    }
    expect(keys.find(keys.issue('8.8.8.8', 'IP.Example:8080').key)?.origins).toEqual([
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

describe('the hash of a network', () => {
  const network = (address: string) => pageKeys().networkOf(address);

  it('is the same for an IPv4 address, and for 64 bits of an IPv6 address', () => {
    expect(network('::ffff:8.8.8.8')).toBe(network('8.8.8.8'));
    expect(network('2001:db8:0:1::1')).toBe(network('2001:db8:0:1:ffff::'));
    const others = ['8.8.8.8', '8.8.8.9', '2001:db8:0:1::1', '2001:db8:0:2::1', '::808:808'];
    expect(new Set(others.map(network)).size).toBe(others.length);
  });

  it('does not contain the address, and changes after an hour and with another secret', () => {
    const first = network('8.8.8.8');
    expect(first).toMatch(/^[0-9a-f]{16}$/);
    clock += 3_600_000;
    expect(network('8.8.8.8')).not.toBe(first);
    clock -= 3_600_000;
    expect(pageKeys({ secret: randomBytes(SECRET_BYTES) }).networkOf('8.8.8.8')).not.toBe(first);
  });

  it('is forgotten within the hour', () => {
    const keys = pageKeys();
    const { limiter } = keys;
    expect(keys.limiter).toBe(limiter);
    clock += 1_800_000;
    expect(keys.limiter).not.toBe(limiter);
    clock -= 1_800_000;
  });
});

describe('requests with a key of the page', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = temporaryDir();
    await publishBlocks(dataDir, SMALL_WORLD);
  });
  afterAll(() => rmSync(dataDir, { recursive: true }));

  it('work from the page only', async () => {
    const app = testApp(dataDir);
    const { key } = (await app.inject({ url: '/page/key', headers: { host: 'ip.example' } })).json();
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

  it('share one rate, that of their network', async () => {
    const keys = new PageKeys({ secret, defaultRate: 3 });
    const app = testApp(dataDir, { pageKeys: keys, defaultRate: 3 });
    const ask = async (remoteAddress: string) => {
      const { key } = (await app.inject({ url: '/page/key', headers: { host: 'a' }, remoteAddress })).json();
      const headers = { 'x-api-key': key, origin: 'http://a' };
      return (await app.inject({ url: '/api/lookup/8.8.8.8', headers, remoteAddress })).statusCode;
    };
    expect([await ask('8.8.8.8'), await ask('8.8.8.8'), await ask('8.8.8.8'), await ask('8.8.8.8')]).toEqual([
      200, 200, 200, 429,
    ]);
    expect(await ask('8.8.8.9')).toBe(200);
    await app.close();
  });

  it('are answered by every worker of a server, and make nothing that a command lists', async () => {
    await makeKey(dataDir);
    const server = await serve(dataDir, '--workers', '2');
    try {
      const { key } = (await (await fetch(`${server.url}/page/key`)).json()) as { key: string };
      const headers = { 'x-api-key': key, origin: server.url, connection: 'close' };
      for (let i = 0; i < 20; i++) {
        expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(200);
      }
    } finally {
      await server.stop();
    }
  });
});
