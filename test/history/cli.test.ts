import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { rollBack } from '../../pipeline/index.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { DAY_MS } from '../../src/day.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { openArchive } from '../../src/history/archive.js';
import { openDatabase } from '../../src/history/open.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import { jsonLines } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { type Block, country, embedded, publishBlocks, temporaryDir } from '../support/release.js';

/** The world of each publication. */
const WORLDS: Record<string, Block[]> = {
  uk: [
    ['193.0.0.0/21', country('GB', 'United Kingdom')],
    ['2002::/16', embedded('6to4')],
    ['2a00::/16', country('FR', 'France', true)],
  ],
  de: [
    ['193.0.0.0/21', country('DE', 'Germany', true)],
    ['2002::/16', embedded('6to4')],
    ['2a00::/16', country('FR', 'France', true)],
  ],
};

let dataDir: string;
let ids: Record<string, string>;

/** Runs an action as if it were another time. */
async function at<Result>(time: string, action: () => Result | Promise<Result>): Promise<Result> {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.parse(time));
  try {
    return await action();
  } finally {
    clock.mockRestore();
  }
}

const run = (...args: string[]) => ipatlas([...args, '--data', dataDir]);

beforeAll(async () => {
  dataDir = temporaryDir();
  const publish = (world: string, days = 730) => publishBlocks(dataDir, WORLDS[world]!, '2026-03-01', days);
  const uk = await at('2026-03-01T01:00:00Z', () => publish('uk'));
  const de = await at('2026-03-05T01:00:00Z', () => publish('de'));
  await at('2026-03-07T23:59:59Z', () => rollBack(dataDir, uk));
  await at('2026-03-08T00:00:01Z', () => publish('de'));
  ids = { uk, de };
  importEntry(openArchive(dataDir), {
    day: '2020-01-01',
    name: 'old.csv',
    answers: answersOf(openReleaseRanges(join(dataDir, 'releases', uk)).file),
  });
});
afterEach(() => vi.restoreAllMocks());

describe('ipatlas history', () => {
  it('prints the periods of addresses, also of those inside others, by the membership of each day', async () => {
    const { code, stdout } = await run('history', '--json', '193.0.6.139', '2002:c100:068b::1');
    expect(code).toBe(0);
    const britain = { country: 'United Kingdom', country_code: 'GB' };
    const germany = { country: 'Germany', country_code: 'DE', is_eu: true };
    const periods = [
      { from: '2020-01-01', to: '2020-01-31', ...britain, is_eu: true, release: 'old.csv' },
      { from: '2020-02-01', to: '2026-03-04', ...britain, is_eu: false, release: 'old.csv' },
      { from: '2026-03-05', to: '2026-03-06', ...germany, release: ids.de },
      { from: '2026-03-07', to: '2026-03-07', ...britain, is_eu: false, release: ids.uk },
      { from: '2026-03-08', to: null, ...germany, release: ids.de },
    ];
    expect(jsonLines(stdout)).toEqual(
      ['193.0.6.139', '2002:c100:068b::1'].flatMap((ip) => periods.map((period) => ({ ip, ...period }))),
    );
  });

  it('cuts periods to the days asked for', async () => {
    const days = ['--from', '2026-03-06', '--to', '2026-03-07'];
    const { stdout } = await run('history', '--json', ...days, '193.0.0.1');
    expect(stdout.split('\n').map((line) => line.slice(0, 64))).toEqual([
      '{"ip":"193.0.0.1","from":"2026-03-06","to":"2026-03-06","country',
      '{"ip":"193.0.0.1","from":"2026-03-07","to":"2026-03-07","country',
      '',
    ]);
  });

  it('tells what changed inside a block, and when', async () => {
    const args = ['history', '193.0.4.0/22', '2a00::/16', '--data', dataDir];
    const { code, stdout, stderr } = await ipatlas(args);
    const row = (...cells: string[]): string => `193.0.4.0/22 ${cells.join(' ')}`;
    expect({
      code,
      lines: stdout
        .trim()
        .split('\n')
        .map((line) => line.replaceAll(/ +/g, ' ')),
    }).toEqual({
      code: 0,
      lines: [
        'NETWORK DAY FIRST LAST FROM TO',
        row('2020-02-01', '193.0.4.0', '193.0.7.255', 'GB (EU)', 'GB'),
        row('2026-03-05', '193.0.4.0', '193.0.7.255', 'GB', 'DE (EU)'),
        row('2026-03-07', '193.0.4.0', '193.0.7.255', 'DE (EU)', 'GB'),
        row('2026-03-08', '193.0.4.0', '193.0.7.255', 'GB', 'DE (EU)'),
      ],
    });
    expect(stderr).toBe('nothing has changed in 2a00::/16\n');
    const json = await run('history', '192.0.0.0/2', '--from', '2026-03-06', '--to', '2026-03-07', '--json');
    expect(JSON.parse(json.stdout)).toEqual({
      ...{ network: '192.0.0.0/2', day: '2026-03-07', first: '193.0.0.0', last: '193.0.7.255' },
      ...{ from: 'DE', to: 'GB', from_is_eu: true, to_is_eu: false },
    });
    expect(await run('history', '10.0.0.0/33')).toMatchObject({ code: 2 });
  });

  it.each<[string[], number, RegExp]>([
    [['193.0.0.1', '--from', '2026-02-30'], 2, /--from "2026-02-30" is not a date/],
    [['193.0.0.1', '--from', '2026-02-02', '--to', '2026-02-01'], 2, /is after/],
    [['no-address'], 4, /1 of the addresses given is not valid/],
    [['193.0.0.1', '--data', '/nonexistent'], 5, /there is no history/],
  ])('%j exits with %d', async (args, exit, message) => {
    const { code, stderr } = await ipatlas(['history', '--data', dataDir, ...args]);
    expect({ code, stderr }).toEqual({ code: exit, stderr: expect.stringMatching(message) });
  });
});

describe('ipatlas lookup --at', () => {
  it.each([
    ['2020-01-31', 'GB', true],
    ['2020-02-01', 'GB', false],
    ['2026-03-06', 'DE', true],
    ['2026-03-07', 'GB', false],
    ['2026-03-08', 'DE', true],
  ])('%s: %s', async (day, code, isEu) => {
    const { stdout } = await run('lookup', '193.0.0.1', '--json', '--at', day);
    expect(JSON.parse(stdout)).toMatchObject({ country_code: code, is_eu: isEu });
  });

  it('names the days that are kept if a day is not', async () => {
    const { code, stderr } = await run('lookup', '193.0.0.1', '--at', '2019-12-31');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /there are no answers of 2019-12-31: history begins on 2020-01-01; history has 2020-01-01 to /,
    );
  });

  it('does not go with the mirror', async () => {
    const args = ['lookup', '193.0.0.1', '--at', '2026-03-07', '--engine', 'sqlite', '--data', dataDir];
    expect(await ipatlas(args)).toMatchObject({ code: 2, stderr: expect.stringMatching(/--at does not go with/) });
  });
});

describe('enrich, filter and summarize', () => {
  const ROWS = ['2020-01-31T23:59:59Z', '2020-02-01T00:00:00Z', '2026-03-06', '1772841600', 'soon', '2019-12-31'];
  const input = ROWS.map((t) => `${JSON.stringify({ ip: '193.0.0.1', t })}\n`).join('');
  const results = (stdout: string): unknown[] =>
    stdout
      .trim()
      .split('\n')
      .map((line) => Object.values((JSON.parse(line) as { geo: object | null }).geo ?? {}).join(' '));

  it('answer as of a day', async () => {
    const flags = ['--at', '2020-01-31', '--add', 'country_code,is_eu,release_date'];
    const { code, stdout } = await ipatlas(['enrich', ...flags, '--data', dataDir], { input });
    expect({ code, results: results(stdout) }).toEqual({ code: 0, results: ROWS.map(() => 'GB true 2020-01-01') });
  });

  it('answer each record by its own date', async () => {
    const flags = ['--at-field', 't', '--add', 'country_code,is_eu,release_date'];
    const { stdout, stderr } = await ipatlas(['enrich', ...flags, '--data', dataDir], { input });
    const kept = ['GB true 2020-01-01', 'GB false 2020-01-01', 'DE true 2026-03-05', 'GB false 2026-03-07'];
    expect(results(stdout)).toEqual([...kept, '', '']);
    expect(stderr).toMatch(/^ {2}missing date +2$/m);
    const now = await ipatlas(['enrich', ...flags, '--at-missing', 'now', '--data', dataDir], { input });
    expect(results(now.stdout)).toEqual([...kept, 'DE true 2026-03-08', 'DE true 2026-03-08']);
    const first = await ipatlas(['enrich', ...flags, '--at-missing', 'first', '--data', dataDir], { input });
    expect(results(first.stdout)).toEqual([...kept, 'GB true 2020-01-01', 'GB true 2020-01-01']);
  });

  it('select and count by the membership of each date', async () => {
    const flags = ['--at-field', 't', '--data', dataDir];
    const { stdout } = await ipatlas(['filter', '--eu', ...flags], { input });
    expect(stdout.split('\n').map((line) => line.slice(23, 33))).toEqual(['2020-01-31', '2026-03-06', '']);
    const counts = await ipatlas(['summarize', '--by', 'eu', '--json', ...flags], { input });
    expect(JSON.parse(counts.stdout)).toMatchObject({ eu: 2, not_eu: 2, missing_date: 2 });
  });

  it('name the days that are kept if a day is not', async () => {
    const { code, stderr } = await ipatlas(['enrich', '--at', '2019-12-31', '--data', dataDir], { input });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/history has 2020-01-01 to /) });
    const none = await ipatlas(['enrich', '--at-field', 't', '--data', '/nonexistent'], { input });
    expect(none).toMatchObject({ code: 2, stderr: expect.stringMatching(/there is no history in/) });
  });
});

describe('the library', () => {
  it('opens a day, and enriches by the date of each record', () => {
    using past = openDatabase(dataDir, { at: '2020-02-01' });
    expect(past.country('193.0.0.1')).toEqual({ country: 'United Kingdom', country_code: 'GB', is_eu: false });
    expect([past.day, past.releaseDate]).toEqual(['2020-02-01', '2020-01-01']);
    expect(() => openDatabase(dataDir, { at: '2019-12-31' })).toThrow(/history has 2020-01-01/);
    expect(() => openDatabase(dataDir, { at: 'today' })).toThrow(/not a date/);
    using current = openDatabase(dataDir);
    const { enrichBlock } = createBlockEnricher(current, { atField: 't', add: ['country_code'] });
    const enriched = Buffer.from(enrichBlock(Buffer.from('{"ip":"193.0.0.1","t":"2020-02-01"}')));
    expect(enriched.toString()).toBe('{"ip":"193.0.0.1","t":"2020-02-01","geo":{"country_code":"GB"}}');
    // The process runs on after midnight.
    const line = JSON.stringify({ ip: '193.0.0.1', t: new Date(Date.now() + DAY_MS).toISOString() });
    expect(Buffer.from(enrichBlock(Buffer.from(line))).toString()).toContain('{"country_code":"DE"}');
    const atDay = createBlockEnricher(current, { at: '2026-03-06', add: ['country_code'] });
    expect(Buffer.from(atDay.enrichBlock(Buffer.from('{"ip":"193.0.0.1"}'))).toString()).toContain('"DE"');
  });
});

describe('other commands', () => {
  it('export writes the answers of a day', async () => {
    const { code, stdout } = await run('export', 'csv', '--at', '2020-01-31', '--family', '4');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^193\.0\.0\.0,193\.0\.7\.255,GB/m) });
    const eu = await run('export', 'nft', '--eu', '--at', '2020-02-01');
    expect(eu.stdout).toMatch(/Countries of IP addresses on 2020-02-01/);
    expect(eu.stdout).not.toMatch(/193\.0/);
    for (const args of [['csv', '--release', ids.uk!], ['compact'], ['gdnsd', '--nodes', 'x', '-o', 'y']]) {
      const refused = await run('export', ...args, '--at', '2020-01-31');
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/--at does not go with|does not go with --at/),
      });
    }
  });

  it('diff compares days', async () => {
    const { stdout } = await run('diff', '2026-03-04', '2026-03-05', '--json');
    const { before, after, ranges } = JSON.parse(stdout);
    expect([before, after]).toEqual([
      { release: '2026-03-04', as_of: '2026-03-04' },
      { release: '2026-03-05', as_of: '2026-03-05' },
    ]);
    expect(ranges).toMatchObject([{ first: '193.0.0.0', last: '193.0.7.255', from: 'GB', to: 'DE' }]);
    const membership = await run('diff', '2020-01-31', '2020-02-01');
    expect(membership.stdout).toMatch(/^GB is no longer in the EU$/m);
    const page = await run('diff', '2026-03-04', 'current', '--html', '-');
    expect(page).toMatchObject({ code: 0, stdout: expect.stringContaining('<title>') });
    const imported = await run('diff', '2020-01-31', 'current', '--html', '-');
    expect(imported).toMatchObject({ code: 2, stderr: expect.stringMatching(/--html compares releases, and that of/) });
  });

  it('explain tells as much of a past day as is kept', async () => {
    const imported = await run('explain', '193.0.0.1', '--at', '2020-01-31');
    expect(imported.stdout).toBe(
      '193.0.0.1: United Kingdom (GB), in the European Union\nthe answer was imported from old.csv, which has no rows of sources\n',
    );
    const kept = await run('explain', '193.0.0.1', '--at', '2026-03-05', '--json');
    expect(JSON.parse(kept.stdout)).toMatchObject({ release: ids.de, result: { country_code: 'DE' } });
  });
});

it('ipatlas history takes a block in IPv4-mapped form for the IPv4 block', async () => {
  const [block, mapped] = ['193.0.0.0/21', '::ffff:193.0.0.0/117'].map((name) => run('history', name, '--json'));
  const { stdout } = await block!;
  expect(stdout.split('\n').length).toBeGreaterThan(3);
  expect((await mapped!).stdout.replaceAll('::ffff:193.0.0.0/117', '193.0.0.0/21')).toBe(stdout);
});

it('ipatlas releases tells the span of the history', async () => {
  const { stderr } = await run('releases');
  expect(stderr).toMatch(/^history: 2020-01-01 to 20\d\d-\d\d-\d\d, 0\.0 MB$/m);
});

it('ipatlas verify tells what is damaged in the history', async () => {
  expect(await run('verify')).toMatchObject({ code: 0, stderr: '' });
  const folder = join(dataDir, 'history');
  const files = readdirSync(folder).sort();
  const path = join(folder, files[2]!);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.subarray(0, 20));
  const damaged = await run('verify');
  expect(damaged).toMatchObject({
    code: 5,
    stderr: expect.stringMatching(
      /^ipatlas: history: .*: 20 bytes are not enough[\s\S]*"ipatlas history remove --data /,
    ),
  });
  // The other periods are shown all the same.
  const shown = await run('history', '193.0.0.1');
  expect(shown).toMatchObject({
    code: 5,
    stdout: expect.stringMatching(/^193\.0\.0\.1 +2026-03-05 +2026-03-06 +\? *$/m),
    stderr: expect.stringMatching(/^ipatlas: E_DAMAGED: 2026-03-05 to 2026-03-06: .*: 20 bytes are not enough/),
  });
  rmSync(path);
  const lost = await run('verify');
  writeFileSync(path, bytes);
  expect(lost).toMatchObject({ code: 5, stderr: expect.stringMatching(/history: the entry of 2026-03-05 is lost/) });
});
