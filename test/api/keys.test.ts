import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KeyCache } from '../../src/api/key-cache.js';
import { createKey, isValidKey, keysPath, listKeys, revokeKey } from '../../src/api/keys.js';
import { ipatlas } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';

let dataDir: string;
let ring: KeyCache;
let problems: string[];
beforeEach(() => {
  dataDir = temporaryDir();
  problems = [];
  ring = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
});
afterEach(() => {
  ring.stop();
  rmSync(dataDir, { recursive: true });
});

describe('keys', () => {
  it('are 256 random bits behind a head', () => {
    const keys = Array.from({ length: 50 }, () => createKey(dataDir, '', null));
    for (const { key } of keys) expect(key).toMatch(/^ipa_[A-Za-z0-9_-]{43}$/);
    expect(new Set(keys.map(({ key }) => key)).size).toBe(50);
    expect(new Set(keys.map(({ id }) => id)).size).toBe(50);
  });

  it('are in no file in clear', () => {
    const { key } = createKey(dataDir, 'a label', null);
    expect(readdirSync(dataDir)).toEqual(['keys.sqlite']);
    const bytes = readFileSync(keysPath(dataDir));
    expect(bytes.includes('a label')).toBe(true);
    expect(bytes.includes(key)).toBe(false);
    expect(bytes.includes(key.slice(4, 20))).toBe(false);
  });

  it('have a label that a terminal can show', () => {
    for (const label of ['\u001b[2J', 'two\nlines', '\u009b'])
      expect(() => createKey(dataDir, label, null)).toThrow(/control character/);
    expect(listKeys(dataDir)).toEqual([]);
    createKey(dataDir, 'Zoë’s 🔑', null);
    expect(listKeys(dataDir)).toMatchObject([{ label: 'Zoë’s 🔑' }]);
  });

  it('are listed and revoked once and for all', () => {
    const first = createKey(dataDir, 'first', null);
    const second = createKey(dataDir, 'second', 120);
    expect(listKeys(dataDir)).toMatchObject([
      { id: first.id, label: 'first', rate: null, revoked: null },
      { id: second.id, label: 'second', rate: 120, revoked: null },
    ]);
    const revoked = revokeKey(dataDir, first.id);
    expect(revoked.revoked).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(revokeKey(dataDir, first.id)).toEqual(revoked);
    expect([isValidKey(dataDir, first.key), isValidKey(dataDir, second.key), isValidKey(dataDir, 'other')]).toEqual([
      false,
      true,
      false,
    ]);
    expect(() => revokeKey(dataDir, 'nope')).toThrow(/there is no key "nope"/);
  });

  it('need no file to be asked for, and make none then', () => {
    expect(listKeys(dataDir)).toEqual([]);
    expect(isValidKey(dataDir, 'x')).toBe(false);
    expect(() => revokeKey(dataDir, 'x')).toThrow(/there is no key "x"/);
    expect(existsSync(keysPath(dataDir))).toBe(false);
  });

  it('refuse a file that is not theirs', () => {
    writeFileSync(keysPath(dataDir), 'no database at all, but long enough to be looked at');
    expect(() => createKey(dataDir, '', null)).toThrow(expect.objectContaining({ code: 'E_DATA_DIR' }));
  });
});

describe('the key ring', () => {
  it('knows keys as they come and go', () => {
    ring.refresh();
    expect(ring.find('x')).toBeUndefined();
    const first = createKey(dataDir, '', null);
    ring.refresh();
    expect(ring.find(first.key)).toEqual({ id: first.id, rate: null });
    expect(ring.find(`${first.key} `)).toBeUndefined();
    expect(ring.find('')).toBeUndefined();
    const second = createKey(dataDir, '', 7);
    ring.refresh();
    expect(ring.find(second.key)).toEqual({ id: second.id, rate: 7 });
    revokeKey(dataDir, first.id);
    ring.refresh();
    expect([ring.find(first.key), ring.find(second.key)?.id]).toEqual([undefined, second.id]);
    expect(problems).toEqual([]);
  });

  it('follows when another file takes the place of the first', () => {
    const { key } = createKey(dataDir, '', null);
    ring.refresh();
    const other = temporaryDir();
    const replaced = createKey(other, '', null);
    renameSync(keysPath(other), keysPath(dataDir));
    rmSync(other, { recursive: true });
    ring.refresh();
    expect([ring.find(key), ring.find(replaced.key)?.id]).toEqual([undefined, replaced.id]);
  });

  it('knows no key where the file is removed', () => {
    const { key } = createKey(dataDir, '', null);
    ring.refresh();
    rmSync(keysPath(dataDir));
    ring.refresh();
    expect(ring.find(key)).toBeUndefined();
  });

  it('keeps what it knows where the file is damaged, and says so once', () => {
    const { id, key } = createKey(dataDir, '', null);
    ring.refresh();
    rmSync(keysPath(dataDir));
    writeFileSync(keysPath(dataDir), 'x'.repeat(5_000));
    for (let i = 0; i < 3; i++) ring.refresh();
    expect(ring.find(key)).toEqual({ id, rate: null });
    expect(problems).toHaveLength(1);
    rmSync(keysPath(dataDir));
    const next = createKey(dataDir, '', null);
    ring.refresh();
    expect([ring.find(key), ring.find(next.key)?.id]).toEqual([undefined, next.id]);
  });

  it('does not mind a writer at work', async () => {
    createKey(dataDir, '', null);
    ring.refresh();
    const { sqlite } = await import('../../src/sqlite.js');
    const writer = new (sqlite())(keysPath(dataDir));
    writer.exec('BEGIN EXCLUSIVE; UPDATE api_key SET rate = 9');
    ring.refresh();
    expect(problems).toEqual([]);
    writer.exec('COMMIT');
    writer.close();
    ring.refresh();
    expect(problems).toEqual([]);
  });
});

describe('ipatlas keys', () => {
  const keys = (...args: string[]) => ipatlas(['keys', ...args, '--data', join(dataDir, 'fresh')]);

  it('prints a new key once, alone on stdout', async () => {
    const made = await keys('create', '--label', 'shop', '--rate', '600');
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ipa_[A-Za-z0-9_-]{43}\n$/) });
    const id = /this is key ([0-9a-f]{8});/.exec(made.stderr)?.[1];
    const list = await keys('list');
    expect(list).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(`${id} .* 600 +shop\n`) });
    const json = await keys('list', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject([{ id, label: 'shop', rate: 600, revoked: null }]);
    expect(await keys('revoke', id!)).toMatchObject({ code: 0, stdout: '' });
    expect(JSON.parse((await keys('list', '--json')).stdout)[0].revoked).not.toBeNull();
    const printed = list.stdout + json.stdout + list.stderr + made.stderr;
    expect(printed).not.toContain(made.stdout.trim());
  });

  it.each([
    [['frob'], /use "keys create"/],
    [['create', 'extra'], /use "keys create"/],
    [['revoke'], /use "keys create"/],
    [['revoke', 'nope'], /there is no key "nope"; "ipatlas keys list"/],
    [['create', '--rate', '0'], /--rate "0" is not a number of addresses a minute/],
    [['create', '--rate', 'many'], /--rate "many" is not a number/],
  ])('refuses %j', async (args, message) => {
    const result = await keys(...args);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('says so where there are none', async () => {
    expect(await keys('list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/no keys in/) });
  });
});
