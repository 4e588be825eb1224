/** A real release, built from the installed data packages once for all test files of a run. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { consoleSteps, runSteps, type Step } from './console.js';
import { until } from './serve.js';

/** The steps of docs/rebuild.md that build: an empty folder, and the build. */
const BUILD_STEPS: readonly Step[] = consoleSteps(readFileSync(packageFile('docs/rebuild.md'), 'utf8')).slice(0, 2);

/** The file with what these steps print, beside the data directory. */
const OUTPUTS_FILE = 'outputs.json';

/**
 * Returns the data directory with a release of the installed packages, for tests that only read. The first test that asks
 * builds it, with the commands of docs/rebuild.md, which takes some twelve seconds of processor time.
 */
export async function builtRelease(): Promise<string> {
  return join(await built(), 'data');
}

/** Returns the data directory with a release of the two sources that the seed is made of. */
export async function seedSourcesRelease(): Promise<string> {
  const folder = await built('seed-sources', ['--only user-country,rir-delegations --as-of 2026-06-17']);
  return join(folder, 'data');
}

/** Returns what the steps printed that built the release. */
export async function buildOutputs(): Promise<string[]> {
  return JSON.parse(readFileSync(join(await built(), OUTPUTS_FILE), 'utf8')) as string[];
}

/** @param flags of the build, beside those of the steps */
async function built(name = 'built', flags: readonly string[] = []): Promise<string> {
  const folder = join(inject('sharedFolder'), name);
  await until(() => existsSync(folder) || buildUnlessLocked(folder, flags), 'the build of a shared release', 300_000);
  return folder;
}

/** Builds, or returns false if another test file does. If that fails, the next that asks tries again and fails, too. */
async function buildUnlessLocked(folder: string, flags: readonly string[]): Promise<boolean> {
  const lock = `${folder}.lock`;
  try {
    mkdirSync(lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    if (existsSync(folder)) return true; // another was done just now
    const unfinished = join(lock, 'built');
    mkdirSync(unfinished);
    const steps = BUILD_STEPS.map((step) => ({
      ...step,
      command: step.command.replace('build --offline', ['build --offline', ...flags].join(' ')),
    }));
    const outputs = await runSteps(steps, unfinished);
    if (!existsSync(join(unfinished, 'data', 'current'))) throw new Error(outputs.join(''));
    writeFileSync(join(unfinished, OUTPUTS_FILE), JSON.stringify(outputs));
    renameSync(unfinished, folder);
    return true;
  } finally {
    rmSync(lock, { recursive: true });
  }
}

/**
 * Makes a data directory with the release of {@link builtRelease}, for tests that write files of other kinds: the release is the
 * shared one, because a copy would be checked anew by each command.
 */
export async function linkBuiltRelease(dataDir: string): Promise<void> {
  mkdirSync(dataDir);
  const shared = await builtRelease();
  for (const name of readdirSync(shared)) symlinkSync(join(shared, name), join(dataDir, name));
}
