/** Verifies a whole release: every byte against the manifest, the range file walked, the mirror equal to it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, messageOf } from '../errors.js';
import { MIRROR_VERSION, openMirror } from '../mirror/reader.js';
import { openRangeFile, type RangeFile } from '../rangefile/reader.js';
import { verifyRangeFile } from '../rangefile/verifier.js';
import { type Manifest, MIRROR_FILE, RANGE_FILE, readManifest } from './release.js';

function checkOutputs(dir: string, manifest: Manifest): void {
  const listed = new Set(manifest.outputs.map(({ name }) => name));
  for (const name of [RANGE_FILE, MIRROR_FILE]) {
    if (!listed.has(name)) throw new AtlasError('E_DAMAGED', `${dir}: its manifest does not list ${name}`);
  }
  for (const { name, bytes, sha256 } of manifest.outputs) {
    const path = join(dir, name);
    let content: Buffer;
    try {
      content = readFileSync(path);
    } catch (error) {
      throw new AtlasError('E_DAMAGED', `${path} cannot be read: ${messageOf(error)}`, { cause: error });
    }
    if (content.length !== bytes) {
      throw new AtlasError('E_DAMAGED', `${path} has ${content.length} bytes where the manifest says ${bytes}`);
    }
    if (createHash('sha256').update(content).digest('hex') !== sha256) {
      throw new AtlasError('E_DAMAGED', `${path} does not match the SHA-256 in the manifest`);
    }
  }
}

/** What the mirror's columns `country_code` and `reason` must hold for each record of the range file, joined. */
function recordLabels(file: RangeFile): string[] {
  return file.records.map((record) => {
    if (record.kind === 'country') return `${record.code}|`;
    return `|${record.kind === 'none' ? record.reason : record.scheme}`;
  });
}

type MirrorRow<Address> = [first: Address, last: Address, code: string | null, reason: string | null];

/** Walks one family of the mirror beside the range file. */
function compareFamily<Address>(
  rows: Iterable<MirrorRow<Address>>,
  count: number,
  label: (range: number) => string,
  firstEquals: (address: Address, range: number) => boolean,
  lastEquals: (address: Address, range: number) => boolean,
  fail: (what: string) => AtlasError,
): void {
  let range = 0;
  for (const [first, last, code, reason] of rows) {
    if (range >= count || !firstEquals(first, range)) throw fail(`range ${range} begins elsewhere`);
    if (!lastEquals(last, range)) throw fail(`range ${range} ends elsewhere`);
    if (`${code ?? ''}|${reason ?? ''}` !== label(range)) throw fail(`range ${range} has another answer`);
    range++;
  }
  if (range !== count) throw fail(`${range} ranges where there are ${count}`);
}

/** The first addresses of the IPv6 ranges, 16 bytes each, network order. */
function ipv6Firsts({ count6, high6, low6 }: RangeFile): Buffer {
  const bytes = Buffer.allocUnsafe(16 * count6);
  for (let range = 0; range < count6; range++) {
    const at = 16 * range;
    bytes.writeUInt32BE(high6[2 * range + 1]!, at);
    bytes.writeUInt32BE(high6[2 * range]!, at + 4);
    bytes.writeUInt32BE(low6[2 * range + 1]!, at + 8);
    bytes.writeUInt32BE(low6[2 * range]!, at + 12);
  }
  return bytes;
}

/** Each 16-byte address less one, modulo 2^128. */
function oneLess(addresses: Buffer): Buffer {
  const bytes = Buffer.from(addresses);
  for (let end = 16; end <= bytes.length; end += 16) {
    let at = end - 1;
    while (at > end - 16 && bytes[at] === 0) bytes[at--] = 0xff;
    bytes[at] = bytes[at]! - 1;
  }
  return bytes;
}

function compareMirror(path: string, file: RangeFile): void {
  const database = openMirror(path);
  try {
    const labels = recordLabels(file);
    const walk = <Address>(table: string): Iterable<MirrorRow<Address>> =>
      database
        .prepare<[], MirrorRow<Address>>(`SELECT first, last, country_code, reason FROM ${table} ORDER BY first`)
        .raw()
        .iterate() as Iterable<MirrorRow<Address>>;
    const fail = (family: number) => (what: string) =>
      new AtlasError('E_DAMAGED', `${path} differs from ${file.path}: IPv${family} ${what}`);

    const { start4, count4, count6 } = file;
    compareFamily<number>(
      walk('ipv4_range'),
      count4,
      (range) => labels[file.record4[range]!]!,
      (address, range) => address === start4[range],
      (address, range) => address === (range + 1 < count4 ? start4[range + 1]! - 1 : 0xffffffff),
      fail(4),
    );
    const firsts = ipv6Firsts(file);
    const lasts = oneLess(firsts);
    const at = (column: Buffer, range: number): Buffer => column.subarray(16 * range, 16 * range + 16);
    compareFamily<Buffer>(
      walk('ipv6_range'),
      count6,
      (range) => labels[file.record6[range]!]!,
      (address, range) => at(firsts, range).equals(address),
      // A range ends before the next one begins; the last of all before the space wraps around to zero.
      (address, range) => at(lasts, range + 1 < count6 ? range + 1 : 0).equals(address),
      fail(6),
    );
    compareCountries(path, database, file);
  } finally {
    database.close();
  }
}

/** Names and EU membership in the mirror are those of the range file. */
function compareCountries(path: string, database: ReturnType<typeof openMirror>, file: RangeFile): void {
  const find = database.prepare<[string], { name: string; is_eu: number }>(
    'SELECT name, is_eu FROM country WHERE code = ?',
  );
  for (const record of file.records) {
    if (record.kind !== 'country') continue;
    const row = find.get(record.code);
    if (row?.name !== record.name || (row.is_eu === 1) !== record.isEu) {
      throw new AtlasError('E_DAMAGED', `${path} differs from ${file.path}: country ${record.code}`);
    }
  }
}

/** What a verified release was found to hold. */
export interface VerifiedRelease {
  manifest: Manifest;
  file: RangeFile;
  mirrorVersion: number;
}

/**
 * Verifies a release.
 *
 * @param dir the release's directory
 * @returns its manifest and the range file, open
 * @throws AtlasError E_DAMAGED or E_NO_DATABASE, saying which file and what is wrong with it
 */
export function verifyRelease(dir: string): VerifiedRelease {
  const manifest = readManifest(dir);
  checkOutputs(dir, manifest);
  const file = openRangeFile(join(dir, RANGE_FILE));
  verifyRangeFile(file);
  if (file.asOf !== manifest.as_of) {
    throw new AtlasError('E_DAMAGED', `${file.path} is as of ${file.asOf}, its manifest as of ${manifest.as_of}`);
  }
  try {
    compareMirror(join(dir, MIRROR_FILE), file);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_DAMAGED', `${join(dir, MIRROR_FILE)}: ${messageOf(error)}`, { cause: error });
  }
  return { manifest, file, mirrorVersion: MIRROR_VERSION };
}
