import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';

/**
 * Installs the packed package elsewhere, as a user would, but without install scripts, because compiling the SQLite module
 * takes minutes: the compiled module of this checkout is copied. scripts/test-package.js runs the installation in full.
 */
let dir: string;
let project: string;
const run = (command: string, args: string[], cwd = project): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

beforeAll(() => {
  dir = temporaryDir();
  project = join(dir, 'project');
  mkdirSync(project);
  run('npm', ['pack', '--pack-destination', dir], packageRoot());
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz'))!;
  writeFileSync(join(project, 'package.json'), '{"name":"user","private":true,"type":"module"}');
  run('npm', ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', join(dir, tarball)]);
  // Version 12 is compiled on installation; version 13 includes its binaries.
  const native = join('node_modules', 'better-sqlite3', 'build');
  if (existsSync(join(packageRoot(), native)))
    run('cp', ['-r', join(packageRoot(), native), join(project, 'node_modules', 'better-sqlite3')]);
}, 300_000);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('the package, installed elsewhere', () => {
  it('builds and looks up with its command', () => {
    run('npx', ['--no-install', 'ipatlas', 'build', '--data', 'data', '--offline', '--only', 'rir-delegations']);
    expect(JSON.parse(run('npx', ['--no-install', 'ipatlas', 'lookup', '193.0.6.139']))).toMatchObject({
      country_code: 'NL',
      is_eu: true,
    });
  });

  it('can be imported, with types', () => {
    const script =
      "import { openDatabase } from 'ipatlas'; console.log(JSON.stringify(openDatabase('data').lookup('8.8.8.8')));";
    expect(JSON.parse(run(process.execPath, ['--input-type=module', '-e', script]))).toMatchObject({
      country_code: 'US',
    });
    const client = "import { Client } from 'ipatlas/client'; console.log(typeof new Client('key').lookup);";
    expect(run(process.execPath, ['--input-type=module', '-e', client])).toBe('function\n');
    const typed =
      "import { openDatabase, type LookupResult } from 'ipatlas';\nimport { Client } from 'ipatlas/client';\nexport const r: LookupResult | undefined = openDatabase('data').lookup('8.8.8.8');\nexport const c: Promise<LookupResult> = new Client('key').lookup('8.8.8.8');\n";
    writeFileSync(join(project, 'use.ts'), typed);
    const tsc = join(packageRoot(), 'node_modules', 'typescript', 'bin', 'tsc');
    // Streams are Node's, so their types come from @types/node, as in any TypeScript project for Node.
    const types = ['--typeRoots', join(packageRoot(), 'node_modules', '@types'), '--types', 'node'];
    run(process.execPath, [tsc, '--noEmit', '--strict', '--module', 'nodenext', ...types, 'use.ts']);
  });

  it('has all files that it needs and no others', () => {
    const files = run('npm', ['ls', '--all', '--json', '--omit=dev']);
    expect(JSON.parse(files).problems).toBeUndefined();
    const top = readdirSync(join(project, 'node_modules', 'ipatlas')).sort();
    expect(top).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'NOTICE',
      'README.md',
      'data',
      'deploy',
      'dist',
      'docs',
      'examples',
      'package.json',
      'schemas',
      'src',
    ]);
  });
});
