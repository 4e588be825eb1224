import { cpSync, existsSync, readFileSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { checkSentinels } from '../../pipeline/gates/sentinels.js';
import { openDatabase } from '../../src/database/database.js';
import { refusedIds, releaseIds } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { KEPT_REFUSED } from '../../src/limits.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, madeUpWorld, manifestOf, namesIn, type Row, rowsText, writeSources } from '../support/sources.js';

const WORLD = madeUpWorld();

let dir: string;
let dataDir: string;
let world: string;
beforeAll(async () => {
  world = temporaryDir();
  expect(await buildOnce(join(world, 'data'), writeSources(world, { world: rowsText(WORLD) }))).toMatchObject({
    outcome: 'published',
  });
});
beforeEach(() => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
});
/** Copies the data directory with a release of the world. */
const haveWorld = (): void => cpSync(join(world, 'data'), dataDir, { recursive: true, verbatimSymlinks: true });

const sources = (rows: readonly Row[], more: object = {}): string => writeSources(dir, { world: rowsText(rows) }, more);
const current = (): string => readlinkSync(join(dataDir, 'current'));

/** Returns the world with changed rows; rows for which `change` returns undefined are removed. */
function altered(change: (row: Row, index: number) => Row | undefined): Row[] {
  return WORLD.flatMap((row, index) => change(row, index) ?? []);
}

/** Returns the results for some addresses. */
function answers(): unknown[] {
  const database = openDatabase(dataDir);
  const list = ['8.8.8.8', '100.0.0.1', '101.0.0.1', '102.0.0.1', '2a05:100::1', '150.1.1.1'].map((ip) =>
    database.lookup(ip),
  );
  database.close();
  return list;
}

/** Nights that must not be published: the content of the source, the gates that refuse it, and the message. */
const BAD_NIGHTS: [what: string, rows: Row[], gates: string[], message: RegExp][] = [
  [
    'a /8 vanishes',
    altered((row) => (row.first.startsWith('150.') ? undefined : row)),
    ['maxBlockIPv4', 'maxLostShareIPv4'],
    /no address of 150\.0\.0\.0 – 150\.255\.255\.255 kept its country \(16,777,216 addresses\).*150\.0\.0\.0\/12 +\w\w +→ +unallocated/s,
  ],
  [
    'a source is cut to 60 %',
    WORLD.slice(0, Math.floor(WORLD.length * 0.6)),
    [
      ...['maxBlockIPv4', 'maxBlockIPv6', 'maxCountryLossShare', 'maxCountryShareIPv4', 'maxLostDelegationsIPv6'],
      ...['maxLostShareIPv4', 'maxLostShareIPv6'],
      ...['maxRowsChange', 'maxVanishedCountries', 'maxWrongSentinels'],
    ],
    /source world has 2,\d+ rows, previously 3,\d+, a change by 40 %; the limit is 20 %/,
  ],
  [
    'a country gone, though the smallest',
    altered((row) => (row.code === 'LI' ? { ...row, code: 'CH' } : row)),
    ['maxVanishedCountries'],
    /1 country is gone: LI; the limit is 0.*102\.0\.0\.0\/24 +LI +→ +CH/s,
  ],
  [
    'a sentinel wrong',
    altered((row) => (row.first === '8.8.8.8' ? { ...row, code: 'BR' } : row)),
    ['maxWrongSentinels'],
    /8\.8\.8\.8: expected US, got BR/,
  ],
  [
    'a country for space that had none',
    [...WORLD, { first: '2c00::', last: '2c00:ffff:ffff:ffff:ffff:ffff:ffff:ffff', code: 'ZA' }],
    ['maxBlockIPv6'],
    /no address of 2c00:: – 2c00:ffff:.* kept its country \(4,294,967,296 \/48s\); the limit is 536,870,912/,
  ],
];

describe('a bad night is refused', () => {
  it.each(BAD_NIGHTS)('%s', async (_, rows, gates, message) => {
    haveWorld();
    const [before, said] = [current(), answers()];
    const result = await buildOnce(dataDir, sources(rows));
    expect(result).toMatchObject({ outcome: 'E_REFUSED', exit: 3 });
    expect(result.message).toMatch(message);
    expect(result.message).toMatch(/--force/);
    // The current release stays, with the same results.
    expect(current()).toBe(before);
    expect(answers()).toEqual(said);
    expect(releaseIds(dataDir)).toHaveLength(1);
    const [refused] = refusedIds(dataDir);
    const report = JSON.parse(readFileSync(join(dataDir, 'releases/refused', refused!, 'report.json'), 'utf8'));
    expect(
      report.refusals
        .map(({ gate }: { gate: string }) => gate)
        .sort()
        .filter(unlessRepeated),
    ).toEqual(gates);
    expect(report.stages.at(-1)).toMatchObject({ stage: 'gate', counts: { compared_with: releaseIds(dataDir)[0] } });
    expect(namesIn(dataDir)).not.toContain('tmp');
  });
});

/** One gate may refuse several countries. */
const unlessRepeated = (gate: string, index: number, all: string[]): boolean => all.indexOf(gate) === index;

/** Returns the world with a number of scattered /12s in Germany; each is 0.028 % of the addresses. */
function movedRows(count: number): Row[] {
  let left = count;
  return altered((row, index) => (index % 7 === 0 && row.code === 'US' && left-- > 0 ? { ...row, code: 'DE' } : row));
}

describe('a good night is published', () => {
  it.each<[string, Row[]]>([
    ['one row elsewhere', movedRows(1)],
    ['a country more', [...WORLD, { first: '102.1.0.0', last: '102.1.0.255', code: 'SM' }]],
  ])('%s', async (_, rows) => {
    haveWorld();
    expect(await buildOnce(dataDir, sources(rows))).toMatchObject({ outcome: 'published' });
    expect(existsSync(join(dataDir, 'releases/refused'))).toBe(false);
  });

  it('a short list of rows may change without limit', async () => {
    const short = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => `192.1.${i}.0,192.1.${i}.255,AR`);
    await buildOnce(dataDir, writeSources(dir, { short: short(10) }));
    expect(await buildOnce(dataDir, writeSources(dir, { short: short(100) }))).toMatchObject({ outcome: 'published' });
  });
});

describe('the release that the gates compare with', () => {
  it('does not exist for a first build, which is reported; the sentinels are still checked', async () => {
    const wrong = altered((row) => (row.first === '8.8.8.8' ? { ...row, code: 'BR' } : row));
    const refused = await buildOnce(dataDir, sources(wrong));
    expect(refused).toMatchObject({ outcome: 'E_REFUSED' });
    expect(refused.message).toMatch(/there is still no release/);
    expect(refused.notes).toContain('no release to compare with: only the sentinels are checked');
    expect(existsSync(join(dataDir, 'current'))).toBe(false);
    expect(await buildOnce(dataDir, sources(WORLD))).toMatchObject({ outcome: 'published' });
  });

  it('does not matter to addresses that databases place differently: they are no sentinels', () => {
    const ips = loadReference().sentinels.map(({ ip }) => ip);
    for (const ip of ['200.3.14.10', '2001:13c7:7002:4000::10', '1.1.1.1', '198.41.0.4']) expect(ips).not.toContain(ip);
  });

  it('is the newest whole release if the current one is damaged', async () => {
    const first = await buildOnce(dataDir, sources(WORLD));
    await buildOnce(dataDir, sources(movedRows(1)));
    truncateSync(join(dataDir, current(), 'ranges.ipr'), 1000);
    const result = await buildOnce(dataDir, sources(WORLD.slice(0, 1000)), { seed });
    expect(result).toMatchObject({ outcome: 'E_REFUSED' });
    expect(result.notes.join('\n')).toMatch(
      new RegExp(`cannot be used for comparison: .*\n(.*\n)*gate .*compared with ${first.id}`),
    );
  });

  /** The data of the package: the world. */
  const seed = () => openReleaseRanges(join(world, 'data', 'current'));
  /** The world with one row in nineteen in another country, which is what two databases differ by. */
  const other = altered((row, index) =>
    index % 19 === 0 && row.last.endsWith('.255.255') && !['MT', 'CY'].includes(row.code)
      ? { ...row, code: 'JP' }
      : row,
  );

  it('is the data of the package for a first build from the default list', async () => {
    const cut = await buildOnce(dataDir, sources(WORLD.slice(0, 2000)), { seed });
    expect(cut.outcome).toBe('E_REFUSED');
    expect(cut.message).toMatch(/\d+\.\d % of the IPv4 addresses with a country have none; the limit is 10 %/);
    expect(cut.message).toMatch(/the data of 20\d\d-\d\d-\d\d that come with ipatlas are compared/);
    const [refused] = refusedIds(dataDir);
    const report = (await ipatlas(['report', refused!, '--data', dataDir])).stdout;
    expect(report).toMatch(/^The limits are those of a change of sources: .*data of 20.* that come with ipatlas/m);
    expect(report).toMatch(/^maxLostShareIPv4 .* refused/m);
    expect(await buildOnce(dataDir, sources(other), { seed })).toMatchObject({ outcome: 'published' });
  });

  it('is the data of the package if the only release is damaged', async () => {
    haveWorld();
    truncateSync(join(dataDir, current(), 'ranges.ipr'), 1000);
    const cut = await buildOnce(dataDir, sources(WORLD.slice(0, 2000)), { seed });
    expect(cut).toMatchObject({ outcome: 'E_REFUSED', message: expect.stringContaining('that come with ipatlas') });
  });
});

describe('the limits of the gates', () => {
  it('come from sources.json, as numbers or growing with the days', async () => {
    haveWorld();
    const rows = movedRows(6);
    const all = { maxCountryShareIPv4: 0.01, maxEuChangeShareIPv4: 0.01, maxPairShareIPv4: 0.01 };
    expect(await buildOnce(dataDir, sources(rows))).toMatchObject({ outcome: 'E_REFUSED' });
    const strict = sources(rows, { gates: { ...all, maxChangedShareIPv4: 0 } });
    expect(await buildOnce(dataDir, strict)).toMatchObject({
      message: expect.stringMatching(
        / {2}- 0\.\d+ % of the IPv4 addresses with a country have another one; the limit is 0 %\nWhat changed/,
      ),
    });
    const loose = sources(rows, { gates: { ...all, maxChangedShareIPv4: { base: 0.01, perDay: 0 } } });
    expect(await buildOnce(dataDir, loose)).toMatchObject({ outcome: 'published' });
  });

  it('do not apply to a sentinel that an override covers', async () => {
    const wrong = altered((row) => (row.first === '8.8.8.8' ? { ...row, code: 'BR' } : row));
    haveWorld();
    writeFileSync(join(dir, 'overrides.csv'), 'range,country\n8.8.8.8,BR\n');
    expect(await buildOnce(dataDir, sources(wrong, { overrides: 'overrides.csv' }))).toMatchObject({
      outcome: 'published',
    });
  });
});

it('an IPv4 override does not cover an IPv6 sentinel whose bits only happen to contain that IPv4 address', () => {
  const override = {
    ...{ family: 4 as const, first: Uint32Array.of(0x26000000), last: Uint32Array.of(0x26ffffff) },
    ...{ result: { kind: 'none' as const, reason: 'unknown' as const }, text: '', note: '', line: 1 },
  };
  const expected = { kind: 'country' as const, code: 'US' };
  // The bits after the first 16 of 2607:2607:: are 38.7.0.0, but the address is not in 2002::/16.
  const sentinels = ['2607:2607::1', '2002:2607::1', '38.7.0.1'].map((ip) => ({ ip, expected, why: '' }));
  const database = { lookupWithReason: () => ({ country_code: 'US' }) } as never;
  const checked = checkSentinels(sentinels, [override], database, undefined);
  expect(checked.map(({ ip }) => ip)).toEqual(['2607:2607::1']);
});

describe('ipatlas build --json', () => {
  it('prints the outcome of a refused build: its gates with value, limit and days, and the largest flows', async () => {
    haveWorld();
    const file = sources(altered((row) => (row.code === 'MT' ? { ...row, code: 'CY' } : row)));
    const args = ['build', '--sources', file, '--data', dataDir, '--json'];
    const { code, stdout, stderr } = await ipatlas(args);
    expect(code).toBe(3);
    expect(stderr).toMatch(/MT loses 100 % of its IPv4 addresses after 0 days; the limit is 37.5 %/);
    const outcome = JSON.parse(stdout);
    expect(outcome).toMatchObject({ outcome: 'refused', release: refusedIds(dataDir)[0] });
    expect(outcome.refusals.map(({ gate }: { gate: string }) => gate)).toEqual([
      'maxCountryLossShare',
      'maxCountryGainShare',
      'maxVanishedCountries',
    ]);
    expect(outcome.gates.find(({ gate }: { gate: string }) => gate === 'maxCountryLossShare')).toEqual({
      ...{ gate: 'maxCountryLossShare', value: 1, limit: 0.375, days: 0, subject: 'MT, IPv4' },
    });
    expect(outcome.flows).toEqual([
      { family: 4, from: 'MT', to: 'CY', addresses: '1048576', share: expect.closeTo(1 / 3400, 4) },
    ]);
  });
});

describe('--force', () => {
  const gone = altered((row) => (row.first.startsWith('150.') ? undefined : row));

  it('publishes, records who overrode which gates, and the next build is compared with that release', async () => {
    haveWorld();
    expect(await buildOnce(dataDir, sources(gone))).toMatchObject({ outcome: 'E_REFUSED' });
    const forced = await buildOnce(dataDir, sources(gone), { force: true });
    expect(forced).toMatchObject({ outcome: 'published' });
    expect(current()).toBe(`releases/${forced.id}`);
    expect(manifestOf(dataDir).forced).toEqual({
      by: expect.stringMatching(/./),
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      refusals: expect.arrayContaining([{ gate: 'maxBlockIPv4', message: expect.stringContaining('150.0.0.0') }]),
    });
    expect(refusedIds(dataDir)).toEqual([]);
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
    expect((await ipatlas(['info', '--data', dataDir])).stdout).toMatch(/forced by +\S+ at \d{4}-/);
    expect((await ipatlas(['releases', '--data', dataDir])).stdout).toMatch(/world \(forced by \S+\)/);
    const next = await buildOnce(dataDir, sources([...gone, { first: '150.0.0.0', last: '150.0.0.255', code: 'CH' }]));
    expect(next).toMatchObject({ outcome: 'published' });
    expect(manifestOf(dataDir).forced).toBeUndefined();
  });

  it('records nothing if no gate refused', async () => {
    await buildOnce(dataDir, sources(WORLD), { asOf: '2026-01-01', force: true });
    const manifest = manifestOf(dataDir);
    expect(manifest.forced).toBeUndefined();
    rmSync(dataDir, { recursive: true });
    await buildOnce(dataDir, sources(WORLD), { asOf: '2026-01-01' });
    expect(manifestOf(dataDir)).toEqual(manifest);
  });

  it('accepts a sentinel that stays wrong, but no other wrong one', async () => {
    const wrong = altered((row) => (row.first === '8.8.8.8' ? { ...row, code: 'BR' } : row));
    await buildOnce(dataDir, sources(wrong), { force: true });
    const next = await buildOnce(dataDir, sources([...wrong, { first: '102.1.0.0', last: '102.1.0.255', code: 'SM' }]));
    expect(next).toMatchObject({ outcome: 'published' });
    const worse = wrong.map((row) => (row.first === '193.0.6.139' ? { ...row, code: 'BR' } : row));
    const refused = await buildOnce(dataDir, sources(worse));
    expect(refused.message).toMatch(/1 of \d+ sentinel .*193\.0\.6\.139: expected NL, got BR/s);
    expect(refused.message).not.toMatch(/ 8\.8\.8\.8:/);
  });
});

describe('refused releases', () => {
  it('are kept in small number, can be explained, and are not among the releases', async () => {
    haveWorld();
    const before = namesIn(dataDir, 'cache/objects');
    for (let night = 0; night < KEPT_REFUSED + 2; night++) {
      const rows = WORLD.slice(0, 2000 + night);
      expect(await buildOnce(dataDir, sources(rows))).toMatchObject({ outcome: 'E_REFUSED' });
    }
    expect(refusedIds(dataDir)).toHaveLength(KEPT_REFUSED);
    expect(namesIn(dataDir, 'cache/objects')).toHaveLength(before.length + KEPT_REFUSED);
    // The same inputs again replace it.
    await buildOnce(dataDir, sources(WORLD.slice(0, 2000 + KEPT_REFUSED + 1)));
    expect(refusedIds(dataDir)).toHaveLength(KEPT_REFUSED);
    const [refused] = refusedIds(dataDir);
    const explained = await ipatlas(['explain', '8.8.8.8', '--release', refused!, '--data', dataDir, '--json']);
    expect(JSON.parse(explained.stdout)).toMatchObject({
      release: refused,
      notes: [],
      result: { country_code: expect.any(String) },
    });
    const listed = await ipatlas(['releases', '--data', dataDir]);
    expect(listed.stdout).not.toContain(refused);
    expect(listed.stderr).toContain(refused);
  });
});

describe('on the command line', () => {
  it('a refusal gives exit code 3, with the changes on stderr and nothing on stdout', async () => {
    const build = (rows: Row[], ...args: string[]) =>
      ipatlas(['build', '--sources', sources(rows), '--data', dataDir, ...args]);
    haveWorld();
    const before = current();
    const bad = BAD_NIGHTS[0]![1];
    const refused = await build(bad);
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toMatch(
      /release \S+ is refused; release \S+ stays current\n( {2}- .*\n)* {2}- no address of 150\.0\.0\.0 – /,
    );
    expect(refused.stderr).toMatch(
      /What changed:\n( {2}IPv4 +\w\w +→ +unallocated +[\d,]+ addresses +in \d ranges\n)+/,
    );
    expect(refused.stderr.match(/^ {2}150\.\d+\.0\.0\/12 +\w\w +→ +unallocated$/gm)).toHaveLength(5);
    expect(current()).toBe(before);
    const forced = await build(bad, '--force', '--json');
    expect(forced).toMatchObject({ code: 0, stdout: expect.stringContaining('"outcome":"published"') });
    expect(forced.stderr).toMatch(/published by force.*no address of 150/s);
  });
});
