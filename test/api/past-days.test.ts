/** Lookups of past days. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { ApiHttpServer } from '../../src/api/http-server.js';
import { type OpenedDay, PastDays } from '../../src/api/releases/past-days.js';
import { Client } from '../../src/client/client.js';
import { releaseDir } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { openArchive } from '../../src/history/archive.js';
import { openDay } from '../../src/history/day.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import { HISTORY_COST, MAX_OPEN_DAYS } from '../../src/limits.js';
import { type AppChanges, appDeps, KEY, portOf, startServer } from '../support/api.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';

let dataDir: string;
let server: ApiHttpServer | undefined;
beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, [['193.0.0.0/21', country('GB', 'United Kingdom')]], '2026-01-01', 730);
  const { file } = openReleaseRanges(releaseDir(dataDir));
  importEntry(openArchive(dataDir), { day: '2020-01-01', name: 'tabelle für 2020.csv', answers: answersOf(file) });
});
afterEach(() => server?.close());
afterAll(() => rmSync(dataDir, { recursive: true }));

async function served(changes: AppChanges = {}) {
  server = await startServer(appDeps(dataDir, changes));
  const base = `http://127.0.0.1:${portOf(server)}`;
  const get = (path: string, init: RequestInit = {}) =>
    fetch(base + path, { ...init, headers: { 'X-API-Key': KEY, ...init.headers } });
  return { base, get };
}

it('have the answers, the membership and the headers of the day', async () => {
  const { base, get } = await served();
  const age = () => Math.floor((Date.now() - Date.parse('2020-01-01')) / 1000);
  const before = age();
  const past = await get('/api/lookup/193.0.0.1?at=2020-01-31');
  const after = age();
  expect(await past.json()).toEqual({ ip: '193.0.0.1', country: 'United Kingdom', country_code: 'GB', is_eu: true });
  expect(past.headers.get('x-database-release')).toBe('tabelle%20f%C3%BCr%202020.csv');
  const sent = Number(past.headers.get('x-database-age'));
  expect([sent >= before, sent <= after]).toEqual([true, true]);
  expect(past.headers.get('x-ratelimit-remaining')).toBe('999999');
  const client = new Client(KEY, { baseUrl: base });
  expect(await client.batch(['193.0.0.1', 'x'], { at: '2020-02-01' })).toMatchObject({
    '193.0.0.1': { country_code: 'GB', is_eu: false },
    x: { error: 'invalid ip' },
  });
  expect(await client.lookup('193.0.0.1', { at: '2020-01-31' })).toMatchObject({ is_eu: true });
  expect(await client.lookupSelf({ at: '2020-01-31' })).toMatchObject({ country: null });
  const including = await client.lookup('193.0.0.1', { at: '2020-01-31', include: ['asn', 'network', 'continent'] });
  expect(including).toMatchObject({ country_code: 'GB', asn: null, network: '193.0.0.0/21', continent: 'EU' });
  expect((await get('/api/lookup/x?at=2020-01-31')).status).toBe(400);
  const today = await get(`/api/lookup/193.0.0.1?at=${new Date().toISOString().slice(0, 10)}`);
  expect(today.headers.get('x-database-release')).toMatch(/^2026-01-01-/);
});

it.each([
  ['2019-12-31', /^There are no answers of this day; history has 2020-01-01 to \d{4}-\d\d-\d\d$/],
  ['9999-01-01', /^There are no answers of this day; history has 2020-01-01 to /],
  ['2020-02-30', /^at is not a day; write it as 2026-01-31$/],
  ['', /^at is not a day/],
  ['2020-01-31&at=2020-02-01', /^at is not a day/],
])('%j is refused', async (at, message) => {
  const { get } = await served();
  const response = await get(`/api/lookup/193.0.0.1?at=${at}`);
  expect([response.status, await response.json()]).toEqual([400, { error: expect.stringMatching(message) }]);
});

it('have the history of an address, which counts as many addresses', async () => {
  const { get } = await served();
  const response = await get('/api/history/::ffff:193.0.0.1');
  const uk = { country: 'United Kingdom', country_code: 'GB' };
  const imported = { ...uk, release: 'tabelle für 2020.csv' };
  expect(await response.json()).toEqual({
    ip: '193.0.0.1',
    periods: [
      { ...imported, from: '2020-01-01', to: '2020-01-31', is_eu: true },
      { ...imported, from: '2020-02-01', to: null, is_eu: false },
    ],
  });
  expect(response.headers.get('x-ratelimit-remaining')).toBe(String(1_000_000 - HISTORY_COST));
  expect(await (await get('/api/history/2001:db8::1')).json()).toMatchObject({
    ip: '2001:0db8:0000:0000:0000:0000:0000:0001',
    periods: [{ country: null }],
  });
  const invalid = await get('/api/history/193.0.0.256');
  expect([invalid.status, await invalid.json()]).toEqual([400, { error: 'Invalid IP address' }]);
  await server!.close();
  // A lower rate allows one in a minute.
  const low = await served({ defaultRate: 10 });
  expect((await low.get('/api/history/193.0.0.1')).headers.get('x-ratelimit-remaining')).toBe('0');
  expect((await low.get('/api/history/193.0.0.1')).status).toBe(429);
});

it.each([
  [{ 'sec-fetch-site': 'same-origin' }, 200],
  [{ 'sec-fetch-site': 'same-site' }, 403],
  [{ 'sec-fetch-site': 'same-origin', origin: 'https://other.example' }, 403],
  [{}, 403],
])('have the history for the key of the page from its own origin only: %j', async (headers, status) => {
  const { get } = await served();
  const { key } = (await (await get('/page/key')).json()) as { key: string };
  const response = await get('/api/history/193.0.0.1', { headers: { 'X-API-Key': key, ...headers } });
  expect(response.status).toBe(status);
});

it.each([
  ['2020-01-31', 200, /On 2020-01-31, this address was in<.*United Kingdom.*>in the European Union/s],
  ['2019-12-31', 400, /No answer.*There are no answers of this day; history has 2020-01-01 to /s],
  ['31.1.2020', 400, /No answer.*at is not a day; write it as 2026-01-31/s],
  ['', 200, /This address is in<.*United Kingdom.*>not in the European Union/s],
])('are looked up by the form of the page without JavaScript: %j', async (day, status, expected) => {
  const { get } = await served();
  const response = await get(`/?ip=193.0.0.1&at=${day}`, { headers: { accept: 'text/html' } });
  const body = await response.text();
  expect([response.status, body.includes(`type="date" value="${day}"`)]).toEqual([status, true]);
  expect(body).toMatch(expected);
});

it('have no history without one, and say what is not known without the names of files', async () => {
  const without = await served({ pastDays: new PastDays(temporaryDir()) });
  expect(await (await without.get('/api/history/193.0.0.1')).json()).toEqual({ ip: '193.0.0.1', periods: [] });
  await server!.close();
  const damaged = temporaryDir();
  cpSync(dataDir, damaged, { recursive: true });
  const [entry] = openArchive(damaged).entries;
  writeFileSync(entry!.path, readFileSync(entry!.path).subarray(0, 100));
  const { get } = await served({ pastDays: new PastDays(damaged) });
  const { periods } = (await (await get('/api/history/193.0.0.1')).json()) as { periods: object[] };
  expect(periods[0]).toEqual({ from: '2020-01-01', to: expect.any(String), error: 'not kept' });
});

it('a few days are held open, one is opened at a time, and what failed is tried again', async () => {
  const archive = openArchive(dataDir);
  const { file } = openDay(archive, '2020-01-01');
  let opening = 0;
  const open = vi.fn(async (_: string, day: string): Promise<OpenedDay> => {
    expect(++opening).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    opening--;
    if (day === '2020-03-01' && open.mock.calls.filter(([, each]) => each === day).length === 1)
      throw new Error('disk');
    return day < '2020-01-01' ? { span: archive.span } : { file, release: 'x', dataDate: day, networks: undefined };
  });
  const days = new PastDays(dataDir, open);
  const asked = Array.from({ length: 2 * MAX_OPEN_DAYS }, (_, day) => `2020-02-0${day + 1}`);
  await Promise.all([...asked, ...asked].map((day) => days.day(day, false)));
  const calls = open.mock.calls.length;
  await Promise.all(asked.slice(-MAX_OPEN_DAYS).map((day) => days.day(day, false)));
  expect(open).toHaveBeenCalledTimes(calls);
  await days.day(asked[0]!, false);
  expect(open).toHaveBeenCalledTimes(calls + 1);
  await expect(days.day('2020-03-01', false)).rejects.toThrow('disk');
  expect(await days.day('2020-03-01', false)).toHaveProperty('served');
  await days.day('2019-01-01', false);
  expect(await days.day('2019-01-01', false)).toHaveProperty('missing');
  expect(open.mock.calls.filter(([, day]) => day === '2019-01-01')).toHaveLength(2);
  days.clear();
  await days.day('2020-03-01', false);
  expect(open.mock.calls.filter(([, day]) => day === '2020-03-01')).toHaveLength(3);
});
