/** How the command line starts. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AtlasError } from '../../src/errors.js';
import { packageFile } from '../../src/package-root.js';
import { MAIN } from '../support/cli.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

describe.each(['lookup-command', 'record-commands'])('the file %s.cjs', (name) => {
  const code = readFileSync(packageFile(`dist/src/cli/${name}.cjs`), 'utf8');

  it('loads no package and no module that takes long, when it is loaded', () => {
    const loaded = [...code.matchAll(/^\S.*\brequire\("([^"]+)"\)/gm)].map(([, name]) => name!);
    expect(loaded.length).toBeGreaterThan(3);
    for (const name of loaded) expect(name).toMatch(/^(node:(fs|module|os|path|url|util)|url)$/);
  });

  it('imports nothing later but what few need', () => {
    expect(
      code.match(/\bimport\(.*/g)?.filter((call) => !/\/(formats\/document|logs-file|history\/open)\.js/.test(call)) ??
        [],
    ).toEqual([]);
  });
});

it('the compiled code is stored in the cache directory of the user, if this Node stores any', async () => {
  const dir = temporaryDir();
  await publishBlocks(join(dir, 'data'), SMALL_WORLD);
  const enrich = (env: NodeJS.ProcessEnv) =>
    spawnSync(process.execPath, [MAIN, 'enrich', '--data', join(dir, 'data')], {
      env: { ...process.env, NODE_COMPILE_CACHE: undefined, ...env },
      input: '{"ip":"193.0.0.1"}\n',
      encoding: 'utf8',
    });
  const good = { status: 0, stdout: expect.stringContaining('"country_code":"NL"') };
  expect(enrich({ XDG_CACHE_HOME: join(dir, 'cache') })).toMatchObject(good);
  const stored = 'enableCompileCache' in nodeModule ? ['ipatlas'] : [];
  expect(readdirSync(dir).includes('cache') ? readdirSync(join(dir, 'cache')) : []).toEqual(stored);
  // A cache that cannot be written is no error.
  expect(enrich({ XDG_CACHE_HOME: '/dev/null' })).toMatchObject({
    ...good,
    stderr: expect.not.stringContaining('cache'),
  });
  rmSync(dir, { recursive: true });
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
