import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KeyCache, KeysUnavailableError } from '../../src/api/keys/key-cache.js';
import {
  createKey,
  exportKeys,
  hashKey,
  isValidKey,
  keysPath,
  listKeys,
  revokeKey,
} from '../../src/api/keys/key-store.js';
import { KEY_CACHE_SIZE, SELF_ISSUED_KEY_MS } from '../../src/limits.js';
import { sqlite } from '../../src/sqlite.js';
import { testApp } from '../support/api.js';
import { ipatlas } from '../support/in-process.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

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
    // Keys of the same millisecond are in the order of their ids, which are random.
    const listed = listKeys(dataDir).sort((a, b) => (a.label < b.label ? -1 : 1));
    expect(listed).toMatchObject([
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
  it('knows a key by its whole text, with its rate and origins, and whether it is self-issued', () => {
    cache.refresh();
    expect(cache.find('x')).toBeUndefined();
    const origins = ['https://shop.example', 'http://localhost:3000'];
    const [plain, own] = [createKey(dataDir, { rate: 7 }), createKey(dataDir, { origins, self_issued: true })];
    cache.refresh();
    expect([cache.find(plain.key), cache.find(own.key), cache.find(`${plain.key} `), cache.find('')]).toEqual([
      { id: plain.id, rate: 7, origins: null, selfIssued: false, limiter: undefined },
      { id: own.id, rate: null, origins, selfIssued: true, limiter: undefined },
      ...[undefined, undefined],
    ]);
    expect(problems).toEqual([]);
  });

  it('follows when another file takes the place of the first', () => {
    const { key } = createKey(dataDir);
    cache.refresh();
    const other = temporaryDir();
    const replaced = createKey(other);
    renameSync(keysPath(other), keysPath(dataDir));
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
});

/** Changes the file as an operator may do by hand. */
function edit(sql: string, ...values: unknown[]): void {
  const database = new (sqlite())(keysPath(dataDir));
  database.prepare(sql).run(...values);
  database.close();
}

describe('the key cache, by its naive twin', () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant('create' as const), rate: fc.option(fc.integer({ min: 1, max: 9 })) }),
    fc.record({ kind: fc.constantFrom('revoke' as const, 'delete' as const, 'rate' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('find' as const), which: fc.nat() }),
  );

  it('finds the keys that a fresh one finds, whatever was found and changed before', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 25 }), (changes) => {
        rmSync(keysPath(dataDir), { force: true });
        const texts = new Map<string, string>();
        const deleted = new Set<string>();
        const used = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
        for (const one of changes) {
          if (one.kind === 'create') {
            const { id, key } = createKey(dataDir, { rate: one.rate });
            texts.set(id, key);
            continue;
          }
          const id = [...texts.keys()][one.which % Math.max(1, texts.size)];
          if (id === undefined) continue;
          if (one.kind === 'revoke' && !deleted.has(id)) revokeKey(dataDir, id);
          else if (one.kind === 'delete') {
            edit('DELETE FROM api_key WHERE id = ?', id);
            deleted.add(id);
          } else if (one.kind === 'rate') edit('UPDATE api_key SET rate = 77 WHERE id = ?', id);
          else if (one.kind === 'find') {
            used.refresh();
            used.find(texts.get(id)!);
          }
        }
        used.refresh();
        const fresh = new KeyCache(keysPath(dataDir), (problem) => problems.push(problem));
        fresh.refresh();
        for (const key of texts.values()) expect(used.find(key)).toEqual(fresh.find(key));
        const valid = listKeys(dataDir).filter(({ revoked }) => revoked === null);
        expect([...texts.values()].filter((key) => used.find(key) !== undefined)).toHaveLength(valid.length);
        for (const one of [used, fresh]) one.stop();
        expect(problems).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });
});

/** Makes keys as quickly as possible, straight in the file; their texts are `ipa_0`, `ipa_1`, … */
function insertKeys(count: number): void {
  createKey(dataDir);
  const database = new (sqlite())(keysPath(dataDir));
  const insert = database.prepare(
    `INSERT INTO api_key (id, hash, label, self_issued, created) VALUES (?, ?, '', 0, '2026-01-01T00:00:00.000Z')`,
  );
  database.transaction(() => {
    for (let i = 0; i < count; i++) insert.run(`x${i}`, Buffer.from(hashKey(`ipa_${i}`), 'hex'));
  })();
  database.close();
}

describe('the key cache, of many keys', () => {
  it('remembers as many as were presented last, and finds the others in the file', () => {
    const count = KEY_CACHE_SIZE + 500;
    insertKeys(count);
    cache.refresh();
    const first = cache.find('ipa_0');
    expect(cache.find('ipa_0')).toBe(first);
    for (let i = 0; i < count; i++) expect(cache.find(`ipa_${i}`)?.id).toBe(`x${i}`);
    const again = cache.find('ipa_0');
    // It was read again: the oldest are forgotten.
    expect([again, again === first]).toEqual([first, false]);
    expect(cache.find(`ipa_${count}`)).toBeUndefined();
  });

  it('remembers none that nobody presented', () => {
    insertKeys(10);
    cache.refresh();
    const kept = cache.find('ipa_3');
    // A change that is not noticed yet, since nobody asked for changes.
    edit('UPDATE api_key SET rate = 5');
    expect([cache.find('ipa_3'), cache.find('ipa_4')?.rate]).toEqual([kept, 5]);
    cache.refresh();
    expect(cache.find('ipa_3')?.rate).toBe(5);
  });
});

describe('keys that cannot be read', () => {
  const unavailable = expect.objectContaining({ constructor: KeysUnavailableError });

  it('are not refused, and the server is not ready; those that were used lately still work', () => {
    const [used, other] = [createKey(dataDir), createKey(dataDir)];
    cache.refresh();
    expect(cache.isReadable).toBe(true);
    const known = cache.find(used.key);
    rmSync(keysPath(dataDir));
    writeFileSync(keysPath(dataDir), 'x'.repeat(5_000));
    for (let i = 0; i < 3; i++) cache.refresh();
    expect([cache.find(used.key), cache.isReadable]).toEqual([known, false]);
    expect(() => cache.find(other.key)).toThrow(unavailable);
    expect(problems).toHaveLength(1);
    rmSync(keysPath(dataDir));
    const next = createKey(dataDir);
    cache.refresh();
    expect([cache.find(used.key), cache.find(next.key)?.id, cache.isReadable]).toEqual([undefined, next.id, true]);
  });

  it('are unavailable if the file is damaged when the server starts, or within', () => {
    writeFileSync(keysPath(dataDir), 'no database at all, but long enough to be looked at');
    cache.start(60_000);
    expect(cache.isReadable).toBe(false);
    expect(() => cache.find('ipa_1')).toThrow(unavailable);
    rmSync(keysPath(dataDir));
    insertKeys(500);
    const bytes = readFileSync(keysPath(dataDir));
    // All pages but the first, which has the schema.
    bytes.fill(0xff, 4096);
    writeFileSync(keysPath(dataDir), bytes);
    cache.refresh();
    expect(() => cache.find('ipa_1')).toThrow(unavailable);
    for (let i = 0; i < 3; i++) {
      cache.refresh();
      expect([cache.isReadable, problems.length]).toEqual([false, 2]);
    }
  });

  it('are unavailable while a writer locks them for long, which is not reported', () => {
    const { key, id } = createKey(dataDir);
    cache.refresh();
    const writer = new (sqlite())(keysPath(dataDir));
    writer.exec('BEGIN EXCLUSIVE; UPDATE api_key SET rate = 9');
    expect(() => cache.find(key)).toThrow(unavailable);
    cache.refresh();
    expect([problems, cache.isReadable]).toEqual([[], true]);
    writer.exec('COMMIT');
    writer.close();
    cache.refresh();
    expect(cache.find(key)).toMatchObject({ id, rate: 9 });
  });

  it('are read although a writer was killed in the middle, as they were before', () => {
    const { key } = createKey(dataDir, { rate: 5 });
    insertKeys(300);
    const writer = new (sqlite())(keysPath(dataDir));
    // Pages are written before the commit if they do not fit into the memory.
    writer.exec('PRAGMA cache_size = 1; BEGIN; UPDATE api_key SET rate = 9');
    const killed = temporaryDir();
    for (const name of ['keys.sqlite', 'keys.sqlite-journal']) copyFileSync(join(dataDir, name), join(killed, name));
    writer.exec('ROLLBACK');
    writer.close();
    const after = new KeyCache(keysPath(killed), (problem) => problems.push(problem));
    after.refresh();
    expect([after.find(key)?.rate, after.find('ipa_7')?.rate, problems]).toEqual([5, null, []]);
    after.stop();
  });

  it('have an answer of their own over HTTP: 503, also of /readyz', async () => {
    await publishBlocks(dataDir, SMALL_WORLD);
    writeFileSync(keysPath(dataDir), 'no database at all, but long enough to be looked at');
    cache.refresh();
    const app = testApp(dataDir, { keys: cache });
    const status = async (url: string) => (await app.inject({ url, headers: { 'x-api-key': 'ipa_x' } })).statusCode;
    expect([await status('/api/lookup/8.8.8.8'), await status('/readyz'), await status('/healthz')]).toEqual([
      503, 503, 200,
    ]);
    rmSync(keysPath(dataDir));
    cache.refresh();
    expect([await status('/api/lookup/8.8.8.8'), await status('/readyz')]).toEqual([403, 200]);
    await app.close();
  });
});

describe('keys that people make for themselves', () => {
  it('expire, and are removed later; those of the operator do not', () => {
    const own = createKey(dataDir);
    const { key, id, expires } = createKey(dataDir, { self_issued: true });
    expect(Date.parse(expires!) - Date.now()).toBeGreaterThan(SELF_ISSUED_KEY_MS - 60_000);
    expect([own.expires, listKeys(dataDir).find((one) => one.id === id)?.expires]).toEqual([null, expires]);
    let now = Date.now();
    const clocked = new KeyCache(
      keysPath(dataDir),
      (problem) => problems.push(problem),
      () => now,
    );
    clocked.refresh();
    expect([clocked.find(key)?.id, clocked.find(own.key)?.id]).toEqual([id, own.id]);
    now += SELF_ISSUED_KEY_MS;
    expect([clocked.find(key), clocked.find(own.key)?.id]).toEqual([undefined, own.id]);
    clocked.stop();
    edit('UPDATE api_key SET expires = ? WHERE id = ?', new Date().toISOString(), id);
    expect([isValidKey(dataDir, key), exportKeys(dataDir).map((one) => one.id)]).toEqual([false, [own.id]]);
    createKey(dataDir);
    expect(listKeys(dataDir).map((one) => one.id)).not.toContain(id);
  });
});

it('refuses a file of another version', () => {
  createKey(dataDir);
  const database = new (sqlite())(keysPath(dataDir));
  database.pragma('user_version = 4');
  database.close();
  expect(() => createKey(dataDir)).toThrow(/is of version 4, but this ipatlas knows version 1/);
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
    'https://*.example',
    '',
  ])('refuses the origin %j', async (origin) => {
    expect(await keys('create', '--origin', origin)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/is not an origin such as https:\/\/example\.com|has a wildcard; name each origin/),
    });
  });

  it.each([
    [['frob'], /use "keys create"/],
    [['create', 'extra'], /unexpected argument "extra"; see "ipatlas keys create --help"/],
    [['revoke'], /an argument is missing; write ".*"; see "ipatlas keys revoke --help"/],
    [['list', '--label', 'x'], /--label does not go with "keys list"/],
    [['revoke', 'nope'], /there is no key "nope"; "ipatlas keys list --data/],
    [['create', '--rate', '0'], /--rate is "0"; write a whole number from 1/],
    [['create', '--rate', 'many'], /--rate is "many"; write a whole number from 1/],
  ])('refuses %j', async (args, message) => {
    const result = await keys(...args);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('creates no key in a directory that does not exist, and not the directory', async () => {
    const mistyped = join(dataDir, 'mistyped');
    expect(await ipatlas(['keys', 'create', '--data', mistyped])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/no directory .*mistyped; create it with "ipatlas build --data .*mistyped"/),
    });
    expect(existsSync(mistyped)).toBe(false);
  });

  it('says so if there are none', async () => {
    expect(await keys('list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/no keys in/) });
  });
});
