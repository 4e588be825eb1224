/** `ipatlas report`, `ipatlas diff --html`, and the pages that builds write. */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 as SchemaValidator } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_GATES } from '../../src/limits.js';
import { packageFile } from '../../src/package-root.js';
import { changedShare } from '../../src/report/changes.js';
import { readStoredReport } from '../../src/report/stored-report.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, madeUpWorld, type Row, rowsText, writeSources } from '../support/sources.js';

const WORLD = madeUpWorld();

/** The two /12s that change their country between the first two releases; DE gets them. */
const MOVED = WORLD.filter(({ first }) => ['103.0.0.0', '103.16.0.0'].includes(first));
const LATER = WORLD.map((row) => (MOVED.includes(row) ? { ...row, code: 'DE' } : row));

let dir: string;
let dataDir: string;
beforeEach(() => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
});

/** A data directory with three releases: the first, the current one, and a refused one. Tests only read it. */
let shared: { dir: string; first: string };
beforeAll(async () => {
  const sharedDir = temporaryDir();
  const data = join(sharedDir, 'data');
  const build = (rows: readonly Row[]) => buildOnce(data, writeSources(sharedDir, { world: rowsText(rows) }));
  const first = (await build(WORLD)).id!;
  expect((await build(LATER)).outcome).toBe('published');
  expect((await build(without(150))).outcome).toBe('E_REFUSED');
  shared = { dir: sharedDir, first };
});
afterAll(() => rmSync(shared.dir, { recursive: true, force: true }));
const useShared = (): void => {
  dataDir = join(shared.dir, 'data');
};

const sources = (rows: readonly Row[], more: object = {}): string => writeSources(dir, { world: rowsText(rows) }, more);
const current = (): string => readlinkSync(join(dataDir, 'current')).replace(/^.*\//, '');
const refused = (): string => readdirSync(join(dataDir, 'releases', 'refused'))[0]!;
const report = (...args: string[]) => ipatlas(['report', ...args, '--data', dataDir]);
const page = (name = 'latest.html'): string => readFileSync(join(dir, 'reports', name), 'utf8');

/** Returns the world without the rows of an octet. */
function without(octet: number): Row[] {
  return WORLD.filter((row) => !row.first.startsWith(`${octet}.`));
}

/** The text of a page between its tags. */
function textOf(html: string): string {
  return html
    .replace(/<style>.*?<\/style>/s, '')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

describe('ipatlas report', () => {
  it('shows stages, gates, sources and changes as text', async () => {
    useShared();
    const { code, stdout, stderr } = await report();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Passed the gates.');
    expect(stdout).toMatch(/^maxChangedShareIPv4 +0\.\d+ % +0\.3 % +passed$/m);
    expect(stdout).toContain('The limits are those of 0 days that the data had to change.');
    expect(stdout).toMatch(/^maxRowsChange +0 % +20 % +passed$/m);
    expect(stdout).toMatch(/^ingest +\d+\.\d\d +rows [\d,]+ +rejected 0$/m);
    expect(stdout).toMatch(new RegExp(`^compared with ${shared.first}, as of`, 'm'));
    expect(stdout).toMatch(/^IPv6: no difference$/m);
  });

  it('shows the same as JSON', async () => {
    useShared();
    const json = JSON.parse((await report('--json')).stdout);
    expect(json).toMatchObject({ release: current(), outcome: 'published', refusals: [], compared_with: shared.first });
    expect(json.sources).toMatchObject([{ id: 'world', license: 'CC0-1.0', rejected: 0, skipped: 0 }]);
    const [v4, v6] = json.changes.families;
    // Counted from the rows: each country lost the /12s that it had, and Germany gained those that were not its own.
    const expected = new Map<string, [lost: bigint, gained: bigint]>();
    for (const { code } of MOVED) {
      const [lost, gained] = expected.get(code) ?? [0n, 0n];
      expected.set(code, [lost + (1n << 20n), gained]);
    }
    expected.set('DE', [0n, BigInt(MOVED.length) << 20n]);
    for (const { code, before, after, kept } of v4.countries) {
      expect([BigInt(before) - BigInt(kept), BigInt(after) - BigInt(kept)], code).toEqual(expected.get(code));
    }
    expect(v4.countries).toHaveLength(expected.size);
    expect(v4).toMatchObject({ changed: String(MOVED.length << 20), lost: '0', gained: '0' });
    expect(v6).toMatchObject({ changed: '0', lost: '0', gained: '0', countries: [], blocks: [] });
  });

  it('shows a refused release, by its id', async () => {
    useShared();
    const { code, stdout } = await report(refused());
    expect(code).toBe(0);
    expect(stdout).toContain('Refused by gates; not published.');
    expect(stdout).toMatch(/^maxBlockIPv4 +16,777,216 +4,194,304 +refused +150\.0\.0\.0 – 150\.255\.255\.255$/m);
    const html = textOf((await report(refused(), '--html', '-')).stdout);
    expect(html).toContain('Reasons against publishing');
    expect(html).toContain('no address of 150.0.0.0 – 150.255.255.255 kept its country');
  });

  it('writes a page that makes no request and has no script', async () => {
    useShared();
    const path = join(dir, 'page.html');
    expect(await report('--html', path)).toMatchObject({ code: 0, stdout: '', stderr: '' });
    const html = readFileSync(path, 'utf8');
    expect(html).toContain(`content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"`);
    expect(html).not.toMatch(/<script|<iframe|<object|<img|@import|url\(|\son\w+=|\ssrc=|style="/i);
    expect([...html.matchAll(/href="([^"]*)"/g)].map(([, target]) => target)).toEqual(['data:,']);
    // Germany has gained; Malta has only addresses that did not change.
    expect(html).toMatch(
      /data-country="DE" class="level[1-4]"[^>]*><title>Germany, IPv4: [\d.]+ %, IPv6: 0 %<\/title>/,
    );
    expect(html).toMatch(/data-country="MT" class="level0"/);
    // Countries without addresses have no color.
    expect(html).toMatch(/data-country="AQ" (?!class)/);
  });

  it('says that there was no release to compare with, for the first one', async () => {
    useShared();
    expect((await report(shared.first)).stdout).toContain('no release to compare with');
    expect(JSON.parse((await report(shared.first, '--json')).stdout)).toMatchObject({
      ...{ compared_with: null, changes: null },
    });
    expect(textOf((await report(shared.first, '--html', '-')).stdout)).toContain(
      'There was no release to compare with.',
    );
  });

  it.each([
    [['--html', ''], '--html is empty'],
    [['--html', 'x.html', '--json'], 'give --json or --html, not both'],
    [['2026-01-01-000000000000'], 'there is no release'],
    [['--html', '/no/such/folder/page.html'], 'page.html cannot be written'],
  ])('%j is refused: %s', async (args, message) => {
    useShared();
    const { code, stdout, stderr } = await report(...args);
    expect(code).toBeGreaterThan(1);
    expect(stdout).toBe('');
    expect(stderr).toContain(message);
  });

  it('says that the release to compare with is not kept any more', async () => {
    await buildOnce(dataDir, sources(WORLD, { keepReleases: 1 }));
    const before = current();
    await buildOnce(dataDir, sources(LATER, { keepReleases: 1 }));
    expect((await report()).stdout).toContain(`${before} is not kept any more`);
    expect(textOf((await report('--html', '-')).stdout)).toContain(`${before}, which is not kept any more`);
  });

  it('shows what it can of a release without a report, or with one of an earlier version', async () => {
    await buildOnce(dataDir, sources(WORLD));
    const path = join(dataDir, 'current', 'report.json');
    const { outcome, gates, ...earlier } = JSON.parse(readFileSync(path, 'utf8'));
    expect([outcome, gates.length]).toEqual(['published', 1]);
    writeFileSync(path, JSON.stringify(earlier));
    expect((await report()).stdout).toContain('the figures of the gates were not recorded');
    rmSync(path);
    expect((await report()).stdout).toContain('the stages were not recorded');
    expect(textOf((await report('--html', '-')).stdout)).toContain('The stages were not recorded.');
  });
});

describe('report.json', () => {
  it('is valid to its schema, as ajv reads it', () => {
    useShared();
    const schema = JSON.parse(readFileSync(packageFile('schemas/report.schema.json'), 'utf8'));
    const validate = new SchemaValidator({ strict: true, allowUnionTypes: true }).compile(schema);
    for (const folder of [join('releases', current()), join('releases', 'refused', refused())]) {
      const stored = JSON.parse(readFileSync(join(dataDir, folder, 'report.json'), 'utf8'));
      expect(validate(stored), JSON.stringify(validate.errors)).toBe(true);
    }
  });

  it.each([
    '',
    '[]',
    'null',
    '{',
    '{"release":"x"}',
    '{"release":1,"finished":"2026-01-01T00:00:00Z","refusals":[],"stages":[]}',
    '{"release":"x","finished":"soon","refusals":[],"stages":[]}',
    '{"release":"x","finished":"2026-01-01T00:00:00Z","refusals":[],"stages":[{}]}',
    '{"release":"x","finished":"2026-01-01T00:00:00Z","refusals":[],"stages":[{"stage":"gate","seconds":1,"counts":{"a":{}}}]}',
    '{"release":"x","finished":"2026-01-01T00:00:00Z","refusals":[],"stages":[],"gates":[{"gate":"a"}]}',
    '{"release":"x","finished":"2026-01-01T00:00:00Z","refusals":[],"stages":[],"outcome":"lost"}',
  ])('%s is refused as damaged', (text) => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'report.json'), text);
    expect(() => readStoredReport(dataDir)).toThrow(expect.objectContaining({ code: 'E_DAMAGED' }));
  });
});

describe('the figures of the gates', () => {
  const swapped: Record<string, string> = { MT: 'CY', CY: 'MT' };
  const nights: [what: string, rows: Row[]][] = [
    ['a /8 is gone', without(150)],
    ['a /8 has another country', WORLD.map((row) => (/^150\..*\.0$/.test(row.first) ? { ...row, code: 'DE' } : row))],
    ['two countries swap', WORLD.map((row) => ({ ...row, code: swapped[row.code] ?? row.code }))],
    ['every other row', WORLD.filter((_, index) => index % 2 === 0)],
  ];

  /** These releases have no networks and no labels. */
  const GATES = Object.keys(DEFAULT_GATES)
    .filter((gate) => !/Network|Label/.test(gate))
    .sort();

  it.each(nights)('exceed their limits for exactly the gates that refuse: %s', async (_, rows) => {
    await buildOnce(dataDir, sources(WORLD));
    expect((await buildOnce(dataDir, sources(rows))).outcome).toBe('E_REFUSED');
    const { gates, refusals } = readStoredReport(join(dataDir, 'releases', 'refused', refused()))!;
    const exceeded = gates!.filter(({ value, limit }) => value > limit).map(({ gate }) => gate);
    expect(exceeded.sort()).toEqual([...new Set(refusals.map(({ gate }) => gate))].sort());
    expect(gates!.map(({ gate }) => gate).sort()).toEqual(GATES);
  });

  it('exceed no limit for a release that is published', () => {
    useShared();
    const { gates } = readStoredReport(join(dataDir, 'current'))!;
    expect(gates!.filter(({ value, limit }) => value > limit)).toEqual([]);
    expect(gates!.map(({ gate }) => gate).sort()).toEqual(GATES);
    const moved = MOVED.filter(({ code }) => code !== 'DE').length;
    expect(gates!.find(({ gate }) => gate === 'maxBlockIPv4')).toMatchObject({ value: moved << 20 });
  });
});

describe('the share of a country that changed', () => {
  it('is that of a count by address', () => {
    const cells = fc.array(fc.tuple(fc.boolean(), fc.boolean()), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(cells, (addresses) => {
        const count = (test: (had: boolean, has: boolean) => boolean): number =>
          addresses.filter(([had, has]) => test(had, has)).length;
        const totals = {
          before: BigInt(count((had) => had)),
          after: BigInt(count((_, has) => has)),
          kept: BigInt(count((had, has) => had && has)),
        };
        const either = count((had, has) => had || has);
        const expected = either === 0 ? 0 : count((had, has) => had !== has) / either;
        expect(changedShare(totals)).toBeCloseTo(expected, 12);
      }),
    );
  });
});

describe('ipatlas diff --html', () => {
  const diff = (...args: string[]) => ipatlas(['diff', ...args, '--data', dataDir]);

  it('writes a page with what changed between two releases', async () => {
    useShared();
    const { code, stdout } = await diff(shared.first, 'current', '--html', '-');
    expect(code).toBe(0);
    const text = textOf(stdout);
    expect(text).toContain(`From release ${shared.first} to ${current()}`);
    expect(text).toContain('DE Germany');
    expect(text).toContain('IPv6 No address has another country.');
    expect(textOf((await diff('current', 'current', '--html', '-')).stdout)).toContain(
      'IPv4 No address has another country.',
    );
  });

  it('is not given together with --json or --csv', async () => {
    useShared();
    const { code, stderr } = await diff('current', 'current', '--html', '-', '--csv');
    expect(code).toBe(2);
    expect(stderr).toContain('give --csv or --html, not both');
  });
});

it('ipatlas report --lang names countries in the text and in the page, also those without a change', async () => {
  useShared();
  const report = (...args: string[]) => ipatlas(['report', ...args, '--data', dataDir]);
  expect((await report()).stdout).toMatch(/^DE Germany /m);
  expect((await report('--lang', 'de')).stdout).toMatch(/^DE Deutschland /m);
  const html = textOf((await report('--html', '-', '--lang', 'de')).stdout);
  expect([html.includes('DE Deutschland'), html.includes('Österreich, ')]).toEqual([true, true]);
  expect(await report('--json', '--lang', 'de')).toMatchObject({ code: 2 });
  expect(await report('--lang', 'tlh')).toMatchObject({ code: 2 });
});

describe('"report" in sources.json', () => {
  const more = { report: 'reports' };

  it('writes a page for each build that reaches the gates, refused ones included', async () => {
    const first = await buildOnce(dataDir, sources(WORLD, more));
    expect(first.notes.join('\n')).toContain(join(dir, 'reports', 'latest.html'));
    expect(textOf(page())).toContain('Passed the gates.');
    expect(await buildOnce(dataDir, sources(WORLD, more))).toMatchObject({ outcome: 'unchanged' });

    expect((await buildOnce(dataDir, sources(without(150), more))).outcome).toBe('E_REFUSED');
    expect(page()).toBe(page(`${refused()}.html`));
    expect(textOf(page())).toContain('Refused by gates; not published.');
    expect(textOf(page())).toContain(`Compared with release ${first.id}`);

    const forced = await buildOnce(dataDir, sources(without(150), more), { force: true });
    expect(textOf(page())).toMatch(/Published by force by \S+ at 20/);
    // Nothing but whole pages is in the directory.
    expect(readdirSync(join(dir, 'reports')).sort()).toEqual(
      [`${first.id}.html`, `${forced.id}.html`, 'latest.html'].sort(),
    );
  });

  it('compares with the release that was current, although publishing removes it', async () => {
    const first = await buildOnce(dataDir, sources(WORLD, { ...more, keepReleases: 1 }));
    await buildOnce(dataDir, sources(LATER, { ...more, keepReleases: 1 }));
    expect(readdirSync(join(dataDir, 'releases'))).not.toContain(first.id);
    expect(textOf(page())).toContain(`Compared with release ${first.id}`);
  });

  it('does not hold a release back if the page cannot be written', async () => {
    writeFileSync(join(dir, 'reports'), 'a file, not a directory');
    const { outcome, notes } = await buildOnce(dataDir, sources(WORLD, more));
    expect(outcome).toBe('published');
    expect(notes.join('\n')).toContain(`the report cannot be written in ${join(dir, 'reports')}: file already exists`);
  });
});

describe('hostile text in sources', () => {
  const evil = `</style></title><script>alert(1)</script><img src=x onerror="alert(1)">"'&\u202e\u0000${'x'.repeat(5_000)}`;

  it('is shown as text', async () => {
    const path = sources(WORLD);
    const file = JSON.parse(readFileSync(path, 'utf8'));
    file.sources[0] = { ...file.sources[0], license: evil, attribution: evil, title: evil };
    file.sources.push({ ...file.sources[0], id: 'gone', optional: true, fetch: { file: '<script>gone*.csv' } });
    file.report = 'reports';
    writeFileSync(path, JSON.stringify(file));
    await buildOnce(dataDir, path);
    const html = page();
    expect(html).not.toMatch(/<script|<img/i);
    expect(html.match(/<\/style>/g)).toHaveLength(1);
    expect(html).toContain('&lt;/style&gt;&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).toContain('&lt;script&gt;gone*.csv');
  });
});
