/**
 * Kills commands of the repository and pulls before changes of files: "make soak" before each, "make test" before the first and
 * the last of each kind and every third. The repository must be valid for every client after each kill, and the node must have a
 * whole release.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { RepositoryClient } from '../../pipeline/distribution/client.js';
import type { Role } from '../../pipeline/distribution/keys.js';
import { addRelease, initRepository, refreshRepository } from '../../pipeline/distribution/repository.js';
import { pull } from '../../pipeline/pull.js';
import { RELEASES_DIR } from '../../src/database/release.js';
import { freezeClock, killedAt, stepsToKill } from '../support/killed-writer.js';
import { publishBlocks } from '../support/release.js';
import { Node, Origin, type StaticServer, scratchDir, serveStatic, world } from './support.js';

const EVERY = process.env.FUZZ_RUNS === undefined ? 3 : 1;

let dir: string;
let origin: Origin;
let server: StaticServer;
let node: Node;
let ids: string[];
beforeEach(async () => {
  freezeClock();
  dir = scratchDir();
  origin = new Origin(dir);
  ids = [await origin.add(world('AA'))];
  ids.push(await publishBlocks(origin.dataDir, world('BB')));
  server = await serveStatic(origin.repo);
  node = new Node(dir);
});

const releaseAt = (index: number): string => join(origin.dataDir, RELEASES_DIR, ids[index]!);
/** Returns the names and the content of the metadata, and the names of the targets. */
function visibleFiles(repo: string): string {
  const names = readdirSync(repo, { recursive: true, encoding: 'utf8' }).filter((name) => !name.endsWith('.part'));
  const metadata = names
    .filter((name) => name.startsWith('metadata/'))
    .map((name) => readFileSync(join(repo, name), 'utf8'));
  return JSON.stringify([names.sort(), metadata]);
}

/** Returns the release that a client finds, after getting its files. */
async function offered(stateDir: string): Promise<string> {
  const workDir = scratchDir();
  mkdirSync(stateDir, { recursive: true });
  const client = await RepositoryClient.open({
    url: server.url,
    root: origin.root(1),
    stateDir,
    workDir,
    note: () => {},
  });
  const file = join(workDir, 'file');
  await client.get('current.json', file);
  const id: string = JSON.parse(readFileSync(file, 'utf8')).release;
  await client.get(`${id}/release.ipc`, file);
  return id;
}

const pulled = () => node.pull(server.url, origin.root(1));

it.each<[string, (origin: Origin) => unknown]>([
  ['add', () => addRelease(origin.options(), releaseAt(1))],
  ['refresh', () => origin.refresh({ days: { timestamp: 3 }, now: new Date(Date.now() + 80 * 86_400_000) })],
  ['rotate', () => origin.rotate(['root', 'targets', 'snapshot', 'timestamp'] satisfies Role[])],
])('the repository is valid when %s is killed at any step, and the next run completes it', async (name, run) => {
  const [start, keys] = [join(dir, 'start'), join(dir, 'start-keys')];
  cpSync(origin.repo, start, { recursive: true });
  cpSync(origin.keys, keys, { recursive: true });
  const steps = await stepsToKill(EVERY, async () => run(origin));
  const seen: string[] = [];
  let lastVisible = '';
  for (const step of steps) {
    for (const [from, to] of [
      [start, origin.repo],
      [keys, origin.keys],
    ] as const) {
      rmSync(to, { recursive: true, force: true });
      cpSync(from, to, { recursive: true });
    }
    const isKilled = await killedAt(step, async () => run(origin));
    expect(isKilled).toBe(step !== steps.at(-1));
    // What a client can see is the same after most steps.
    const visible = visibleFiles(origin.repo);
    if (visible === lastVisible && isKilled) continue;
    lastVisible = visible;
    const state = join(dir, `state-${step}`);
    seen.push(await offered(state));
    // A client that saw this state follows what the next run makes of it.
    addRelease(origin.options(), releaseAt(1));
    expect(await offered(state), `step ${step}`).toBe(ids[1]);
  }
  expect(steps.at(-1)).toBeGreaterThan(name === 'refresh' ? 5 : 15);
  // Up to some step the old state, from then on the new one.
  expect(seen).toEqual([...seen].sort((a, b) => ids.indexOf(a) - ids.indexOf(b)));
  expect(seen.at(-1)).toBe(name === 'add' ? ids[1] : ids[0]);
});

it('a repository whose init is killed at any step is whole after the next init, without keys that nothing names', async () => {
  const place = join(dir, 'other');
  const options = { dir: join(place, 'repo'), keyDirs: [join(place, 'keys')], note: () => {} };
  const one = { keys: 1, threshold: 1 };
  const init = async () =>
    initRepository(options, { root: { keys: 2, threshold: 1 }, targets: one, snapshot: one, timestamp: one });
  const steps = await stepsToKill(EVERY, init);
  for (const step of steps) {
    rmSync(place, { recursive: true, force: true });
    if (!(await killedAt(step, init))) continue;
    const next = await init().catch((error: Error) => error);
    // A killed run may have been whole.
    if (next instanceof Error) expect(next.message, `step ${step}`).toContain('there is a repository in');
    expect(refreshRepository(options).roles.root.version).toBe(1);
    const { signed } = JSON.parse(readFileSync(join(options.dir, 'root.json'), 'utf8'));
    expect(readFileSync(join(options.dir, 'metadata/1.root.json'))).toEqual(
      readFileSync(join(options.dir, 'root.json')),
    );
    const ids = readdirSync(options.keyDirs[0]!).map((name) => /-([0-9a-f]{8})\.pem$/.exec(name)?.[1]);
    expect(ids.sort(), `step ${step}`).toEqual(
      Object.keys(signed.keys)
        .map((id) => id.slice(0, 8))
        .sort(),
    );
  }
  expect(steps.at(-1)).toBeGreaterThan(15);
});

it('the node has a whole release when a pull is killed at any step, and the next pull succeeds', async () => {
  expect(await pulled()).toMatchObject({ outcome: 'published' });
  const { dataDir, sourcesFile } = node;
  const options = { dataDir, sourcesFile, url: server.url, root: origin.root(1), force: false, note: () => {} };
  addRelease(origin.options(), releaseAt(1));
  const steps = await stepsToKill(EVERY, () => pull(options));
  const seen: string[] = [];
  let at = 1;
  for (const step of steps) {
    // The two releases take turns, so that each pull has something to do.
    at = (ids.indexOf(node.current()!) + 1) % 2;
    addRelease(origin.options(), releaseAt(at));
    await killedAt(step, () => pull(options));
    const now = node.current();
    expect(ids).toContain(now);
    seen.push(now === ids[at] ? 'new' : 'old');
  }
  expect(await pulled()).toMatchObject({ exit: 0 });
  expect(node.current()).toBe(ids[at]);
  // Many steps are before the switch, and some after it.
  expect(steps[seen.indexOf('new')]).toBeGreaterThan(15);
  expect(seen.filter((each) => each === 'new').length).toBeGreaterThan(1);
});
