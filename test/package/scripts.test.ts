import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';

const FILES = ['bench', 'scripts', 'truth'].flatMap((folder) =>
  readdirSync(packageFile(folder))
    .filter((name) => name.endsWith('.js'))
    .map((name) => join(folder, name)),
);

it.each(FILES)('%s imports only what the compiled program exports', async (file) => {
  const text = readFileSync(packageFile(file), 'utf8');
  for (const [, names, from] of text.matchAll(/^import \{([^}]*)\} from '(\.\.\/dist\/[^']*)'/gm)) {
    const exported = Object.keys((await import(packageFile(join(dirname(file), from!)))) as object);
    const imported = names!.split(',').map((name) => name.trim().split(' as ')[0]!);
    expect(exported).toEqual(expect.arrayContaining(imported.filter((name) => name !== '')));
  }
});

it('the benchmarks make releases of sources in data/sources.json only', () => {
  const { sources } = JSON.parse(readFileSync(packageFile('data/sources.json'), 'utf8')) as {
    sources: { id: string }[];
  };
  const named = FILES.filter((file) => file.startsWith('bench/')).flatMap((file) =>
    [...readFileSync(packageFile(file), 'utf8').matchAll(/dataDirectory\('([^']+)'\)/g)].map(([, id]) => id!),
  );
  expect(named).not.toEqual([]);
  expect(sources.map(({ id }) => id)).toEqual(expect.arrayContaining(named));
});
