import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { packageFile, packageRoot } from '../../src/package-root.js';

/** Dependencies that no source file imports, and why they are there. */
const NOT_IMPORTED: Record<string, string> = {
  'light-my-request': 'a dependency of fastify, held at the last version whose dependencies run on Node 20',
  '@platformatic/kafka': 'imported by a name that is no literal, since its types need a later Node',
};

/** Names of the packages that the sources in a folder import, load or require. */
function importedPackages(folder: string): string[] {
  const files = readdirSync(join(packageRoot(), folder), { recursive: true, encoding: 'utf8' });
  return (
    files
      .filter((file) => file.endsWith('.ts') && !file.includes('assembly'))
      .flatMap((file) => {
        const text = readFileSync(join(packageRoot(), folder, file), 'utf8').replace(/^ *\*.*$/gm, '');
        return [...text.matchAll(/(?:from |import |import\(|require\()'([^'.][^']*)'/g)].map(([, name]) => name!);
      })
      // The page shows how these packages are imported.
      .filter((name) => !/^(node:|ipatlas\/|@ipatlas\/)/.test(name) && !builtinModules.includes(name))
      .map((name) =>
        name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/'),
      )
  );
}

it('the declared dependencies, optional ones too, are exactly the imported packages', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    peerDependencies: Record<string, string>;
  };
  const used = new Set([...importedPackages('src'), ...importedPackages('pipeline'), ...Object.keys(NOT_IMPORTED)]);
  expect(Object.keys({ ...dependencies, ...peerDependencies }).sort()).toEqual([...used].sort());
});

/** Adds what a compiled file imports when it is loaded, and what that imports in turn. */
function loadedBy(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded;
  loaded.add(file);
  const code = readFileSync(file, 'utf8');
  for (const [, name] of code.matchAll(/^(?:import|export)\s(?:[^'";]*?from )?['"]([^'"]+)['"]/gm)) {
    if (name!.startsWith('.')) loadedBy(join(dirname(file), name!), loaded);
    else loaded.add(name!);
  }
  return loaded;
}

it('importing the library loads no package but the reader of JSON documents, and nothing of builds, servers or streams', () => {
  const loaded = [...loadedBy(packageFile('dist/src/index.js'))];
  expect(loaded.length).toBeGreaterThan(30);
  const packages = loaded.filter((name) => !name.startsWith('/') && !name.startsWith('node:'));
  expect(packages.every((name) => name.startsWith('stream-json/'))).toBe(true);
  const rooms = loaded.filter((name) => name.startsWith('/')).map((name) => relative(packageFile('dist'), name));
  expect(
    rooms.filter(
      (name) => !/^src\/([^/]+\.js|address|country|compact|database|enrich|history|mirror|range|rangefile)/.test(name),
    ),
  ).toEqual([]);
});
