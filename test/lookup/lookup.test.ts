/** The package @ipatlas/lookup as `npm run build` made it, in Node. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { writeContainer } from '../../src/compact/container.js';
import { aboutSection } from '../../src/compact/countries.js';
import { partitionSections } from '../../src/compact/records.js';
import { compactPartition } from '../../src/database/compact.js';
import { openDatabase } from '../../src/database/database.js';
import { openPartition, openRanges } from '../../src/database/origin.js';
import { releaseDir } from '../../src/database/release.js';
import type { LookupDatabase } from '../../src/lookup/index.js';
import { packageFile, packageRoot } from '../../src/package-root.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { COUNTRIES, NETWORKS } from '../../src/rangefile/partitions.js';
import { boundaries } from '../support/boundaries.js';
import { seedRelease } from '../support/built-release.js';
import { checkLookups } from '../support/check-lookups.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { partitionOf, publishBlocks, reason, SMALL_WORLD, temporaryDir } from '../support/release.js';

const FOLDER = packageFile('dist/lookup');
const { load, fromBytes, loadNetworks, networksFromBytes }: typeof import('../../src/lookup/index.js') = await import(
  `${FOLDER}/index.js`
);

function smallWorld(release = 'r'): Uint8Array {
  const records: RangeRecord[] = [reason('unallocated')];
  const [v4, v6] = [partitionOf(4, SMALL_WORLD, records), partitionOf(6, SMALL_WORLD, records)];
  const about = { release, as_of: '2026-01-01', data_date: '2025-12-30', licenses: ['MIT'], attribution: ['Ann'] };
  return writeContainer(new Map([aboutSection(about), ...partitionSections(COUNTRIES, { records, v4, v6 })]));
}

describe('@ipatlas/lookup', () => {
  let db: LookupDatabase;
  beforeAll(async () => {
    db = await load();
  });

  it('gives the results of the SQLite mirror at the boundaries of every hundredth range', {
    timeout: 300_000,
  }, async () => {
    const list = [...boundaries(releaseDir((await seedRelease()).dataDir), 100)].join('\n');
    const { count, wrong } = checkLookups(db, list);
    expect(wrong).toEqual([]);
    expect(count).toBeGreaterThan(12_000);
  });

  it('has results of its documented form', () => {
    expect(db.country('193.0.6.139')).toEqual({ country: 'Netherlands', country_code: 'NL', is_eu: true });
    expect(db.country('193.0.6.139')).toBe(db.country('2001:67c:2e8::1'));
    expect(Object.isFrozen(db.country('193.0.6.139'))).toBe(true);
    expect(db.country('10.0.0.1')).toEqual({ country: null, country_code: null, is_eu: false });
    expect(db.lookup('::ffff:8.8.8.8')).toEqual({
      ...{ ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false },
    });
    expect(db.lookupWithReason('10.0.0.1')).toMatchObject({ ip: '10.0.0.1', reason: 'private' });
    expect(db.lookupBytes(Uint8Array.of(8, 8, 8, 8))).toEqual(db.lookup('8.8.8.8'));
    for (const text of ['', '1.2.3', '01.2.3.4', 'localhost', '::1%eth0', '1.2.3.4 ']) {
      expect([db.country(text), db.lookup(text), db.lookupWithReason(text)], text).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
  });

  it('says how old its data is and whom to credit', () => {
    expect(db.dataDate).toBe('2026-06-17');
    expect(db.age(Date.UTC(2026, 5, 17, 23))).toBe(0);
    expect(db.age(Date.UTC(2026, 6, 17, 1))).toBe(30);
    expect(db.age(0)).toBe(0);
    expect(db.attribution.join()).toContain('Number Resource Organization');
  });

  it('says who announces an address, if the compact form has networks', async () => {
    const dataDir = temporaryDir();
    await publishBlocks(dataDir, SMALL_WORLD, undefined, undefined, SMALL_NETWORKS);
    const release = openDatabase(dataDir);
    const { manifest } = openRanges(releaseDir(dataDir));
    const bytes = compactPartition(manifest, NETWORKS, openPartition(releaseDir(dataDir), manifest, NETWORKS)!);
    const networks = await networksFromBytes(gzipSync(bytes));
    const fields = release.fields(['asn', 'as_name']);
    const texts = [...SMALL_NETWORKS, ...SMALL_WORLD].map(([cidr]) => cidr.split('/')[0]!);
    for (const text of [
      ...texts,
      '2002:808:808::1',
      '64:ff9b::c100:1',
      '2001::f7f7:f7f7',
      '::ffff:8.8.8.8',
      '9.9.9.9',
    ]) {
      const { ip: _, ...expected } = fields(text)!;
      expect([text, networks.network(text)]).toEqual([text, expected]);
    }
    expect([networks.network('x'), networks.network('8.8.8.8:53')]).toEqual([undefined, undefined]);
    expect(networks.network('8.8.8.8')).toBe(networks.network('2001:4860::1'));
    expect([networks.dataDate, Object.isFrozen(networks.network('8.8.8.8'))]).toEqual(['2026-01-01', true]);
    await expect(networksFromBytes(smallWorld())).rejects.toMatchObject({ code: 'E_DAMAGED' });
    await expect(fromBytes(bytes)).rejects.toMatchObject({ code: 'E_DAMAGED' });
    const server = createServer((request, response) => {
      response.statusCode = request.url === '/n.ipc' ? 200 : 404;
      response.end(bytes);
    }).listen(0);
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await loadNetworks(`${base}/n.ipc`)).network('193.0.0.1')).toEqual({ asn: 3333, as_name: 'RIPE NCC' });
    await expect(loadNetworks(new URL(`${base}/x`))).rejects.toMatchObject({ code: 'E_FETCH' });
    server.close();
  });

  it('has a CommonJS twin', async () => {
    const twin: typeof import('../../src/lookup/index.js') = createRequire(import.meta.url)(`${FOLDER}/index.cjs`);
    expect((await twin.load()).country('193.0.6.139')).toEqual(db.country('193.0.6.139'));
    expect(Object.keys(twin).sort()).toEqual([
      'fromBytes',
      'kindsFromBytes',
      'load',
      'loadKinds',
      'loadNetworks',
      'networksFromBytes',
    ]);
  });

  it('is small, and needs nothing of Node', () => {
    const code = readFileSync(join(FOLDER, 'index.js'), 'utf8');
    expect(gzipSync(code, { level: 9 }).length).toBeLessThanOrEqual(8192);
    // What a runtime has, without an import that a bundler would follow.
    const [before, after = 'nothing', ...more] = code.split('globalThis.process?.getBuiltinModule?.');
    expect(more).toEqual([]);
    expect(before + after).not.toMatch(/node:|\bBuffer\b|\bprocess\b|\beval\b|new Function|\brequire\b/);
    expect([...code.matchAll(/import\(.*?\)/g)].map(([text]) => text)).toHaveLength(1);
    const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' });
    const bytes = files.reduce((sum, name) => sum + statSync(join(FOLDER, name)).size, 0);
    expect(bytes).toBeLessThan(1_000_000);
  });

  it('has types that a strict consumer can compile and the README tells, and is not published with the data of a clone', () => {
    const dir = temporaryDir();
    mkdirSync(join(dir, 'node_modules/@ipatlas'), { recursive: true });
    symlinkSync(FOLDER, join(dir, 'node_modules/@ipatlas/lookup'));
    const readme = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(FOLDER, 'README.md'), 'utf8'))!;
    const text =
      "import { load, fromBytes, type LookupDatabase, type Reason } from '@ipatlas/lookup';\n" +
      "const db: LookupDatabase = await load(new URL('https://example.org'));\n" +
      "export const code: string | null | undefined = db.country('8.8.8.8')?.country_code;\n" +
      'export const other = await fromBytes(new Uint8Array());\n' +
      `declare namespace readme {\n${readme[1]}}\n` +
      'export const told: typeof readme = { load, fromBytes };\n';
    writeFileSync(join(dir, 'use.mts'), text);
    const tsc = join(packageRoot(), 'node_modules/typescript/bin/tsc');
    const flags = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--lib',
      'es2023,dom',
      '--types',
      '',
    ];
    execFileSync(process.execPath, [tsc, ...flags, 'use.mts'], { cwd: dir, encoding: 'utf8' });
    rmSync(dir, { recursive: true });
    expect(JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8'))).toMatchObject({
      ...{ name: '@ipatlas/lookup', license: 'MIT AND CC-BY-4.0', private: true },
    });
  });
});

describe.each(['zlib', 'streams'])('fromBytes with %s', (unpacker) => {
  beforeAll(() => {
    if (unpacker === 'streams') vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined);
    return () => vi.restoreAllMocks();
  });

  it.each([
    ['as they are', (bytes: Uint8Array) => bytes],
    ['with gzip', (bytes: Uint8Array) => gzipSync(bytes)],
    ['as an ArrayBuffer', (bytes: Uint8Array) => new Uint8Array(bytes).buffer],
    ['inside other memory', (bytes: Uint8Array) => Buffer.concat([Buffer.of(1), bytes, Buffer.of(2)]).subarray(1, -1)],
  ])('opens bytes %s', async (_, pack) => {
    const db = await fromBytes(pack(smallWorld()) as Uint8Array);
    expect(db.country('193.0.0.1')?.country_code).toBe('NL');
    expect([db.dataDate, db.attribution]).toEqual(['2025-12-30', ['Ann']]);
  });

  /** A file that says it is small, and unpacks to much more. */
  const bomb = (): Uint8Array => gzipSync(Buffer.concat([smallWorld(), Buffer.alloc(2 ** 24)]));
  const huge = (): Uint8Array => {
    const bytes = Buffer.from(smallWorld());
    bytes.writeUInt32LE(2 ** 32 - 1, 16);
    return gzipSync(bytes);
  };

  it.each<[string, () => Uint8Array, RegExp]>([
    ['nothing', () => new Uint8Array(), /0 bytes are not enough/],
    [
      'a page',
      () => Buffer.from('<!doctype html><title>Not found</title>'),
      /neither a compact form nor one with gzip/,
    ],
    ['other bytes', () => Buffer.from('\x89PNG\r\n\x1a\n followed by a picture', 'latin1'), /no magic number/],
    ['Brotli', () => brotliCompressSync(smallWorld()), /"ipatlas export compact --gzip"/],
    ['a truncated file', () => smallWorld().subarray(0, -1), /its header says/],
    ['truncated gzip', () => gzipSync(smallWorld()).subarray(0, -30), /cannot be unpacked/],
    ['gzip of nothing', () => gzipSync(''), /0 bytes are not enough/],
    ['gzip of more than the header says', bomb, /longer than its header says|bytes long, but its header says/],
    ['a size of 4 GiB', huge, /are more than 67108864|its header says 4294967295/],
  ])('refuses %s', async (_, bytes, message) => {
    await expect(fromBytes(bytes(), 'file')).rejects.toMatchObject({
      code: 'E_DAMAGED',
      message: expect.stringMatching(message),
    });
  });
});

describe('load(url)', () => {
  it('transfers a file again only if it has changed, and reports what is not one', async () => {
    let etag = '"1"';
    const answers: number[] = [];
    const server = createServer((request, response) => {
      const status = request.url !== '/country.ipc' ? 404 : request.headers['if-none-match'] === etag ? 304 : 200;
      answers.push(status);
      response.writeHead(status, { ETag: etag }).end(status === 200 ? gzipSync(smallWorld(etag)) : undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const url = `http://127.0.0.1:${port}/country.ipc`;
    try {
      const first = await load(url);
      expect(await load(new URL(url))).toBe(first);
      etag = '"2"';
      const newer = await load(url);
      expect(newer).not.toBe(first);
      expect(newer.country('8.8.8.8')).toEqual(first.country('8.8.8.8'));
      expect(answers).toEqual([200, 304, 200]);
      await expect(load(`${url}x`)).rejects.toMatchObject({ code: 'E_FETCH', message: expect.stringContaining('404') });
    } finally {
      server.close();
      server.closeAllConnections();
    }
    for (const wrong of [url, 'country.ipc'])
      await expect(load(wrong)).rejects.toMatchObject({ code: 'E_FETCH', message: expect.stringContaining(wrong) });
  });
});
