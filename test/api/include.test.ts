/** `?include=`: further members of the results. */
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { FastifyInstance } from 'fastify';
import { afterAll, describe, expect, it } from 'vitest';
import { INCLUDABLE, includedMembers } from '../../src/api/include.js';
import { wireSchema } from '../../src/api/openapi.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { Client } from '../../src/client/client.js';
import { compactRelease } from '../../src/database/compact.js';
import { openDatabase } from '../../src/database/database.js';
import { appDeps, KEY, portOf, startServer, testApp } from '../support/api.js';
import { SMALL_LABELS } from '../support/labels.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const dataDir = temporaryDir();
await publishBlocks(dataDir, SMALL_WORLD, '2026-01-01', 0, SMALL_NETWORKS);
const app = testApp(dataDir);
const server = await startServer(appDeps(dataDir));
afterAll(async () => {
  server.close();
  await app.close();
});

const get = (url: string) => app.inject({ url, headers: { 'x-api-key': KEY } });
const US = { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false };
const ALL = { asn: 15169, as_name: 'Google LLC', network: '8.8.8.0/24', continent: 'NA' };

describe('include', () => {
  it.each<[query: string, members: object]>([
    ['', {}],
    ['?include=asn', { asn: 15169 }],
    ['?include=continent,network', { network: '8.0.0.0/8', continent: 'NA' }],
    ['?include=continent%2Cnetwork%2Cas_name%2Casn', ALL],
    ['?include=asn,asn&include=as_name&x=include', { asn: 15169, as_name: 'Google LLC' }],
    ['?x=include', {}],
  ])('%j adds %j, in an order of its own', async (query, members) => {
    const expected = { ...US, ...members };
    expect((await get(`/api/lookup/8.8.8.8${query}`)).body).toBe(JSON.stringify(expected));
    const batch = await app.inject({
      ...{ method: 'POST', url: `/api/batch${query}`, payload: ['8.8.8.8', 'x', '8.8.8.8'] },
      headers: { 'x-api-key': KEY },
    });
    expect(batch.body).toBe(JSON.stringify({ '8.8.8.8': expected, x: { error: 'invalid ip' } }));
    const own = await app.inject({
      url: `/api/lookup/${query}`,
      headers: { 'x-api-key': KEY },
      remoteAddress: '8.8.8.8',
    });
    expect(own.json()).toEqual(expected);
  });

  it.each<[query: string, country: string, error?: string]>([
    ['?lang=de', 'Vereinigte Staaten'],
    ['?lang=ja&include=continent', 'アメリカ合衆国'],
    ['?lang=de-AT-u-nu-latn', 'Vereinigte Staaten'],
    ['?lang=en-GB', 'United States'],
    ['?lang=tlh', '', 'lang is not the tag'],
    ['?lang=x%00', '', 'lang is not the tag'],
    ['?lang=de&lang=fr', '', 'lang is not the tag'],
    ['?lang=de&include=city', '', 'include can be'],
  ])('%s has the names of the language', async (query, country, error) => {
    const response = await get(`/api/lookup/8.8.8.8${query}`);
    expect(response.statusCode).toBe(error === undefined ? 200 : 400);
    if (error === undefined) expect(response.json()).toMatchObject({ country, country_code: 'US' });
    else expect(response.json().error).toContain(error);
    const batch = await app.inject({
      ...{ method: 'POST', url: `/api/batch${query}`, payload: ['8.8.8.8'], headers: { 'x-api-key': KEY } },
    });
    if (error === undefined) expect(batch.json()['8.8.8.8']).toEqual(response.json());
    // English is not touched.
    expect((await get('/api/lookup/8.8.8.8')).body).toBe(JSON.stringify(US));
  });

  it.each(['', 'city', 'asn,', 'asn,city', 'ASN', 'country'])(
    'with %j is refused, and the known names are listed',
    async (value) => {
      for (const response of [
        await get(`/api/lookup/8.8.8.8?include=${value}`),
        await get(`/api/lookup?include=${value}`),
        await app.inject({
          method: 'POST',
          url: `/api/batch?include=${value}`,
          payload: [],
          headers: { 'x-api-key': KEY },
        }),
      ]) {
        expect(response.statusCode).toBe(400);
        for (const name of INCLUDABLE) expect(response.json().error).toContain(name);
      }
    },
  );

  it('gives nulls for private addresses and texts beyond ASCII as they are; the schema describes it', async () => {
    const ajv = new Ajv2020({ schemas: [wireSchema()] });
    const { body } = await get('/api/lookup/80.0.0.1?include=asn,as_name,network,continent');
    expect(JSON.parse(body)).toMatchObject({ asn: 64496, as_name: 'Both "sides", Ltd.', network: '80.0.0.0/8' });
    const private_ = (await get('/api/lookup/10.0.0.1?include=asn,as_name,network,continent')).json();
    expect(private_).toMatchObject({ country: null, asn: null, as_name: null, continent: null });
    for (const result of [JSON.parse(body), private_]) {
      expect(ajv.validate('wire#/$defs/LookupResult', result), JSON.stringify(ajv.errors)).toBe(true);
    }
    expect((await get('/api/lookup/x?include=asn')).json()).toEqual({ error: 'Invalid IP address' });
  });

  it('adds labels only if the operator says so', async () => {
    const labeled = temporaryDir();
    await publishBlocks(labeled, SMALL_WORLD, '2026-01-01', 7, SMALL_NETWORKS, SMALL_LABELS);
    const served = new ServedRelease(openDatabase(labeled), true);
    const open = testApp(labeled, { release: () => served });
    const closed = testApp(labeled);
    const ask = (one: FastifyInstance, query: string, ip = '10.1.2.3') =>
      one.inject({ url: `/api/lookup/${ip}?${query}`, headers: { 'x-api-key': KEY } });
    const found = { ...{ ip: '10.1.2.3', country: null, country_code: null, is_eu: false }, site: 'Köln "Süd", 2' };
    expect((await ask(open, 'include=site')).body).toBe(JSON.stringify(found));
    expect((await ask(open, 'include=owner,network,site,site,asn')).json()).toEqual({
      ...{ ...found, asn: null, network: '10.1.0.0/16', owner: 'IT=ops' },
    });
    expect((await ask(open, 'include=owner', '10.2.0.1')).json()).toMatchObject({ owner: null });
    expect((await ask(open, 'include=owner', '10.2.0.1')).json()).not.toHaveProperty('site');
    expect((await ask(open, 'include=continent', '8.8.8.8')).json()).toEqual({ ...US, continent: 'NA' });
    for (const query of ['include=tenant', 'include=site&at=2026-01-01', 'include=constructor']) {
      const response = await ask(open, query);
      expect(response.statusCode).toBe(400);
      expect(response.json().error).toMatch(/^include can be asn, .*; without at also site, owner$/);
    }
    const hidden = await ask(closed, 'include=site');
    expect(hidden.statusCode).toBe(400);
    expect(hidden.body).not.toContain('owner');
    for (const url of ['/openapi.json', '/attribution', '/', '/data', '/readyz']) {
      const { body } = await closed.inject({ url, headers: { accept: 'text/html' } });
      for (const word of ['owner', 'Berlin', 'labels.csv']) expect(body, url).not.toContain(word);
    }
    const document = (await open.inject({ url: '/openapi.json' })).json();
    expect(document.paths['/api/lookup/{ip}'].get.parameters[1].schema.items.enum).toEqual([
      ...INCLUDABLE,
      'site',
      'owner',
    ]);
    expect(Object.keys(document.components.schemas.LookupResult.properties)).toContain('site');
    // What /db/* are made with.
    const compact = Buffer.from(compactRelease(join(labeled, 'current'), ['networks']));
    for (const word of ['owner', 'Berlin', 'labels']) expect(compact.includes(word), word).toBe(false);
    await Promise.all([open.close(), closed.close()]);
  });

  it('makes one list for each set of members, so that a caller cannot make a server prepare more', () => {
    expect(includedMembers('network,asn')).toBe(includedMembers(['asn', 'network,asn']));
  });
});

it('the client asks for members', async () => {
  const client = new Client(KEY, { baseUrl: `http://127.0.0.1:${portOf(server)}` });
  expect(await client.lookup('8.8.8.8', { include: ['asn', 'network'] })).toEqual({
    ...{ ...US, asn: 15169, network: '8.8.8.0/24' },
  });
  expect(await client.lookupSelf({ include: ['asn'] })).toMatchObject({ country: null, asn: null });
  expect(await client.batch(['8.8.8.8'], { include: ['as_name'] })).toEqual({
    '8.8.8.8': { ...US, as_name: 'Google LLC' },
  });
  expect(await client.lookup('8.8.8.8')).toEqual(US);
});
