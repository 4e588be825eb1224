import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KeyCache } from '../../src/api/keys/key-cache.js';
import { fetchKeyFile, readKeyFile, type SharedKey, writeKeyFile } from '../../src/api/keys/key-file.js';
import {
  createKey,
  exportKeys,
  hashKey,
  importKeys,
  isValidKey,
  keysPath,
  listKeys,
  revokeKey,
} from '../../src/api/keys/key-store.js';
import { MAX_KEY_FILE_BYTES } from '../../src/limits.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

let dir: string;
let origin: string;
let node: string;
beforeEach(() => {
  dir = temporaryDir();
  origin = temporaryDir();
  node = temporaryDir();
});

function sharedKey(id: string, changes: Partial<SharedKey> = {}): SharedKey {
  const rest = { rate: null, origins: null, self_issued: false, created: '2026-01-01T00:00:00.000Z', expires: null };
  return { id, hash: hashKey(`ipa_${id}`), ...rest, ...changes };
}

const badInput = expect.objectContaining({ code: 'E_BAD_INPUT' });

describe('a file of keys', () => {
  const keys = [sharedKey('a1'), sharedKey('b2', { rate: 5, origins: ['https://a.example'], self_issued: true })];

  it('is read as it was written, and has the same bytes each time', () => {
    const bytes = writeKeyFile(keys);
    expect(readKeyFile(bytes)).toEqual(keys);
    expect(writeKeyFile(keys).equals(bytes)).toBe(true);
    expect(readKeyFile(writeKeyFile([]))).toEqual([]);
  });

  it('contains no key and no label', () => {
    const { key } = createKey(origin, { label: 'a customer' });
    const text = writeKeyFile(exportKeys(origin)).toString();
    expect(text).toContain(hashKey(key));
    expect(text).not.toContain(key);
    expect(text).not.toContain('a customer');
  });

  it('is refused if it is any other bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(() => readKeyFile(bytes)).toThrow(badInput);
      }),
    );
  });

  it.each<[string, string | Uint8Array]>([
    ['text', 'hello'],
    ['an array', '[]'],
    ['not complete', writeKeyFile(keys).subarray(0, -4)],
    ['not UTF-8', Buffer.concat([writeKeyFile(keys), Buffer.from([0xff])])],
    ['of an unknown property', '{"keys":[],"more":1}'],
    ['of a short hash', writeKeyFile([sharedKey('a', { hash: 'ab' })])],
    ['of a rate of 0', writeKeyFile([sharedKey('a', { rate: 0 })])],
    ['of an id that a terminal would interpret', writeKeyFile([sharedKey('\u001b[2J')])],
    ['of an origin that is not a URL', writeKeyFile([sharedKey('a', { origins: ['x'] })])],
    ['of an id twice', writeKeyFile([sharedKey('a'), sharedKey('a', { hash: hashKey('ipa_b') })])],
    ['of a hash twice', writeKeyFile([sharedKey('a'), sharedKey('b', { hash: hashKey('ipa_a') })])],
  ])('is refused if it is %s', (_, bytes) => {
    expect(() => readKeyFile(Buffer.from(bytes))).toThrow(badInput);
  });
});

describe('exported and imported keys', () => {
  it('are the same on both sides after any changes', () => {
    const change = fc.record({ kind: fc.constantFrom('create', 'browser', 'revoke', 'nothing'), which: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const [from, to] = [temporaryDir(), temporaryDir()];
        const keys: { id: string; key: string }[] = [];
        for (const { kind, which } of changes) {
          const one = keys[which % Math.max(1, keys.length)];
          if (kind === 'create') keys.push(createKey(from, { label: 'x', rate: 3 }));
          if (kind === 'browser') keys.push(createKey(from, { origins: ['https://a.example'], self_issued: true }));
          if (kind === 'revoke' && one !== undefined) revokeKey(from, one.id);
          importKeys(to, readKeyFile(writeKeyFile(exportKeys(from))), false);
          for (const { key } of keys) expect(isValidKey(to, key)).toBe(isValidKey(from, key));
          const valid = listKeys(from).filter(({ revoked }) => revoked === null);
          expect(listKeys(to)).toEqual(valid.map((record) => ({ ...record, label: '' })));
        }
      }),
      { numRuns: Math.ceil(Number(process.env.FUZZ_RUNS ?? 4_000) / 1_000) },
    );
  });

  it('are counted: what was changed, and what was removed', () => {
    importKeys(node, [sharedKey('a')], false);
    expect(importKeys(node, [sharedKey('a')], false)).toMatchObject({ changed: 0, removed: 0 });
    expect(importKeys(node, [sharedKey('b')], false)).toMatchObject({ keys: 1, changed: 1, removed: 1 });
    expect(listKeys(node).map(({ id }) => id)).toEqual(['b']);
  });

  it('may exchange their ids', () => {
    importKeys(node, [sharedKey('a'), sharedKey('b')], false);
    const exchanged = [sharedKey('a', { hash: hashKey('ipa_b') }), sharedKey('b', { hash: hashKey('ipa_a') })];
    const cache = new KeyCache(keysPath(node), (problem) => expect.unreachable(problem));
    cache.refresh();
    expect([cache.find('ipa_a')?.id, cache.find('ipa_b')?.id]).toEqual(['a', 'b']);
    expect(importKeys(node, exchanged, false).changed).toBe(2);
    cache.refresh();
    expect([cache.find('ipa_a')?.id, cache.find('ipa_b')?.id]).toEqual(['b', 'a']);
    cache.stop();
  });

  it('replace keys that were created here only if asked to', () => {
    const { key } = createKey(node);
    const set = [sharedKey('a')];
    expect(() => importKeys(node, set, false)).toThrow(/has 1 keys of its own/);
    expect(isValidKey(node, key)).toBe(true);
    importKeys(node, set, true);
    expect([isValidKey(node, key), isValidKey(node, 'ipa_a')]).toEqual([false, true]);
  });

  it('are not created or revoked where they are imported', () => {
    importKeys(node, [sharedKey('a')], false);
    expect(() => createKey(node)).toThrow(/are imported/);
    expect(() => revokeKey(node, 'a')).toThrow(/are imported/);
    expect(isValidKey(node, 'ipa_a')).toBe(true);
  });

  it('never crowd out the keys of the operator, nor the older of the others', () => {
    const issued = Array.from({ length: 12 }, () => createKey(origin, { self_issued: true }).id);
    const own = createKey(origin).id;
    const older = listKeys(origin).filter(({ id }) => id !== own);
    expect(issued.sort()).toEqual(older.map(({ id }) => id).sort());
    for (let limit = 250; limit < 3_200; limit += 50) {
      const set = exportKeys(origin, limit);
      expect(writeKeyFile(set).length).toBeLessThanOrEqual(limit);
      const ids = set.map(({ id }) => id);
      expect(ids).toEqual([own, ...older.map(({ id }) => id)].slice(0, ids.length));
      expect(ids.length).toBeGreaterThanOrEqual(Math.floor((limit - 16) / 250));
    }
    expect(exportKeys(origin)).toHaveLength(13);
    expect(() => exportKeys(origin, 200)).toThrow(/too many for one file/);
  });
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function listening(listener: RequestListener, credentials = ''): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://${credentials}127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
}

describe('the source of a file of keys', () => {
  it('a URL is asked for changes only, once its content was used', async () => {
    const asked: (string | undefined)[] = [];
    const url = await listening((request, response) => {
      asked.push(request.headers['if-none-match']);
      if (request.headers['if-none-match'] === '"1"') response.writeHead(304).end();
      else response.writeHead(200, { etag: '"1"' }).end('content');
    });
    const fetched = await fetchKeyFile(url);
    expect(String(fetched!.bytes)).toBe('content');
    expect(await fetchKeyFile(url, fetched!.etag)).toBeUndefined();
    expect(asked).toEqual([undefined, '"1"']);
  });

  it.each<[string, RequestListener, RegExp]>([
    ['answers 404', (_, response) => response.writeHead(404).end(), /answers with status 404/],
    ['redirects', (_, response) => response.writeHead(302, { location: '/x' }).end(), /answers with status 302/],
    ['closes the connection', (request) => request.socket.destroy(), /cannot be read/],
    [
      'sends less than it says',
      (request, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('x');
        setTimeout(() => request.socket.destroy(), 50);
      },
      /cannot be read/,
    ],
  ])('a server that %s is an error that does not quote the password', async (_, listener, message) => {
    const url = await listening(listener, 'user:secret@');
    const error = await fetchKeyFile(url).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'E_FETCH', message: expect.stringMatching(message) });
    expect(String(error)).not.toContain('secret');
  });

  it('sends user and password', async () => {
    const url = await listening((request, response) => {
      response.writeHead(request.headers.authorization === `Basic ${btoa('user:se cret')}` ? 200 : 401).end('content');
    }, 'user:se%20cret@');
    expect(String((await fetchKeyFile(url))!.bytes)).toBe('content');
  });

  it('a file without end is refused', async () => {
    await expect(fetchKeyFile('/dev/zero')).rejects.toThrow(`larger than ${MAX_KEY_FILE_BYTES} bytes`);
  });

  it('a response without end is aborted', async () => {
    const url = await listening((_, response) => {
      const piece = Buffer.alloc(1_048_576);
      const more = (): void => {
        while (response.write(piece));
        response.once('drain', more);
      };
      more();
    });
    await expect(fetchKeyFile(url)).rejects.toThrow(`larger than ${MAX_KEY_FILE_BYTES} bytes`);
  });
});

describe('keys export and keys import', () => {
  let file: string;
  beforeEach(() => {
    file = join(dir, 'keys');
  });

  const exportFile = (...more: string[]) => ['keys', 'export', file, '--data', origin, ...more];
  const importFile = (...more: string[]) => ['keys', 'import', file, '--data', node, ...more];

  it('bring the keys to another data directory', async () => {
    const { key } = createKey(origin);
    expect(await ipatlas(exportFile())).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('1 key\n'),
    });
    expect(await ipatlas(importFile())).toMatchObject({ code: 0, stderr: expect.stringContaining('1 added') });
    expect(isValidKey(node, key)).toBe(true);
    const { mtimeMs } = statSync(file);
    expect(await ipatlas(exportFile())).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(file).mtimeMs).toBe(mtimeMs);
  });

  it('fail with an exit code for each reason', async () => {
    writeFileSync(file, 'hello');
    expect(await ipatlas(importFile())).toMatchObject({ code: 4 });
    rmSync(file);
    expect(await ipatlas(importFile())).toMatchObject({ code: 6 });
    expect(await ipatlas(importFile('--every', 'x'))).toMatchObject({ code: 2 });
  });

  it('reach other servers while they keep running', async () => {
    const { key, id } = createKey(origin);
    // A proxy that closes each connection is not asked again and again without waiting.
    let asked = 0;
    const closing = await listening((request) => {
      asked++;
      request.socket.destroy();
    });
    const begin = Date.now();
    const [exporting, importing, refused] = [
      exportFile('--every', '1'),
      importFile('--every', '1'),
      ['keys', 'import', closing, '--data', node, '--every', '1'],
    ].map((args) => start(args)) as [ChildProcess, ChildProcess, ChildProcess];
    const stop = async (child: ChildProcess) => {
      child.kill('SIGTERM');
      return child.exitCode ?? (await finished(child)).code;
    };
    try {
      await until(() => isValidKey(node, key), 'the arrival of the key');
      revokeKey(origin, id);
      await until(() => !isValidKey(node, key), 'the arrival of the revocation');
      await until(() => asked > 0, 'the request');
      expect(asked).toBeLessThanOrEqual(1 + (Date.now() - begin) / 1000);
    } finally {
      expect([await stop(exporting), await stop(importing), await stop(refused)]).toEqual([0, 0, 0]);
    }
  });

  it('report a full disk, and write a device without reading it', async () => {
    createKey(origin);
    const full = await ipatlas(exportFile().map((argument) => (argument === file ? '/dev/full' : argument)));
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('no space left') });
  });
});
