import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KeyCache } from '../../src/api/keys/key-cache.js';
import { createKey, hashKey, isValidKey, keysPath, listKeys, revokeKey } from '../../src/api/keys/key-store.js';
import { packageFile } from '../../src/package-root.js';
import { sqlite } from '../../src/sqlite.js';
import { ipatlas } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';

let dataDir: string;
let cache: KeyCache;
let problems: string[];
beforeEach(() => {
  dataDir = temporaryDir();
  problems = [];
  cache = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
});
afterEach(() => {
  cache.stop();
  rmSync(dataDir, { recursive: true });
});

describe('keys', () => {
  it('are 256 random bits after a prefix', () => {
    const keys = Array.from({ length: 50 }, () => createKey(dataDir));
    for (const { key } of keys) expect(key).toMatch(/^ipa_[A-Za-z0-9_-]{43}$/);
    expect(new Set(keys.map(({ key }) => key)).size).toBe(50);
    expect(new Set(keys.map(({ id }) => id)).size).toBe(50);
  });

  it('are in no file in clear', () => {
    const { key } = createKey(dataDir, { label: 'a label' });
    expect(readdirSync(dataDir)).toEqual(['keys.sqlite']);
    const bytes = readFileSync(keysPath(dataDir));
    expect(bytes.includes('a label')).toBe(true);
    expect(bytes.includes(key)).toBe(false);
    expect(bytes.includes(key.slice(4, 20))).toBe(false);
  });

  it('have a label that a terminal can show', () => {
    for (const label of ['\u001b[2J', 'two\nlines', '\u009b'])
      expect(() => createKey(dataDir, { label })).toThrow(/control character/);
    expect(listKeys(dataDir)).toEqual([]);
    createKey(dataDir, { label: 'Zoë’s 🔑' });
    expect(listKeys(dataDir)).toMatchObject([{ label: 'Zoë’s 🔑' }]);
  });

  it('are listed and revoked once and for all', () => {
    const first = createKey(dataDir, { label: 'first' });
    const second = createKey(dataDir, { label: 'second', rate: 120 });
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

  it('are in a file that only its owner can read', () => {
    const umask = process.umask(0);
    try {
      createKey(dataDir);
    } finally {
      process.umask(umask);
    }
    expect(statSync(keysPath(dataDir)).mode & 0o777).toBe(0o600);
  });

  it('keep the permissions of a file that exists', () => {
    createKey(dataDir);
    chmodSync(keysPath(dataDir), 0o640);
    createKey(dataDir);
    expect(statSync(keysPath(dataDir)).mode & 0o777).toBe(0o640);
  });

  it('refuse a file that is not theirs', () => {
    writeFileSync(keysPath(dataDir), 'no database at all, but long enough to be looked at');
    expect(() => createKey(dataDir)).toThrow(expect.objectContaining({ code: 'E_DATA_DIR' }));
  });
});

describe('the key cache', () => {
  it('knows keys as they come and go', () => {
    cache.refresh();
    expect(cache.find('x')).toBeUndefined();
    const first = createKey(dataDir);
    cache.refresh();
    expect(cache.find(first.key)).toEqual({
      id: first.id,
      rate: null,
      origins: null,
      selfIssued: false,
      limiter: undefined,
    });
    expect(cache.find(`${first.key} `)).toBeUndefined();
    expect(cache.find('')).toBeUndefined();
    const second = createKey(dataDir, { rate: 7 });
    cache.refresh();
    expect(cache.find(second.key)).toEqual({
      id: second.id,
      rate: 7,
      origins: null,
      selfIssued: false,
      limiter: undefined,
    });
    revokeKey(dataDir, first.id);
    cache.refresh();
    expect([cache.find(first.key), cache.find(second.key)?.id]).toEqual([undefined, second.id]);
    expect(problems).toEqual([]);
  });

  it('knows the origins of keys, and which are self-issued', () => {
    const origins = ['https://shop.example', 'http://localhost:3000'];
    const { key, id } = createKey(dataDir, { origins, self_issued: true });
    cache.refresh();
    expect(cache.find(key)).toEqual({ id, rate: null, origins, selfIssued: true, limiter: undefined });
  });

  it('follows when another file takes the place of the first', () => {
    const { key } = createKey(dataDir);
    cache.refresh();
    const other = temporaryDir();
    const replaced = createKey(other);
    renameSync(keysPath(other), keysPath(dataDir));
    rmSync(other, { recursive: true });
    cache.refresh();
    expect([cache.find(key), cache.find(replaced.key)?.id]).toEqual([undefined, replaced.id]);
  });

  it('has no keys if the file is removed', () => {
    const { key } = createKey(dataDir);
    cache.refresh();
    rmSync(keysPath(dataDir));
    cache.refresh();
    expect(cache.find(key)).toBeUndefined();
  });

  it('keeps its keys if the file is damaged, and reports it once', () => {
    const { id, key } = createKey(dataDir);
    cache.refresh();
    rmSync(keysPath(dataDir));
    writeFileSync(keysPath(dataDir), 'x'.repeat(5_000));
    for (let i = 0; i < 3; i++) cache.refresh();
    expect(cache.find(key)).toEqual({ id, rate: null, origins: null, selfIssued: false, limiter: undefined });
    expect(problems).toHaveLength(1);
    rmSync(keysPath(dataDir));
    const next = createKey(dataDir);
    cache.refresh();
    expect([cache.find(key), cache.find(next.key)?.id]).toEqual([undefined, next.id]);
  });

  it('waits for a writer at work', () => {
    createKey(dataDir);
    cache.refresh();
    const writer = new (sqlite())(keysPath(dataDir));
    writer.exec('BEGIN EXCLUSIVE; UPDATE api_key SET rate = 9');
    cache.refresh();
    expect(problems).toEqual([]);
    writer.exec('COMMIT');
    writer.close();
    cache.refresh();
    expect(problems).toEqual([]);
  });
});

/** A file of keys as an earlier version wrote it. */
function earlierVersion(...scripts: string[]): string {
  const database = new (sqlite())(keysPath(dataDir));
  for (const script of scripts) database.exec(readFileSync(packageFile(script), 'utf8'));
  database
    .prepare("INSERT INTO api_key (id, hash, label, created) VALUES ('00000001', ?, '', '2026-01-01T00:00:00.000Z')")
    .run(Buffer.from(hashKey('ipa_old'), 'hex'));
  database.close();
  return 'ipa_old';
}
const firstVersion = () => earlierVersion('schemas/keys.sql');
const secondVersion = () => earlierVersion('schemas/keys.sql', 'schemas/keys-changes.sql');

describe('changes of many keys', () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant('create' as const), rate: fc.option(fc.integer({ min: 1, max: 9 })) }),
    fc.record({ kind: fc.constantFrom('revoke' as const, 'delete' as const, 'rate' as const), which: fc.nat() }),
    fc.constant({ kind: 'refresh' as const }),
  );

  it.each([
    ['a new file', () => undefined],
    ['a file of the first version', firstVersion],
    ['a file of the second version', secondVersion],
  ])('are read one by one as all at once: %s', (_, prepare) => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 25 }), (changes) => {
        rmSync(keysPath(dataDir), { force: true });
        const texts = new Map<string, string>();
        const old = prepare();
        if (old !== undefined) texts.set('00000001', old);
        const incremental = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
        incremental.refresh();
        const edit = (sql: string, id: string) => {
          const database = new (sqlite())(keysPath(dataDir));
          database.prepare(sql).run(id);
          database.close();
        };
        for (const one of changes) {
          if (one.kind === 'refresh') incremental.refresh();
          else if (one.kind === 'create') {
            const { id, key } = createKey(dataDir, { rate: one.rate });
            texts.set(id, key);
          } else {
            const id = [...texts.keys()][one.which % Math.max(1, texts.size)];
            if (id === undefined) continue;
            if (one.kind === 'revoke') revokeKey(dataDir, id);
            // As an operator may do by hand.
            else if (one.kind === 'delete') edit('DELETE FROM api_key WHERE id = ?', id);
            else edit('UPDATE api_key SET rate = 77 WHERE id = ?', id);
            if (one.kind === 'delete') texts.delete(id);
          }
        }
        incremental.refresh();
        const fresh = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
        fresh.refresh();
        for (const key of texts.values()) expect(incremental.find(key)).toEqual(fresh.find(key));
        const valid = listKeys(dataDir).filter(({ revoked }) => revoked === null);
        expect([...texts.values()].filter((key) => incremental.find(key) !== undefined)).toHaveLength(valid.length);
        for (const cache of [incremental, fresh]) cache.stop();
        expect(problems).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it('cost no more than the keys that changed', () => {
    const first = createKey(dataDir, { rate: 1 });
    cache.refresh();
    const database = new (sqlite())(keysPath(dataDir));
    // A change that is not recorded is not noticed: so the other keys are not read again.
    database.exec('DROP TRIGGER api_key_updated; UPDATE api_key SET rate = 2');
    database.close();
    const second = createKey(dataDir, { rate: 3 });
    cache.refresh();
    expect([cache.find(first.key)?.rate, cache.find(second.key)?.rate]).toEqual([1, 3]);
  });

  it('reach keys that were presented before', () => {
    const { id, key } = createKey(dataDir);
    cache.refresh();
    expect(cache.find(key)?.id).toBe(id);
    revokeKey(dataDir, id);
    cache.refresh();
    expect(cache.find(key)).toBeUndefined();
  });
});

describe('a file of keys of another version', () => {
  it.each([
    ['first', firstVersion],
    ['second', secondVersion],
  ])('is read as it is if it is the %s version, and followed when a command upgrades it', (_, prepare) => {
    const key = prepare();
    cache.refresh();
    expect(cache.find(key)).toEqual({
      id: '00000001',
      rate: null,
      origins: null,
      selfIssued: false,
      limiter: undefined,
    });
    const next = createKey(dataDir, { rate: 5 });
    cache.refresh();
    expect([cache.find(key)?.id, cache.find(next.key)?.rate]).toEqual(['00000001', 5]);
    revokeKey(dataDir, '00000001');
    cache.refresh();
    expect(cache.find(key)).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('keeps its keys when it is upgraded', () => {
    const key = firstVersion();
    createKey(dataDir, { origins: ['https://shop.example'], self_issued: true });
    expect(listKeys(dataDir)).toMatchObject([
      { id: '00000001', rate: null, origins: null, self_issued: false, revoked: null },
      { origins: ['https://shop.example'], self_issued: true },
    ]);
    expect(isValidKey(dataDir, key)).toBe(true);
  });

  it('is refused if it is of a later version', () => {
    createKey(dataDir);
    const database = new (sqlite())(keysPath(dataDir));
    database.pragma('user_version = 5');
    database.close();
    expect(() => createKey(dataDir)).toThrow(/is of version 5, but this ipatlas knows version 4/);
  });
});

describe('ipatlas keys', () => {
  const keys = (...args: string[]) => ipatlas(['keys', ...args, '--data', dataDir]);

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

  it('binds a key to the origins that are given', async () => {
    const origins = ['--origin', 'https://Shop.example:443/', '--origin', 'http://localhost:3000'];
    expect(await keys('create', ...origins)).toMatchObject({ code: 0 });
    expect(JSON.parse((await keys('list', '--json')).stdout)).toMatchObject([
      { origins: ['https://shop.example', 'http://localhost:3000'], self_issued: false },
    ]);
    expect((await keys('list')).stdout).toMatch(/ https:\/\/shop\.example,http:\/\/localhost:3000 /);
  });

  it.each([
    'shop.example',
    'https://shop.example/cart',
    'https://user@shop.example',
    'https://shop.example?a',
    'ftp://shop.example',
    'null',
    '*',
    '',
  ])('refuses the origin %j', async (origin) => {
    expect(await keys('create', '--origin', origin)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/is not an origin such as https:\/\/example\.com/),
    });
  });

  it.each([
    [['frob'], /use "keys create"/],
    [['create', 'extra'], /unexpected argument "extra"; see "ipatlas keys create --help"/],
    [['revoke'], /an argument is missing; see "ipatlas keys revoke --help"/],
    [['list', '--label', 'x'], /--label does not go with "keys list"/],
    [['revoke', 'nope'], /there is no key "nope"; "ipatlas keys list"/],
    [['create', '--rate', '0'], /--rate "0" is not a number of addresses a minute/],
    [['create', '--rate', 'many'], /--rate "many" is not a number/],
  ])('refuses %j', async (args, message) => {
    const result = await keys(...args);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('creates no key in a directory that does not exist, and not the directory', async () => {
    const mistyped = join(dataDir, 'mistyped');
    expect(await ipatlas(['keys', 'create', '--data', mistyped])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/there is no directory .*mistyped; create it with "ipatlas build"/),
    });
    expect(existsSync(mistyped)).toBe(false);
  });

  it('says so if there are none', async () => {
    expect(await keys('list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/no keys in/) });
  });
});
