/** The seed: the release that comes with the package, for answers before the first build. */
import { readFileSync } from 'node:fs';
import { CompactCountries } from '../compact/countries.js';
import { AtlasError, messageOf } from '../errors.js';
import { packageFile } from '../package-root.js';
import type { RangeFile } from '../rangefile/reader.js';
import { manifestOf, rangeFileOf, unpackCompact } from './compact.js';
import type { Manifest } from './release.js';

/** The seed, in the package: a whole release in the compact form with Brotli. `npm run build` makes it. */
const SEED_FILE = 'dist/seed.ipc';

/**
 * Reads the seed, so that it can be opened or unpacked as a release.
 *
 * @returns the opened compact form, and the path of its file for messages
 * @throws AtlasError E_INSTALL if the package has none, E_DAMAGED if it is damaged
 */
export function readSeed(): { compact: CompactCountries; path: string } {
  const path = packageFile(SEED_FILE);
  let packed: Buffer;
  try {
    packed = readFileSync(path);
  } catch (error) {
    throw new AtlasError('E_INSTALL', `${path} cannot be read: ${messageOf(error)}; install ipatlas again`);
  }
  return { compact: new CompactCountries(unpackCompact(packed, path), path), path };
}

/**
 * Opens the seed as a release is opened.
 *
 * @param allocate provides the memory for its range file, such as memory that threads share
 * @throws AtlasError E_INSTALL if the package has none, E_DAMAGED if it is damaged
 */
export function openSeed(allocate?: (bytes: number) => Buffer): { manifest: Manifest; file: RangeFile } {
  const { compact, path } = readSeed();
  const manifest = manifestOf(compact, path);
  return { manifest, file: rangeFileOf(compact, manifest, path, allocate) };
}
