/** The Makefile, in a small copy of the project: what make would run (`make -n`), and what it removes. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { temporaryDir } from '../support/release.js';

let dir: string;

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

const make = (...args: string[]): string => execFileSync('make', ['-C', dir, ...args], { encoding: 'utf8' });

/** Returns the commands of npm and Node that `make compile` would run. */
const compiling = (): string[] => make('-n', 'compile').match(/^(npm|node) .*/gm) ?? [];

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
const BUILD = 'npm run --silent build';

beforeEach(() => {
  dir = temporaryDir();
  git('init', '-q');
  for (const name of [...SOURCES, 'package-lock.json']) write(name);
  for (const name of ['Makefile', '.gitignore']) copyFileSync(packageFile(name), join(dir, name));
  git('add', '-A');
  for (const name of [STAMP, ...DATA]) write(name);
  for (const name of ['src', 'src/folder', 'pipeline', 'package.json', 'package-lock.json']) age(name, 7200);
  write('dist/.compiled', '', 1800);
});

describe('make compile', () => {
  it('does nothing if nothing changed', () => {
    expect(compiling()).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['a source is changed', () => write('src/folder/b.ts', 'new', 60)],
    ['a source is added', () => write('pipeline/d.ts')],
    ['a script is changed', () => write('scripts/d.js', 'new', 60)],
    ['a source is removed', () => rmSync(join(dir, 'src/a.ts'))],
    ['a setting of the compiler is changed', () => write('tsconfig.json', '{}', 60)],
    ['the compiled files are removed', () => rmSync(join(dir, 'dist'), { recursive: true })],
  ])('compiles again if %s', (_, change) => {
    change();
    expect(compiling()).toEqual([BUILD]);
  });

  it('installs again if the lock file is changed', () => {
    write('package-lock.json', '{}', 60);
    expect(compiling()).toEqual(['node scripts/install.js', BUILD]);
  });
});

it('make clean removes what was compiled, and keeps packages, keys and releases', () => {
  make('clean');
  expect(has('dist')).toBe(false);
  for (const name of [STAMP, ...DATA, ...SOURCES]) expect(has(name), name).toBe(true);
});

it('make distclean removes everything that is not part of the repository', () => {
  make('distclean');
  for (const name of ['dist', 'node_modules', ...DATA]) expect(has(name), name).toBe(false);
  for (const name of SOURCES) expect(has(name), name).toBe(true);
});
