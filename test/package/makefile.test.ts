/** The Makefile, run by make itself in a small copy of the project. npm is a script that only records how it was called, node one that also knows its version. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';

let dir: string;
let calls: string;

/** Writes a file with its folders, as if some seconds ago. */
function write(name: string, content = '', seconds = 3600): void {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
  age(name, seconds);
}

function age(name: string, seconds: number): void {
  const time = Date.now() / 1000 - seconds;
  utimesSync(join(dir, name), time, time);
}

const has = (name: string): boolean => existsSync(join(dir, name));

/** Runs a target; returns how npm was called. */
function make(target: string): string[] {
  writeFileSync(calls, '');
  const PATH = [join(dir, '.git', 'bin'), process.env.PATH].join(delimiter);
  execFileSync('make', ['-C', dir, target], { env: { ...process.env, PATH, CALLS: calls }, stdio: 'pipe' });
  return readFileSync(calls, 'utf8').split('\n').slice(0, -1);
}

const git = (...args: string[]) => execFileSync('git', ['-C', dir, ...args], { stdio: 'pipe' });

/** Files that the pipeline and the server create in the data directory. */
const DATA = ['data/keys.sqlite', 'data/dev.key', 'data/current', 'data/releases/one/ranges.ipr', 'data/cache/one'];
/** The files that the Makefile names besides those that it searches for. */
const NAMED = /^SOURCES := (.*)$/m
  .exec(readFileSync(packageFile('Makefile'), 'utf8'))![1]!
  .replace(/\$\([^)]*\)/, '')
  .split(' ')
  .filter((name) => name !== '');
const SOURCES = ['src/a.ts', 'src/folder/b.ts', 'pipeline/c.ts', 'scripts/d.js', ...NAMED];
const STAMP = `node_modules/.installed-${process.versions.modules}`;
const BUILD = ['run --silent build'];

beforeEach(() => {
  dir = temporaryDir();
  git('init', '-q');
  for (const name of [...SOURCES, 'package-lock.json']) write(name);
  for (const name of ['Makefile', '.gitignore']) copyFileSync(packageFile(name), join(dir, name));
  git('add', '-A');
  for (const name of [STAMP, ...DATA]) write(name);
  for (const name of ['src', 'src/folder', 'pipeline', 'package.json', 'package-lock.json']) age(name, 7200);
  // In .git, so that distclean leaves them.
  calls = join(dir, '.git', 'calls');
  write('.git/bin/npm', '#!/bin/sh\necho "$*" >> "$CALLS"\nmkdir -p dist\n');
  write(
    '.git/bin/node',
    `#!/bin/sh\ncase "$1" in -p) echo ${process.versions.modules} ;; *) echo "node $*" >> "$CALLS" ;; esac\n`,
  );
  for (const name of ['npm', 'node']) chmodSync(join(dir, '.git', 'bin', name), 0o755);
});

describe('make compile', () => {
  it('does nothing if nothing changed', () => {
    expect(make('compile')).toEqual(BUILD);
    age('dist/.compiled', 1800);
    expect(make('compile')).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['a source is changed', () => write('src/folder/b.ts', 'new', 60)],
    ['a source is added', () => write('pipeline/d.ts')],
    ['a script is changed', () => write('scripts/d.js', 'new', 60)],
    ['a source is removed', () => rmSync(join(dir, 'src/a.ts'))],
    ['a setting of the compiler is changed', () => write('tsconfig.json', '{}', 60)],
    ['the compiled files are removed', () => rmSync(join(dir, 'dist'), { recursive: true })],
  ])('compiles again if %s', (_, change) => {
    // As it is after a first run, which the test before this one makes.
    write('dist/.compiled', '', 1800);
    change();
    expect(make('compile')).toEqual(BUILD);
  });

  it('installs again if the lock file is changed', () => {
    make('compile');
    age(STAMP, 1800);
    age('dist/.compiled', 1700);
    expect(make('compile')).toEqual([]);
    write('package-lock.json', '{}', 60);
    expect(make('compile')).toEqual(['node scripts/install.js', ...BUILD]);
  });
});

it('make clean removes what was compiled, and keeps packages, keys and releases', () => {
  make('compile');
  make('clean');
  expect(has('dist')).toBe(false);
  for (const name of [STAMP, ...DATA, ...SOURCES]) expect(has(name), name).toBe(true);
});

it('make distclean removes everything that is not part of the repository', () => {
  make('compile');
  make('distclean');
  for (const name of ['dist', 'node_modules', ...DATA]) expect(has(name), name).toBe(false);
  for (const name of SOURCES) expect(has(name), name).toBe(true);
});
