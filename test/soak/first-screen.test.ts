/** README's first screen, with an empty home: its commands print the same before the first build and after it. */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { ipatlas } from '../support/cli.js';
import { consoleSteps, normalized, runSteps } from '../support/console.js';
import { temporaryDir } from '../support/release.js';

const SCREEN = readFileSync(packageFile('README.md'), 'utf8').split('\n## Which guide\n')[0]!;
/** What is said before the first build besides. */
const IS_SEED = /^ipatlas: answering from the database that comes with ipatlas.*\n/gm;

it.each(['before the first build', 'after it'])('README says what its commands print %s', async (when) => {
  const cwd = temporaryDir();
  cpSync(packageFile('examples'), join(cwd, 'examples'), { recursive: true });
  const build = ['build', '--offline', '--data', join(cwd, 'data')];
  if (when === 'after it') expect(await ipatlas(build)).toMatchObject({ code: 0 });
  const steps = consoleSteps(SCREEN);
  const outputs = await runSteps(steps, cwd);
  const printed = outputs.map((output) => normalized(output.replaceAll(IS_SEED, '')));
  expect(printed).toEqual(steps.map(({ output }) => normalized(output)));
  expect(steps.length).toBeGreaterThan(5);
  rmSync(cwd, { recursive: true });
});
