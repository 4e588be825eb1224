/**
 * The files that npm packs, in the place of an installed package whose dependencies are those of this checkout.
 * scripts/test-package.js installs the package with several package managers on several versions of Node.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { packageFile, packageRoot } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';
import { writeSources } from '../support/sources.js';

let project: string;
let installed: string;
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

beforeAll(() => {
  project = temporaryDir();
  installed = join(project, 'node_modules', 'ipatlas');
  const options = { cwd: packageRoot(), encoding: 'utf8' } as const;
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], options));
  for (const { path } of packed.files) cpSync(packageFile(path), join(installed, path));
  symlinkSync(packageFile('node_modules'), join(installed, 'node_modules'));
  writeFileSync(join(project, 'package.json'), '{"name":"user","private":true}');
  const sources = writeSources(project, { one: '8.0.0.0,8.255.255.255,US\n80.0.0.0,80.255.255.255,DE\n' });
  run(process.execPath, join(installed, 'dist/src/cli/start.cjs'), 'build', '--data', 'data', '--sources', sources);
});

describe('the package', () => {
  it('has no other files', () => {
    const code = ['data', 'deploy', 'dist', 'docs', 'examples', 'schemas', 'src'];
    const top = ['CHANGELOG.md', 'LICENSE', 'LICENSES', 'NOTICE', 'README.md', 'package.json', ...code];
    expect(
      readdirSync(installed)
        .filter((name) => name !== 'node_modules')
        .sort(),
    ).toEqual(top.sort());
    const sources = readdirSync(join(installed, 'src'), { recursive: true, encoding: 'utf8' });
    expect(sources.filter((name) => name.includes('.'))).toEqual([
      'compact/FORMAT.md',
      'lookup/README.md',
      'rangefile/FORMAT.md',
    ]);
  });

  it('builds and looks up with its command', () => {
    const main = join(installed, 'dist/src/cli/start.cjs');
    expect(JSON.parse(run(process.execPath, main, 'lookup', '--data', 'data', '80.0.0.1'))).toMatchObject({
      country_code: 'DE',
      is_eu: true,
    });
  });

  const use = "console.log(openDatabase('data').lookup('8.8.8.8').country_code, typeof Client)";
  it.each([
    [
      'required',
      'commonjs',
      `const { openDatabase } = require('ipatlas'); const { Client } = require('ipatlas/client');`,
    ],
    ['imported', 'module', `import { openDatabase } from 'ipatlas'; import { Client } from 'ipatlas/client';`],
  ])('can be %s, with its client', (_, type, load) => {
    expect(run(process.execPath, `--input-type=${type}`, '-e', `${load} ${use}`)).toBe('US function\n');
  });

  it('has types for CommonJS and ES modules, with the DOM library or without', () => {
    const code = [
      "import { createEnricherStream, openDatabase, type LookupResult, type Reason } from 'ipatlas';",
      "import { Client } from 'ipatlas/client';",
      "export const result: LookupResult | undefined = openDatabase('data', { watch: true }).lookup('8.8.8.8');",
      "export const reason: Reason | null | undefined = openDatabase('data').lookupWithReason('10.0.0.1')?.reason;",
      "export const answer: Promise<LookupResult> = new Client('key').lookup('8.8.8.8');",
      "export const isPrivate = reason === 'private';",
      "export const isNonsense = reason === 'nonsense';",
      'export const enriched = (response: Response): ReadableStream<Uint8Array> =>',
      "  response.body!.pipeThrough(createEnricherStream(openDatabase('data'), { add: ['is_eu'] }));",
    ];
    const files = ['use.cts', 'use.mts'];
    for (const file of files) writeFileSync(join(project, file), code.join('\n'));
    // Streams are Node's, so their types come from @types/node, as in any TypeScript project for Node.
    const types = ['--typeRoots', packageFile('node_modules/@types'), '--types', 'node'];
    const tsc = packageFile('node_modules/typescript/bin/tsc');
    const args = [tsc, '--noEmit', '--strict', '--target', 'es2022', '--module', 'node16', ...types, ...files];
    for (const lib of [
      ['--lib', 'es2023,dom'],
      ['--lib', 'es2023'],
    ]) {
      const { stdout } = spawnSync(process.execPath, [...args, ...lib], { cwd: project, encoding: 'utf8' });
      // The only error is the comparison with a text that is not a reason.
      expect(stdout.trim().split('\n')).toEqual([
        expect.stringMatching(/^use\.cts\(7,\d+\): error TS2367/),
        expect.stringMatching(/^use\.mts\(7,\d+\): error TS2367/),
      ]);
    }
  });
});
