/** The archive over hundreds of nights. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSeed } from '../../src/database/seed.js';
import { DAY_MS, dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import type { Values } from '../../src/history/changes.js';
import { answersOverTime } from '../../src/history/over-time.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import {
  answersAt,
  below,
  changed,
  EMPTY_WORLD,
  expected,
  labelsAt,
  nightsAgainstCopies,
  publish,
  pulledNightsAgainstCopies,
  START,
  type World,
} from '../history/support.js';
import { appDeps, KEY, portOf, startServer } from '../support/api.js';
import { killedAt } from '../support/killed-writer.js';
import { publishBlocks, SMALL_WORLD } from '../support/release.js';
import { randomFrom, rounds, SEED } from '../support/seed.js';
import { temporaryDir } from '../support/temporary.js';

it('answers every day of hundreds of nights, with every address of the tiny spaces, as full copies do', () => {
  const dataDir = temporaryDir();
  for (const [day, answers, copy] of nightsAgainstCopies(dataDir, rounds(800), randomFrom(SEED))) {
    expect([day, answers]).toEqual([day, copy]);
  }
});

it('answers the days that are kept, one by one and all as one table, while older ones are removed', () => {
  const dataDir = temporaryDir();
  // Of fewer nights, an unlucky seed has no group that goes as a whole, or many without an answer.
  const nights = Math.max(100, rounds(400));
  const days = Math.ceil(nights / 4);
  const all = [...nightsAgainstCopies(dataDir, nights, randomFrom(SEED + 1), { days, prunes: true })];
  const firstKept = dayOf(START + (nights - days) * DAY_MS);
  const table = answersOverTime(openArchive(dataDir));
  for (const [day, answers, copy] of all) {
    expect([day, labelsAt(table, day)]).toEqual([day, answers]);
    if (day < firstKept && answers === undefined) continue;
    expect([day, answers]).toEqual([day, copy]);
  }
  // Groups of entries go as a whole, so that more days than asked for are kept, but not many times as many.
  expect(all.filter(([, answers]) => answers !== undefined).length).toBeGreaterThan(days / 2);
  expect(readdirSync(join(dataDir, 'history')).length).toBeLessThan(nights);
});

it('answers every day on a node that pulls the history, as full copies do', async () => {
  const [origin, node] = [temporaryDir(), temporaryDir()];
  for await (const [day, answers, copy] of pulledNightsAgainstCopies(origin, node, rounds(400), randomFrom(SEED + 3))) {
    expect([day, answers]).toEqual([day, copy]);
  }
});

it('has the answers of the release that is current, whenever publications are killed', async () => {
  const dataDir = temporaryDir();
  const random = randomFrom(SEED + 2);
  const worlds = new Map<string, World>();
  const truth = new Map<string, World>();
  let world = EMPTY_WORLD;
  let kills = 0;
  for (let night = 0; kills < rounds(200); night++) {
    // Days in the future are refused.
    const now = START - 3650 * DAY_MS + night * DAY_MS;
    const release = `r${night}`;
    world = changed(world, random);
    worlds.set(release, world);
    const publication = { release, world, now, days: 60, prunes: true };
    if (await killedAt(below(random, 25), async () => publish(dataDir, publication))) kills++;
    const current = readdirSync(dataDir).includes('current') ? readlinkSync(join(dataDir, 'current')) : undefined;
    const published = current === undefined ? undefined : worlds.get(current.replace('releases/', ''));
    if (published === undefined) continue;
    truth.set(dayOf(now), published);
    for (const back of [0, 1, 2, 10, 40]) {
      const day = dayOf(now - back * DAY_MS);
      const known = truth.get(day);
      if (known !== undefined) expect([night, day, answersAt(dataDir, day)]).toEqual([night, day, expected(known)]);
    }
  }
});

it('answers from day after day over HTTP, and /healthz does not wait for them', { timeout: 1_800_000 }, async () => {
  const dataDir = temporaryDir();
  const random = randomFrom(SEED + 4);
  await publishBlocks(dataDir, SMALL_WORLD);
  // As many ranges as the world has: opening a day takes tenths of a second.
  let answers = answersOf(openSeed().file);
  const code = (): number => 1 + answers.records.findIndex(({ kind }) => kind === 'country') + below(random, 200);
  const change = (layer: Values): Values => ({
    ...layer,
    value: layer.value.map((value) => (random() < 0.002 ? code() : value)),
  });
  const days = rounds(730);
  for (let each = 0; each < 10; each++) {
    const day = dayOf(START - days * DAY_MS + Math.floor((each * days) / 10) * DAY_MS);
    importEntry(openArchive(dataDir), { day, name: `table ${each}`, answers });
    answers = { ...answers, v4: change(answers.v4), v6: change(answers.v6) };
  }
  const server = await startServer(appDeps(dataDir));
  /** Milliseconds for which the thread of the server has computed: a busy machine lets it wait, too (proc(5), USER_HZ is 100). */
  const computed = (): number => {
    const stat = readFileSync(`/proc/self/task/${process.pid}/stat`, 'utf8');
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11)
      .map(Number);
    return 10 * (user! + system!);
  };
  const base = `http://127.0.0.1:${portOf(server)}`;
  const waits: number[] = [];
  let isDone = false;
  const watch = (async () => {
    while (!isDone) {
      const asked = computed();
      await (await fetch(`${base}/healthz`)).text();
      waits.push(computed() - asked);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  for (let day = 0; day < days; day++) {
    const at = dayOf(START - (days - day) * DAY_MS);
    const response = await fetch(`${base}/api/lookup/8.8.8.8?at=${at}`, { headers: { 'X-API-Key': KEY } });
    expect([at, response.status]).toEqual([at, 200]);
    await response.text();
  }
  isDone = true;
  await watch;
  await server.close();
  waits.sort((a, b) => a - b);
  // Garbage collection may hold up one request in a hundred.
  expect(waits[Math.floor(0.99 * waits.length)]).toBeLessThan(100);
});
