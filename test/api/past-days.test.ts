/** Lookups of past days. */
import { cpSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiHttpServer } from '../../src/api/http-server.js';
import type { Asker, Question } from '../../src/api/releases/history-queue.js';
import { Releases } from '../../src/api/releases/releases.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { Client } from '../../src/client/client.js';
import { openDatabase } from '../../src/database/database.js';
import { releaseDir } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { openArchive } from '../../src/history/archive.js';
import { openDay } from '../../src/history/day.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import {
  HISTORY_COST,
  HISTORY_RETRY_S,
  MAX_HISTORY_QUESTIONS,
  MAX_HISTORY_QUESTIONS_OF_ONE,
  MAX_OPEN_DAYS,
} from '../../src/limits.js';
import { type AppChanges, appDeps, KEY, portOf, startServer } from '../support/api.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

let dataDir: string;
let server: ApiHttpServer | undefined;
beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, [['193.0.0.0/21', country('GB', 'United Kingdom')]], '2026-01-01', 730);
  const { file } = openReleaseRanges(releaseDir(dataDir));
  importEntry(openArchive(dataDir), { day: '2020-01-01', name: 'tabelle für 2020.csv', answers: answersOf(file) });
});
afterEach(() => server?.close());

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
  const without = await served({ releases: new Releases(temporaryDir()) });
  expect(await (await without.get('/api/history/193.0.0.1')).json()).toEqual({ ip: '193.0.0.1', periods: [] });
  await server!.close();
  const damaged = temporaryDir();
  cpSync(dataDir, damaged, { recursive: true });
  const [entry] = openArchive(damaged).entries;
  writeFileSync(entry!.path, readFileSync(entry!.path).subarray(0, 100));
  const { get } = await served({ releases: new Releases(damaged) });
  const { periods } = (await (await get('/api/history/193.0.0.1')).json()) as { periods: object[] };
  expect(periods[0]).toEqual({ from: '2020-01-01', to: expect.any(String), error: 'not kept' });
});

describe('questions to the history', () => {
  const FROM = '2020-01-01';
  /** The question that is being answered, if there is one. */
  let answering: { question: Question; finish: (error?: Error) => void } | undefined;
  let asked: string[];
  const damagedDays = new Set<string>();
  let releases: Releases;
  beforeEach(() => {
    answering = undefined;
    asked = [];
    releases = new Releases(dataDir, (question) => {
      expect(answering).toBeUndefined(); // one at a time
      asked.push('day' in question ? question.day : question.asks);
      return new Promise((resolve, reject) => {
        const finish = (error?: Error): void => {
          answering = undefined;
          if (error !== undefined) reject(error);
          else resolve(answerTo(question));
        };
        answering = { question, finish };
      });
    });
  });

  function answerTo(question: Question): unknown {
    if (question.asks === 'days') return [{ from: FROM, to: '2026-01-01', isKept: true }];
    if (question.asks === 'periods') return [];
    if (damagedDays.has(question.day)) return 'damaged';
    const { file } = openDay(openArchive(dataDir), FROM);
    return { file, release: 'x', dataDate: question.day, networks: undefined };
  }

  /** Answers all questions; resolves when none is left. */
  async function finishAll(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (answering !== undefined) {
      answering.finish();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  const asker = (id = 'one', { signal } = new AbortController()): Asker => ({ id, signal });
  const at = (day: string, by = asker()) => Promise.resolve(releases.at(day, [], () => by));
  const days = (count: number, month = '02') => Array.from({ length: count }, (_, i) => `2020-${month}-${10 + i}`);

  it('are answered one after the other, equal ones once, and a few days are held open', async () => {
    const wanted = days(MAX_OPEN_DAYS + 1);
    const answers = [...wanted, ...wanted].map((day) => at(day));
    await finishAll();
    for (const answer of answers) expect(await answer).toHaveProperty('served');
    expect(asked).toEqual(['days', ...wanted]);
    for (const day of wanted.slice(1)) expect(await at(day)).toHaveProperty('served');
    expect(asked).toHaveLength(1 + wanted.length);
    void at(wanted[0]!);
    await finishAll();
    expect(asked.at(-1)).toBe(wanted[0]);
  });

  it('are not asked for a day that is not kept, which counts as a lookup', async () => {
    void at('2020-02-01');
    await finishAll();
    const before = asked.length;
    for (const day of ['2019-12-31', '9999-01-01']) {
      expect(releases.costOf(day, [], 'one')).toBe(0);
      expect(await at(day)).toEqual({
        error: 'day_not_kept',
        more: expect.stringMatching(/^history has 2020-01-01 to /),
      });
    }
    damagedDays.add('2020-05-01');
    expect(releases.costOf('2020-05-01', [], 'one')).toBe(HISTORY_COST);
    const damaged = at('2020-05-01');
    await finishAll();
    expect(await damaged).toHaveProperty('error', 'day_not_kept');
    expect([await at('2020-05-01'), releases.costOf('2020-05-01', [], 'one')]).toEqual([await damaged, 0]);
    expect(asked).toHaveLength(before + 1);
    expect(releases.costOf('2020-02-01', [], 'one')).toBe(0);
  });

  it('are answered anew after an import, after another release, and after a failure', async () => {
    const failed = at('2020-02-01');
    await until(() => answering, 'a question');
    answering!.finish(new Error('disk'));
    await expect(failed).rejects.toThrow('disk');
    for (const change of [
      () => utimesSync(join(dataDir, 'history'), 1, 1),
      () => releases.use(new ServedRelease(openDatabase(dataDir))),
    ]) {
      asked = [];
      const answer = at('2020-02-01');
      await finishAll();
      expect(await answer).toHaveProperty('served');
      change();
      expect(asked).toEqual(['days', '2020-02-01']);
    }
    releases.close();
  });

  it('of one key leave room for those of others, and of all are bounded', async () => {
    await Promise.all([at('2020-02-01'), finishAll()]);
    const all = Array.from({ length: 10 }, (_, key) => days(MAX_HISTORY_QUESTIONS_OF_ONE + 2, `0${key % 10}`)).slice(1);
    const answers = all.map((wanted, key) => wanted.map((day) => at(day, asker(`key ${key}`))));
    expect(releases.costOf('2020-06-28', [], 'key 0')).toBe(0);
    await finishAll();
    const outcomes = await Promise.all(answers.map((of) => Promise.all(of)));
    const served = outcomes.map((of) => of.filter((each) => 'served' in each).length);
    const keys = MAX_HISTORY_QUESTIONS / MAX_HISTORY_QUESTIONS_OF_ONE;
    expect(served).toEqual(all.map((_, key) => (key < keys ? MAX_HISTORY_QUESTIONS_OF_ONE : 0)));
    expect(outcomes.flat().filter((each) => !('served' in each))).toContainEqual({ error: 'history_busy' });
  });

  it('are dropped if their clients hang up, and refused with Retry-After if there are too many', async () => {
    const { base, get } = await served({ releases });
    await Promise.all([
      get('/api/lookup/193.0.0.1?at=2020-02-01'),
      until(() => answering, 'a question').then(finishAll),
    ]);
    asked = [];
    const controller = new AbortController();
    const gone = days(MAX_HISTORY_QUESTIONS_OF_ONE).map((day, i) => {
      const path = i % 2 === 0 ? `/api/lookup/193.0.0.1?at=${day}` : `/api/history/193.0.0.${i}`;
      return get(path, { signal: controller.signal }).catch(() => 'gone');
    });
    await until(() => releases.costOf('2020-03-01', [], 'one') === 0, 'the full queue');
    const busy = await get('/api/history/193.0.0.100');
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([503, String(HISTORY_RETRY_S)]);
    expect(busy.headers.get('x-ratelimit-remaining')).toBe(String(1_000_000 - 1 - gone.length * HISTORY_COST - 1));
    controller.abort();
    expect(new Set(await Promise.all(gone))).toEqual(new Set(['gone']));
    // The first is being answered; nobody waits for the others.
    await until(() => releases.costOf('2020-03-01', [], 'one') > 0, 'the end of the questions');
    const last = fetch(`${base}/api/lookup/193.0.0.1?at=2020-03-01`, { headers: { 'X-API-Key': KEY } });
    await finishAll();
    await until(async () => {
      await finishAll();
      return asked.length === 2;
    }, 'the last question');
    expect((await last).status).toBe(200);
    expect(asked).toEqual([days(1)[0], '2020-03-01']);
  });
});
