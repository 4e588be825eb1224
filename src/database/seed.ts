/** The seed: the release that comes with the package, for answers before the first build. */
import { readFileSync } from 'node:fs';
import { CompactCountries } from '../compact/countries.js';
import { orThrow } from '../errors.js';
import { packageFile } from '../package-root.js';
import { COUNTRIES, type Partition } from '../rangefile/partitions.js';
import type { PartitionFile, RangeFile } from '../rangefile/reader.js';
import { manifestOf, partitionFileOf, unpackCompact } from './compact.js';
import type { Manifest } from './release.js';

/** The seed, in the package: a whole release in the compact form with Brotli. `npm run build` makes it. */
const SEED_FILE = 'dist/seed.ipc';

/** The seed in the compact form, with its manifest, and the path of its file for messages. */
export interface Seed {
  compact: CompactCountries;
  manifest: Manifest;
  path: string;
}

/** Returns the path of the seed, which need not exist. */
export function seedPath(): string {
  return packageFile(SEED_FILE);
}

let seed: Seed | undefined;

/**
 * Reads the seed, so that it can be opened or unpacked as a release. It is read once, because the package does not change.
 *
 * @throws AtlasError E_INSTALL if the package has none, E_DAMAGED if it is damaged
 */
export function readSeed(): Seed {
  seed ??= readSeedFile(seedPath());
  return seed;
}

function readSeedFile(path: string): Seed {
  const packed = orThrow(() => readFileSync(path), 'E_INSTALL', `${path} cannot be read`, 'install ipatlas again');
  const compact = new CompactCountries(unpackCompact(packed, path), path);
  return { compact, manifest: manifestOf(compact, path), path };
}

/**
 * Opens the seed as a release is opened.
 *
 * @param allocate provides the memory for its range file, such as memory that threads share
 * @throws AtlasError E_INSTALL if the package has none, E_DAMAGED if it is damaged
 */
export function openSeed(allocate?: (bytes: number) => Buffer): { manifest: Manifest; file: RangeFile } {
  return { manifest: readSeed().manifest, file: openSeedPartition(COUNTRIES, allocate)! };
}

/** Opens a partition of the seed; undefined if it has none, as a seed of the sources that may be shipped has no networks. */
export function openSeedPartition<File extends PartitionFile>(
  partition: Partition<File>,
  allocate?: (bytes: number) => Buffer,
): File | undefined {
  const { compact, manifest, path } = readSeed();
  return partitionFileOf(partition, compact, manifest, path, allocate);
}
