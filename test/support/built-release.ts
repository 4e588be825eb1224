/** Real releases, built from the installed data packages once for all test files of a run. */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { build } from '../../pipeline/build.js';
import { packageFile } from '../../src/package-root.js';
import { until } from './serve.js';

/** The day of the releases. The packages have data of June 2026. */
const BUILT_AS_OF = '2026-07-01';

/**
 * Returns the data directory with a release of the installed packages, for tests that only read. The first test that asks
 * builds it; it takes some six seconds of processor time, or three for one source.
 *
 * @param only ids of the sources, all by default
 */
export async function builtRelease(...only: string[]): Promise<string> {
  const dataDir = join(inject('sharedFolder'), ['built', ...only].join('-'));
  await until(() => existsSync(dataDir) || buildUnlessLocked(dataDir, only), 'the build of the shared release');
  return dataDir;
}

/** Builds, or returns false if another test file does. If that fails, the next that asks tries again and fails, too. */
async function buildUnlessLocked(dataDir: string, only: string[]): Promise<boolean> {
  const lock = `${dataDir}.lock`;
  try {
    mkdirSync(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    if (existsSync(dataDir)) return true; // another was done just now
    const sourcesFile = packageFile('data/sources.json');
    const unfinished = join(lock, 'data');
    await build({
      ...{ dataDir: unfinished, sourcesFile, only, asOf: BUILT_AS_OF, offline: true, force: false },
      note: () => {},
    });
    renameSync(unfinished, dataDir);
    return true;
  } finally {
    rmSync(lock, { recursive: true });
  }
}

/** Copies the data directory of {@link builtRelease}, for tests that change it. */
export async function copyOfBuiltRelease(dataDir: string, ...only: string[]): Promise<void> {
  cpSync(await builtRelease(...only), dataDir, { recursive: true, verbatimSymlinks: true });
}
