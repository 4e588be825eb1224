/**
 * From a downloaded or local file to the files within it, stored in the cache. What a file is, its first bytes say, not
 * its name: gzip (RFC 1952), zip (APPNOTE.TXT), or neither. A name in an archive never becomes a path on disk.
 */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { crc32, createGunzip } from 'node:zlib';
import yauzl from 'yauzl';
import { MAX_ARCHIVE_ENTRIES } from '../../src/limits.js';
import type { FetchedFile } from '../stage.js';
import { type Streams, storeObject } from './cache.js';

/** A file on disk as it was downloaded or named. */
export interface PackedFile {
  path: string;
  /** The name it has at its origin; `.gz` is cut off where the file is unpacked. */
  name: string;
}

/** A file that can be had out of a packed one. */
interface Member {
  /** Its path within the archive, or its name. */
  path: string;
  open: () => Promise<Streams>;
}

/**
 * Stores the wanted files of some packed ones in the cache.
 *
 * @param dataDir the data directory
 * @param inputs the packed files
 * @param wanted names or globs, see `matches`; empty for all, an archive then holding just one
 * @param maxUnpackedBytes how many bytes may come out of them in all
 * @returns the files in order of name, each with the last part of its path as its name
 * @throws Error where an archive is broken or too large, a wanted file is missing, or two would have the same name
 */
export async function takeFiles(
  dataDir: string,
  inputs: readonly PackedFile[],
  wanted: readonly string[],
  maxUnpackedBytes: number,
): Promise<FetchedFile[]> {
  const budget = byteBudget(maxUnpackedBytes);
  const taken: FetchedFile[] = [];
  const seen: string[] = [];
  for (const input of inputs) {
    await withMembers(input, async (members) => {
      seen.push(...members.map((member) => member.path));
      for (const member of selectMembers(members, wanted, input.name)) {
        const openWithin = async (): Promise<Streams> => [...(await member.open()), budget()];
        taken.push(await storeObject(dataDir, baseName(member.path), openWithin));
      }
    });
  }
  checkTaken(taken, seen, wanted);
  return taken.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function selectMembers(members: Member[], wanted: readonly string[], archive: string): Member[] {
  if (wanted.length > 0) return members.filter((member) => wanted.some((pattern) => matches(pattern, member.path)));
  if (members.length === 1) return members;
  throw new Error(
    `${archive} holds ${members.length} files; name the ones you want in "files": ${listed(members.map((m) => m.path))}`,
  );
}

function checkTaken(taken: readonly FetchedFile[], seen: readonly string[], wanted: readonly string[]): void {
  const missing = wanted.filter((pattern) => !seen.some((name) => matches(pattern, name)));
  if (missing.length > 0) throw new Error(`there is no file ${listed(missing)}; there are: ${listed(seen)}`);
  const names = taken.map((file) => file.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two files have the name ${twice}; narrow "files" to one of them`);
}

/**
 * Whether a name fits a pattern. `*` stands for any characters but `/`, `?` for any one. A pattern without `/` is about
 * the last part of a path, so that an archive's dated top folder does not matter. As in a shell, a leading dot is only
 * matched by a dot.
 */
export function matches(pattern: string, name: string): boolean {
  const subject = pattern.includes('/') ? name : baseName(name);
  if (baseName(subject).startsWith('.') && !baseName(pattern).startsWith('.')) return false;
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]');
  return new RegExp(`^${source}$`).test(subject);
}

function baseName(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** Names for a message, at most 20 of them. */
export function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const shown = names
    .slice(0, 20)
    .map((name) => JSON.stringify(name))
    .join(', ');
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}

/** Streams that pass bytes on until all of them together have passed more than `max`. */
function byteBudget(max: number): () => Transform {
  let left = max;
  return () =>
    new Transform({
      transform(chunk: Buffer, _encoding, done) {
        left -= chunk.length;
        if (left < 0) done(new Error(`it unpacks to more than ${max} bytes`));
        else done(null, chunk);
      },
    });
}

/** Opens a packed file, lets `use` work with the files in it, and closes it. */
async function withMembers(input: PackedFile, use: (members: Member[]) => Promise<void>): Promise<void> {
  switch (await packingOf(input.path)) {
    case 'zip':
      return withZipMembers(input, use);
    case 'gzip':
      return use([
        { path: input.name.replace(/\.gz$/i, ''), open: async () => [createReadStream(input.path), createGunzip()] },
      ]);
    case 'none':
      return use([{ path: input.name, open: async () => [createReadStream(input.path)] }]);
  }
}

/** How a file is packed, by its first bytes. */
async function packingOf(file: string): Promise<'gzip' | 'zip' | 'none'> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    const magic = buffer.toString('latin1', 0, bytesRead);
    if (magic.startsWith('\x1f\x8b')) return 'gzip';
    // The second is an archive without entries.
    return magic === 'PK\x03\x04' || magic === 'PK\x05\x06' ? 'zip' : 'none';
  } finally {
    await handle.close();
  }
}

async function withZipMembers(input: PackedFile, use: (members: Member[]) => Promise<void>): Promise<void> {
  const zip = await yauzl.openPromise(input.path, { autoClose: false });
  try {
    if (zip.entryCount > MAX_ARCHIVE_ENTRIES) {
      throw new Error(`${input.name} has ${zip.entryCount} entries, more than ${MAX_ARCHIVE_ENTRIES}`);
    }
    const members: Member[] = [];
    // Iterating refuses the whole archive at the first absolute path or `..` in it.
    for await (const entry of zip.eachEntry()) {
      if (isRegularFile(entry)) members.push({ path: entry.fileName, open: () => openZipEntry(zip, entry) });
    }
    await use(members);
  } finally {
    zip.close();
  }
}

/** Whether an entry is a file: no directory, and no link or device (their type is in the upper half, as in `st_mode`). */
function isRegularFile(entry: yauzl.Entry): boolean {
  const type = (entry.externalFileAttributes >>> 16) & 0o170000;
  return !entry.fileName.endsWith('/') && (type === 0 || type === 0o100000);
}

/** The bytes of an entry. The library checks their number; their checksum is left to us. */
async function openZipEntry(zip: yauzl.ZipFile, entry: yauzl.Entry): Promise<Streams> {
  let crc = 0;
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      crc = crc32(chunk, crc);
      done(null, chunk);
    },
    flush(done) {
      done(crc === entry.crc32 ? null : new Error(`${path.posix.basename(entry.fileName)} is damaged: wrong checksum`));
    },
  });
  return [await zip.openReadStreamPromise(entry), check];
}
