import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { removeOldReleases } from '../../pipeline/operations/prune.js';
import { openDatabase } from '../../src/database/database.js';
import { verifyRelease } from '../../src/database/verify.js';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/in-process.js';
import { freezeClock, killedAt, stepsToKill } from '../support/killed-writer.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, manifestOf } from '../support/sources.js';

giveFolders();

/** Writes a sources file and its CSV files, in order of priority. */
function sources(files: Record<string, string>, more: object = {}): string {
  for (const [id, content] of Object.entries(files)) writeFileSync(join(dir, `${id}-ipv4.csv`), content);
  const path = join(dir, 'sources.json');
  const list = Object.keys(files).map((id) => ({
    id,
    license: 'CC0-1.0',
    fetch: { file: `${id}-ipv*.csv` },
    format: 'ip-location-db',
  }));
  writeFileSync(path, JSON.stringify({ sources: list, ...more }));
  return path;
}

const build = (file: string, ...args: string[]) => ipatlas(['build', '--sources', file, '--data', dataDir, ...args]);
const current = (): string => readlinkSync(join(dataDir, 'current'));

const GOOD =
  '8.0.0.0,8.255.255.255,US\n80.0.0.0,80.255.255.255,DE\n2a00::,2a00:ffff:ffff:ffff:ffff:ffff:ffff:ffff,FR\n';

describe('ipatlas build', () => {
  it('publishes a release that gives results', async () => {
    freezeClock(); // the files are those of a new release
    const result = await build(sources({ one: GOOD }), '--as-of', '2026-01-01', '--json');
    expect(result).toMatchObject({ code: 0 });
    const { release, outcome } = JSON.parse(result.stdout);
    expect({ outcome, link: current() }).toEqual({ outcome: 'published', link: `releases/${release}` });
    expect(readdirSync(join(dataDir, current())).sort()).toEqual([
      'kinds.ipr',
      'manifest.json',
      'ranges.ipr',
      'ranges.sqlite',
      'report.json',
    ]);
    const database = openDatabase(dataDir);
    const schema = JSON.parse(readFileSync(packageFile('schemas/manifest.schema.json'), 'utf8'));
    const validate = new Ajv2020({ allowUnionTypes: true }).compile(schema);
    validate(database.manifest);
    expect(validate.errors).toBeNull();
    expect(database.lookup('80.1.2.3')).toEqual({
      ip: '80.1.2.3',
      country: 'Germany',
      country_code: 'DE',
      is_eu: true,
    });
    expect(database.lookupWithReason('10.0.0.1')?.reason).toBe('private');
    expect(database.lookup('2002:5001:203::')?.country_code).toBe('DE');
    const report = JSON.parse(readFileSync(join(dataDir, current(), 'report.json'), 'utf8'));
    expect(report.stages.map(({ stage }: { stage: string }) => stage)).toEqual(
      expect.arrayContaining(['fetch', 'ingest', 'merge', 'compile', 'verify']),
    );
    for (const { stage } of report.stages) expect(result.stderr).toMatch(new RegExp(`^${stage} +[\\d.]+ s `, 'm'));
  });

  it('gives the same bytes and the same id for the same inputs and date', async () => {
    const file = sources({ one: GOOD });
    await build(file, '--as-of', '2026-01-01');
    const first = current();
    const bytes = ['ranges.ipr', 'ranges.sqlite', 'manifest.json'].map((name) =>
      readFileSync(join(dataDir, first, name)),
    );
    rmSync(dataDir, { recursive: true });
    await build(file, '--as-of', '2026-01-01');
    expect(current()).toBe(first);
    ['ranges.ipr', 'ranges.sqlite', 'manifest.json'].forEach((name, i) => {
      expect(readFileSync(join(dataDir, first, name)).equals(bytes[i]!)).toBe(true);
    });
  });

  it('does nothing if nothing has changed, and says so', async () => {
    const file = sources({ one: GOOD });
    await build(file, '--as-of', '2026-01-01');
    const before = current();
    const again = await build(file, '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ outcome: 'unchanged' });
    expect(again.stderr).toMatch(/nothing has changed; release .* stays current/);
    expect(current()).toBe(before);
    writeFileSync(join(dir, 'one-ipv4.csv'), `${GOOD}81.0.0.0,81.0.0.255,FR\n`);
    expect(JSON.parse((await build(file, '--json')).stdout)).toMatchObject({ outcome: 'published' });
    expect(current()).not.toBe(before);
  });

  it('keeps the report if it publishes the current release again, and records who forced it', async () => {
    const file = sources({ one: GOOD });
    await buildOnce(dataDir, file, { asOf: '2026-01-01' });
    const path = join(dataDir, 'current', 'report.json');
    const report = readFileSync(path, 'utf8');
    const built = await buildOnce(dataDir, file, { asOf: '2026-01-01', force: true });
    expect(built).toMatchObject({ outcome: 'published', id: JSON.parse(report).release });
    expect(readFileSync(path, 'utf8')).toBe(report);
    const { forced } = manifestOf(dataDir);
    expect(forced).toMatchObject({ by: expect.any(String), refusals: [] });
    await buildOnce(dataDir, file, { asOf: '2026-01-01', force: true });
    expect(manifestOf(dataDir).forced).toEqual(forced);
  });

  it('stores EU membership as of the given date', async () => {
    const file = sources({ one: '81.0.0.0,81.255.255.255,UK\n' });
    for (const [asOf, isEu] of [
      ['2020-01-31', true],
      ['2020-02-01', false],
    ] as const) {
      await build(file, '--as-of', asOf);
      expect(openDatabase(dataDir).lookup('81.0.0.1')).toMatchObject({ country_code: 'GB', is_eu: isEu });
    }
  });

  it('keeps five releases, including the current one', async () => {
    const file = sources({ one: GOOD });
    for (let day = 1; day <= 7; day++) await build(file, '--as-of', `2026-01-0${day}`);
    const kept = JSON.parse((await ipatlas(['releases', '--json', '--data', dataDir])).stdout);
    expect(kept.map(({ as_of }: { as_of: string }) => as_of.at(-1))).toEqual(['7', '6', '5', '4', '3']);
    expect(existsSync(join(dataDir, 'tmp'))).toBe(false);
    // An old one leaves in one step, whole, and is deleted elsewhere: a kill must not leave half of it.
    const releases = join(dataDir, 'releases');
    const [oldest] = readdirSync(releases).sort();
    const files = readdirSync(join(releases, oldest!));
    const workDir = temporaryDir();
    expect(removeOldReleases(dataDir, workDir, 4)).toBe(1);
    expect(readdirSync(join(workDir, `old-${oldest}`))).toEqual(files);
  });
});

describe('bad input leaves the current release as it is', () => {
  const MANY = Array.from(
    { length: 2000 },
    (_, i) => `11.${i >> 8}.${i & 255}.0,11.${i >> 8}.${i & 255}.255,US\n`,
  ).join('');

  // Each row: the content of the source, the exit code, and the message.
  it.each<[string, string | Buffer, number, RegExp]>([
    ['an empty source', '', 4, /source bad: .*(no range|empty)/],
    ['random bytes', Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919) % 256)), 4, /source bad: /],
    ['a row cut off', `${GOOD}81.0.0.0,81.0.`, 4, /source bad: .*line 4/s],
    ['a range reversed', '9.0.0.9,9.0.0.0,US\n', 4, /source bad: .*line 1/s],
    ['families mixed', '9.0.0.0,2a00::,US\n', 4, /source bad: .*line 1/s],
    ['too many bad rows', `${MANY}x\ny\nz\n`, 4, /source bad: .*3 of 2003/s],
  ])('%s', async (_, content, code, message) => {
    await build(sources({ good: GOOD }));
    const before = current();
    writeFileSync(join(dir, 'bad-ipv4.csv'), content);
    const file = join(dir, 'sources.json');
    const source = { id: 'bad', license: 'CC0-1.0', fetch: { file: 'bad-ipv4.csv' }, format: 'ip-location-db' };
    writeFileSync(file, JSON.stringify({ sources: [source] }));
    const result = await build(file);
    expect(result.stderr).toMatch(message);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(current()).toBe(before);
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
  });

  it('a few bad rows are set aside and reported', async () => {
    const result = await build(sources({ one: `${MANY}12.0.0.9,12.0.0.0,DE\n` }));
    expect(result).toMatchObject({ code: 0 });
    const rejects = readFileSync(join(dataDir, 'rejects.ndjson'), 'utf8').trimEnd().split('\n');
    expect(rejects.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        source: 'one',
        line: 2001,
        text: '12.0.0.9,12.0.0.0,DE',
        reason: expect.stringMatching(/./),
      }),
    ]);
  });

  it('an invalid sources.json gives exit code 2 and the position', async () => {
    const file = sources({ one: GOOD });
    writeFileSync(file, '{"sources": [{"id": "one", "fetch": {"file": 1}}]}');
    const result = await build(file);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(/sources\[0\]/);
    expect(existsSync(join(dataDir, 'current'))).toBe(false);
  });

  it('a missing source gives exit code 6', async () => {
    const file = sources({ one: GOOD });
    await build(file);
    const before = current();
    rmSync(join(dir, 'one-ipv4.csv'));
    const result = await build(file);
    expect(result).toMatchObject({ code: 6 });
    expect(result.stderr).toMatch(/one/);
    expect(current()).toBe(before);
  });
});

describe('a data directory that cannot be written', () => {
  it('because it is a file gives exit code 2', async () => {
    writeFileSync(dataDir, '');
    const result = await build(sources({ one: GOOD }));
    expect(result).toMatchObject({ code: 2 });
    expect(result.stderr).toMatch(/data directory .* cannot be written/);
  });

  it('because it is read-only gives exit code 2', async ({ skip }) => {
    mkdirSync(dataDir);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', dataDir], { stdio: 'pipe' });
    } catch (error) {
      skip(`no read-only tmpfs can be mounted here: ${error}`);
    }
    try {
      const result = await build(sources({ one: GOOD }));
      expect(result).toMatchObject({ code: 2 });
      expect(result.stderr).toMatch(/data directory .* cannot be written/);
    } finally {
      execFileSync('umount', [dataDir]);
    }
  });
});

describe('builds that are interrupted', () => {
  it('do not run at the same time: one builds, the other says that it is busy and exits with code 8', async () => {
    const file = sources({ one: GOOD });
    const built = await Promise.all([buildOnce(dataDir, file), buildOnce(dataDir, file)]);
    expect(built.map(({ exit }) => exit).sort()).toEqual([0, 8]);
    expect(built.find(({ exit }) => exit === 8)!.message).toMatch(/another build or pull is running/);
  });

  // Real kills at random moments are in test/soak/build-kills.test.ts.
  it('leave a whole current release when killed at any step, and the next build succeeds', async () => {
    freezeClock();
    const file = sources({ one: GOOD });
    const day = (number: number): string => new Date(Date.UTC(2026, 0, number)).toISOString().slice(0, 10);
    // Six releases, so that each build also removes the oldest.
    for (let number = 1; number <= 6; number++) await buildOnce(dataDir, file, { asOf: day(number) });
    // "make soak" kills at each step.
    const every = process.env.FUZZ_RUNS === undefined ? 3 : 1;
    const steps = await stepsToKill(every, () => buildOnce(dataDir, file, { asOf: day(7) }));
    // A build after a kill has more steps, since it first removes the unfinished files.
    steps.push(steps.at(-1)! + 3);
    const kept: boolean[] = [];
    for (const step of steps) {
      const [before, asOf] = [current(), day(8 + step)];
      await killedAt(step, () => buildOnce(dataDir, file, { asOf }));
      const { manifest } = verifyRelease(join(dataDir, current()));
      kept.push(current() === before);
      if (current() !== before) expect(manifest.as_of).toBe(asOf);
    }
    expect(await buildOnce(dataDir, file, { asOf: day(9 + steps.at(-1)!) })).toMatchObject({ exit: 0 });
    // Many steps are before the switch and some after it, a few later where the last kill left something to remove; the last
    // build was not killed.
    expect(steps[kept.indexOf(false)]).toBeGreaterThan(15);
    expect(kept.slice(kept.indexOf(false)).length).toBeGreaterThan(2);
    expect(kept.slice(-2)).toEqual([false, false]);
    expect(readdirSync(dataDir)).not.toContain('tmp');
  });
});
