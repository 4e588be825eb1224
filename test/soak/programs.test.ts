/** The programs of docs/programs.md, each as the page prints it. programs/install.sh installs them; it needs root. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { builtRelease, seedSourcesRelease } from '../support/built-release.js';

interface Result {
  name: string;
  answers?: number;
  skipped?: string;
  failure?: string;
}

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('NOT TESTED: the programs of docs/programs.md: they are started by root only');

it.skipIf(!isRoot)('every installed program answers as lookup, before and after a newer release', async () => {
  const releases = [await seedSourcesRelease(), await builtRelease()];
  const run = spawn(process.execPath, [packageFile('programs/run.js'), ...releases], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(run, 'close');
  const results: Result[] = [];
  for await (const line of createInterface({ input: run.stdout })) results.push(JSON.parse(line) as Result);
  await closed;
  for (const { name, skipped } of results) if (skipped !== undefined) console.warn(`NOT TESTED: ${name}: ${skipped}`);
  expect(results.filter(({ failure }) => failure !== undefined)).toEqual([]);
  const ran = results.filter(({ skipped }) => skipped === undefined);
  expect(ran.length).toBeGreaterThan(0);
  for (const { name, answers } of ran) expect(answers, name).toBeGreaterThanOrEqual(1_000);
});
