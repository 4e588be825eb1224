/** The file of --metrics: what a build or pull did, for node_exporter. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { lockDataDir } from '../../pipeline/operations/lock.js';
import { currentReleaseId } from '../../src/database/release.js';
import { DAY_MS, startOfDay, today } from '../../src/day.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { writeSources } from '../support/sources.js';

giveFolders();
afterEach(() => vi.useRealTimers());

const file = () => join(dir, 'metrics', 'ipatlas.prom');
/** Of today, because the date of a source is that of its file. */
const NIGHT = startOfDay(today()) + DAY_MS / 6;

/** Builds in a night, and returns the exit code and the values of the metrics, by name and labels. */
async function build(night: number, country: string, more: object = {}, ...flags: string[]) {
  vi.useFakeTimers({ toFake: ['Date'], now: NIGHT + night * DAY_MS });
  mkdirSync(join(dir, 'metrics'), { recursive: true });
  const rows = [`8.8.8.0,8.8.8.255,${country}`, '9.0.0.0,9.255.255.255,FR'];
  const sources = writeSources(dir, { own: rows }, { gates: { maxWrongSentinels: 99, maxLostShareIPv4: 0 }, ...more });
  const { code, stderr } = await ipatlas([
    ...['build', '--offline', '--sources', sources, '--data', dataDir, '--metrics', file(), ...flags],
  ]);
  const text = statSync(file(), { throwIfNoEntry: false })?.isFile() ? readFileSync(file(), 'utf8') : '';
  const values = Object.fromEntries(
    [...text.matchAll(/^ipatlas_run_(\w+)\{(.*)\} (\S+)$/gm)].map(([, name, labels, value]) => [
      [
        name,
        ...[...labels!.matchAll(/(\w+)="([^"]*)"/g)].flatMap(([, key, label]) => (key === 'command' ? [] : [label])),
      ].join(' '),
      Number(value),
    ]),
  );
  const outcome = Object.keys(values).find((name) => name.startsWith('outcome ') && values[name] === 1);
  return { code, stderr, text, values, outcome: outcome?.slice('outcome '.length) };
}

it('says how each night ended, and remembers since when gates refuse', async () => {
  const seconds = (night: number): number => (NIGHT + night * DAY_MS) / 1000;
  const nights = [
    // The second row is lost; then the sources are broken; then another country is no loss; then nothing is new; then a step fails.
    [await build(0, 'DE'), 'published', 0, { refused_since_seconds: 0, completed_seconds: seconds(0) }],
    [await build(1, 'ZZ'), 'refused', 3, { refused_since_seconds: seconds(1), completed_seconds: seconds(1) }],
    [await build(2, 'ZZ'), 'refused', 3, { refused_since_seconds: seconds(1), completed_seconds: seconds(2) }],
    [await build(3, '"'), 'failed', 4, { refused_since_seconds: seconds(1), completed_seconds: seconds(2) }],
    [await build(4, 'FR', {}, '--force'), 'published', 0, { refused_since_seconds: 0, completed_seconds: seconds(4) }],
    [await build(5, 'FR'), 'unchanged', 0, { refused_since_seconds: 0, completed_seconds: seconds(5) }],
    [await build(6, 'FR', { after: [{ run: ['false'] }] }), 'step_failed', 7, { completed_seconds: seconds(6) }],
  ] as const;
  for (const [night, [{ code, outcome, values }, expected, exit, facts]] of nights.entries()) {
    expect({ night, code, outcome }).toEqual({ night, code: exit, outcome: expected });
    expect(values).toMatchObject({ exit_code: exit, end_seconds: seconds(night), ...facts });
    expect(Object.keys(values).filter((name) => name.startsWith('outcome ')).length).toBe(5);
  }
  const [[first], [refused], , [failed]] = nights;
  expect(Object.keys(first.values)).toContainEqual(expect.stringMatching(/^release_info 20/));
  expect(refused.values).toMatchObject({ 'gate_limit maxLostShareIPv4': 0 });
  expect(refused.values['gate_value maxLostShareIPv4']).toBeGreaterThan(0);
  expect(failed.values).toHaveProperty(['gate_limit maxWrongSentinels'], 99);
  expect(refused.values['source_age_seconds own']).toBe(DAY_MS / 1000 + DAY_MS / 6000);
  const promtool = spawnSync('promtool', ['check', 'metrics'], { input: first.text, encoding: 'utf8' });
  if (promtool.error === undefined) expect([promtool.status, promtool.stderr]).toEqual([0, '']);
});

it('is replaced as a whole, can be read by others, and is not written by a build that finds another at work', async () => {
  const { text } = await build(0, 'DE');
  expect(text).toContain('ipatlas_run_outcome{outcome="published",command="build"} 1\n');
  expect(readdirSync(join(dir, 'metrics'))).toEqual(['ipatlas.prom']);
  expect(statSync(file()).mode & 0o777).toBe(0o644);
  const unlock = lockDataDir(dataDir);
  const busy = await build(1, 'FR');
  unlock();
  expect([busy.code, busy.text]).toEqual([8, text]);
});

it('is refused before anything is built if it cannot be written', async () => {
  mkdirSync(join(dir, 'metrics', 'ipatlas.prom'), { recursive: true });
  const { code, stderr } = await build(0, 'DE');
  expect([code, stderr]).toEqual([2, expect.stringMatching(/--metrics .* cannot be written/)]);
  expect(currentReleaseId(dataDir)).toBe(undefined);
});
