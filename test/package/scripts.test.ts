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
