import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/package-root.js';

/**
 * The layers of src, the lowest first; each may import from its own and from lower ones. Files directly in src are the
 * ground, but for index.ts, the library's face.
 */
const LAYERS = [
  ['ground'],
  ['address', 'range', 'country'],
  ['rangefile', 'mirror'],
  ['database'],
  ['enrich', 'export'],
  ['api'],
  ['stream'],
  ['face', 'client'],
  ['cli'],
];

function layerOf(file: string): number {
  const [top, ...rest] = file.split('/');
  const name = rest.length > 0 ? top! : file === 'index.ts' ? 'face' : 'ground';
  const layer = LAYERS.findIndex((names) => names.includes(name));
  if (layer < 0) throw new Error(`src/${file} is in no layer`);
  return layer;
}

function typescriptFiles(dir: string): string[] {
  return readdirSync(join(packageRoot(), dir), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.includes('assembly'),
  );
}

/** The relative imports of a file, as paths from the package's root. */
function importsOf(dir: string, file: string): string[] {
  const text = readFileSync(join(packageRoot(), dir, file), 'utf8');
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, specifier]) => specifier!);
  return specifiers.map((specifier) => join(dir, dirname(file), specifier));
}

describe('imports point one way', () => {
  it.each(typescriptFiles('src'))('src/%s', (file) => {
    for (const target of importsOf('src', file)) {
      if (target.startsWith('pipeline/')) {
        // The only way from the command line into the pipeline.
        expect([target, dirname(file)]).toEqual(['pipeline/index.js', 'cli']);
        continue;
      }
      const inSrc = relative('src', target).replace(/\.js$/, '.ts');
      expect(layerOf(inSrc), `src/${file} imports ${target}`).toBeLessThanOrEqual(layerOf(file));
    }
  });

  it.each(typescriptFiles('pipeline'))('pipeline/%s', (file) => {
    const database = LAYERS.findIndex((names) => names.includes('database'));
    for (const target of importsOf('pipeline', file)) {
      if (!target.startsWith('src/')) continue;
      const inSrc = relative('src', target).replace(/\.js$/, '.ts');
      expect(layerOf(inSrc), `pipeline/${file} imports ${target}`).toBeLessThanOrEqual(database);
    }
  });
});
