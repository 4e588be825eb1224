/**
 * The cache of fetched files, `<data>/cache`:
 *
 *     objects/<sha256>     a file as it came out of its package or archive, under the hash of its bytes
 *     sources/<id>.json    for each source fetched over the network: what was asked for, what came, and its objects
 *
 * Files get their names by rename once they are whole and on disk, so a process killed at any moment leaves nothing but
 * a stray `.part-*` file, which the next clean-up removes. Nothing is taken from the cache without checking its hash.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open as openFile, readdir, readFile, rename, rm, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { systemErrorCode } from '../../src/errors.js';
import type { FetchedFile } from '../stage.js';

/** A file of a cached source. */
export type CachedFile = Omit<FetchedFile, 'path'>;

/** What is kept of a source that was fetched over the network. */
export interface CacheEntry {
  /** Version of this structure; an entry of another version counts as absent. */
  format: 1;
  /** What was asked for, as `requestKey` of fetch.ts writes it: the entry answers this request only. */
  request: string;
  /** Version of the source, see FetchedSource. */
  version: string;
  /** Of an npm package: its Subresource Integrity string. Empty for a download. */
  integrity: string;
  /** Of a download: the validators (RFC 9110 §8.8) for the next request, empty where the server sent none. */
  etag: string;
  lastModified: string;
  /** When it was fetched, ISO 8601 in UTC. For people: nothing depends on it. */
  fetchedAt: string;
  files: CachedFile[];
}

const SHA256_HEX = /^[0-9a-f]{64}$/;
const PART_PREFIX = '.part-';

function objectsDir(dataDir: string): string {
  return path.join(dataDir, 'cache', 'objects');
}

function entryPath(dataDir: string, id: string): string {
  return path.join(dataDir, 'cache', 'sources', `${id}.json`);
}

/**
 * Path of the object with a hash; it need not exist.
 *
 * @param dataDir the data directory
 * @param sha256 hexadecimal, lower case
 */
export function objectPath(dataDir: string, sha256: string): string {
  return path.join(objectsDir(dataDir), sha256);
}

/** Where bytes come from, and what they go through on their way, such as a decompressor. */
export type Streams = [Readable, ...Transform[]];

/**
 * Stores what streams give as an object, whole or not at all.
 *
 * @param dataDir the data directory
 * @param name name of the file within its source
 * @param open opens the streams; called only when they can be read at once, as a stream that fails unheard ends the process
 * @returns the stored file
 * @throws whatever one of the streams fails with, or the system error of writing
 */
export async function storeObject(
  dataDir: string,
  name: string,
  open: () => Streams | Promise<Streams>,
): Promise<FetchedFile> {
  const directory = objectsDir(dataDir);
  const part = path.join(directory, `${PART_PREFIX}${randomUUID()}`);
  const hash = createHash('sha256');
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await mkdir(directory, { recursive: true });
  try {
    // `flush` is an fsync before the file is closed: a rename must not reach the disk before the bytes do.
    await pipeline([...(await open()), meter, createWriteStream(part, { flush: true })]);
    const sha256 = hash.digest('hex');
    const target = path.join(directory, sha256);
    await rename(part, target);
    return { name, path: target, bytes, sha256 };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/**
 * What is cached of a source, or undefined where nothing is, or it answers another request, or the entry is unreadable.
 *
 * @param dataDir the data directory
 * @param id the source
 * @param request what is asked for
 */
export async function readEntry(dataDir: string, id: string, request: string): Promise<CacheEntry | undefined> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(entryPath(dataDir, id), 'utf8'));
  } catch {
    return undefined;
  }
  return isEntry(value) && value.request === request ? value : undefined;
}

function isEntry(value: unknown): value is CacheEntry {
  const entry = (value ?? {}) as Partial<CacheEntry>;
  const texts = [entry.request, entry.version, entry.integrity, entry.etag, entry.lastModified];
  return (
    entry.format === 1 &&
    texts.every((text) => typeof text === 'string') &&
    Array.isArray(entry.files) &&
    entry.files.every((file) => typeof file?.name === 'string' && SHA256_HEX.test(String(file.sha256)))
  );
}

/** Writes the entry of a source, in one step. */
export async function writeEntry(dataDir: string, id: string, entry: CacheEntry): Promise<void> {
  const target = entryPath(dataDir, id);
  const part = path.join(path.dirname(target), `${PART_PREFIX}${randomUUID()}`);
  await mkdir(path.dirname(target), { recursive: true });
  try {
    const file = await openFile(part, 'wx');
    try {
      await file.writeFile(`${JSON.stringify(entry, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/**
 * The files of a cache entry, each checked by its hash. A damaged object is removed, so that it is fetched anew.
 *
 * @returns the files, or undefined where one is missing or damaged
 */
export async function cachedFiles(dataDir: string, entry: CacheEntry): Promise<FetchedFile[] | undefined> {
  const files: FetchedFile[] = [];
  for (const { name, sha256 } of entry.files) {
    const file = objectPath(dataDir, sha256);
    const found = await hashFile(file, 'sha256', 'hex');
    if (found !== sha256) {
      await rm(file, { force: true });
      return undefined;
    }
    files.push({ name, path: file, bytes: (await stat(file)).size, sha256 });
  }
  return files;
}

/** The hash of a file, or undefined where there is no such file. */
export async function hashFile(
  file: string,
  algorithm: 'sha256' | 'sha512',
  encoding: 'hex' | 'base64',
): Promise<string | undefined> {
  const hash = createHash(algorithm);
  try {
    await pipeline(createReadStream(file), hash);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  return hash.digest(encoding);
}

/**
 * Removes the objects that nothing refers to, and what killed processes left. Call it under the lock of the data
 * directory: a fetch that runs at the same time would lose its files.
 *
 * @param dataDir the data directory
 * @param keepHashes SHA-256 of the files that releases refer to, hexadecimal; those of the cache's own entries stay as well
 * @returns how many objects were removed, and their size in bytes
 */
export async function pruneCache(
  dataDir: string,
  keepHashes: ReadonlySet<string>,
): Promise<{ removed: number; bytes: number }> {
  const keep = new Set(keepHashes);
  const sourcesDir = path.join(dataDir, 'cache', 'sources');
  for (const name of await namesIn(sourcesDir)) {
    const file = path.join(sourcesDir, name);
    if (name.startsWith(PART_PREFIX)) await unlink(file);
    else for (const hash of await hashesOf(file)) keep.add(hash);
  }
  let removed = 0;
  let bytes = 0;
  for (const name of await namesIn(objectsDir(dataDir))) {
    if (keep.has(name)) continue;
    const file = objectPath(dataDir, name);
    bytes += (await stat(file)).size;
    await unlink(file);
    removed++;
  }
  return { removed, bytes };
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** The hashes that the file of an entry names; an unreadable entry names none, as it will never be used. */
async function hashesOf(file: string): Promise<string[]> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isEntry(value) ? value.files.map(({ sha256 }) => sha256) : [];
  } catch {
    return [];
  }
}
