/** Files of npm packages that are installed with ipatlas. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { objectPath } from '../../pipeline/fetching/cache.js';
import { findBundled } from '../../pipeline/fetching/npm.js';
import { atlasError, runFetch, scratchDir, source, textsOf } from './fetch-support.js';

const NAME = '@test/data';
const npm = (spec: string, files = ['a.csv']) => source({ kind: 'npm', spec, files });

/** Creates a directory with `node_modules/@test/data`. */
function installed(version: string, files: Record<string, string>, root = scratchDir()): string {
  const directory = path.join(root, 'node_modules', NAME);
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name: NAME, version }));
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(directory, name), content);
  return root;
}

describe('npm sources', () => {
  it.each([true, false])('come from node_modules, offline: %s', async (offline) => {
    const dataDir = scratchDir();
    const packageRoot = installed('1.0.0', { 'a.csv': 'bundled' });
    const { output, counts } = await runFetch([npm(`${NAME}@latest`)], dataDir, { offline, packageRoot });
    expect(output[0]).toMatchObject({ from: 'bundled', version: '1.0.0' });
    expect(textsOf(output[0])).toEqual({ 'a.csv': 'bundled' });
    expect(counts).toMatchObject({ bundled: 1, cache: 0, network: 0 });
    // The file is copied into the cache, so that a row can be read again by the hash of its file.
    expect(output[0]?.files[0]?.path).toBe(objectPath(dataDir, output[0]?.files[0]?.sha256 ?? ''));
  });

  it('must be installed', async () => {
    const error = await atlasError(runFetch([npm(NAME)], scratchDir(), { packageRoot: scratchDir() }));
    expect(error).toMatchObject({ code: 'E_FETCH' });
    expect(error.message).toMatch(/it is not installed; add the package to the project that has ipatlas/);
  });

  it('name a file that the bundled copy lacks', async () => {
    const packageRoot = installed('1.0.0', { 'b.csv': '' });
    const error = await atlasError(runFetch([npm(NAME)], scratchDir(), { offline: true, packageRoot }));
    expect(error.message).toContain('there is no file "a.csv" in it');
  });

  it('come from the packages of this repository', async () => {
    const spec = '@ip-location-db/asn-country@latest';
    const { output } = await runFetch([npm(spec, ['NRO_LICENSE'])], scratchDir(), { offline: true });
    expect(output[0]).toMatchObject({ from: 'bundled', version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  });
});

describe('findBundled', () => {
  const find = async (spec: string, root: string) =>
    (await findBundled({ kind: 'npm', spec, files: [] }, root))?.version;

  it('finds a copy in or above the root: nested, hoisted, or next to it', async () => {
    const project = installed('1.0.0', {});
    const root = path.join(project, 'node_modules', 'ipatlas');
    mkdirSync(root, { recursive: true });
    expect(await find(NAME, project)).toBe('1.0.0');
    expect(await find(NAME, root)).toBe('1.0.0');
    installed('2.0.0', {}, root);
    expect(await find(NAME, root)).toBe('2.0.0');
    expect(await find('@test/other', root)).toBeUndefined();
  });

  it.each([
    ['', true],
    ['@latest', true],
    ['@next', true],
    ['@1.2.3', true],
    ['@1.2.4', false],
    ['@v1.2.4', false],
    ['@^1.2.0', false],
    ['@1', false],
    ['@>=1', false],
  ])('returns the version for the spec "%s": %s', async (selector, found) => {
    const root = installed('1.2.3', {});
    expect(await find(`${NAME}${selector}`, root)).toBe(found ? '1.2.3' : undefined);
  });
});
