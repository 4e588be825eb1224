import { readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/package-root.js';
import { scratchDir } from './pipeline/fetch-support.js';

describe('packageRoot', () => {
  it('is the folder of the package.json of ipatlas', () => {
    const manifest = JSON.parse(readFileSync(path.join(packageRoot(), 'package.json'), 'utf8'));
    expect(manifest.name).toBe('ipatlas');
  });

  it('is the same for the source and the compiled file', () => {
    const root = packageRoot();
    for (const file of ['src/package-root.ts', 'dist/src/package-root.js', 'dist/pipeline/stages/fetch.js']) {
      expect(packageRoot(pathToFileURL(path.join(root, file)).href)).toBe(root);
    }
  });

  it('reports a missing package', () => {
    const lonely = path.join(scratchDir(), 'a', 'b.js');
    expect(() => packageRoot(pathToFileURL(lonely).href)).toThrow(/no package\.json in .*install ipatlas again/);
  });
});
