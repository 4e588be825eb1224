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
import { openSeed } from '../../src/database/seed.js';
import { packageFile } from '../../src/package-root.js';
import { consoleSteps, runSteps, type Step } from './console.js';
import { until } from './serve.js';
import { type Built, buildOnce, writeSources } from './sources.js';

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

/** Returns the data directory with a release of the two sources that the seed is made of, built by the pipeline. For `make soak`. */
export async function seedSourcesRelease(): Promise<string> {
  const flags = ['--only user-country,rir-delegations --as-of 2026-06-17'];
  return join(await shared('seed-sources', (folder) => runBuild(folder, flags)), 'data');
}

/** Returns the data directory whose release is the seed, as a build publishes it without the sources, and what that build said. */
export async function seedRelease(): Promise<{ dataDir: string; outcome: Built }> {
  const folder = await shared('seed', async (folder) => {
    const sources = writeSources(folder, {}, { sources: UNAVAILABLE });
    const outcome = await buildOnce(join(folder, 'data'), sources, { seed: openSeed, brief: true });
    writeFileSync(join(folder, OUTPUTS_FILE), JSON.stringify(outcome));
  });
  return { dataDir: join(folder, 'data'), outcome: JSON.parse(readFileSync(join(folder, OUTPUTS_FILE), 'utf8')) };
}

/** Sources that an installed package does not have. */
export const UNAVAILABLE = [
  {
    ...{ id: 'world', license: 'CC0-1.0', format: 'ip-location-db' },
    fetch: [{ file: 'living.csv' }, { npm: '@ip-location-db/not-installed@latest', files: ['x.csv'] }],
  },
];

/** Returns what the steps printed that built the release. */
export async function buildOutputs(): Promise<string[]> {
  return JSON.parse(readFileSync(join(await built(), OUTPUTS_FILE), 'utf8')) as string[];
}

const built = (): Promise<string> => shared('built', (folder) => runBuild(folder));

/** Runs the commands that build. @param flags of the build, beside those of the steps */
async function runBuild(folder: string, flags: readonly string[] = []): Promise<void> {
  const steps = BUILD_STEPS.map((step) => ({
    ...step,
    command: step.command.replace('build --offline', ['build --offline', ...flags].join(' ')),
  }));
  const outputs = await runSteps(steps, folder);
  if (!existsSync(join(folder, 'data', 'current'))) throw new Error(outputs.join(''));
  writeFileSync(join(folder, OUTPUTS_FILE), JSON.stringify(outputs));
}

/** Returns a folder that all test files of a run share. The first that asks fills it. */
async function shared(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = join(inject('sharedFolder'), name);
  await until(() => existsSync(folder) || fillUnlessLocked(folder, fill), 'the build of a shared release', 300_000);
  return folder;
}

/** Fills it, or returns false if another test file does. If that fails, the next that asks tries again and fails, too. */
async function fillUnlessLocked(folder: string, fill: (folder: string) => Promise<void>): Promise<boolean> {
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
    await fill(unfinished);
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
  const built = await builtRelease();
  for (const name of readdirSync(built)) symlinkSync(join(built, name), join(dataDir, name));
}
