/**
 * Unpacks downloaded or local files into the cache. The first bytes of a file tell its format, not its name: gzip
 * (RFC 1952), zip (APPNOTE.TXT), or neither. A name in an archive never becomes a path on disk.
 */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { crc32, createGunzip } from 'node:zlib';
import type { Entry, ZipFile } from 'yauzl';
import { MAX_ARCHIVE_ENTRIES } from '../../src/limits.js';
import { baseName, matchesPattern } from '../../src/wildcards.js';
import type { FetchedFile } from '../stage.js';
import { type Streams, storeObject } from './cache.js';

/** A file on disk that may be packed. */
export interface PackedFile {
  path: string;
  /** Its name at its origin; `.gz` is removed when it is unpacked. */
  name: string;
}

/** A file inside a packed file. */
interface Member {
  /** Its path within the archive, or its name. */
  path: string;
  open: () => Promise<Streams>;
}

/**
 * Stores the wanted files inside packed files in the cache.
 *
 * @param dataDir the data directory
 * @param inputs the packed files
 * @param wanted patterns of names, see `matchesPattern`; empty for all, and then an archive must hold exactly one file
 * @param maxUnpackedBytes limit of the unpacked files in bytes, all together
 * @returns the files in order of name; the name of each is the last part of its path
 * @throws Error if an archive is damaged or too large, a wanted file is missing, or two files have the same name
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
  if (wanted.length > 0)
    return members.filter((member) => wanted.some((pattern) => matchesPattern(pattern, member.path)));
  if (members.length === 1) return members;
  throw new Error(
    `${archive} holds ${members.length} files; name the ones you want in "files": ${listed(members.map((m) => m.path))}`,
  );
}

function checkTaken(taken: readonly FetchedFile[], seen: readonly string[], wanted: readonly string[]): void {
  const missing = wanted.filter((pattern) => !seen.some((name) => matchesPattern(pattern, name)));
  if (missing.length > 0) throw new Error(`there is no file ${listed(missing)}; there are: ${listed(seen)}`);
  const names = taken.map((file) => file.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two files have the name ${twice}; narrow "files" to one of them`);
}

/** Returns names for a message, at most 20 of them. */
export function listed(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const shown = names
    .slice(0, 20)
    .map((name) => JSON.stringify(name))
    .join(', ');
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}

/** Returns a maker of streams that fail as soon as more than `max` bytes have passed through all of them together. */
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

/** Opens a packed file, calls `use` with the files in it, and closes it. */
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

/** Returns how a file is packed, by its first bytes. */
async function packingOf(file: string): Promise<'gzip' | 'zip' | 'none'> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    const magic = buffer.toString('latin1', 0, bytesRead);
    if (magic.startsWith('\x1f\x8b')) return 'gzip';
    // The second magic number is that of an archive without entries.
    return magic === 'PK\x03\x04' || magic === 'PK\x05\x06' ? 'zip' : 'none';
  } finally {
    await handle.close();
  }
}

async function withZipMembers(input: PackedFile, use: (members: Member[]) => Promise<void>): Promise<void> {
  const { default: yauzl } = await import('yauzl'); // few archives are zip
  const zip = await yauzl.openPromise(input.path, { autoClose: false });
  try {
    if (zip.entryCount > MAX_ARCHIVE_ENTRIES) {
      throw new Error(`${input.name} has ${zip.entryCount} entries, more than ${MAX_ARCHIVE_ENTRIES}`);
    }
    const members: Member[] = [];
    // yauzl refuses the whole archive if a path in it is absolute or contains `..`.
    for await (const entry of zip.eachEntry()) {
      if (isRegularFile(entry)) members.push({ path: entry.fileName, open: () => openZipEntry(zip, entry) });
    }
    await use(members);
  } finally {
    zip.close();
  }
}

/** Returns whether an entry is a regular file. The upper half of its attributes has the type, as in `st_mode`. */
function isRegularFile(entry: Entry): boolean {
  const type = (entry.externalFileAttributes >>> 16) & 0o170000;
  return !entry.fileName.endsWith('/') && (type === 0 || type === 0o100000);
}

/** Opens an entry. yauzl checks the number of its bytes but not their checksum. */
async function openZipEntry(zip: ZipFile, entry: Entry): Promise<Streams> {
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
