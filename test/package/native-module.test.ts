import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/package-root.js';
import { sqliteMismatch } from '../../src/sqlite.js';
import { type Finished, ipatlasAt } from '../support/cli.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

/** A copy of the compiled package in which better-sqlite3 can be replaced; all other dependencies are links. */
let dir: string;
let dataDir: string;
const installed = (): string => join(dir, 'node_modules', 'better-sqlite3');

beforeAll(async () => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
  await publishBlocks(dataDir, SMALL_WORLD);
  for (const part of ['dist', 'schemas', 'package.json', 'data/reference', 'data/sources.json'])
    cpSync(join(packageRoot(), part), join(dir, part), { recursive: true });
  mkdirSync(join(dir, 'node_modules'));
  for (const name of readdirSync(join(packageRoot(), 'node_modules')))
    if (name !== 'better-sqlite3' && !name.startsWith('.'))
      symlinkSync(join(packageRoot(), 'node_modules', name), join(dir, 'node_modules', name));
});

/** Puts a package better-sqlite3 in place that has this version and this main file, or none. */
function replaceModule(version: string | undefined, main = ''): void {
  rmSync(installed(), { recursive: true, force: true });
  if (version === undefined) return;
  mkdirSync(installed());
  writeFileSync(
    join(installed(), 'package.json'),
    JSON.stringify({ name: 'better-sqlite3', version, main: 'main.js' }),
  );
  writeFileSync(join(installed(), 'main.js'), main);
  writeFileSync(join(installed(), 'not-compiled-for-this-node.node'), 'no shared library');
}

const run = (...args: string[]): Promise<Finished> =>
  ipatlasAt(join(dir, 'dist/src/cli/start.cjs'), [...args, '--data', dataDir]);

/** A version that would end the process of this Node without a message. */
const MISMATCHED = Number.parseInt(process.versions.node, 10) < 22 ? '13.2.0' : '12.11.1';
/** A version that fits this Node, so that loading it is tried. */
const FITTING = MISMATCHED === '13.2.0' ? '12.11.1' : '13.2.0';
const BROKEN = "module.exports = class { constructor() { require('./not-compiled-for-this-node.node'); } };";

const CASES = [
  ['missing', undefined, '', /Cannot find module/],
  ['not compiled for this Node', FITTING, BROKEN, /not-compiled-for-this-node/],
  [
    'of a version that crashes this Node',
    MISMATCHED,
    'process.abort()',
    /better-sqlite3 \d+\.\d+\.\d+ (needs|does not)/,
  ],
] as const;

const COMMANDS = [
  ['build', '--offline'],
  ['verify'],
  ['serve', '--port', '0'],
  ['keys', 'create'],
  ['lookup', '--engine', 'sqlite', '8.8.8.8'],
];

describe.each(CASES)('if the native module is %s', (_, version, main, reason) => {
  // How it is loaded is the same for all commands, so they are all tried without the module only.
  it.each(version === undefined ? COMMANDS : [['verify']])(
    '%s reports it in one line, with exit code 2',
    async (...args) => {
      replaceModule(version, main);
      const { code, stdout, stderr } = await run(...args);
      expect(stderr).toMatch(
        /^ipatlas: SQLite's native module cannot be used by Node [^\n]*; install ipatlas again [^\n]*\n$/,
      );
      expect(stderr).toMatch(reason);
      const major = Number.parseInt(process.versions.node, 10);
      expect(stderr).toContain(major < 22 ? 'npm rebuild better-sqlite3' : 'with this version of Node');
      expect([code, stdout]).toEqual([2, '']);
    },
  );

  it('lookup works, because it uses the range file', async () => {
    replaceModule(version, main);
    const { code, stdout } = await run('lookup', '8.8.8.8');
    expect([code, JSON.parse(stdout).country_code]).toEqual([0, 'US']);
  });
});

it.each([
  ['12.11.1', '20.19.0', true],
  ['12.11.1', '22.23.3', true],
  ['12.11.1', '24.21.0', false],
  ['12.11.1', '26.10.0', false],
  ['13.2.0', '20.20.2', false],
  ['13.2.0', '22.0.0', true],
  ['13.2.0', '26.10.0', true],
])('better-sqlite3 %s on Node %s: %s', (module, node, fits) => {
  expect(sqliteMismatch(module, node) === undefined).toBe(fits);
});
