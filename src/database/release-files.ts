/**
 * Opens the range file of a release, and checks the hashes of that file and of the mirror against the manifest.
 *
 * Hashing the range file, checking its columns and checking the manifest takes about 25 ms, more than the rest of opening them. So
 * the result is stored in the release directory in `.verified.json` (the stamp), together with the sizes, times and inodes of both
 * files, and files that have not changed since are not checked again. This detects every change that is made through the file
 * system, because each one updates the ctime, which programs cannot set. It does not detect a disk that returns other bytes than
 * were written, nor a writer that bypasses the file system or forges `.verified.json`; `ipatlas verify` reads every byte
 * regardless.
 */
import { type BigIntStats, closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, causedError, damagedRelease, isUnreadable, orElse, REBUILD, systemErrorCode } from '../errors.js';
import { readPart } from '../file-part.js';
import { replaceFile } from '../files.js';
import { CONFIDENCE_TAGS } from '../rangefile/layout.js';
import { COUNTRIES, type Partition } from '../rangefile/partitions.js';
import { decodeFile, decodeRangeFile, type PartitionFile, type RangeFile, sectionsOf } from '../rangefile/reader.js';
import {
  describeFile,
  hasPartition,
  MANIFEST_FILE,
  type Manifest,
  type ManifestFile,
  MIRROR_FILE,
  manifestError,
  parseManifest,
  RANGE_FILE,
} from './release.js';

export const STAMP_FILE = '.verified.json';

/**
 * Nanoseconds that a file must be unchanged before its hash is stored. File systems record times in steps of up to two
 * seconds, so a later change within the same step would not be visible.
 */
const SETTLE_NS = 2_000_000_000n;

/** What was checked before a stamp was written. The stamps of earlier versions of ipatlas, which checked less, differ. */
const CHECKS = 'manifest+hash+columns';

/** Returns what identifies the versions of files. Numbers are decimal text: nanoseconds do not fit into a JSON number. */
function stampOf(...stats: BigIntStats[]): string {
  return [CHECKS, ...stats.flatMap(({ size, mtimeNs, ctimeNs, ino }) => [size, mtimeNs, ctimeNs, ino])].join(' ');
}

function readStamps(dir: string): Record<string, unknown> {
  // A file that is missing, unreadable or not JSON only means that the hash is computed again.
  const stamps: unknown = orElse(() => JSON.parse(readFileSync(join(dir, STAMP_FILE), 'utf8')), isUnreadable, {});
  return typeof stamps === 'object' && stamps !== null ? { ...stamps } : {};
}

/** Stores that a file was verified. A directory that cannot be written, such as a read-only volume, stays without. */
function writeStamp(dir: string, name: string, stamp: string): void {
  try {
    replaceFile(join(dir, STAMP_FILE), [`${JSON.stringify({ ...readStamps(dir), [name]: stamp })}\n`]);
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error;
  }
}

/** Returns the entry of a file in the manifest; see {@link checkHash}. */
function outputOf(dir: string, manifest: Manifest, name: string): ManifestFile {
  const output = manifest.outputs.find((file) => file.name === name);
  if (output === undefined) throw damagedRelease(`${dir}: the manifest does not list ${name}`);
  return output;
}

/**
 * Checks a file of a release against the manifest.
 *
 * @param path of the file, for the message
 * @param actual the file as it is
 * @throws AtlasError E_DAMAGED if its size or SHA-256 differs
 */
export function checkHash(path: string, actual: ManifestFile, { bytes, sha256 }: ManifestFile): void {
  if (actual.bytes !== bytes) {
    throw damagedRelease(`${path} has ${actual.bytes} bytes, but its manifest says ${bytes}`);
  }
  if (actual.sha256 !== sha256) throw damagedRelease(`${path} does not match the SHA-256 in its manifest`);
}

/** Reads a file of a release; a system error says that it cannot be read. */
function reading<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof AtlasError || systemErrorCode(error) === undefined) throw error;
    throw causedError('E_NO_DATABASE', `${path} cannot be read`, error, REBUILD);
  }
}

/** Opens a file of a release, calls `use`, and closes the file, unless `use` has called `keep`. */
function withFile<T>(path: string, use: (fd: number, keep: () => void) => T): T {
  const fd = reading(path, () => openSync(path, 'r'));
  let isKept = false;
  const keep = (): void => {
    isKept = true;
  };
  try {
    return reading(path, () => use(fd, keep));
  } finally {
    if (!isKept) closeSync(fd);
  }
}

/** Reads the manifest of a release as text, with the status of that very file. */
function readManifestFile(dir: string): { text: string; stat: BigIntStats } {
  try {
    const fd = openSync(join(dir, MANIFEST_FILE), 'r');
    try {
      // The status first: of a file that changes in between, it is the earlier one, which the next opening does not see again.
      const stat = fstatSync(fd, { bigint: true });
      return { text: readFileSync(fd, 'utf8'), stat };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw manifestError(dir, error);
  }
}

/**
 * Checks the manifest and a file of a release, unless both were checked before and have not changed since.
 *
 * @param use makes the result. `content` is the file's content, which has the right hash, or undefined if the file was checked
 *   before; then it can be read from `fd`, later as well if `keep` is called. If this throws, no stamp is written
 */
function withChecked<T>(
  dir: string,
  name: string,
  use: (content: Buffer | undefined, fd: number, bytes: number, manifest: Manifest, keep: () => void) => T,
): { manifest: Manifest; result: T } {
  const path = join(dir, name);
  const { text, stat: manifestStat } = readManifestFile(dir);
  return withFile(path, (fd, keep) => {
    const stat = fstatSync(fd, { bigint: true });
    const stamp = stampOf(manifestStat, stat);
    const wasChecked = readStamps(dir)[name] === stamp;
    const manifest = parseManifest(text, dir, wasChecked);
    const entry = outputOf(dir, manifest, name);
    if (wasChecked) return { manifest, result: use(undefined, fd, entry.bytes, manifest, keep) };
    const content = readFileSync(fd);
    checkHash(path, describeFile(name, content), entry);
    const result = use(content, fd, entry.bytes, manifest, keep);
    const changes = [manifestStat, stat].flatMap(({ mtimeNs, ctimeNs }) => [mtimeNs, ctimeNs]);
    // A change after the first fstat would be missing from the stamp.
    const isUnchanged = stampOf(manifestStat, fstatSync(fd, { bigint: true })) === stamp;
    const settled = BigInt(Date.now()) * 1_000_000n - SETTLE_NS;
    if (isUnchanged && changes.every((change) => change < settled)) writeStamp(dir, name, stamp);
    return { manifest, result };
  });
}

/** Fills a buffer from a position of a file. */
function readInto<Bytes extends Uint8Array>(buffer: Bytes, fd: number, position = 0): Bytes {
  const isWhole = readPart({ fd, position, length: buffer.length }, buffer);
  if (!isWhole) throw damagedRelease('a file of the release has become shorter while it was read');
  return buffer;
}

/** The sections that are read first; the others when the first IPv6 address comes, or the confidence is needed. */
const FIRST_TAGS = ['4STA', '4REC', '4IDX', 'RECO', 'TEXT'] as const;
const LATE_TAGS = ['6HIG', '6LOW', '6REC', '6IDX', ...CONFIDENCE_TAGS] as const;
/** Bytes that have the table of sections in any case. */
const HEAD_BYTES = 4096;

/** Opens a range file that was checked before in parts: two thirds of it are IPv6 columns, which many inputs do not need. */
function openInParts(bytes: Buffer, fd: number, path: string): RangeFile {
  readInto(bytes.subarray(0, HEAD_BYTES), fd);
  const sections = sectionsOf(path, bytes);
  function read(tags: typeof FIRST_TAGS | typeof LATE_TAGS, high6?: Uint8Array): void {
    for (const tag of tags) {
      const { offset, length } = sections[tag] ?? { offset: 0, length: 0 };
      const place = bytes.subarray(offset, offset + length);
      readInto(tag === '6HIG' ? (high6 ?? place) : place, fd, offset);
    }
  }
  read(FIRST_TAGS);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(fd);
    isOpen = false;
  };
  return {
    ...decodeRangeFile(bytes, path, true),
    unread: {
      read(high6) {
        reading(path, () => read(LATE_TAGS, high6));
        close();
      },
      close,
    },
  };
}

function openChecked<File extends PartitionFile>(
  dir: string,
  partition: Partition<File>,
  allocate?: (bytes: number) => Buffer,
): { manifest: Manifest; file: File } {
  const path = join(dir, partition.file);
  const { manifest, result: file } = withChecked(dir, partition.file, (content, fd, bytes, manifest, keep) => {
    if (content === undefined && allocate !== undefined && partition.file === RANGE_FILE) {
      const parts = openInParts(allocate(bytes), fd, path);
      keep();
      return parts as unknown as File;
    }
    const whole = content ?? readInto((allocate ?? Buffer.allocUnsafeSlow)(bytes), fd);
    return decodeFile(partition, whole, path, content === undefined, partition.columns?.(manifest));
  });
  return { manifest, file };
}

/**
 * Opens the range file of a release.
 *
 * @param dir the release directory
 * @param allocate returns the memory to read the file into, for a number of bytes: in parts, so that some columns may be `unread`. A
 *   file that is checked again is not read into it
 * @throws AtlasError E_NO_DATABASE if it cannot be read, E_DAMAGED if the manifest is not valid or the file does not match it
 */
export function openReleaseRanges(
  dir: string,
  allocate?: (bytes: number) => Buffer,
): { manifest: Manifest; file: RangeFile } {
  return openChecked(dir, COUNTRIES, allocate);
}

/** Returns the error for what needs a partition of a release that has none. */
export function noPartition({ id }: Manifest, { absence }: Partition): AtlasError {
  return new AtlasError('E_NO_DATABASE', `release ${id} ${absence}`);
}

/**
 * Opens a partition of a release.
 *
 * @param dir the release directory
 * @param manifest its manifest
 * @param allocate as for {@link openReleaseRanges}
 * @returns undefined if the release has none
 * @throws AtlasError as {@link openReleaseRanges} does
 */
export function openReleasePartition<File extends PartitionFile>(
  dir: string,
  manifest: Manifest,
  partition: Partition<File>,
  allocate?: (bytes: number) => Buffer,
): File | undefined {
  return hasPartition(manifest, partition) ? openChecked(dir, partition, allocate).file : undefined;
}

/**
 * Checks the mirror of a release.
 *
 * @param dir the release directory
 * @returns the path of the mirror
 * @throws AtlasError E_NO_DATABASE if it cannot be read, E_DAMAGED if it does not match the manifest
 */
export function checkReleaseMirror(dir: string): { manifest: Manifest; path: string } {
  const { manifest } = withChecked(dir, MIRROR_FILE, () => {});
  return { manifest, path: join(dir, MIRROR_FILE) };
}
