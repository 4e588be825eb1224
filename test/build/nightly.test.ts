import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { refusedIds, releaseIds } from '../../src/database/release.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { madeUpWorld, type Row, rowsText, writeSources } from '../support/sources.js';

const dir = temporaryDir();
const dataDir = join(dir, 'data');

const WORLD = madeUpWorld();

/** The world on a night: one network moves from country to country. */
function worldWith(code: string): Row[] {
  return [...WORLD, { first: '102.9.0.0', last: '102.9.0.255', code }];
}

const sources = (rows: Row[]): string => writeSources(dir, { world: rowsText(rows) });
const build = (...args: string[]) =>
  ipatlas(['build', '--sources', join(dir, 'sources.json'), '--data', dataDir, ...args]);

/** The state in the morning: the current release, and its result for the network. */
function morning(): { id: string; answer: string | null } {
  const database = openDatabase(dataDir);
  const answer = database.lookup('102.9.0.1')!.country_code;
  database.close();
  return { id: readlinkSync(join(dataDir, 'current')).replace('releases/', ''), answer };
}

/** A build that is killed while it works: it waits for a source that never ends. */
async function killedBuild(): Promise<void> {
  sources(WORLD);
  rmSync(join(dir, 'world.csv'));
  execFileSync('mkfifo', [join(dir, 'world.csv')]);
  const child = start(['build', '--sources', join(dir, 'sources.json'), '--data', dataDir]);
  const end = finished(child);
  // Its temporary folder exists as soon as it has the lock.
  while (!readdirSync(dataDir).includes('tmp')) await new Promise((resolve) => setTimeout(resolve, 10));
  child.kill('SIGKILL');
  expect(await end).toMatchObject({ code: null, signal: 'SIGKILL' });
  rmSync(join(dir, 'world.csv'));
}

it('a week of nightly builds publishes the right releases', async () => {
  const log: [night: string, exit: number | null, answer: string | null][] = [];
  const ids: string[] = [];
  const night = async (name: string, run: () => Promise<{ code: number | null } | undefined>): Promise<void> => {
    const result = await run();
    const { id, answer } = morning();
    if (id !== ids.at(-1)) ids.push(id);
    log.push([name, result === undefined ? null : result.code, answer]);
    // The current release is whole in any case.
    expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(0);
  };
  const buildOf =
    (rows: Row[], ...args: string[]) =>
    () => {
      sources(rows);
      return build(...args);
    };

  await night('first', buildOf(worldWith('CH')));
  await night('no news', buildOf(worldWith('CH')));
  await night('news', buildOf(worldWith('AT')));
  await night('no source', () => {
    rmSync(join(dir, 'world.csv'));
    return build();
  });
  await night('killed', async () => {
    await killedBuild();
    return undefined;
  });
  await night('cut source', buildOf(worldWith('DE').slice(0, 2000)));
  await night('cut still', buildOf(worldWith('DE').slice(0, 2000)));
  await night('mended', buildOf(worldWith('FR')));
  await night('regretted', () => ipatlas(['rollback', '--data', dataDir]));
  await night('same again', buildOf(worldWith('FR')));
  await night('news again', buildOf(worldWith('NL')));

  expect(log).toEqual([
    ['first', 0, 'CH'],
    ['no news', 0, 'CH'],
    ['news', 0, 'AT'],
    ['no source', 6, 'AT'],
    ['killed', null, 'AT'],
    ['cut source', 3, 'AT'],
    ['cut still', 3, 'AT'],
    ['mended', 0, 'FR'],
    ['regretted', 0, 'AT'],
    ['same again', 3, 'AT'],
    ['news again', 0, 'NL'],
  ]);
  // Four published releases, one of which was current twice.
  const [first, second, third, again, fourth] = ids;
  expect(ids).toHaveLength(5);
  expect(again).toBe(second);
  expect(releaseIds(dataDir)).toEqual([fourth, third, second, first]);
  const { stdout } = await ipatlas(['releases', '--json', '--data', dataDir]);
  const listed = JSON.parse(stdout) as { id: string; current: boolean; forced_by: string | null }[];
  expect(listed.map(({ id, current, forced_by }) => [id, current, forced_by])).toEqual([
    [fourth, true, null],
    [third, false, null],
    [second, false, null],
    [first, false, null],
  ]);
  expect(refusedIds(dataDir)).toHaveLength(1);
  expect(readdirSync(dataDir).sort()).toEqual([
    'cache',
    'current',
    'history',
    'lock.sqlite',
    'rejects.ndjson',
    'releases',
    'rolled-back.json',
  ]);
});
