/** Builds after sources.json was edited: what is published, what is refused, and which data is used without a network. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { rollBack } from '../../pipeline/operations/rollback.js';
import { ReleaseMetrics } from '../../src/api/metrics.js';
import { verifyRelease, verifyWithReport } from '../../src/database/verify.js';
import { serve } from '../pipeline/fetch-support.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, madeUpWorld, manifestOf, type Row, rowsText } from '../support/sources.js';

/** Files of the publishers by path. */
let published: Record<string, string | undefined>;
let url: string;
/** The ETag of all files. */
let etag: string;
/** The last change of all files, as a header; empty if the server does not say. */
let modified: string;
giveFolders();
beforeEach(async () => {
  published = { '/world.csv': WORLD_CSV };
  etag = '"one"';
  modified = '';
  ({ url } = await serve((request, response) => {
    const body = published[request.url!];
    response
      .writeHead(body === undefined ? 404 : 200, { etag, ...(modified && { 'last-modified': modified }) })
      .end(body);
  }));
});

const WORLD = madeUpWorld();
const WORLD_CSV = rowsText(WORLD).join('\n');
/** One network that only some sources have. */
const NETWORK: Row = { first: '102.9.0.0', last: '102.9.0.255', code: 'CH' };

/** A world in which the n-th part of all IPv4 /12s is in another country. */
const otherWorld = (part: number): Row[] =>
  WORLD.map((row, index) => (row.last.endsWith('.255.255') && index % part === 0 ? { ...row, code: 'NO' } : row));

interface Entry {
  id: string;
  fetch: object | object[];
  [key: string]: unknown;
}

const source = (id: string, fetch: object | object[], more: object = {}): Entry => ({
  ...{ id, fetch, license: 'CC0-1.0', format: 'ip-location-db' },
  ...more,
});
const world = (id = 'world', path = '/world.csv'): Entry => source(id, { https: `${url}${path}` });

/** Builds from a list of sources. */
async function build(sources: Entry[], options: { offline?: boolean; merge?: string; asOf?: string | undefined } = {}) {
  const { offline = false, asOf, ...more } = { asOf: '2026-01-01', ...options };
  const file = join(dir, 'sources.json');
  writeFileSync(file, JSON.stringify({ sources, ...more }));
  return buildOnce(dataDir, file, { offline, asOf });
}

/** Asserts that a list of sources was published, and returns the build. */
async function publish(...args: Parameters<typeof build>) {
  const built = await build(...args);
  expect(built.outcome, built.message).toBe('published');
  return built;
}

describe('a source that is added', () => {
  it('is published if it changes little, and so is its removal', async () => {
    published['/more.csv'] = rowsText([NETWORK]).join('\n');
    await publish([world()]);
    await publish([source('more', { https: `${url}/more.csv` }), world()]);
    await publish([world()]);
  });

  it('is refused if it changes much, and the refusal names the edit', async () => {
    published['/other.csv'] = rowsText(otherWorld(3)).join('\n');
    await publish([world()]);
    const { outcome, message } = await build([source('other', { https: `${url}/other.csv` }), world()]);
    expect(outcome).toBe('E_REFUSED');
    expect(message).toMatch(/The limits are those of a change of sources: source other is new\.\n/);
    expect(manifestOf(dataDir).inputs).toHaveLength(1);
  });

  it('may begin with its seed, together with sources that are not seeds', async () => {
    writeFileSync(join(dir, 'seed.csv'), rowsText([NETWORK]).join('\n'));
    await publish([world()]);
    const seeded = source('more', [{ https: `${url}/more.csv` }, { file: 'seed.csv', seed: 'old' }]);
    await publish([world(), seeded]);
    published['/more.csv'] = rowsText([{ ...NETWORK, code: 'AT' }]).join('\n');
    await publish([world(), seeded]);
    expect(manifestOf(dataDir).inputs.map(({ seed }) => seed)).toEqual([undefined, undefined]);
  });
});

describe('a source that is removed', () => {
  it('is not reported as removed if it is optional and cannot be fetched', async () => {
    published['/other.csv'] = rowsText(otherWorld(3)).join('\n');
    const other = source('other', { https: `${url}/other.csv` }, { optional: true });
    await publish([other, world()]);
    rmSync(join(dataDir, 'cache'), { recursive: true });
    published['/other.csv'] = undefined;
    const { outcome, message } = await build([other, world()]);
    expect(outcome).toBe('E_REFUSED');
    expect(message).not.toMatch(/change of sources/);
  });
});

describe('a source under another id', () => {
  it('has the same ranges, also without a network', async () => {
    await publish([world()]);
    await publish([world('renamed')]);
    published['/world.csv'] = undefined;
    await publish([world('again')]);
    await publish([world('offline')], { offline: true });
    expect(manifestOf(dataDir).inputs).toMatchObject([{ id: 'offline', rows: WORLD.length }]);
  });

  it('does not go back to a seed', async () => {
    writeFileSync(join(dir, 'seed.csv'), WORLD_CSV);
    const places = [{ https: `${url}/world.csv` }, { file: 'seed.csv', seed: 'old' }];
    await publish([source('world', places)]);
    published['/world.csv'] = undefined;
    rmSync(join(dataDir, 'cache'), { recursive: true });
    const { outcome, message } = await build([source('renamed', places)]);
    expect(outcome).toBe('E_REFUSED');
    expect(message).toMatch(/source renamed can only be had from its seed/);
  });
});

describe('a source from another location', () => {
  it('may have another number of rows for the same ranges', async () => {
    // The same world with every row in two halves or, for single addresses, twice.
    const halves = WORLD.flatMap(({ first, last, code }) =>
      last.endsWith('.255.255') && first.endsWith('.0.0')
        ? [
            {
              first,
              last: last.replace(/\d+\.255\.255$/, (rest) => `${Number(rest.split('.')[0]) - 8}.255.255`),
              code,
            },
            { first: first.replace(/\d+\.0\.0$/, (rest) => `${Number(rest.split('.')[0]) + 8}.0.0`), last, code },
          ]
        : [{ first, last, code }],
    );
    published['/mirror.csv'] = rowsText(halves).join('\n');
    await publish([world()]);
    await publish([world('world', '/mirror.csv')]);
    expect(manifestOf(dataDir).inputs[0]!.rows).toBeGreaterThan(1.5 * WORLD.length);
    // From the same place, such a change is refused.
    published['/mirror.csv'] = WORLD_CSV;
    expect((await build([world('world', '/mirror.csv')])).message).toMatch(/source world has 3,\d+ rows/);
  });

  it('keeps the copy of its earlier location as long as the new one cannot be reached', async () => {
    await publish([world()]);
    published['/world.csv'] = undefined;
    const both = source('world', [{ https: `${url}/new.csv` }, { https: `${url}/world.csv` }]);
    const { outcome, notes } = await build([both]);
    expect([outcome, notes.join('\n')]).toEqual([
      'unchanged',
      expect.stringMatching(/new\.csv: .*404[\s\S]*using the copy/),
    ]);
    expect((await build([both], { offline: true })).outcome).toBe('unchanged');
  });
});

describe('another order of the sources', () => {
  it('is published if the sources agree on most addresses', async () => {
    published['/other.csv'] = rowsText([...WORLD, NETWORK]).join('\n');
    const other = world('other', '/other.csv');
    await publish([world(), other]);
    await publish([other, world()]);
  });
});

it('another merge strategy is published if the results are nearly the same', async () => {
  published['/more.csv'] = rowsText([NETWORK]).join('\n');
  const sources = [source('more', { https: `${url}/more.csv` }), world()];
  await publish(sources);
  await publish(sources, { merge: 'evidence' });
});

it('from a seed to newer data, and then without a network: no build is refused', async () => {
  writeFileSync(join(dir, 'seed.csv'), rowsText(otherWorld(47)).join('\n'));
  const places = (name: string) => [{ https: `${url}/${name}.csv` }, { file: 'seed.csv', seed: 'old' }];
  const sources = [source('a', places('a')), source('b', places('b'))];
  await publish(sources);
  // The publishers appear one after the other.
  published['/a.csv'] = WORLD_CSV;
  await publish(sources);
  published['/b.csv'] = WORLD_CSV;
  await publish(sources);
  expect(manifestOf(dataDir).inputs.map(({ seed }) => seed)).toEqual([undefined, undefined]);
  published = {};
  expect((await build(sources)).outcome).toBe('unchanged');
  expect((await build(sources, { offline: true })).outcome).toBe('unchanged');
});

describe('a download that cannot be read', () => {
  const good = (): string => rowsText([...WORLD, NETWORK]).join('\n');
  it.each([
    ['is a web page', '<html>down for maintenance</html>\n'.repeat(50)],
    ['has country codes of three letters', WORLD_CSV.replace(/$/gm, 'X')],
  ])('%s: the files of the current release are used', async (_what, body) => {
    published['/more.csv'] = good();
    const sources = [world(), world('more', '/more.csv')];
    const { id } = await publish(sources);
    published['/world.csv'] = body;
    const same = await build(sources);
    expect([same.outcome, same.id]).toEqual(['unchanged', id]);
    expect(same.notes.join('\n')).toContain('The build continues with the files of an earlier release');
    // The other source has news.
    published['/more.csv'] = good().replace(/CH$/, 'AT');
    const { id: next } = await publish(sources);
    expect(manifestOf(dataDir, next).inputs[0]!.files).toEqual(manifestOf(dataDir, id).inputs[0]!.files);
    // Nor is the bad download used without a network.
    expect((await build(sources, { offline: true })).outcome).toBe('unchanged');
  });

  it('that the gates refuse is not the copy for builds without that server', async () => {
    const { id } = await publish([world()]);
    published['/world.csv'] = rowsText(otherWorld(3)).join('\n');
    expect((await build([world()])).outcome).toBe('E_REFUSED');
    delete published['/world.csv'];
    expect(await build([world()])).toMatchObject({ outcome: 'unchanged', id });
  });

  it('fails the first build', async () => {
    published['/world.csv'] = '<html></html>';
    expect((await build([world()])).outcome).toBe('E_BAD_INPUT');
  });

  it('fails the build if its format was edited in sources.json', async () => {
    await publish([world()]);
    expect((await build([{ ...world(), format: 'geofeed' }])).outcome).toBe('E_BAD_INPUT');
  });
});

describe('what a server says about the same bytes', () => {
  it('does not count: another ETag publishes nothing, also not what was rolled back', async () => {
    await publish([world()]);
    const first = manifestOf(dataDir).id;
    etag = '"another node"';
    expect((await build([world()])).outcome).toBe('unchanged');
    published['/world.csv'] = `${WORLD_CSV}\n${rowsText([NETWORK])[0]}`;
    await publish([world()]);
    const second = manifestOf(dataDir).id;
    rollBack(dataDir, undefined);
    expect(manifestOf(dataDir).id).toBe(first);
    etag = '"one more"';
    expect((await build([world()])).outcome).toBe('E_REFUSED');
    expect([manifestOf(dataDir).id, second]).toEqual([first, expect.not.stringMatching(first)]);
  });
});

describe('dates', () => {
  it('in the future, or older than before, are reported and are not the age of the data', async () => {
    modified = 'Wed, 31 Dec 2025 00:00:00 GMT';
    await publish([world()]);
    expect(manifestOf(dataDir).data_date).toBe('2025-12-31');
    for (const [date, what] of [
      ['Sun, 05 Jan 2031 00:00:00 GMT', '2031-01-05 (Last-Modified) is in the future'],
      [
        'Mon, 01 Jan 2024 00:00:00 GMT',
        '2024-01-01 (Last-Modified) is older than that of the last release, 2025-12-31',
      ],
    ]) {
      modified = date!;
      published['/world.csv'] += `\n102.9.0.0,102.9.0.255,${date!.startsWith('Sun') ? 'CH' : 'AT'}`;
      const { notes } = await publish([world()]);
      expect(notes).toContain(`world: its date ${what}, so it does not count`);
      expect(manifestOf(dataDir).inputs[0]).toMatchObject({
        data_date: '2025-12-31',
        data_date_evidence: `last release, because its date ${what}`,
        data_date_problem: `its date ${what}`,
      });
      const { stdout } = await ipatlas(['info', '--data', dataDir]);
      expect(stdout).toMatch(new RegExp(`^date of source world +does not count: its date ${what!.slice(0, 10)}`, 'm'));
      const metrics = new ReleaseMetrics();
      metrics.release(manifestOf(dataDir));
      expect(await metrics.registry.metrics()).toMatch(/^ipatlas_source_date_problems 1$/m);
    }
  });
});

describe('damage and clocks', () => {
  it.each([
    ['damaged', /report\.json cannot be read/, (path: string) => writeFileSync(path, '{"release":')],
    ['missing', /report\.json is missing; lookups do not need it/, (path: string) => rmSync(path)],
  ])('builds a release again whose report is %s', async (_kind, problem, harm) => {
    await publish([world()]);
    const report = join(dataDir, 'releases', manifestOf(dataDir).id, 'report.json');
    harm(report);
    expect(verifyRelease(join(dataDir, 'current')).manifest).toEqual(manifestOf(dataDir));
    expect(() => verifyWithReport(join(dataDir, 'current'))).toThrow(problem);
    expect(await ipatlas(['verify', '--data', dataDir])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(problem),
    });
    await publish([world()]);
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ outcome: 'published' });
  });

  it('does not build if the clock was set back, as the servers show', async () => {
    await publish([world()], { asOf: undefined });
    const { as_of } = manifestOf(dataDir);
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2003-01-01') });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    published['/world.csv'] += `\n${rowsText([NETWORK])[0]}`;
    await expect(publish([world()], { asOf: undefined })).rejects.toThrow('the clock of this machine says 2003-01-01');
    expect(manifestOf(dataDir).as_of).toBe(as_of);
  });
});
