/** Verifies a whole release: every byte against the manifest, the range file walked, the mirror equal to it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, messageOf } from '../errors.js';
import { MIRROR_VERSION } from '../mirror/reader.js';
import { verifyMirror } from '../mirror/verifier.js';
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
  verifyMirror(join(dir, MIRROR_FILE), file);
  return { manifest, file, mirrorVersion: MIRROR_VERSION };
}
