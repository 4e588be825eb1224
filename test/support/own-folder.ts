/** A folder for each test, with the path of a data directory in it. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach } from 'vitest';
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

/**
 * Returns a function that fills the folder of a test, as `fill` does in the first one: the others get copies. What `fill` writes
 * must not name the folder.
 */
export function filledOnce(fill: () => Promise<void>): () => Promise<void> {
  let copy: string | undefined;
  afterAll(() => {
    if (copy !== undefined) rmSync(copy, { recursive: true });
  });
  const copyFolder = (from: string, to: string): void => cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  return async () => {
    if (copy !== undefined) return copyFolder(copy, dir);
    await fill();
    copy = temporaryDir();
    copyFolder(dir, copy);
  };
}
