import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeyCache } from '../../src/api/keys/key-cache.js';
import { type KeySet, readKeyFile, type SharedKey, writeKeyFile } from '../../src/api/keys/key-file.js';
import { KeyFileSource } from '../../src/api/keys/key-file-source.js';
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
import { KEY_FILE_MS, MAX_KEY_FILE_BYTES } from '../../src/limits.js';
import { finished, start } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';

/** A time at which the files of these tests are still valid. */
const LATER = '2999-01-01T00:00:00.000Z';

const pair = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519');

let dir: string;
let origin: string;
let node: string;
beforeEach(() => {
  dir = temporaryDir();
  origin = temporaryDir();
  node = temporaryDir();
});
afterEach(() => {
  for (const folder of [dir, origin, node]) rmSync(folder, { recursive: true });
});

function sharedKey(id: string, changes: Partial<SharedKey> = {}): SharedKey {
  const rest = { rate: null, origins: null, self_issued: false, created: '2026-01-01T00:00:00.000Z', expires: null };
  return { id, hash: hashKey(`ipa_${id}`), ...rest, ...changes };
}

/** Signs any text as a file of keys. */
function signed(payload: string, key: KeyObject = pair.privateKey, context = 'ipatlas-keys\n'): Buffer {
  const signature = sign(null, Buffer.from(context + payload), key).toString('hex');
  return Buffer.from(`ipatlas-keys ed25519 ${signature}\n${payload}`);
}

const refused = expect.objectContaining({ code: 'E_REFUSED' });
const badInput = expect.objectContaining({ code: 'E_BAD_INPUT' });

describe('a file of keys', () => {
  const set: KeySet = {
    version: 7,
    expires: LATER,
    keys: [sharedKey('a1'), sharedKey('b2', { rate: 5, origins: ['https://a.example'], self_issued: true })],
  };

  it('is read as it was written, and has the same bytes each time', () => {
    const bytes = writeKeyFile(set, pair.privateKey);
    expect(readKeyFile(bytes, [other.publicKey, pair.publicKey])).toEqual(set);
    expect(writeKeyFile(set, pair.privateKey).equals(bytes)).toBe(true);
    expect(
      readKeyFile(writeKeyFile({ version: 1, expires: LATER, keys: [] }, pair.privateKey), [pair.publicKey]).keys,
    ).toEqual([]);
  });

  it('contains no key and no label', () => {
    const { key } = createKey(origin, { label: 'a customer' });
    const text = writeKeyFile(exportKeys(origin), pair.privateKey).toString();
    expect(text).toContain(hashKey(key));
    expect(text).not.toContain(key);
    expect(text).not.toContain('a customer');
  });

  it('is refused if another key signed it', () => {
    expect(() => readKeyFile(writeKeyFile(set, other.privateKey), [pair.publicKey])).toThrow(refused);
  });

  it('is refused if the signature is for something else', () => {
    const payload = JSON.stringify(set);
    expect(readKeyFile(signed(payload), [pair.publicKey])).toEqual(set);
    expect(() => readKeyFile(signed(payload, pair.privateKey, ''), [pair.publicKey])).toThrow(refused);
  });

  it('is refused if one bit of it is changed, or a part is missing', () => {
    const bytes = writeKeyFile(set, pair.privateKey);
    const failure = expect.objectContaining({ code: expect.stringMatching(/^E_(REFUSED|BAD_INPUT)$/) });
    // Another bit of each byte; with eight bytes in a row all are changed.
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1 << (at & 7);
      expect(() => readKeyFile(changed, [pair.publicKey])).toThrow(failure);
      if (at % 8 === 0) expect(() => readKeyFile(bytes.subarray(0, at), [pair.publicKey])).toThrow(failure);
    }
  });

  it('is refused if it is any other bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(() => readKeyFile(Buffer.from(bytes), [pair.publicKey])).toThrow(badInput);
      }),
    );
  });

  it.each<[string, string]>([
    ['text', 'hello'],
    ['an array', '[]'],
    ['no version', `{"expires":"${LATER}","keys":[]}`],
    ['no time of expiry', '{"version":1,"keys":[]}'],
    ['a time that is not one', '{"version":1,"expires":"2026-13-41T00:00:00Z","keys":[]}'],
    ['tomorrow', '{"version":1,"expires":"tomorrow","keys":[]}'],
    ['a version of 0', `{"version":0,"expires":"${LATER}","keys":[]}`],
    ['an unknown property', `{"version":1,"expires":"${LATER}","keys":[],"more":1}`],
    ['a short hash', JSON.stringify({ version: 1, expires: LATER, keys: [sharedKey('a', { hash: 'ab' })] })],
    ['a rate of 0', JSON.stringify({ version: 1, expires: LATER, keys: [sharedKey('a', { rate: 0 })] })],
    [
      'an id that a terminal would interpret',
      JSON.stringify({ version: 1, expires: LATER, keys: [sharedKey('\u001b[2J')] }),
    ],
    [
      'an origin that is not a URL',
      JSON.stringify({ version: 1, expires: LATER, keys: [sharedKey('a', { origins: ['x'] })] }),
    ],
    [
      'an id twice',
      JSON.stringify({
        version: 1,
        expires: LATER,
        keys: [sharedKey('a'), sharedKey('a', { hash: hashKey('ipa_b') })],
      }),
    ],
    [
      'a hash twice',
      JSON.stringify({
        version: 1,
        expires: LATER,
        keys: [sharedKey('a'), sharedKey('b', { hash: hashKey('ipa_a') })],
      }),
    ],
  ])('is refused if its signed part is %s', (_, payload) => {
    expect(() => readKeyFile(signed(payload), [pair.publicKey])).toThrow(badInput);
  });

  it('is refused if its signed part is not UTF-8', () => {
    const payload = Buffer.concat([Buffer.from(`{"version":1,"expires":"${LATER}","keys":[]}`), Buffer.from([0xff])]);
    const signature = sign(null, Buffer.concat([Buffer.from('ipatlas-keys\n'), payload]), pair.privateKey);
    const bytes = Buffer.concat([Buffer.from(`ipatlas-keys ed25519 ${signature.toString('hex')}\n`), payload]);
    expect(() => readKeyFile(bytes, [pair.publicKey])).toThrow(badInput);
  });
});

describe('exported and imported keys', () => {
  it('are the same on both sides after any changes', () => {
    const change = fc.record({ kind: fc.constantFrom('create', 'browser', 'revoke', 'nothing'), which: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const [from, to] = [temporaryDir(), temporaryDir()];
        const keys: { id: string; key: string }[] = [];
        let version = 0;
        for (const { kind, which } of changes) {
          const one = keys[which % Math.max(1, keys.length)];
          if (kind === 'create') keys.push(createKey(from, { label: 'x', rate: 3 }));
          if (kind === 'browser') keys.push(createKey(from, { origins: ['https://a.example'], self_issued: true }));
          if (kind === 'revoke' && one !== undefined) revokeKey(from, one.id);
          const set = exportKeys(from);
          expect(set.version).toBeGreaterThanOrEqual(version);
          version = set.version;
          importKeys(to, readKeyFile(writeKeyFile(set, pair.privateKey), [pair.publicKey]), false);
          for (const { key } of keys) expect(isValidKey(to, key)).toBe(isValidKey(from, key));
          const valid = listKeys(from).filter(({ revoked }) => revoked === null);
          expect(listKeys(to)).toEqual(valid.map((record) => ({ ...record, label: '' })));
        }
        rmSync(from, { recursive: true });
        rmSync(to, { recursive: true });
      }),
      { numRuns: Number(process.env.FUZZ_RUNS ?? 4_000) / 1_000 },
    );
  });

  it('have a version that grows only if the keys change', () => {
    const { id } = createKey(origin);
    const first = exportKeys(origin);
    expect(exportKeys(origin)).toEqual(first);
    revokeKey(origin, id);
    expect(exportKeys(origin).version).toBeGreaterThan(first.version);
  });

  it('are signed anew before the file expires, and refused afterwards, also if they were imported before', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      createKey(origin);
      const first = exportKeys(origin);
      expect(Date.parse(first.expires)).toBe(Date.now() + KEY_FILE_MS);
      vi.advanceTimersByTime(0.74 * KEY_FILE_MS);
      expect(exportKeys(origin)).toEqual(first);
      vi.advanceTimersByTime(0.02 * KEY_FILE_MS);
      const second = exportKeys(origin);
      expect(second.version).toBeGreaterThan(first.version);
      expect(Date.parse(second.expires)).toBe(Date.now() + KEY_FILE_MS);
      importKeys(node, first, false);
      vi.advanceTimersByTime(0.24 * KEY_FILE_MS);
      expect(() => importKeys(node, first, false)).toThrow(expect.objectContaining({ code: 'E_EXPIRED', exitCode: 6 }));
      expect(listKeys(node)).toHaveLength(1);
      importKeys(node, second, false);
    } finally {
      vi.useRealTimers();
    }
  });

  it('have a version that grows if keys.sqlite is created again', () => {
    createKey(origin);
    const { version } = exportKeys(origin);
    expect(version).toBeLessThanOrEqual(Date.now() / 1000);
    expect(version).toBeGreaterThan(1_700_000_000);
  });

  it('are refused if they are older than those of the last import, so that no revocation is undone', () => {
    const set = (version: number, ...keys: SharedKey[]): KeySet => ({ version, expires: LATER, keys });
    importKeys(node, set(5, sharedKey('a')), false);
    expect(() => importKeys(node, set(4, sharedKey('a'), sharedKey('b')), true)).toThrow(refused);
    expect(() => importKeys(node, set(5, sharedKey('b')), true)).toThrow(refused);
    expect(importKeys(node, set(5, sharedKey('a')), false)).toMatchObject({ changed: 0, removed: 0 });
    expect(importKeys(node, set(6, sharedKey('b')), false)).toMatchObject({ keys: 1, changed: 1, removed: 1 });
    expect(listKeys(node).map(({ id }) => id)).toEqual(['b']);
  });

  it('may exchange their ids', () => {
    importKeys(node, { version: 1, expires: LATER, keys: [sharedKey('a'), sharedKey('b')] }, false);
    const exchanged = [sharedKey('a', { hash: hashKey('ipa_b') }), sharedKey('b', { hash: hashKey('ipa_a') })];
    const cache = new KeyCache(keysPath(node), (problem) => expect.unreachable(problem));
    cache.refresh();
    expect([cache.find('ipa_a')?.id, cache.find('ipa_b')?.id]).toEqual(['a', 'b']);
    expect(importKeys(node, { version: 2, expires: LATER, keys: exchanged }, false).changed).toBe(2);
    cache.refresh();
    expect([cache.find('ipa_a')?.id, cache.find('ipa_b')?.id]).toEqual(['b', 'a']);
    cache.stop();
  });

  it('replace keys that were created here only if asked to', () => {
    const { key } = createKey(node);
    const set = { version: 1, expires: LATER, keys: [sharedKey('a')] };
    expect(() => importKeys(node, set, false)).toThrow(/has 1 keys of its own/);
    expect(isValidKey(node, key)).toBe(true);
    importKeys(node, set, true);
    expect([isValidKey(node, key), isValidKey(node, 'ipa_a')]).toEqual([false, true]);
  });

  it('are not created or revoked where they are imported', () => {
    importKeys(node, { version: 1, expires: LATER, keys: [sharedKey('a')] }, false);
    expect(() => createKey(node)).toThrow(/are imported/);
    expect(() => revokeKey(node, 'a')).toThrow(/are imported/);
    expect(isValidKey(node, 'ipa_a')).toBe(true);
  });

  it('never crowd out the keys of the operator, nor the older of the others', () => {
    const issued = Array.from({ length: 12 }, () => createKey(origin, { self_issued: true }).id);
    const own = createKey(origin).id;
    const older = listKeys(origin).filter(({ id }) => id !== own);
    expect(issued.sort()).toEqual(older.map(({ id }) => id).sort());
    for (let limit = 450; limit < 3_200; limit += 50) {
      const set = exportKeys(origin, limit);
      expect(writeKeyFile(set, pair.privateKey).length).toBeLessThanOrEqual(limit);
      const ids = set.keys.map(({ id }) => id);
      expect(ids).toEqual([own, ...older.map(({ id }) => id)].slice(0, ids.length));
      expect(ids.length).toBeGreaterThanOrEqual(Math.floor((limit - 256) / 250));
    }
    expect(exportKeys(origin).keys).toHaveLength(13);
    expect(() => exportKeys(origin, 300)).toThrow(/too many for one file/);
  });
});

describe('the source of a file of keys', () => {
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

  it('a path is read again if the file changed since it was used', async () => {
    const path = join(dir, 'keys');
    writeFileSync(path, 'one');
    const source = new KeyFileSource(path);
    expect(String(await source.read())).toBe('one');
    expect(String(await source.read())).toBe('one');
    source.keep();
    expect(await source.read()).toBeUndefined();
    writeFileSync(path, 'three');
    expect(String(await source.read())).toBe('three');
  });

  it('a named pipe is read, and a device without end is not read into memory', async () => {
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    spawn('bash', ['-c', 'echo content > "$0"', pipe]);
    expect(String(await new KeyFileSource(pipe).read())).toBe('content\n');
    await expect(new KeyFileSource('/dev/zero').read()).rejects.toThrow(`larger than ${MAX_KEY_FILE_BYTES} bytes`);
  });

  it('a URL is asked for changes only, once its content was used', async () => {
    const asked: (string | undefined)[] = [];
    const url = await listening((request, response) => {
      asked.push(request.headers['if-none-match']);
      if (request.headers['if-none-match'] === '"1"') response.writeHead(304).end();
      else response.writeHead(200, { etag: '"1"' }).end('content');
    });
    const source = new KeyFileSource(url);
    expect(String(await source.read())).toBe('content');
    expect(String(await source.read())).toBe('content');
    source.keep();
    expect(await source.read()).toBeUndefined();
    expect(asked).toEqual([undefined, undefined, '"1"']);
  });

  it.each<[string, RequestListener, RegExp]>([
    ['answers 404', (_, response) => response.writeHead(404).end(), /answers with status 404/],
    ['redirects', (_, response) => response.writeHead(302, { location: '/x' }).end(), /cannot be read/],
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
    const error = await new KeyFileSource(url).read().catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'E_FETCH', message: expect.stringMatching(message) });
    expect(String(error)).not.toContain('secret');
  });

  it('sends user and password', async () => {
    const url = await listening((request, response) => {
      response.writeHead(request.headers.authorization === `Basic ${btoa('user:se cret')}` ? 200 : 401).end('content');
    }, 'user:se%20cret@');
    expect(String(await new KeyFileSource(url).read())).toBe('content');
  });

  it('goes through the proxy of the environment, unless NO_PROXY names the host', async () => {
    const url = await listening((_, response) => response.end('content'));
    const tunnels: string[] = [];
    const proxy = createServer().on('connect', (request, socket) => {
      tunnels.push(request.url!);
      const target = connect(Number(new URL(url).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        target.pipe(socket).pipe(target);
      });
      for (const end of [socket, target])
        end.on('error', () => {}).on('close', () => [socket, target].map((one) => one.destroy()));
    });
    servers.push(proxy.listen(0, '127.0.0.1'));
    await once(proxy, 'listening');
    const HTTP_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    // Only the proxy knows the host.
    expect(String(await new KeyFileSource('http://keys.invalid/keys', { HTTP_PROXY }).read())).toBe('content');
    expect(tunnels).toEqual(['keys.invalid:80']);
    expect(String(await new KeyFileSource(url, { HTTP_PROXY, NO_PROXY: '127.0.0.1' }).read())).toBe('content');
    expect(tunnels).toHaveLength(1);
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
    await expect(new KeyFileSource(url).read()).rejects.toThrow(`larger than ${MAX_KEY_FILE_BYTES} bytes`);
  });
});

describe('keys export and keys import', () => {
  let signKey: string;
  let verifyKey: string;
  let file: string;
  beforeEach(() => {
    [signKey, verifyKey, file] = [join(dir, 'sign.pem'), join(dir, 'verify.pem'), join(dir, 'keys')];
    writeFileSync(signKey, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(verifyKey, pair.publicKey.export({ type: 'spki', format: 'pem' }));
  });

  const exportFile = (...more: string[]) => ['keys', 'export', file, '--data', origin, '--sign-key', signKey, ...more];
  const importFile = (...more: string[]) => [
    'keys',
    'import',
    file,
    '--data',
    node,
    '--verify-key',
    verifyKey,
    ...more,
  ];

  it('bring the keys to another data directory', async () => {
    const { key } = createKey(origin);
    expect(await ipatlas(exportFile())).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('1 key, version'),
    });
    expect(await ipatlas(importFile())).toMatchObject({ code: 0, stderr: expect.stringContaining('1 added') });
    expect(isValidKey(node, key)).toBe(true);
    const { mtimeMs } = statSync(file);
    expect(await ipatlas(exportFile())).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(file).mtimeMs).toBe(mtimeMs);
  });

  it('refuse an older file, a file that is not signed, and keys of another kind, each with its exit code', async () => {
    const { id } = createKey(origin);
    await ipatlas(exportFile());
    copyFileSync(file, `${file}.old`);
    revokeKey(origin, id);
    await ipatlas(exportFile());
    expect(await ipatlas(importFile())).toMatchObject({ code: 0 });
    copyFileSync(`${file}.old`, file);
    expect(await ipatlas(importFile())).toMatchObject({ code: 3, stderr: expect.stringContaining('is older than') });
    writeFileSync(file, signed(`{"version":2000000000,"expires":"${LATER}","keys":[]}`, other.privateKey));
    expect(await ipatlas(importFile())).toMatchObject({ code: 3, stderr: expect.stringContaining('not signed') });
    writeFileSync(file, 'hello');
    expect(await ipatlas(importFile())).toMatchObject({ code: 4 });
    rmSync(file);
    expect(await ipatlas(importFile())).toMatchObject({ code: 6 });
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(signKey, rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }));
    expect(await ipatlas(exportFile())).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('not an Ed25519 key'),
    });
    writeFileSync(verifyKey, 'hello');
    expect(await ipatlas(importFile())).toMatchObject({ code: 2 });
    expect(await ipatlas(importFile('--every', 'x'))).toMatchObject({ code: 2 });
    expect(await ipatlas(['keys', 'import', file, '--data', node])).toMatchObject({ code: 2 });
  });

  it('reach other servers while they keep running, and say so when the file has expired and no newer one came', async () => {
    const { key, id } = createKey(origin);
    const [exporting, importing] = [start(exportFile('--every', '1')), start(importFile('--every', '1'))];
    let stderr = '';
    importing.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const stop = async (child: ChildProcess) => {
      child.kill('SIGTERM');
      return child.exitCode ?? (await finished(child)).code;
    };
    try {
      await until(() => isValidKey(node, key), 'the arrival of the key');
      revokeKey(origin, id);
      await until(() => !isValidKey(node, key), 'the arrival of the revocation');
      expect(await stop(exporting)).toBe(0);
      createKey(origin);
      const { version, keys } = exportKeys(origin);
      // A busy machine may take longer to import the file than it is valid: then it comes once more, for longer.
      for (let validMs = 2_000; listKeys(node).length === 0; validMs *= 2) {
        const expires = new Date(Date.now() + validMs).toISOString();
        stderr = '';
        // The file of before is replaced in one step: the import may be reading it.
        writeFileSync(`${file}.new`, writeKeyFile({ version, expires, keys }, pair.privateKey));
        renameSync(`${file}.new`, file);
        await until(() => listKeys(node).length > 0 || stderr.includes('E_EXPIRED'), 'the import or its refusal');
      }
      await until(() => stderr.includes('E_EXPIRED'), 'the message');
      expect(stderr).toMatch(/ipatlas: E_EXPIRED: the file of keys expired at/);
      expect(listKeys(node)).toHaveLength(1);
    } finally {
      exporting.kill('SIGTERM');
      expect(await stop(importing)).toBe(0);
    }
  });

  it('report a full disk, and write a device without reading it', async () => {
    createKey(origin);
    const full = await ipatlas(exportFile().map((argument) => (argument === file ? '/dev/full' : argument)));
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('no space left') });
  });

  it('never print the private key', async () => {
    const pem = readFileSync(signKey, 'utf8');
    writeFileSync(signKey, pem.replace('BEGIN', 'BEGAN'));
    const { code, stderr } = await ipatlas(exportFile());
    expect(code).toBe(2);
    expect(stderr).not.toContain(pem.split('\n')[1]);
  });
});
