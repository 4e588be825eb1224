import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeFolder, openPendingFile, replaceFile } from '../src/files.js';
import { packageFile } from '../src/package-root.js';
import { killedAt } from './support/killed-writer.js';
import { temporaryDir } from './support/temporary.js';

let directory: string;
let target: string;
beforeEach(() => {
  directory = temporaryDir();
  target = join(directory, 'out.csv');
});

const permissions = (path: string): number => statSync(path).mode & 0o777;
const temporaryFiles = (): string[] => readdirSync(directory).filter((name) => name.endsWith('.part'));
const isRoot = process.getuid?.() === 0;

describe('makeFolder', () => {
  it('makes a folder and those above it, with their permissions, and is content with one that exists', () => {
    const path = join(directory, 'a', 'b', 'c');
    for (const _ of [1, 2]) makeFolder(path, 0o700);
    expect([permissions(join(directory, 'a')), permissions(path)]).toEqual([0o700, 0o700]);
  });

  it.each([
    ['/proc/x', 'ENOENT'],
    ['/proc/x/y', 'ENOENT'],
    ['/dev/null', 'EEXIST'],
    ['/dev/null/x', 'ENOTDIR'],
  ])('fails at once in %s', (path, code) => {
    expect(() => makeFolder(path)).toThrow(code);
  });
});

/** Runs an action while `replacement` takes the place of openSync, which it receives. */
function withOpenSync(
  replacement: (openSync: typeof fs.openSync, ...args: Parameters<typeof fs.openSync>) => number,
  action: () => void,
): void {
  const { openSync } = fs;
  fs.openSync = (...args) => replacement(openSync, ...args);
  syncBuiltinESMExports();
  try {
    action();
  } finally {
    fs.openSync = openSync;
    syncBuiltinESMExports();
  }
}

describe('a pending file', () => {
  it('is invisible under the final name until commit', () => {
    writeFileSync(target, 'old');
    const file = openPendingFile(target);
    writeFileSync(file.fd, 'new');
    expect(readFileSync(target, 'utf8')).toBe('old');
    expect(temporaryFiles()).toHaveLength(1);
    file.commit();
    expect(readFileSync(target, 'utf8')).toBe('new');
    expect(readdirSync(directory)).toEqual(['out.csv']);
  });

  it('leaves the target as it was if it is abandoned, before or after a failed commit', () => {
    writeFileSync(target, 'old');
    const file = openPendingFile(target);
    writeFileSync(file.fd, 'new');
    file.abandon();
    file.abandon();
    const unplaceable = openPendingFile(target);
    expect(() => unplaceable.commit(join(directory, 'missing', 'out.csv'))).toThrow('ENOENT');
    unplaceable.abandon();
    expect(readFileSync(target, 'utf8')).toBe('old');
    expect(readdirSync(directory)).toEqual(['out.csv']);
  });

  it('can take its name at commit', () => {
    const file = openPendingFile(join(directory, 'object'));
    writeFileSync(file.fd, 'content');
    file.commit(target);
    expect(readdirSync(directory)).toEqual(['out.csv']);
  });

  it('has a name that cannot be predicted', () => {
    const names = Array.from({ length: 20 }, () => {
      const file = openPendingFile(target);
      const [name] = temporaryFiles();
      file.abandon();
      return name;
    });
    expect(new Set(names).size).toBe(20);
    for (const name of names) expect(name).toMatch(new RegExp(`^\\.out\\.csv\\.${process.pid}\\.[0-9a-f]{16}\\.part$`));
  });

  it('fits a target whose name is as long as a file system allows', () => {
    for (const name of ['n'.repeat(255), '\u{1F30D}'.repeat(63)]) {
      replaceFile(join(directory, name), ['x']);
      expect(readdirSync(directory)).toContain(name);
    }
  });

  it('is never readable more widely than the file that it replaces, and ends with its permissions', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0o777 }), fc.constantFrom(0, 0o022, 0o077), (mode, umask) => {
        const before = process.umask(umask);
        try {
          writeFileSync(target, 'old');
          chmodSync(target, mode);
          const file = openPendingFile(target);
          const meanwhile = permissions(join(directory, temporaryFiles()[0]!));
          expect(meanwhile & ~mode).toBe(0);
          file.commit();
          expect(permissions(target)).toBe(mode);
        } finally {
          process.umask(before);
          rmSync(target, { force: true });
        }
      }),
      { numRuns: isRoot ? 200 : 20, examples: [[0o600, 0]] },
    );
  });

  it('does not follow a link that another process makes under its temporary name', () => {
    const victim = join(directory, 'victim');
    writeFileSync(victim, 'old');
    const open = (): void =>
      withOpenSync(
        (openSync, path, ...args) => {
          symlinkSync(victim, path);
          return openSync(path, ...args);
        },
        () => replaceFile(target, ['x']),
      );
    expect(open).toThrow(/EEXIST/);
    expect(readFileSync(victim, 'utf8')).toBe('old');
  });

  it('has the permissions of a new file, or those given', () => {
    const before = process.umask(0o027);
    try {
      replaceFile(target, ['x']);
      expect(permissions(target)).toBe(0o640);
      const secret = openPendingFile(target, { mode: 0o600 });
      expect(permissions(join(directory, temporaryFiles()[0]!))).toBe(0o600);
      secret.commit();
      expect(permissions(target)).toBe(0o600);
    } finally {
      process.umask(before);
    }
  });

  it('writes through a symbolic link, to a file that exists or not', () => {
    mkdirSync(join(directory, 'elsewhere'));
    const link = join(directory, 'link');
    symlinkSync('link2', link);
    symlinkSync('elsewhere/file', join(directory, 'link2'));
    for (const content of ['created', 'replaced']) {
      replaceFile(link, [content]);
      expect(readFileSync(join(directory, 'elsewhere', 'file'), 'utf8')).toBe(content);
      expect(readlinkSync(link)).toBe('link2');
    }
    const loop = join(directory, 'loop');
    symlinkSync('loop', loop);
    expect(() => replaceFile(loop, ['x'])).toThrow('ELOOP');
  });

  it('writes a device in place', () => {
    const file = openPendingFile('/dev/null');
    expect(file.isReplacement).toBe(false);
    file.commit();
    file.abandon();
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
    expect(() => replaceFile('/dev/full', ['x'])).toThrow('ENOSPC');
  });

  it.each([
    ['a directory', '', 'EISDIR'],
    ['in a missing directory', 'missing/file', 'ENOENT'],
  ])('refuses %s', (_, name, code) => {
    expect(() => openPendingFile(join(directory, name))).toThrow(code);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('removes what it wrote if the content cannot be produced', () => {
    function* pieces(): Generator<string> {
      yield 'some';
      throw new Error('no more');
    }
    expect(() => replaceFile(target, pieces())).toThrow('no more');
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe.runIf(isRoot)('as root', () => {
  it('keeps the owner and group of the file that is replaced', () => {
    writeFileSync(target, 'old', { mode: 0o640 });
    chownSync(target, 1234, 2345);
    replaceFile(target, ['new']);
    const { uid, gid } = statSync(target);
    expect([uid, gid, permissions(target)]).toEqual([1234, 2345, 0o640]);
  });

  it('gives the group no more than everyone has if an ordinary user cannot keep it', async () => {
    chmodSync(directory, 0o777);
    writeFileSync(target, 'old');
    chownSync(target, 1234, 2345);
    chmodSync(target, 0o664);
    await run(`process.setgid(4321); process.setuid(4321); files.replaceFile(${JSON.stringify(target)}, ['new']);`);
    const { uid, gid } = statSync(target);
    expect([uid, gid, permissions(target)]).toEqual([4321, 4321, 0o644]);
  });
});

/** Runs code in another process, with the compiled module as `files`, until it ends or prints a line. */
async function run(code: string, untilPrinted = false): Promise<ReturnType<typeof spawn>> {
  const module = pathToFileURL(packageFile('dist/src/files.js')).href;
  const script = `import * as files from ${JSON.stringify(module)};\n${code}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (untilPrinted) await once(child.stdout!, 'data');
  else expect(await once(child, 'exit')).toEqual([0, null]);
  return child;
}

describe('a process that ends early', () => {
  const open = (): string => `files.openPendingFile(${JSON.stringify(target)});`;

  it('removes its files if it exits or throws', async () => {
    await run(`${open()} process.exit(0);`);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('leaves a file if it is killed, which the next run on the same target removes', async () => {
    writeFileSync(target, 'old');
    const child = await run(`${open()} console.log('open'); setInterval(() => {}, 1000);`, true);
    const [theirs] = temporaryFiles();
    // While the process lives, its file is in use.
    replaceFile(target, ['new']);
    expect(temporaryFiles()).toEqual([theirs]);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(temporaryFiles()).toEqual([theirs]);
    replaceFile(join(directory, 'another'), ['x']);
    expect(temporaryFiles()).toEqual([theirs]);
    replaceFile(target, ['newer']);
    expect(temporaryFiles()).toEqual([]);
    expect(readFileSync(target, 'utf8')).toBe('newer');
  });

  it('of this process stays, whatever its clock says; that of an earlier one with the same id goes', () => {
    const earlier = join(directory, `.out.csv.${process.pid}.0123456789abcdef.part`);
    writeFileSync(earlier, 'x');
    const file = openPendingFile(target);
    futimesSync(file.fd, 1, 1);
    replaceFile(target, ['x']);
    expect(existsSync(earlier)).toBe(false);
    file.commit();
    expect(readFileSync(target, 'utf8')).toBe('');
  });

  it('leaves the whole old or the whole new file when it is killed at any step', async () => {
    const steps: string[] = [];
    for (let isKilled = true; isKilled; ) {
      writeFileSync(target, 'old');
      isKilled = await killedAt(steps.length, async () => replaceFile(target, ['n', 'e', 'w']));
      steps.push(readFileSync(target, 'utf8'));
      for (const name of temporaryFiles()) rmSync(join(directory, name));
    }
    expect(steps.length).toBeGreaterThan(3);
    expect(steps.slice(0, 3)).toEqual(['old', 'old', 'old']);
    expect(steps.slice(3).filter((content) => content !== 'old' && content !== 'new')).toEqual([]);
    expect(steps.at(-1)).toBe('new');
  });
});
