/** How the command line starts. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { AtlasError } from '../../src/errors.js';
import { packageFile } from '../../src/package-root.js';
import { MAIN } from '../support/cli.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

describe.each(['lookup-command', 'record-commands'])('the file %s.cjs', (name) => {
  const code = readFileSync(packageFile(`dist/src/cli/${name}.cjs`), 'utf8');

  it('loads no package and no module that takes long, when it is loaded', () => {
    const outside = code.match(/^\S.*/gm)!.join('\n');
    const loaded = [...outside.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, name]) => name!);
    expect(loaded.length).toBeGreaterThan(3);
    for (const name of loaded) expect(name).toMatch(/^(node:(fs|module|os|path|url|util)|url)$/);
  });

  it('imports nothing later but what few need', () => {
    const calls = code.match(/\bimport(Module)?\(.*/g)!.filter((call) => call !== 'import(name);');
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect(call).toMatch(/\/(formats\/document|logs-file|history\/open)\.js/);
  });
});

describe('the compiled code', () => {
  const dir = temporaryDir();
  const cache = join(dir, 'cache', 'ipatlas');
  const enrich = (env: NodeJS.ProcessEnv, input = '{"ip":"193.0.0.1"}\n') =>
    spawnSync(process.execPath, [MAIN, 'enrich', '--data', join(dir, 'data')], {
      env: { ...process.env, NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: join(dir, 'cache'), ...env },
      input,
      encoding: 'utf8',
    });
  const good = { status: 0, stdout: expect.stringContaining('"country_code":"NL"') };
  beforeAll(() => publishBlocks(join(dir, 'data'), SMALL_WORLD));

  it('is stored in the cache directory of the user, unless that is switched off', () => {
    expect(enrich({ NODE_DISABLE_COMPILE_CACHE: '1' })).toMatchObject(good);
    expect(existsSync(cache) ? readdirSync(cache) : []).toEqual([]);
    expect(enrich({})).toMatchObject(good);
    expect(readdirSync(cache).length).toBe(1);
    // A cache that cannot be written is no error.
    expect(enrich({ XDG_CACHE_HOME: '/dev/null' })).toMatchObject({
      ...good,
      stderr: expect.not.stringContaining('cache'),
    });
  });

  // Later versions of Node have a cache of their own.
  if ('enableCompileCache' in nodeModule) return;
  it('is used for the same file only, and replaced if V8 refuses it', () => {
    const stored = join(cache, readdirSync(cache)[0]!);
    const before = readFileSync(stored);
    const { size, ino } = statSync(stored);
    // Also if the code imports what few need.
    for (const input of ['{"ip":"193.0.0.1"}', '[\n{"ip":"193.0.0.1"}\n]']) {
      expect(enrich({}, input)).toMatchObject(good);
      expect(statSync(stored).ino).toBe(ino);
    }
    const source = readFileSync(packageFile('dist/src/cli/record-commands.cjs'));
    expect(before.subarray(0, source.length).equals(source)).toBe(true);
    for (const [at, length] of [
      [0, size],
      [source.length, size],
      [0, source.length + 100],
    ] as const) {
      const damaged = Buffer.from(before.subarray(0, length));
      damaged[at]! ^= 1;
      writeFileSync(stored, damaged);
      expect(enrich({})).toMatchObject(good);
      const after = readFileSync(stored);
      expect([after.length > source.length + 10_000, after[at]]).toEqual([true, before[at]]);
    }
  });
});

describe('an error of another copy of the program', () => {
  it('is recognized', () => {
    class Copy extends Error {
      override readonly name = 'AtlasError';
    }
    expect(new Copy()).toBeInstanceOf(AtlasError);
    expect(new AtlasError('E_USAGE', 'text')).toBeInstanceOf(AtlasError);
    for (const other of [new Error('AtlasError'), { name: 'AtlasError' }, undefined, 'AtlasError']) {
      expect(other instanceof AtlasError).toBe(false);
    }
  });
});
