/** A folder for each test, with the path of a data directory in it. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { temporaryDir } from './release.js';

/** The folder of the test that runs, removed after it. */
export let dir: string;
/** A data directory in the folder, which does not exist yet. */
export let dataDir: string;

/** Gives each test of a file a folder. */
export function giveFolders(): void {
  beforeEach(() => {
    dir = temporaryDir();
    dataDir = join(dir, 'data');
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
}
