/**
 * Kills commands of the repository and pulls at random moments. The repository must be valid for every client after each
 * kill, and the node must have a whole release.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { addRelease } from '../../pipeline/distribution/repository.js';
import { RELEASES_DIR } from '../../src/database/release.js';
import { Node, Origin, scratchDir, serveStatic, world } from '../distribution/support.js';
import { finished, start } from '../support/cli.js';
import { randomFrom, rounds } from '../support/seed.js';

const KILLS = rounds(100);
const random = randomFrom();

/** Runs a command to its end; returns the time that it took, in milliseconds. */
async function timed(args: string[]): Promise<number> {
  const startedAt = performance.now();
  expect(await finished(start(args))).toMatchObject({ code: 0 });
  return performance.now() - startedAt;
}

/** The time that a run of a command takes, in milliseconds. It changes with what else the machine does. */
interface Pace {
  duration: number;
}

/** Runs a command and kills it after a random part of its usual time; returns whether it was killed before its end. */
async function killed(args: string[], pace: Pace): Promise<boolean> {
  const startedAt = performance.now();
  const child = start(args);
  const timer = setTimeout(() => child.kill('SIGKILL'), pace.duration * (0.2 + 0.8 * random()));
  const { code, signal, stderr } = await finished(child);
  clearTimeout(timer);
  if (signal === 'SIGKILL') return true;
  expect(code, stderr).toBe(0);
  pace.duration = performance.now() - startedAt;
  return false;
}

async function scene() {
  const dir = scratchDir();
  const origin = new Origin(dir);
  const ids = [await origin.add(world('AA')), await origin.add(world('BB'))];
  const server = await serveStatic(origin.repo);
  const directories = ids.map((id) => join(origin.dataDir, RELEASES_DIR, id));
  return { dir, origin, ids, server, directories, node: new Node(dir) };
}

it(`the repository is valid after ${KILLS} kills of add, and some of rotate and refresh`, async () => {
  const { dir, origin, ids, server, directories, node } = await scene();
  const keys = ['--keys', origin.keys];
  const adds = directories.map((release) => ['repo', 'add', origin.repo, release, ...keys]);
  const others = [
    ['repo', 'rotate', origin.repo, '--role', 'root,targets,snapshot,timestamp', ...keys],
    ['repo', 'refresh', origin.repo, ...keys],
  ];
  const pace = { duration: await timed(adds[0]!) };
  const check = async (command: string[]): Promise<boolean> => {
    const wasKilled = await killed(command, pace);
    expect(await node.pull(server.url, origin.root(1))).toMatchObject({ exit: 0 });
    expect(ids).toContain(node.current());
    return wasKilled;
  };
  let [kills, runs, otherKills] = [0, 0, 0];
  for (let at = 0; kills < KILLS; at++) {
    // The two releases take turns, so that each run changes all metadata.
    if (await check(adds[at % 2]!)) kills++;
    expect(++runs).toBeLessThan(10 * KILLS);
    if (at % 8 !== 2) continue;
    for (const command of others) if (await check(command)) otherKills++;
    // The node saw all versions; another one begins with the first root metadata.
    const fresh = new Node(dir, `fresh-${at}`);
    expect(await fresh.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
    expect(fresh.current()).toBe(node.current());
  }
  await timed(adds[1]!);
  expect(await node.pull(server.url, origin.root(1))).toMatchObject({ exit: 0 });
  expect(node.current()).toBe(ids[1]);
  console.log(`add was killed ${kills} times in ${runs} runs; rotate and refresh ${otherKills} times`);
});

it(`the node has a whole release after ${KILLS} kills of pull`, async () => {
  const { dir, origin, ids, server, directories, node } = await scene();
  mkdirSync(node.dataDir);
  const command = [
    ...['pull', server.url, '--root', join(origin.repo, 'root.json')],
    ...['--data', node.dataDir, '--sources', node.sourcesFile],
  ];
  const pace = { duration: await timed(command) };
  let [kills, runs] = [0, 0];
  let before = node.current();
  while (kills < KILLS) {
    const newest = runs % 2;
    addRelease(origin.options(), directories[newest]!);
    if (await killed(command, pace)) kills++;
    const now = node.current();
    expect([before, ids[newest]]).toContain(now);
    before = now;
    expect(++runs).toBeLessThan(10 * KILLS);
  }
  await timed(command);
  expect(node.current()).toBe(ids[(runs - 1) % 2]);
  const fresh = new Node(dir, 'fresh');
  expect(await fresh.pull(server.url, origin.root(1))).toMatchObject({ outcome: 'published' });
  console.log(`pull was killed ${kills} times in ${runs} runs`);
});
