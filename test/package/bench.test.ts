/** The benchmarks, which no other test runs, name sources that exist. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

it('make a release of sources in data/sources.json only', () => {
  const folder = packageFile('bench');
  const { sources } = JSON.parse(readFileSync(packageFile('data/sources.json'), 'utf8')) as {
    sources: { id: string }[];
  };
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const named = scripts.flatMap((name) =>
    [...readFileSync(join(folder, name), 'utf8').matchAll(/dataDirectory\('([^']+)'\)/g)].map(([, id]) => id!),
  );
  expect(named).not.toEqual([]);
  expect(sources.map(({ id }) => id)).toEqual(expect.arrayContaining(named));
});
