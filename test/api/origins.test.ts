/** Keys that work only in web pages of some origins. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixedKeys, KEY, testApp } from '../support/api.js';
import { smallRelease } from '../support/release.js';

const BOUND = 'ipa_bound';
const SHOP = 'https://shop.example';

let dataDir: string;
let app: ReturnType<typeof testApp>;
beforeAll(async () => {
  dataDir = await smallRelease();
  app = testApp(dataDir, {
    keys: fixedKeys({
      [KEY]: { id: 'free', rate: null },
      [BOUND]: { id: 'bound', rate: null, origins: [SHOP, 'http://localhost:3000'] },
    }),
  });
});
afterAll(async () => {
  await app.close();
});

const REFUSED = [403, { error: 'The API key must not be used from this origin' }];

describe('a key that is bound to origins', () => {
  const requests = (key: string) =>
    [
      { method: 'GET', url: '/api/lookup/8.8.8.8', headers: { 'x-api-key': key } },
      { method: 'GET', url: `/api/lookup/8.8.8.8?apikey=${key}`, headers: {} },
      { method: 'GET', url: '/api/lookup/', headers: { 'x-api-key': key } },
      { method: 'POST', url: '/api/batch', headers: { 'x-api-key': key }, payload: ['8.8.8.8'] },
    ] as const;
  const send = async (key: string, origin: string | undefined) => {
    const responses = [];
    for (const request of requests(key)) {
      const headers = { ...request.headers, ...(origin === undefined ? {} : { origin }) };
      responses.push(await app.inject({ ...request, headers }));
    }
    return responses;
  };

  it.each([SHOP, 'http://localhost:3000'])('works from %s, and browsers may read the response', async (origin) => {
    for (const response of await send(BOUND, origin)) {
      expect(response.statusCode).toBe(200);
      expect(response.headers['access-control-allow-origin']).toBe('*');
    }
  });

  it.each([
    'https://other.example',
    'http://shop.example',
    'https://shop.example:8443',
    'https://shop.example.evil.example',
    'https://SHOP.example',
    'null',
    '',
    undefined,
  ])('is refused from %j, and browsers may read why', async (origin) => {
    for (const response of await send(BOUND, origin)) {
      expect([response.statusCode, response.json()]).toEqual(REFUSED);
      expect(response.headers['access-control-allow-origin']).toBe('*');
    }
  });

  it('is refused before the rate is counted and on paths without a route', async () => {
    const headers = { 'x-api-key': BOUND, origin: 'https://other.example' };
    const response = await app.inject({ url: '/api/nothing', headers });
    expect([response.statusCode, response.json()]).toEqual(REFUSED);
    expect(response.headers['x-ratelimit-remaining']).toBeUndefined();
  });

  it('does not change a key without origins', async () => {
    for (const origin of [SHOP, 'https://other.example', undefined])
      for (const response of await send(KEY, origin)) expect(response.statusCode).toBe(200);
  });
});
