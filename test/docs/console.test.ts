/**
 * Runs every console block of the documentation and compares what it prints. `UPDATE_DOCS=1` writes the new output into the
 * files; read the difference before you commit it.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageFile, packageRoot } from '../../src/package-root.js';
import { buildOutputs, linkBuiltRelease } from '../support/built-release.js';
import { consoleSteps, normalized, runSteps, withOutputs } from '../support/console.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { type Block, country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { FILES } from './files.js';

/** Its first steps build the release of the installed packages. */
const BUILDS = 'docs/rebuild.md';
/** These need the release of the installed packages. For the addresses in others, a small one has the same answers, in no time. */
const REAL_RELEASE = [BUILDS, 'docs/exports.md'];
const WORLD = [...SMALL_WORLD, ['8.8.128.0/17', country('GB', 'United Kingdom')] satisfies Block];
/** The commands of these are started as processes, as a reader does; the others run in the process of the test. */
const PROCESSES = ['README.md', 'docs/distribution.md'];

/**
 * `make soak` and .ci/run also run these: the build of the installed packages takes half a minute, and the commands of docs/logs.md
 * are compared by test/enrich/logs.test.ts, without a shell.
 */
const IN_SOAK =
  (process.env.FUZZ_RUNS ?? process.env.UPDATE_DOCS) === undefined ? [...REAL_RELEASE, 'docs/logs.md'] : [];

describe('the console blocks of the documentation', () => {
  it.concurrent.each(FILES.filter((file) => !IN_SOAK.includes(file)))(
    '%s',
    async (file) => {
      const cwd = temporaryDir();
      cpSync(packageFile('examples'), join(cwd, 'examples'), { recursive: true });
      // The examples import ipatlas by its name, as a project does that has installed it.
      mkdirSync(join(cwd, 'node_modules'));
      symlinkSync(packageRoot(), join(cwd, 'node_modules', 'ipatlas'));
      const data = join(cwd, 'data');
      if (REAL_RELEASE.includes(file)) await linkBuiltRelease(data);
      else await publishBlocks(data, WORLD, undefined, 730, SMALL_NETWORKS);
      const markdown = readFileSync(packageFile(file), 'utf8');
      const steps = consoleSteps(markdown);
      const outputs = file === BUILDS ? await buildOutputs() : [];
      outputs.push(...(await runSteps(steps.slice(outputs.length), cwd, !PROCESSES.includes(file))));
      rmSync(cwd, { recursive: true, force: true });
      if (process.env.UPDATE_DOCS === '1') writeFileSync(packageFile(file), withOutputs(markdown, outputs));
      else {
        const told = steps.map(({ command, output }) => [command, normalized(output)]);
        expect(steps.map(({ command }, index) => [command, normalized(outputs[index]!)])).toEqual(told);
      }
      expect(steps.length).toBeGreaterThan(0);
    },
    300_000,
  );
});

it('the test finds a difference, and can write new output', () => {
  const markdown = 'text\n```console\n$ a \\\n  b\none\n$ c\n```\n';
  expect(consoleSteps(markdown)).toEqual([
    { command: 'a \\\n  b', output: 'one\n' },
    { command: 'c', output: '' },
  ]);
  expect(withOutputs(markdown, ['1\n2\n', '3\n'])).toBe('text\n```console\n$ a \\\n  b\n1\n2\n$ c\n3\n```\n');
  expect(normalized('release 2026-01-31-0123456789ab in 1.2 s')).toBe('release RELEASE in SECONDS');
  expect(normalized('country NL')).not.toBe(normalized('country DE'));
});
