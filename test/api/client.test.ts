import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiHttpServer, listen } from '../../src/api/http-server.js';
import {
  AuthenticationError,
  Client,
  ConnectionError,
  InvalidAddressError,
  RateLimitError,
  ServiceError,
} from '../../src/client/client.js';
import { packageFile } from '../../src/package-root.js';
import { type AppChanges, appDeps, KEY, listenerOf } from '../support/api.js';
import { smallRelease } from '../support/release.js';

const US = { country: 'United States', country_code: 'US', is_eu: false };

let dataDir: string;
const servers: Server[] = [];
const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const started = async (server: Server): Promise<string> => {
  servers.push(server);
  await listen(server, '127.0.0.1', 0);
  return urlOf(server);
};
const service = async (changes: AppChanges = {}): Promise<string> =>
  started(new ApiHttpServer(await listenerOf(appDeps(dataDir, changes)), {}));

let baseUrl: string;
beforeAll(async () => {
  dataDir = await smallRelease();
  baseUrl = await service();
});
afterAll(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/** Returns what a promise rejects with. */
const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail('it did not reject'),
    (error: unknown) => error,
  );

describe('the client', () => {
  it('looks addresses up', async () => {
    const client = new Client(KEY, { baseUrl });
    expect(await client.lookup('8.8.8.8')).toEqual({ ip: '8.8.8.8', ...US });
    expect(await client.lookup('2001:4860::1')).toMatchObject(US);
    expect(await client.lookup('10.0.0.1')).toEqual({
      ip: '10.0.0.1',
      country: null,
      country_code: null,
      is_eu: false,
    });
    expect(await client.lookupSelf()).toMatchObject({ ip: '127.0.0.1', country: null });
  });

  it.each(['', '/', '/api', '/api/', '/api//'])('accepts the base address with %j after it', async (tail) => {
    expect(await new Client(KEY, { baseUrl: baseUrl + tail }).lookup('8.8.8.8')).toMatchObject(US);
  });

  it('sends the key in the header, never in the address', async () => {
    const calls: [string, Record<string, string>][] = [];
    const spy: typeof fetch = (url, init) => {
      calls.push([String(url), init?.headers as Record<string, string>]);
      return fetch(url, init);
    };
    const client = new Client(KEY, { baseUrl, fetch: spy });
    await Promise.all([client.lookup('8.8.8.8'), client.lookupSelf(), client.batch(['8.8.8.8'])]);
    expect(calls.map(([url]) => url.replace(baseUrl, ''))).toEqual([
      '/api/lookup/8.8.8.8',
      '/api/lookup/',
      '/api/batch',
    ]);
    for (const [url, headers] of calls) {
      expect(url).not.toContain(KEY);
      expect(headers['X-API-Key']).toBe(KEY);
    }
  });

  it('splits many addresses into batches of a thousand, four requests at a time', async () => {
    let running = 0;
    let most = 0;
    const sizes: number[] = [];
    const spy: typeof fetch = async (url, init) => {
      most = Math.max(most, ++running);
      sizes.push((JSON.parse(String(init?.body)) as string[]).length);
      try {
        return await fetch(url, init);
      } finally {
        running--;
      }
    };
    const ips = Array.from({ length: 7_300 }, (_, index) => `8.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
    const mixed = [...ips.slice(0, 10), 'nonsense', '__proto__', '8.0.0.1', ...ips.slice(10), '2001:4860::1'];
    const answers = await new Client(KEY, { baseUrl, fetch: spy }).batch(mixed);
    expect(Object.keys(answers)).toEqual([...new Set(mixed)]);
    for (const ip of ips) expect(answers[ip]).toEqual({ ip, ...US });
    expect(answers.nonsense).toEqual({ error: 'invalid ip' });
    expect(Object.getOwnPropertyDescriptor(answers, '__proto__')?.value).toEqual({ error: 'invalid ip' });
    expect(answers['2001:4860::1']).toMatchObject({ ip: '2001:4860:0000:0000:0000:0000:0000:0001' });
    expect(sizes.sort((a, b) => a - b)).toEqual([303, ...Array(7).fill(1000)]);
    expect(most).toBe(4);
  });

  it('sends no request for no addresses, and accepts any iterable', async () => {
    const never: typeof fetch = () => expect.fail('a request was made');
    expect(await new Client(KEY, { fetch: never }).batch([])).toEqual({});
    expect(Object.keys(await new Client(KEY, { baseUrl }).batch(new Set(['8.8.8.8', '8.8.4.4'])))).toHaveLength(2);
  });
});

describe('the errors of the client', () => {
  it('include an empty key', () => {
    expect(() => new Client('')).toThrow(TypeError);
  });

  it.each(['', '..', '.', 'nonsense', '8.8.8.8/../../healthz', '8.8.8.8?apikey=x', ' 8.8.8.8', 'fe80::1%eth0'])(
    'include %j, which is not an address: no request is sent',
    async (ip) => {
      const never: typeof fetch = () => expect.fail('a request was made');
      const error = await failure(new Client(KEY, { fetch: never }).lookup(ip));
      expect(error).toBeInstanceOf(InvalidAddressError);
      expect(error).toMatchObject({ name: 'InvalidAddressError', status: 400, message: 'Invalid IP address' });
    },
  );

  it('include a key that is not valid', async () => {
    const error = await failure(new Client('wrong', { baseUrl }).lookup('8.8.8.8'));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ name: 'AuthenticationError', status: 403, message: 'Invalid API key' });
  });

  it('include a key that a proxy removed', async () => {
    const url = await service();
    const without: typeof fetch = (input) => fetch(input);
    const error = await failure(new Client(KEY, { baseUrl: url, fetch: without }).lookup('8.8.8.8'));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ name: 'AuthenticationError', status: 401, message: 'Missing API key' });
  });

  it('include a rate that is used up', async () => {
    const client = new Client(KEY, { baseUrl: await service({ defaultRate: 1 }) });
    await client.lookup('8.8.8.8');
    const error = await failure(client.lookup('8.8.8.8'));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ name: 'RateLimitError', status: 429, message: 'Rate limit exceeded' });
    expect((error as RateLimitError).retryAfter).toBeGreaterThan(0);
    expect((error as RateLimitError).retryAfter).toBeLessThanOrEqual(60);
    expect(await failure(client.batch(['8.8.8.8', '8.8.4.4']))).toBeInstanceOf(RateLimitError);
  });

  it('include a service without a database', async () => {
    const error = await failure(new Client(KEY, { baseUrl: await service({ release: () => undefined }) }).lookupSelf());
    expect(error).toMatchObject({ name: 'ServiceError', status: 503, message: 'Database not loaded' });
  });

  it.each([
    [500, '<html>', /^the service answered 500$/],
    [404, '{"error":7}', /^the service answered 404$/],
    [200, 'nonsense', /^the answer is not JSON/],
  ])('include a response with status %i that is not from the service', async (status, body, message) => {
    const other = await started(createServer((_, response) => response.writeHead(status).end(body)));
    const error = await failure(new Client(KEY, { baseUrl: other }).lookup('8.8.8.8'));
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ status, message: expect.stringMatching(message) });
  });

  it('include a server that cannot be reached or does not respond in time', async () => {
    const gone = createServer();
    await listen(gone, '127.0.0.1', 0);
    const url = urlOf(gone);
    gone.close();
    expect(await failure(new Client(KEY, { baseUrl: url }).lookup('8.8.8.8'))).toMatchObject({
      name: 'ConnectionError',
      status: 0,
      message: expect.stringMatching(/^http:\/\/\S+ cannot be reached$/),
    });
    const silent = await started(createServer(() => {}));
    const error = await failure(new Client(KEY, { baseUrl: silent, timeout: 50 }).lookup('8.8.8.8'));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ message: `no answer of ${silent} within 50 ms` });
    const slow = await started(createServer((_, response) => response.writeHead(200).write('{"ip":')));
    const within = await failure(new Client(KEY, { baseUrl: slow, timeout: 200 }).lookup('8.8.8.8'));
    expect(within).toBeInstanceOf(ConnectionError);
    expect(within).toMatchObject({ message: `no answer of ${slow} within 200 ms` });
  });

  it('end the other requests of a lookup when one request fails', async () => {
    let aborted = 0;
    let calls = 0;
    const spy: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        if (++calls === 4) reject(new TypeError('fetch failed'));
        init?.signal?.addEventListener('abort', () => {
          aborted++;
          reject(init.signal?.reason as Error);
        });
      });
    const ips = Array.from({ length: 9_000 }, (_, index) => String(index));
    expect(await failure(new Client(KEY, { fetch: spy }).batch(ips))).toBeInstanceOf(ConnectionError);
    expect([calls, aborted]).toEqual([4, 4]);
  });
});

it('uses no module of Node and no package, so it runs in a browser', () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    // Types and comments have no effect when compiled.
    const text = readFileSync(file, 'utf8').replaceAll(/^(import|export) type .*$|^\s*\/?\*.*$/gm, '');
    for (const [, specifier] of text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)) {
      expect(specifier).toMatch(/^\./);
      visit(join(dirname(file), specifier!.replace(/\.js$/, '.ts')));
    }
    expect(text).not.toMatch(/\b(process|Buffer|require|__dirname)\b[.(]/);
  };
  visit(packageFile('src/client/client.ts'));
  expect(seen.size).toBeGreaterThan(1);
});
