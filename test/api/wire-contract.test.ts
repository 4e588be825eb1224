/** Every row of the wire contract, with inject(); other files use a real server. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { wireSchema } from '../../src/api/openapi.js';
import { RateLimiter } from '../../src/api/rates/rate-limit.js';
import { countryTable } from '../../src/country/country.js';
import { type AppChanges, fixedKeys, KEY, OTHER_KEY, testApp } from '../support/api.js';
import { type Block, country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const HEADERS = { 'x-api-key': KEY };

/** One block for each country of the reference data, from 100.0.0.0/24. */
const COUNTRIES = [...countryTable(loadReference(), '2026-01-01').values()];
const ipOf = (code: string): string => {
  const index = COUNTRIES.findIndex((one) => one.code === code);
  return `100.${index >> 8}.${index & 255}.7`;
};
const COUNTRY_BLOCKS: Block[] = COUNTRIES.map(({ code, name, isEu }) => [
  ipOf(code).replace(/7$/, '0/24'),
  country(code, name, isEu),
]);

let dataDir: string;
let app: FastifyInstance;
let release: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  release = await publishBlocks(dataDir, [
    ...SMALL_WORLD,
    ['fd00::/8', country('SE', 'Sweden', true)],
    ...COUNTRY_BLOCKS,
  ]);
  app = testApp(dataDir);
});
afterAll(async () => {
  await app.close();
});

const get = (url: string, headers: Record<string, string | string[]> = HEADERS, remoteAddress?: string) =>
  app.inject({ url, headers, ...(remoteAddress === undefined ? {} : { remoteAddress }) });
const post = (payload: string, headers: Record<string, string> = {}, to = app) =>
  to.inject({
    method: 'POST',
    url: '/api/batch',
    headers: { ...HEADERS, 'content-type': 'application/json', ...headers },
    payload,
  });
const lookup = async (ip: string) => (await get(`/api/lookup/${ip}`)).json() as Record<string, unknown>;
const batch = async (ips: unknown) => (await post(JSON.stringify(ips))).json() as Record<string, unknown>;
const error = (message: string) => ({ error: message });

const ajv = new Ajv2020({ schemas: [wireSchema()] });
const valid = (name: string, value: unknown) => {
  ajv.validate(`wire#/$defs/${name}`, value);
  return ajv.errors;
};

describe('the lookup result', () => {
  it('has exactly four fields, in this order', async () => {
    const { body } = await get('/api/lookup/193.0.6.139');
    expect(body).toBe('{"ip":"193.0.6.139","country":"Netherlands","country_code":"NL","is_eu":true}');
  });

  it('tells for every country and territory whether it is in the Union', async () => {
    const members =
      'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK AX GF GP MF MQ RE YT'.split(
        ' ',
      );
    const outside = 'AW BL BQ CW FO GL NC PF PM SX TF WF IS LI NO GB GI AD MC SM VA XK'.split(' ');
    const answers = Object.values(await batch(COUNTRIES.map(({ code }) => ipOf(code)))) as Record<string, unknown>[];
    expect(answers.filter(({ is_eu }) => is_eu === true).map(({ country_code }) => country_code)).toEqual(
      members.sort(),
    );
    const known = answers.map(({ country_code }) => country_code);
    for (const code of outside) expect(known).toContain(code);
    for (const answer of answers) {
      expect(answer.country_code).toMatch(/^[A-Z]{2}$/);
      expect(valid('LookupResult', answer)).toBeNull();
    }
  });

  it.each([
    ['8.8.8.8', '8.8.8.8'],
    ['2001:4860:4860::8888', '2001:4860:4860:0000:0000:0000:0000:8888'],
    ['2001:4860:4860::ABCD', '2001:4860:4860:0000:0000:0000:0000:abcd'],
    // An IPv4-mapped address is that IPv4 address, in any spelling.
    ['::ffff:8.8.8.8', '8.8.8.8'],
    // The embedded IPv4 address decides; the address stays IPv6.
    ['2002:808:808::1', '2002:0808:0808:0000:0000:0000:0000:0001'],
  ])('normalizes %s to %s, which is in the United States', async (asked, ip) => {
    expect(await lookup(asked)).toEqual({ ip, country: 'United States', country_code: 'US', is_eu: false });
    expect((await batch([asked]))[asked]).toEqual(await lookup(asked));
  });

  it.each(['10.0.0.1', '127.0.0.1', '203.0.113.9', '::1', '2001:db8::1', '2002:a00:1::'])(
    'has nulls for %s, which has no country',
    async (ip) => {
      const response = await get(`/api/lookup/${ip}`);
      expect(response.statusCode).toBe(200);
      expect(response.json()).toMatchObject({ country: null, country_code: null, is_eu: false });
      expect(valid('LookupResult', response.json())).toBeNull();
    },
  );
});

describe('address text', () => {
  it.each([
    '01.2.3.4',
    '1.2.3.4:80',
    '1.2.3.4%2F24',
    '%201.2.3.4',
    '%5B::1%5D',
    'fe80::1%25eth0',
    '16843009',
    'localhost',
    '__proto__',
  ])('refuses %s', async (text) => {
    const response = await get(`/api/lookup/${text}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toEqual(error('Invalid IP address'));
    expect(valid('Error', response.json())).toBeNull();
  });
});

describe('endpoints', () => {
  it.each(['2001:4860:4860::8888', '2001%3A4860%3A4860%3A%3A8888', '2001%3a4860:4860::8888'])(
    'takes an IPv6 address in the path as it is and percent-encoded: %s',
    async (text) => {
      expect(await lookup(text)).toMatchObject({ ip: '2001:4860:4860:0000:0000:0000:0000:8888', country_code: 'US' });
    },
  );

  it.each(['/api/lookup/', '/api/lookup'])('answers %s with the caller', async (url) => {
    expect((await get(url, HEADERS, '8.8.8.8')).json()).toMatchObject({ ip: '8.8.8.8', country_code: 'US' });
    expect((await get(url, HEADERS, '2001:4860::1')).json()).toMatchObject({
      ip: '2001:4860:0000:0000:0000:0000:0000:0001',
    });
    expect((await get(url, HEADERS, '::ffff:193.0.6.139')).json()).toMatchObject({ ip: '193.0.6.139' });
    expect((await get(url, HEADERS, 'fe80::1%eth0')).json()).toMatchObject({
      ip: 'fe80:0000:0000:0000:0000:0000:0000:0001',
      country: null,
    });
  });

  it('ignores forwarding headers by default, and trusts only the configured proxies', async () => {
    const forwarded = {
      ...HEADERS,
      'x-forwarded-for': '8.8.8.8, 193.0.6.139',
      forwarded: 'for=81.0.0.1',
      'x-real-ip': '81.0.0.1',
    };
    expect((await get('/api/lookup/', forwarded, '80.1.1.1')).json()).toMatchObject({ ip: '80.1.1.1' });
    const proxied = testApp(dataDir, { trustProxy: ['80.0.0.0/8'] });
    const ask = (remoteAddress: string) => proxied.inject({ url: '/api/lookup/', headers: forwarded, remoteAddress });
    expect((await ask('80.1.1.1')).json()).toMatchObject({ ip: '193.0.6.139' });
    expect((await ask('::ffff:80.1.1.1')).json()).toMatchObject({ ip: '193.0.6.139' });
    expect((await ask('81.1.1.1')).json()).toMatchObject({ ip: '81.1.1.1' });
    await proxied.close();
  });

  it('answers a batch with an object: each string is a key, in order, duplicates once, families mixed', async () => {
    const sent = [
      '8.8.8.8',
      '::FFFF:8.8.8.8',
      'nonsense',
      '7',
      '8.8.8.8',
      '2001:4860:4860::8888',
      '',
      '__proto__',
      '10.0.0.1',
      '"\\\u2028é',
    ];
    const { body, statusCode } = await post(JSON.stringify(sent));
    expect(statusCode).toBe(200);
    const answer = new Map(Object.entries(JSON.parse(body) as Record<string, unknown>));
    expect([...answer.keys()].sort()).toEqual([...new Set(sent)].sort());
    // The order is visible in the text only: JavaScript puts keys like "7" first.
    expect([...body.matchAll(/"((?:[^"\\]|\\.)*)":\{/g)].map(([, key]) => JSON.parse(`"${key}"`))).toEqual([
      ...new Set(sent),
    ]);
    for (const text of ['nonsense', '7', '', '__proto__', '"\\\u2028é'])
      expect(answer.get(text)).toEqual(error('invalid ip'));
    expect(answer.get('8.8.8.8')).toEqual(await lookup('8.8.8.8'));
    expect(answer.get('::FFFF:8.8.8.8')).toEqual(await lookup('8.8.8.8'));
    expect(answer.get('2001:4860:4860::8888')).toEqual(await lookup('2001:4860:4860::8888'));
    expect(answer.get('10.0.0.1')).toMatchObject({ country: null });
    expect(valid('BatchResponse', JSON.parse(body))).toBeNull();
  });

  it('takes 0 to 1,000 strings', async () => {
    expect(await batch([])).toEqual({});
    const thousand = Array.from({ length: 1000 }, (_, index) => `8.8.${index >> 8}.${index & 255}`);
    expect(Object.keys(await batch(thousand))).toEqual(thousand);
    const response = await post(JSON.stringify([...thousand, '8.8.8.8']));
    expect([response.statusCode, response.json()]).toEqual([400, error('Too many IPs. Maximum batch size is 1000.')]);
  });

  it.each(['/api/lookup/8.8.8.8', '/api/lookup/', '/api/lookup', '/healthz', '/readyz', '/openapi.json'])(
    'answers HEAD %s as GET, without the body',
    async (url) => {
      const head = await app.inject({ method: 'HEAD', url, headers: HEADERS });
      const { statusCode, headers } = await get(url);
      expect([head.statusCode, head.body]).toEqual([statusCode, '']);
      expect(head.headers['content-length']).toBe(headers['content-length']);
      expect(head.headers['content-type']).toBe(headers['content-type']);
    },
  );

  it.each(['/api/lookup/8.8.8.8', '/api/lookup/', '/api/batch', '/api/nothing', '/healthz', '/nothing', '/'])(
    'answers OPTIONS %s without a key, for any origin',
    async (url) => {
      const preflight = {
        origin: 'https://shop.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-api-key,content-type',
      };
      for (const headers of [preflight, {}]) {
        const response = await app.inject({ method: 'OPTIONS', url, headers });
        expect([response.statusCode, response.body]).toEqual([204, '']);
        expect(response.headers['access-control-allow-origin']).toBe('*');
        expect(response.headers['access-control-allow-methods']).toBe('GET, HEAD, POST');
        expect(response.headers['access-control-allow-headers']).toBe('X-API-Key, Content-Type');
      }
    },
  );
});

describe('authentication', () => {
  const MISSING = [401, error('Missing API key')];
  const INVALID = [403, error('Invalid API key')];
  const TWICE = [400, error('Provide the API key once, as apikey or X-API-Key')];

  it.each<[string, string, Record<string, string | string[]>, unknown[] | 200]>([
    ['the header', '', { 'X-API-Key': KEY }, 200],
    ['the header in another case', '', { 'x-aPi-kEY': KEY }, 200],
    ['the query parameter', `?apikey=${KEY}`, {}, 200],
    ['the query parameter, percent-encoded', `?other=1&apikey=${KEY.replace('_', '%5F')}&apiKey=x`, {}, 200],
    ['nothing', '', {}, MISSING],
    ['apiKey: the name is case-sensitive', `?apiKey=${KEY}`, {}, MISSING],
    ['APIKEY', `?APIKEY=${KEY}`, {}, MISSING],
    [
      'another header',
      '',
      { authorization: `Bearer ${KEY}` },
      [401, error('Missing API key: send it as X-API-Key or apikey')],
    ],
    ['an empty parameter', '?apikey=', {}, MISSING],
    ['an empty header', '', { 'x-api-key': '' }, MISSING],
    ['an unknown key', '', { 'x-api-key': `${KEY}x` }, INVALID],
    ['an unknown key in the query', '?apikey=constructor', {}, INVALID],
    ['two keys in one header', '', { 'x-api-key': `${KEY}, ${KEY}` }, TWICE],
    ['both ways', `?apikey=${KEY}`, { 'x-api-key': KEY }, TWICE],
    ['both ways, both wrong', '?apikey=a', { 'x-api-key': 'b' }, TWICE],
    ['the parameter twice', `?apikey=${KEY}&apikey=${KEY}`, {}, TWICE],
    ['the header twice', '', { 'x-api-key': [KEY, KEY] }, TWICE],
  ])('%s', async (_, query, headers, expected) => {
    for (const url of ['/api/lookup/8.8.8.8', '/api/lookup/', '/api/lookup']) {
      const response = await get(url + query, headers);
      if (expected === 200) expect(response.statusCode).toBe(200);
      else expect([response.statusCode, response.json()]).toEqual(expected);
    }
    const response = await app.inject({
      method: 'POST',
      url: `/api/batch${query}`,
      headers: { 'content-type': 'application/json', ...headers },
      payload: '["8.8.8.8"]',
    });
    if (expected === 200) expect(response.statusCode).toBe(200);
    else expect([response.statusCode, response.json()]).toEqual(expected);
  });

  it.each(['/api', '/api/', '/api/nothing', '/api/lookup/1/2', '/api/batch'])(
    'is required for every path below /api/: %s',
    async (url) => {
      const response = await get(url, {});
      expect([response.statusCode, response.json()]).toEqual(MISSING);
    },
  );
});

describe('the order: key, then rate limit, then input', () => {
  const limited = (changes: AppChanges = {}) => testApp(dataDir, { limiter: new RateLimiter(), ...changes });

  it('checks the key first', async () => {
    for (const payload of ['nonsense', '[1]', 'x'.repeat(300_000)]) {
      const response = await post(payload, { 'x-api-key': 'wrong' });
      expect([response.statusCode, response.json()]).toEqual([403, error('Invalid API key')]);
    }
    expect((await get('/api/lookup/nonsense', {})).statusCode).toBe(401);
    expect((await post('[]', { 'x-api-key': 'wrong', 'content-type': 'text/plain' })).statusCode).toBe(403);
  });

  it('checks the rate limit before the input, and counts an address that is not valid', async () => {
    const one = limited({ defaultRate: 2 });
    const ask = (url: string) => one.inject({ url, headers: HEADERS });
    expect((await ask('/api/lookup/nonsense')).statusCode).toBe(400);
    expect((await ask('/api/lookup/8.8.8.8')).statusCode).toBe(200);
    for (const url of ['/api/lookup/nonsense', '/api/lookup/8.8.8.8', '/api/lookup/', '/api/lookup/%zz']) {
      const response = await ask(url);
      expect([response.statusCode, response.json()]).toEqual([429, error('Rate limit exceeded')]);
    }
    for (const payload of ['nonsense', '[1]', '[]']) expect((await post(payload, {}, one)).statusCode).toBe(429);
    expect((await post('[]', { 'content-type': 'text/plain' }, one)).statusCode).toBe(429);
    await one.close();
  });

  it('counts every address of a batch, all of them or none', async () => {
    const one = limited({ defaultRate: 10 });
    const remaining = async (count: number) => {
      const response = await post(JSON.stringify(Array(count).fill('8.8.8.8')), {}, one);
      return [response.statusCode, response.headers['x-ratelimit-remaining']];
    };
    expect(await remaining(4)).toEqual([200, '6']);
    expect(await remaining(7)).toEqual([429, '6']);
    expect(await remaining(0)).toEqual([200, '6']);
    expect(await remaining(6)).toEqual([200, '0']);
    expect(await remaining(1)).toEqual([429, '0']);
    await one.close();
  });

  it('counts each key separately, at its own rate if it has one', async () => {
    const one = limited({
      defaultRate: 1,
      keys: fixedKeys({ [KEY]: { id: 'one', rate: null }, [OTHER_KEY]: { id: 'two', rate: 3 } }),
    });
    const ask = (key: string) => one.inject({ url: '/api/lookup/8.8.8.8', headers: { 'x-api-key': key } });
    const statuses = async (key: string) => {
      const seen: number[] = [];
      for (let i = 0; i < 4; i++) seen.push((await ask(key)).statusCode);
      return seen;
    };
    expect(await statuses(KEY)).toEqual([200, 429, 429, 429]);
    expect(await statuses(OTHER_KEY)).toEqual([200, 200, 200, 429]);
    await one.close();
  });
});

describe('errors', () => {
  it.each([
    ['', 'The body is empty, not a JSON array of strings'],
    ['nonsense', 'The body is not valid JSON'],
    ['["8.8.8.8"', 'The body is not valid JSON'],
    ["['8.8.8.8']", 'The body is not valid JSON'],
    ['\ufeff["8.8.8.8"]', 'The body is not valid JSON'],
    ['['.repeat(100_000), 'The body is not valid JSON'],
    ['{"ips":["8.8.8.8"]}', 'The body is JSON but not an array; send an array of strings'],
    ['{"__proto__":{"length":1}}', 'The body is JSON but not an array; send an array of strings'],
    ['"8.8.8.8"', 'The body is JSON but not an array; send an array of strings'],
    ['null', 'The body is JSON but not an array; send an array of strings'],
    ['7', 'The body is JSON but not an array; send an array of strings'],
    ['[134744072]', 'The body is an array with an element that is not a string'],
    ['["8.8.8.8",null]', 'The body is an array with an element that is not a string'],
    ['[["8.8.8.8"]]', 'The body is an array with an element that is not a string'],
    [`${'['.repeat(50_000)}${']'.repeat(50_000)}`, 'The body is an array with an element that is not a string'],
    [JSON.stringify(Array(1001).fill(1)), 'Too many IPs. Maximum batch size is 1000.'],
  ])('says what is wrong with the body %.40s', async (payload, message) => {
    const response = await post(payload);
    expect([response.statusCode, response.json()]).toEqual([400, error(message)]);
  });

  it('refuses bytes that are not UTF-8', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/api/batch',
      headers: { ...HEADERS, 'content-type': 'application/json' },
      payload: Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]),
    });
    expect([response.statusCode, response.json()]).toEqual([400, error('The body is not valid JSON')]);
  });

  it.each([
    ['/api/lookup/8.8.8.8/', 404],
    ['/api/lookup/8.8.8.8/24', 404],
    ['/api/lookup//', 404],
    ['/api/batch/', 404],
    ['/API/lookup/8.8.8.8', 404],
    ['/api', 404],
    ['//api/lookup/8.8.8.8', 404],
    ['/%zz', 404],
  ])('answers GET %s with %i', async (url, status) => {
    const response = await app.inject({ url, headers: HEADERS });
    expect([response.statusCode, response.json()]).toEqual([status, error('Not found')]);
  });

  it.each([
    ['POST', '/api/lookup/8.8.8.8', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/api/lookup/', 'GET, HEAD, OPTIONS'],
    ['PUT', '/api/lookup', 'GET, HEAD, OPTIONS'],
    ['PATCH', '/healthz', 'GET, HEAD, OPTIONS'],
    ['TRACE', '/openapi.json', 'GET, HEAD, OPTIONS'],
    ['PROPFIND', '/api/lookup/8.8.8.8', 'GET, HEAD, OPTIONS'],
    ['GET', '/api/batch', 'POST, OPTIONS'],
    ['HEAD', '/api/batch', 'POST, OPTIONS'],
    ['PUT', '/api/batch', 'POST, OPTIONS'],
    ['GET', '/%61pi/b%61tch', 'POST, OPTIONS'],
    ['DELETE', '/%61pi/lookup/8.8.8.8', 'GET, HEAD, OPTIONS'],
  ])('answers %s %s with 405 and the allowed methods', async (method, url, allow) => {
    const response = await app.inject({
      method: method as 'GET',
      url,
      headers: { ...HEADERS, 'content-type': 'application/json' },
    });
    expect([response.statusCode, response.headers.allow]).toEqual([405, allow]);
    if (method !== 'HEAD') expect(response.json()).toEqual(error('Method not allowed'));
  });

  it('answers a body over the limit with 413', async () => {
    const response = await post(`["${'x'.repeat(262_145)}"]`);
    expect([response.statusCode, response.json()]).toEqual([413, error('The body is larger than 262144 bytes')]);
    expect((await post(`["8.8.8.8"]${' '.repeat(262_144 - 11)}`)).statusCode).toBe(200);
  });

  it.each([['text/plain'], ['application/x-www-form-urlencoded'], ['application/jsonp'], ['nonsense'], ['']])(
    'answers the content type %j with 415',
    async (type) => {
      const response = await post('["8.8.8.8"]', { 'content-type': type });
      expect([response.statusCode, response.json()]).toEqual([415, error('Content-Type must be application/json')]);
    },
  );

  it('answers a request without content and type with 415', async () => {
    const response = await app.inject({ method: 'POST', url: '/api/batch', headers: HEADERS });
    expect([response.statusCode, response.json()]).toEqual([415, error('Content-Type must be application/json')]);
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON'])('takes the content type %s', async (type) => {
    expect((await post('["8.8.8.8"]', { 'content-type': type })).statusCode).toBe(200);
  });

  it('answers 503 while no database is loaded', async () => {
    const empty = testApp(dataDir, { release: () => undefined });
    const expected = [503, error('Database not loaded')];
    for (const url of ['/api/lookup/8.8.8.8', '/api/lookup/', '/readyz']) {
      const response = await empty.inject({ url, headers: HEADERS });
      expect([response.statusCode, response.json()]).toEqual(expected);
    }
    const response = await post('["8.8.8.8"]', {}, empty);
    expect([response.statusCode, response.json()]).toEqual(expected);
    expect((await empty.inject('/healthz')).json()).toEqual({ status: 'ok' });
    expect((await empty.inject({ url: '/api/lookup/8.8.8.8' })).statusCode).toBe(401);
    await empty.close();
  });
});

describe('operations', () => {
  it('reports that it is alive and ready, without a key', async () => {
    const health = (await get('/healthz', {})).json() as unknown;
    expect(health).toEqual({ status: 'ok' });
    expect(valid('Health', health)).toBeNull();
    const ready = (await get('/readyz', {})).json() as unknown;
    expect(ready).toEqual({ status: 'ready', release });
    expect(valid('Readiness', ready)).toBeNull();
  });

  it('reports whether it serves the EU base address; health checks ask for it by the query parameter eu', async () => {
    const union = testApp(dataDir, { eu: true });
    for (const url of ['/readyz', '/readyz?eu', '/readyz?x=1&eu=1']) {
      const ready = (await union.inject(url)).json() as unknown;
      expect([url, ready]).toEqual([url, { status: 'ready', release, eu: true }]);
      expect(valid('Readiness', ready)).toBeNull();
    }
    await union.close();
    for (const url of ['/readyz?eu', '/readyz?eu=1', '/readyz?x&eu']) {
      const response = await get(url, {});
      expect([url, response.statusCode]).toEqual([url, 503]);
      expect(response.json()).toEqual(error('This server does not serve the EU base address'));
    }
    for (const url of ['/readyz?europe', '/readyz?x=eu', '/readyz?'])
      expect((await get(url, {})).json()).toEqual({ status: 'ready', release });
  });

  // Those of lookups are in responses.test.ts.
  it('names the release and the region in each response', async () => {
    const regional = testApp(dataDir, { region: 'fra-1' });
    expect((await post('[]', {}, regional)).headers).toMatchObject({
      'x-database-release': release,
      'x-served-by': 'fra-1',
    });
    expect((await regional.inject('/nothing')).headers['x-served-by']).toBe('fra-1');
    expect((await get('/api/lookup/8.8.8.8')).headers['x-served-by']).toBeUndefined();
    await regional.close();
  });

  it('closes connections after their response when it is about to stop', async () => {
    const stopping = testApp(dataDir, { phase: () => 'closing' });
    const response = await stopping.inject({ url: '/api/lookup/8.8.8.8', headers: HEADERS });
    expect([response.statusCode, response.headers.connection]).toEqual([200, 'close']);
    expect((await post('nonsense', {}, stopping)).headers.connection).toBe('close');
    expect((await stopping.inject('/readyz')).json()).toEqual(error('Shutting down'));
    const predrain = testApp(dataDir, { phase: () => 'predrain' });
    expect((await predrain.inject('/readyz')).statusCode).toBe(503);
    const served = await predrain.inject({ url: '/api/lookup/8.8.8.8', headers: HEADERS });
    expect([served.statusCode, served.headers.connection]).toEqual([200, 'keep-alive']);
    await predrain.close();
    await stopping.close();
  });
});

it('echoes nothing of the request', async () => {
  const secret = 'sec-ret-5p3c1al';
  const requests = [
    get(`/api/lookup/${secret}`),
    get(`/api/lookup/${secret}`, { 'x-api-key': secret }),
    get(`/${secret}`),
    get(`/api/${secret}?q=${secret}`),
    post(secret),
    post(`{"${secret}":1}`),
    post('[]', { 'content-type': `text/${secret}` }),
    app.inject({ method: 'DELETE', url: `/api/lookup/${secret}`, headers: { ...HEADERS, cookie: secret } }),
  ];
  for (const response of await Promise.all(requests)) {
    expect(response.statusCode).toBeGreaterThanOrEqual(400);
    expect(response.body + JSON.stringify(response.headers)).not.toContain(secret);
    expect(Object.keys(response.json())).toEqual(['error']);
  }
});

it('every response from a release has the age of its data, in seconds since the day of the release began', async () => {
  const expected = (): number => Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / 1000);
  const before = expected();
  for (const answer of [
    await get('/api/lookup/8.8.8.8'),
    await get('/api/lookup/nonsense'),
    await post('["8.8.8.8"]'),
  ]) {
    const age = Number(answer.headers['x-database-age']);
    expect(age).toBeGreaterThanOrEqual(before);
    expect(age).toBeLessThanOrEqual(expected());
  }
});
