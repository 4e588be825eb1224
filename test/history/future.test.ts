/** Clocks that are wrong: what is dated in the future is refused, told, and removed. */
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { manifestOf, writeSources } from '../support/sources.js';

const ROWS = '20.0.0.0,20.255.255.255,US\n30.0.0.0,30.255.255.255,DE\n';
/** A day in the past, so that the true clock cannot be right by chance. */
const NOW = Date.parse('2026-06-01T10:00:00Z');

giveFolders();
beforeEach(() => {
  setClock(NOW);
});
afterEach(() => {
  vi.useRealTimers();
});

function setClock(now: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now });
}

const days = (): string[] => openArchive(dataDir).entries.map(({ time }) => dayOf(time));

async function build(rows: string, ...flags: string[]) {
  return ipatlas(['build', '--sources', writeSources(dir, { one: rows }), '--data', dataDir, ...flags]);
}

describe('a publication with a clock that is years ahead', () => {
  beforeEach(async () => {
    expect((await build(ROWS)).code).toBe(0);
    setClock(NOW + 1500 * DAY_MS);
    const { code, stderr } = await build(`${ROWS}31.0.0.0,31.0.0.255,FR\n`);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('no server confirms the clock, which says 2030-07-10, 1500 days'),
    ]);
    setClock(NOW + DAY_MS);
  });

  it('is told by "verify"', async () => {
    const { code, stderr } = await ipatlas(['verify', '--data', dataDir]);
    expect([code, stderr]).toEqual([5, expect.stringContaining('the entry of 2030-07-10 is of the future')]);
  });

  it('is followed by none until the history is repaired, which keeps all that was right', async () => {
    const refused = await build(`${ROWS}32.0.0.0,32.0.0.255,FR\n`);
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('"ipatlas history repair')]);
    const repaired = await ipatlas(['history', 'repair', '--data', dataDir]);
    expect([repaired.code, repaired.stderr]).toEqual([0, 'the entry of 2030-07-10 is removed\n']);
    expect(days()).toEqual(['2026-06-01', '2026-06-02']);
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
    const { stdout } = await ipatlas(['history', '--json', '31.0.0.1', '--data', dataDir]);
    const periods = jsonLines(stdout);
    expect(periods.map(({ from, to, country_code }) => [from, to, country_code])).toEqual([
      ['2026-06-01', '2026-06-01', null],
      ['2026-06-02', null, 'FR'],
    ]);
    expect((await build(`${ROWS}32.0.0.0,32.0.0.255,FR\n`)).code).toBe(0);
  });

  it('is nothing to repair if the clock was right', async () => {
    setClock(NOW + 1500 * DAY_MS);
    const { stderr } = await ipatlas(['history', 'repair', '--data', dataDir]);
    expect([stderr, days()]).toEqual([expect.stringContaining('nothing was removed'), ['2026-06-01', '2030-07-10']]);
  });
});

it('a table cannot be imported for a day to come', async () => {
  writeFileSync(join(dir, 'table.csv'), ROWS);
  const { code, stderr } = await ipatlas([
    'history',
    'import',
    '--date',
    '2999-01-01',
    join(dir, 'table.csv'),
    '--data',
    dataDir,
  ]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('2999-01-01 is in the future')]);
});

it('--as-of dates the entry as well', async () => {
  expect((await build(ROWS, '--as-of', '2026-05-20')).code).toBe(0);
  expect((await build(`${ROWS}31.0.0.0,31.0.0.255,FR\n`, '--as-of', '2027-05-20')).code).toBe(0);
  expect(days()).toEqual(['2026-05-20', '2026-06-01']);
});

describe('a build whose servers say another time', () => {
  async function buildFrom(serverTime: number, headers: http.OutgoingHttpHeaders, ...flags: string[]) {
    const server = http.createServer((_request, response) =>
      response.writeHead(200, { date: new Date(serverTime).toUTCString(), ...headers }).end(ROWS),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const https = `http://127.0.0.1:${(server.address() as AddressInfo).port}/one.csv`;
    const one = { id: 'one', license: 'CC0-1.0', fetch: { https }, format: 'ip-location-db' };
    writeFileSync(join(dir, 'sources.json'), JSON.stringify({ sources: [one] }));
    return ipatlas(['build', '--sources', join(dir, 'sources.json'), '--data', dataDir, ...flags]);
  }

  it.each([
    ['is ahead', NOW - 2 * DAY_MS, {}, [], 3],
    ['is behind', NOW + 2 * DAY_MS, {}, [], 3],
    ['is ahead, with --as-of', NOW - 2 * DAY_MS, {}, ['--as-of', '2026-05-30'], 0],
    ['is less than a day ahead', NOW - DAY_MS + 5000, {}, [], 0],
    ['is right, and a cache answers', NOW - 3 * DAY_MS, { age: String(3 * 86_400) }, [], 0],
  ])('is refused if the clock is wrong: %s', async (_what, time, headers, flags, code) => {
    const result = await buildFrom(time, headers, ...flags);
    expect(result.code).toBe(code);
    if (code !== 0) expect(result.stderr).toContain('the clock of this machine says 2026-06-01');
  });

  it('is as of today if they confirm the clock, though the current release is as of a later day', async () => {
    expect((await build(ROWS, '--as-of', '2030-01-01')).code).toBe(0);
    expect((await buildFrom(NOW, {})).code).toBe(0);
    expect(manifestOf(dataDir).as_of).toBe('2026-06-01');
  });
});
