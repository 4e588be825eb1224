/**
 * The cache of fetched files, `<data>/cache`:
 *
 *     objects/<sha256>        an unpacked file, named by the hash of its bytes
 *     sources/<id>.json       for each source that was fetched over the network: the request and the resulting files
 *     sources/<id>@<n>.json   the same for the source's n-th further location
 *     rows/<key>              the rows of a source of a release, see stored-rows.ts
 *
 * Files get their names by a rename when they are complete and flushed, so a process that is killed leaves at most a
 * temporary file, which is removed later. Every object is checked against its hash before it is used.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { type Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describeStoredFile } from '../../src/database/release.js';
import { hasCode, orElse, systemErrorCode } from '../../src/errors.js';
import { makeFolder, openPendingFile, replaceFile, writePieces } from '../../src/files.js';
import type { DataDate, FetchedFile } from '../stage.js';

/** A file of a cached source. */
export type CachedFile = Omit<FetchedFile, 'path'>;

/** One download of a cached source: the validators (RFC 9110 §8.8) for the next request, and the files in it. */
export interface CachedDownload {
  /** The address as sources.json writes it, without credentials, with its date filled in. */
  address: string;
  /** Empty if the server sent none. */
  etag: string;
  /** Empty if the server sent none. */
  lastModified: string;
  files: CachedFile[];
}

/** A source that was fetched over the network. */
export interface CacheEntry {
  /** Version of this structure; an entry of another version counts as absent. */
  format: 3;
  /** The request, see `requestKey`: the entry is for this request only. */
  request: string;
  /** Version of the source, see FetchedSource. */
  version: string;
  dataDate: DataDate | null;
  /** When it was fetched, or found to be unchanged; ISO 8601, UTC. */
  fetchedAt: string;
  downloads: CachedDownload[];
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

function objectsDir(dataDir: string): string {
  return path.join(dataDir, 'cache', 'objects');
}

function entryPath(dataDir: string, id: string, location: number): string {
  return path.join(dataDir, 'cache', 'sources', location === 0 ? `${id}.json` : `${id}@${location}.json`);
}

/**
 * Returns the path of the object with a hash; the object need not exist.
 *
 * @param dataDir the data directory
 * @param sha256 hexadecimal, lower case
 */
export function objectPath(dataDir: string, sha256: string): string {
  return path.join(objectsDir(dataDir), sha256);
}

export function rowsDir(dataDir: string): string {
  return path.join(dataDir, 'cache', 'rows');
}

/** Returns the path of the rows of a source. @param key see `rowsKey` */
export function rowsPath(dataDir: string, key: string): string {
  return path.join(rowsDir(dataDir), key);
}

/** A stream of bytes and the transformations it goes through, such as a decompressor. */
export type Streams = [Readable, ...Transform[]];

/** Returns a stream that writes to a descriptor and, unlike a WriteStream of `node:fs`, never closes it. */
function writer(fd: number): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      try {
        writePieces(fd, [chunk]);
        done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

/**
 * Stores the output of streams as an object, completely or not at all.
 *
 * @param dataDir the data directory
 * @param name name of the file within its source
 * @param open opens the streams. It is called when they are about to be read, because a stream that fails before would
 *   end the process
 * @returns the stored file
 * @throws the error of a stream, or a system error if the object cannot be written
 */
export async function storeObject(
  dataDir: string,
  name: string,
  open: () => Streams | Promise<Streams>,
): Promise<FetchedFile> {
  const directory = objectsDir(dataDir);
  makeFolder(directory);
  const hash = createHash('sha256');
  let bytes = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const object = openPendingFile(path.join(directory, 'object'));
  try {
    await pipeline([...(await open()), meter, writer(object.fd)]);
    const sha256 = hash.digest('hex');
    const target = objectPath(dataDir, sha256);
    object.commit(target);
    return { name, path: target, bytes, sha256 };
  } catch (error) {
    object.abandon();
    throw error;
  }
}

/**
 * Reads the cache entry of a location of a source. If there is none, uses that of another location or source with the same
 * request, so that a source keeps its copies if sources.json gives it another id or adds a location.
 *
 * @param dataDir the data directory
 * @param id the source
 * @param location index of the location in the source's list
 * @param request the request that the entry must be for
 * @returns undefined if there is no entry for the request that can be read
 */
export async function readEntry(
  dataDir: string,
  id: string,
  location: number,
  request: string,
): Promise<CacheEntry | undefined> {
  const own = entryPath(dataDir, id, location);
  const directory = path.dirname(own);
  const others = (await namesIn(directory)).filter((name) => name.endsWith('.json')).sort();
  for (const file of [own, ...others.map((name) => path.join(directory, name))]) {
    const entry = await readEntryFile(file);
    if (entry?.request === request) return entry;
  }
  return undefined;
}

async function readEntryFile(file: string): Promise<CacheEntry | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isEntry(value) ? value : undefined;
  } catch {
    return undefined; // not a failure: the source is fetched again
  }
}

function isEntry(value: unknown): value is CacheEntry {
  const entry = (value ?? {}) as Partial<CacheEntry>;
  const texts = [entry.request, entry.version, entry.fetchedAt];
  return (
    entry.format === 3 &&
    texts.every((text) => typeof text === 'string') &&
    (entry.dataDate === null || typeof entry.dataDate?.date === 'string') &&
    Array.isArray(entry.downloads) &&
    entry.downloads.every(isDownload)
  );
}

function isDownload(value: Partial<CachedDownload> | null): boolean {
  const { address, etag, lastModified, files } = value ?? {};
  return (
    [address, etag, lastModified].every((text) => typeof text === 'string') &&
    Array.isArray(files) &&
    files.every((file) => typeof file?.name === 'string' && SHA256_HEX.test(String(file.sha256)))
  );
}

/** Writes the cache entry of a source. */
export async function writeEntry(dataDir: string, id: string, location: number, entry: CacheEntry): Promise<void> {
  const target = entryPath(dataDir, id, location);
  makeFolder(path.dirname(target));
  replaceFile(target, [`${JSON.stringify(entry, null, 2)}\n`]);
}

/**
 * Returns cached files after checking their hashes. A damaged object is removed, so that it is fetched again.
 *
 * @returns undefined if a file is missing or damaged
 */
export async function cachedFiles(dataDir: string, cached: readonly CachedFile[]): Promise<FetchedFile[] | undefined> {
  const files: FetchedFile[] = [];
  for (const { name, sha256 } of cached) {
    const file = objectPath(dataDir, sha256);
    const found = hashFile(file);
    if (found !== sha256) {
      await rm(file, { force: true });
      return undefined;
    }
    files.push({ name, path: file, bytes: (await stat(file)).size, sha256 });
  }
  return files;
}

/** Returns the SHA-256 of a file, hexadecimal; undefined if the file does not exist. */
export function hashFile(file: string): string | undefined {
  return orElse(() => describeStoredFile(file).sha256, hasCode('ENOENT'), undefined);
}

/**
 * Removes the objects that nothing refers to, and what killed processes left. The caller must hold the lock of the data
 * directory: a fetch that runs at the same time would lose its files.
 *
 * @param dataDir the data directory
 * @param keepHashes SHA-256 of the files that releases refer to, hexadecimal; those of the cache's own entries stay as well
 * @param keepRows the keys of the rows of releases
 * @returns the number of removed files, and their size in bytes
 */
export async function pruneCache(
  dataDir: string,
  keepHashes: ReadonlySet<string>,
  keepRows: ReadonlySet<string>,
): Promise<{ removed: number; bytes: number }> {
  const keep = new Set(keepHashes);
  const sourcesDir = path.join(dataDir, 'cache', 'sources');
  for (const name of await namesIn(sourcesDir)) {
    const file = path.join(sourcesDir, name);
    if (!name.endsWith('.json')) await unlink(file);
    else for (const hash of await hashesOf(file)) keep.add(hash);
  }
  let removed = 0;
  let bytes = 0;
  for (const [directory, kept] of [
    [objectsDir(dataDir), keep],
    [rowsDir(dataDir), keepRows],
  ] as const) {
    for (const name of await namesIn(directory)) {
      if (kept.has(name)) continue;
      const file = path.join(directory, name);
      bytes += (await stat(file)).size;
      await unlink(file);
      removed++;
    }
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

/** Returns the hashes in the file of an entry; none if it cannot be read, as it will never be used. */
async function hashesOf(file: string): Promise<string[]> {
  const entry = await readEntryFile(file);
  return entry?.downloads.flatMap(({ files }) => files.map(({ sha256 }) => sha256)) ?? [];
}
