import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  type CacheEntry,
  cachedFiles,
  objectPath,
  pruneCache,
  readEntry,
  rowsDir,
  rowsPath,
  storeObject,
  writeEntry,
} from '../../pipeline/fetching/cache.js';
import { scratchDir } from './fetch-support.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const objects = (dataDir: string) => readdirSync(path.join(dataDir, 'cache', 'objects')).sort();
const store = (dataDir: string, text: string) =>
  storeObject(dataDir, 'a.csv', () => [Readable.from([Buffer.from(text)])]);

function entry(...texts: string[]): CacheEntry {
  const files = texts.map((text, index) => ({ name: `${index}.csv`, bytes: text.length, sha256: sha256(text) }));
  const facts = { version: '1', dataDate: null, fetchedAt: '2026-01-01T00:00:00.000Z' };
  const downloads = [{ address: 'https://example.org/a', etag: '', lastModified: '', files }];
  return { format: 3, request: 'r', ...facts, downloads };
}

describe('storeObject', () => {
  it('names an object by its content, and stores it once', async () => {
    const dataDir = scratchDir();
    const file = { name: 'a.csv', bytes: 4, sha256: sha256('text'), path: objectPath(dataDir, sha256('text')) };
    expect(await store(dataDir, 'text')).toEqual(file);
    expect(await store(dataDir, 'text')).toEqual(file);
    expect(objects(dataDir)).toEqual([sha256('text')]);
    expect(readFileSync(file.path, 'utf8')).toBe('text');
  });

  it('leaves no file if a stream fails', async () => {
    const dataDir = scratchDir();
    const broken = async function* () {
      yield Buffer.from('half');
      throw new Error('cut off');
    };
    await expect(storeObject(dataDir, 'a', () => [Readable.from(broken())])).rejects.toThrow('cut off');
    await expect(
      storeObject(dataDir, 'a', () => [Readable.from([Buffer.from('x')]), createGunzip()]),
    ).rejects.toThrow();
    await expect(storeObject(dataDir, 'a', () => [createReadStream('/absent')])).rejects.toThrow('ENOENT');
    expect(objects(dataDir)).toEqual([]);
  });

  it('fails with the system error if it cannot write', async () => {
    const dataDir = scratchDir();
    writeFileSync(path.join(dataDir, 'cache'), 'in the way');
    await expect(store(dataDir, 'text')).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});

describe('cache entries', () => {
  it('are returned as they were written, for the same request', async () => {
    const dataDir = scratchDir();
    await writeEntry(dataDir, 'one', 0, entry('a', 'b'));
    await writeEntry(dataDir, 'one', 0, entry('b'));
    await writeEntry(dataDir, 'one', 1, entry('c'));
    expect(await readEntry(dataDir, 'one', 0, 'r')).toEqual(entry('b'));
    expect(await readEntry(dataDir, 'one', 1, 'r')).toEqual(entry('c'));
    expect(await readEntry(dataDir, 'one', 0, 'other')).toBeUndefined();
    expect(readdirSync(path.join(dataDir, 'cache', 'sources'))).toEqual(['one.json', 'one@1.json']);
  });

  it('are found by their request if the source has another id or another location now', async () => {
    const dataDir = scratchDir();
    await writeEntry(dataDir, 'one', 0, entry('a'));
    expect(await readEntry(dataDir, 'two', 0, 'r')).toEqual(entry('a'));
    expect(await readEntry(dataDir, 'one', 1, 'r')).toEqual(entry('a'));
    await writeEntry(dataDir, 'two', 0, entry('b'));
    expect(await readEntry(dataDir, 'two', 0, 'r')).toEqual(entry('b'));
    expect(await readEntry(dataDir, 'two', 0, 'other')).toBeUndefined();
  });

  it.each([
    ['nothing', ''],
    ['half of it', JSON.stringify(entry('a')).slice(0, 60)],
    ['another version', JSON.stringify({ ...entry('a'), format: 1 })],
    ['null', 'null'],
    ['no downloads', JSON.stringify({ ...entry('a'), downloads: undefined })],
    ['a download without files', JSON.stringify({ ...entry('a'), downloads: [null] })],
    ['a path for a hash', JSON.stringify(entry('a')).replace(sha256('a'), '../../x')],
  ])('count as missing if the file contains %s', async (_what, text) => {
    const dataDir = scratchDir();
    await writeEntry(dataDir, 'one', 0, entry('a'));
    writeFileSync(path.join(dataDir, 'cache', 'sources', 'one.json'), text);
    expect(await readEntry(dataDir, 'one', 0, 'r')).toBeUndefined();
  });
});

describe('cachedFiles', () => {
  it('returns only whole files, and removes a damaged one', async () => {
    const dataDir = scratchDir();
    const a = await store(dataDir, 'a');
    const b = await store(dataDir, 'b');
    const files = [
      { ...a, name: '0.csv' },
      { ...b, name: '1.csv' },
    ];
    expect(await cachedFiles(dataDir, entry('a', 'b').downloads[0]!.files)).toEqual(files);
    writeFileSync(b.path, 'B');
    expect(await cachedFiles(dataDir, entry('a', 'b').downloads[0]!.files)).toBeUndefined();
    expect(objects(dataDir)).toEqual([a.sha256]);
    rmSync(a.path);
    expect(await cachedFiles(dataDir, entry('a').downloads[0]!.files)).toBeUndefined();
  });
});

describe('pruneCache', () => {
  it('keeps files that an entry or a release refers to, and removes others and temporary files', async () => {
    const dataDir = scratchDir();
    for (const text of ['entry', 'release', 'old', 'older']) await store(dataDir, text);
    await writeEntry(dataDir, 'one', 0, entry('entry'));
    writeFileSync(objectPath(dataDir, '.part-1'), 'xx');
    writeFileSync(path.join(dataDir, 'cache', 'sources', '.part-2'), '{"format":1');
    writeFileSync(path.join(dataDir, 'cache', 'sources', 'broken.json'), '{');
    mkdirSync(rowsDir(dataDir));
    for (const key of ['release', 'old']) writeFileSync(rowsPath(dataDir, key), 'row');
    const removed = await pruneCache(dataDir, new Set([sha256('release')]), new Set(['release']));
    expect(removed).toEqual({ removed: 4, bytes: 3 + 5 + 2 + 3 });
    expect(readdirSync(rowsDir(dataDir))).toEqual(['release']);
    expect(objects(dataDir)).toEqual([sha256('entry'), sha256('release')].sort());
    expect(readdirSync(path.join(dataDir, 'cache', 'sources')).sort()).toEqual(['broken.json', 'one.json']);
  });

  it('accepts a missing or empty cache', async () => {
    const dataDir = scratchDir();
    expect(await pruneCache(dataDir, new Set(), new Set())).toEqual({ removed: 0, bytes: 0 });
    mkdirSync(path.join(dataDir, 'cache', 'objects'), { recursive: true });
    expect(await pruneCache(dataDir, new Set(), new Set())).toEqual({ removed: 0, bytes: 0 });
  });
});
