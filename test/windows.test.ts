/** The rules of Windows, tried on this system. What only Windows or Wine can show is not tested here. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { createKey, readKeys } from '../pipeline/distribution/keys.js';
import { switchCurrent } from '../pipeline/operations/current-link.js';
import { removeOldReleases } from '../pipeline/operations/prune.js';
import { parseCommandLine } from '../src/cli/command-line.js';
import { command as enrichCommand } from '../src/cli/enrich.js';
import { dataPlace } from '../src/database/origin.js';
import { currentDir, currentReleaseId, releaseDir } from '../src/database/release.js';
import { flush } from '../src/files.js';
import { isTerminal, standardStat } from '../src/standard-streams.js';
import { SYSTEM, whenReleased } from '../src/system.js';
import { expandWildcards } from '../src/wildcards.js';
import { dataDir, giveFolders } from './support/own-folder.js';

const FIRST = '2026-01-01-0123456789ab';
const SECOND = '2026-01-02-0123456789ab';
const system = { ...SYSTEM };

giveFolders();
beforeEach(() => Object.assign(SYSTEM, { isWindows: true, pause: vi.fn() }));
afterEach(() => Object.assign(SYSTEM, system));

function makeReleases(...ids: string[]): void {
  for (const id of ids) {
    mkdirSync(join(dataDir, 'releases', id), { recursive: true });
    writeFileSync(join(dataDir, 'releases', id, 'manifest.json'), '{}');
  }
}

it('names the current release in a file, which the next one replaces', () => {
  makeReleases(FIRST, SECOND);
  expect(currentReleaseId(dataDir)).toBeUndefined();
  for (const id of [FIRST, SECOND]) {
    expect(switchCurrent(dataDir, id)).toBeUndefined();
    expect(lstatSync(join(dataDir, 'current')).isFile()).toBe(true);
    expect(currentReleaseId(dataDir)).toBe(id);
    expect(releaseDir(dataDir)).toBe(currentDir(dataDir));
  }
});

it('moves a folder named current aside', () => {
  makeReleases(FIRST);
  mkdirSync(join(dataDir, 'current'));
  expect(switchCurrent(dataDir, FIRST)).toContain('current.replaced-');
  expect(currentReleaseId(dataDir)).toBe(FIRST);
});

it.each(['', '..\\..\\else\n', `${FIRST} ${SECOND}`])('refuses a file that has no id: %j', (content) => {
  makeReleases(FIRST);
  writeFileSync(join(dataDir, 'current'), content);
  expect(() => currentDir(dataDir)).toThrow('has no id of a release; publish one with');
});

it('accepts an id that an editor has ended with CRLF', () => {
  makeReleases(FIRST);
  writeFileSync(join(dataDir, 'current'), `${FIRST}\r\n`);
  expect(currentReleaseId(dataDir)).toBe(FIRST);
});

it('leaves an old release that a reader has open for a later build', () => {
  makeReleases(FIRST, SECOND);
  switchCurrent(dataDir, SECOND);
  SYSTEM.rename = failing('EPERM', 1000);
  expect(removeOldReleases(dataDir, dataDir, 1)).toBe(0);
  SYSTEM.isWindows = false;
  expect(() => removeOldReleases(dataDir, dataDir, 1)).toThrow('EPERM');
  Object.assign(SYSTEM, system, { isWindows: true });
  expect(removeOldReleases(dataDir, dataDir, 1)).toBe(1);
  expect(readdirSync(join(dataDir, 'releases'))).toEqual([SECOND]);
});

it('opens no folder to flush it, and files for writing', () => {
  makeReleases(FIRST);
  expect(() => flush(join(dataDir, 'no such folder'))).toThrow('ENOENT');
  flush(dataDir);
  const file = join(dataDir, 'releases', FIRST, 'manifest.json');
  flush(file);
  expect(readFileSync(file, 'utf8')).toBe('{}');
});

/** Returns an action that fails with a code a number of times. */
function failing(code: string, times: number) {
  return vi.fn(() => {
    if (times-- > 0) throw Object.assign(new Error(code), { code });
    return 'done';
  });
}

it.each(['EBUSY', 'EPERM', 'EACCES'])('tries again after %s, a bounded number of times', (code) => {
  expect(whenReleased(failing(code, 99))).toBe('done');
  const always = failing(code, 1000);
  expect(() => whenReleased(always)).toThrow(code);
  expect(always).toHaveBeenCalledTimes(100);
});

it('does not try again after another error, or on another system', () => {
  const missing = failing('ENOENT', 1);
  expect(() => whenReleased(missing)).toThrow('ENOENT');
  SYSTEM.isWindows = false;
  const held = failing('EPERM', 1);
  expect(() => whenReleased(held)).toThrow('EPERM');
  for (const action of [missing, held]) expect(action).toHaveBeenCalledTimes(1);
});

it('answers without the state of a standard stream that cannot be told', () => {
  const unknown = 1_000_000; // not open
  expect(standardStat(unknown)).toBeUndefined();
  expect(isTerminal(unknown)).toBe(false);
  SYSTEM.isWindows = false;
  expect(() => standardStat(unknown)).toThrow('EBADF');
});

it('takes files in place of * and ? in the last part of an argument, as the shells of other systems do', () => {
  mkdirSync(dataDir);
  for (const name of ['b.log', 'A.LOG', 'c.txt', '.d.log']) writeFileSync(join(dataDir, name), '');
  const all = [join(dataDir, '*.log'), join(dataDir, '?.csv'), join(dataDir, 'no folder', '*'), '8.8.8.8', '-'];
  expect(expandWildcards(all)).toEqual([join(dataDir, 'A.LOG'), join(dataDir, 'b.log'), ...all.slice(1)]);
  SYSTEM.isWindows = false;
  expect(expandWildcards(all)).toEqual(all);
});

it.each(['NUL', 'C:/logs/nul', 'con'])('means the device by %s, also as the value of a flag', async (name) => {
  const device = `\\\\.\\${basename(name)}`;
  expect(expandWildcards([name, 'nul.txt'])).toEqual([device, 'nul.txt']);
  const { values } = await parseCommandLine('enrich', enrichCommand, ['-o', name, '--delimiter', 'nul']);
  expect(values).toMatchObject({ output: device, delimiter: 'nul' });
  SYSTEM.isWindows = false;
  expect(expandWildcards([name])).toEqual([name]);
});

it('keeps data in the folder of the user for local data', () => {
  const started = process.cwd();
  onTestFinished(() => process.chdir(started));
  mkdirSync(dataDir);
  process.chdir(dataDir); // which has no folder `data`
  const dir = (env: NodeJS.ProcessEnv) => dataPlace(undefined, false, env).dataDir;
  expect(dir({ LOCALAPPDATA: '/users/ü/local', XDG_DATA_HOME: '/xdg' })).toBe('/users/ü/local/ipatlas');
  expect(dir({})).toBe(join(homedir(), 'AppData/Local/ipatlas'));
});

it('reads signing keys whatever their permission bits are, which say nothing there', () => {
  const { key } = createKey(dataDir, 'root');
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o666);
  expect([...readKeys([dataDir]).keys()]).toEqual([key.keyID]);
  SYSTEM.isWindows = false;
  expect(() => readKeys([dataDir])).toThrow('is accessible to other users');
});
