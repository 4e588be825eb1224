import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { switchCurrent } from '../../pipeline/operations/current-link.js';
import { ReleaseWatcher } from '../../src/api/release-watcher.js';
import { RANGE_FILE, RELEASES_DIR } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

let dataDir: string;
let taken: string[];
let failures: string[];
let verified: number;
let watcher: ReleaseWatcher;
beforeEach(() => {
  dataDir = temporaryDir();
  taken = [];
  failures = [];
  verified = 0;
  watcher = new ReleaseWatcher({
    dataDir,
    interval: 5,
    verify: async (dir) => {
      verified++;
      verifyRelease(dir);
    },
    onRelease: (dir) => {
      taken.push(dir.split('/').at(-1)!);
    },
    onFailure: (problem) => failures.push(problem),
  });
});
afterEach(() => {
  watcher.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const damage = (id: string): void => {
  const path = join(dataDir, RELEASES_DIR, id, RANGE_FILE);
  const bytes = readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = bytes[middle]! ^ 1;
  writeFileSync(path, bytes);
};

describe('the watch for releases', () => {
  it('takes up each release that becomes current, once', async () => {
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

  it('says once that the link cannot be read, and goes on', async () => {
    writeFileSync(join(dataDir, 'current'), 'no link');
    for (let i = 0; i < 3; i++) await watcher.check();
    expect(failures).toHaveLength(1);
    rmSync(join(dataDir, 'current'));
    const id = await publishBlocks(dataDir, SMALL_WORLD);
    await watcher.check();
    expect(taken).toEqual([id]);
  });

  it('looks by itself once started, until stopped', async () => {
    await watcher.start();
    const id = await publishBlocks(dataDir, SMALL_WORLD);
    await expect.poll(() => taken).toEqual([id]);
    watcher.stop();
    await publishBlocks(dataDir, SMALL_WORLD.slice(1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toEqual([id]);
  });
});
