import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { switchCurrent } from '../../pipeline/operations/current-link.js';
import { ReleaseWatcher } from '../../src/api/releases/release-watcher.js';
import { RANGE_FILE, RELEASES_DIR } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { RELEASE_RETRY_MS, RETRY_MAX_MS } from '../../src/limits.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
let taken: string[];
let failures: string[];
let verified: number;
let problem: string | undefined;
let clock: number;
let watcher: ReleaseWatcher;
beforeEach(() => {
  dataDir = temporaryDir();
  taken = [];
  failures = [];
  verified = 0;
  problem = undefined;
  clock = 0;
  watcher = new ReleaseWatcher({
    dataDir,
    interval: 5,
    verify: async (dir) => {
      verified++;
      if (problem !== undefined) throw new Error(problem);
      verifyRelease(dir);
    },
    onRelease: (dir) => {
      taken.push(dir.split('/').at(-1)!);
    },
    onFailure: (message) => failures.push(message),
    now: () => clock,
  });
});
afterEach(() => {
  watcher.stop();
});

const damage = (id: string): void => {
  const path = join(dataDir, RELEASES_DIR, id, RANGE_FILE);
  const bytes = readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = bytes[middle]! ^ 1;
  writeFileSync(path, bytes);
};

describe('the release watcher', () => {
  it('uses each release that becomes current, once', async () => {
    await watcher.check();
    expect([taken, watcher.found]).toEqual([[], false]);
    const first = await publishBlocks(dataDir, SMALL_WORLD);
    for (let i = 0; i < 3; i++) await watcher.check();
    const second = await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    for (let i = 0; i < 3; i++) await watcher.check();
    switchCurrent(dataDir, first);
    await watcher.check();
    expect([taken, verified, watcher.found, failures]).toEqual([[first, second, first], 3, true, []]);
  });

  it('refuses a damaged release, once, and takes the next', async () => {
    const first = await publishBlocks(dataDir, SMALL_WORLD);
    await watcher.check();
    const second = await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    damage(second);
    for (let i = 0; i < 5; i++) await watcher.check();
    expect([taken, verified]).toEqual([[first], 2]);
    expect(failures).toEqual([expect.stringMatching(/ranges\.ipr does not match the SHA-256/)]);
    // The same release built again is another link to the same name.
    await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    await watcher.check();
    expect([taken, failures.length]).toEqual([[first, second], 1]);
  });

  it('reports once that the link cannot be read, and continues', async () => {
    writeFileSync(join(dataDir, 'current'), 'no link');
    for (let i = 0; i < 3; i++) await watcher.check();
    expect(failures).toHaveLength(1);
    rmSync(join(dataDir, 'current'));
    const id = await publishBlocks(dataDir, SMALL_WORLD);
    await watcher.check();
    expect(taken).toEqual([id]);
  });

  it('verifies a release again after a temporary failure', async () => {
    const first = await publishBlocks(dataDir, SMALL_WORLD);
    problem = 'EMFILE: too many open files';
    for (let i = 0; i < 5; i++) await watcher.check();
    expect([verified, taken, failures]).toEqual([1, [], [problem]]);
    clock += RELEASE_RETRY_MS;
    await watcher.check();
    await watcher.check();
    expect([verified, failures]).toEqual([2, [problem]]); // reported once
    clock += RELEASE_RETRY_MS; // the second wait is twice as long
    await watcher.check();
    expect(verified).toBe(2);
    problem = undefined;
    clock += RELEASE_RETRY_MS;
    await watcher.check();
    expect([verified, taken, watcher.found]).toEqual([3, [first], true]);
    clock += RETRY_MAX_MS;
    await watcher.check();
    expect(verified).toBe(3);
  });

  it('tries a damaged release at most once a minute', async () => {
    damage(await publishBlocks(dataDir, SMALL_WORLD));
    for (let second = 0; second < 3_600; second++) {
      clock += 1_000;
      await watcher.check();
    }
    expect(verified).toBeLessThanOrEqual(70);
    expect(failures).toHaveLength(1);
  });

  it('reports once that the current link names a release that does not exist', async () => {
    await publishBlocks(dataDir, SMALL_WORLD);
    await watcher.check();
    switchCurrent(dataDir, '2026-01-01-000000000000');
    for (let i = 0; i < 5; i++) await watcher.check();
    expect(failures).toEqual([expect.stringMatching(/current names a release that does not exist; publish one/)]);
    const id = await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    await watcher.check();
    expect(taken.at(-1)).toBe(id);
    switchCurrent(dataDir, '2026-01-01-000000000000');
    await watcher.check();
    expect(failures).toHaveLength(2);
  });

  it('checks at every interval from start to stop', async () => {
    await watcher.start();
    const id = await publishBlocks(dataDir, SMALL_WORLD);
    await expect.poll(() => taken).toEqual([id]);
    watcher.stop();
    await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toEqual([id]);
  });
});
