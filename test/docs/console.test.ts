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
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { FILES } from './files.js';

/** Its first steps build the release that all use. */
const BUILDS = 'docs/rebuild.md';
/** For the addresses in these, a small release has the same answers, and it is compressed and signed in no time. */
const SMALL_RELEASE = ['README.md', 'docs/api.md', 'docs/library.md', 'docs/distribution.md'];
/** The commands of these are started as processes, as a reader does; the others run in the process of the test. */
const PROCESSES = ['README.md', 'docs/distribution.md'];

/** Its commands are compared by test/enrich/logs.test.ts, without a shell; "make soak" also runs them in one. */
const IN_SOAK = process.env.FUZZ_RUNS === undefined ? ['docs/logs.md'] : [];

describe('the console blocks of the documentation', () => {
  it.concurrent.each(FILES.filter((file) => !IN_SOAK.includes(file)))(
    '%s',
    async (file) => {
      const cwd = temporaryDir();
      cpSync(packageFile('examples'), join(cwd, 'examples'), { recursive: true });
      // The examples import ipatlas by its name, as a project does that has installed it.
      mkdirSync(join(cwd, 'node_modules'));
      symlinkSync(packageRoot(), join(cwd, 'node_modules', 'ipatlas'));
      if (SMALL_RELEASE.includes(file)) await publishBlocks(join(cwd, 'data'), SMALL_WORLD);
      else await linkBuiltRelease(join(cwd, 'data'));
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
