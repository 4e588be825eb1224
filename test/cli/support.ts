/** A small release for the commands of a file of tests, and a folder for each test. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach } from 'vitest';
import type { RunOptions } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

/** The data directory of the release. */
export let dataDir: string;
/** The folder of the test that runs; its name is a number, and its neighbors are those of earlier tests. */
export let dir: string;

/** Makes the release before the tests of a file, and the folders. */
export function setUpSmallWorld(): void {
  let root: string;
  let number = 0;
  beforeAll(async () => {
    root = temporaryDir();
    dataDir = join(root, 'data');
    await publishBlocks(dataDir, SMALL_WORLD);
  });
  beforeEach(() => {
    dir = join(root, String(number++));
    mkdirSync(dir);
  });
}

/** Writes a file into the folder of the test; returns its path. */
export function file(name: string, content: string | Buffer): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

export function enrich(args: string[], options: RunOptions = {}) {
  return ipatlas(['enrich', '--data', dataDir, ...args], options);
}
