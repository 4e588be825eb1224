/** Releases in the compact form: made, compressed, and unpacked. */
import { zlib } from '../builtins.js';
import { writeContainer } from '../compact/container.js';
import { type About, aboutSection, type CompactCountries } from '../compact/countries.js';
import { buildFile, fileSections } from '../compact/range-file.js';
import { orThrow } from '../errors.js';
import { MAX_COMPACT_BYTES } from '../limits.js';
import { COUNTRIES, otherPartitions, type Partition } from '../rangefile/partitions.js';
import { decodeFile, type PartitionFile } from '../rangefile/reader.js';
import {
  describeFile,
  hasPartition,
  type Manifest,
  type ManifestFile,
  parseStoredManifest,
  sourcesOf,
} from './release.js';
import { checkHash, noPartition, openReleasePartition, openReleaseRanges } from './release-files.js';

/** Section of the manifest, in compact forms of whole releases. */
export const MANIFEST_SECTION = 'manifest';

/**
 * Returns the manifest in the compact form of a whole release.
 *
 * @throws AtlasError E_DAMAGED if there is none or it is not valid
 */
export function manifestOf(compact: CompactCountries, name: string): Manifest {
  return parseStoredManifest(new TextDecoder().decode(compact.container.section(MANIFEST_SECTION)), name);
}

/** Returns the manifest's entry for a file. */
function outputOf(compact: CompactCountries, { outputs }: Manifest, name: string): ManifestFile {
  const output = outputs.find((file) => file.name === name);
  if (output === undefined) throw compact.container.damaged(`its manifest does not list ${name}`);
  return output;
}

/**
 * Builds the file of a partition of a whole release.
 *
 * @param name of the compact form, for messages
 * @param allocate provides the memory for the file, which it must fill from the start
 * @returns undefined if the compact form has none
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says, or the file not that of the manifest
 */
export function partitionFileOf<File extends PartitionFile>(
  partition: Partition<File>,
  compact: CompactCountries,
  manifest: Manifest,
  name: string,
  allocate?: (bytes: number) => Buffer,
): File | undefined {
  const { container, about } = compact;
  if (!hasPartition(manifest, partition) && !container.has(partition.section)) return undefined;
  const built = buildFile(partition, container, about.as_of, name);
  checkHash(name, describeFile(partition.file, built), outputOf(compact, manifest, partition.file));
  const bytes = allocate?.(built.length) ?? built;
  if (bytes !== built) bytes.set(built);
  // Built just now, so it need not be checked.
  return decodeFile(partition, bytes, name, true, partition.columns?.(manifest));
}

/** Returns what a compact form says about a release. */
export function aboutRelease(manifest: Manifest, content: readonly Partition[]): About {
  const { id, as_of, data_date } = manifest;
  const inputs = sourcesOf(manifest, content);
  const each = (texts: string[]): string[] => [...new Set(texts)].filter((text) => text !== '');
  return {
    release: id,
    as_of,
    ...(data_date !== undefined && { data_date }),
    licenses: each(inputs.map(({ license }) => license)),
    attribution: each(inputs.map(({ attribution }) => attribution)),
  };
}

/** Returns what a compact form can have besides the countries: the confidence, and the partitions that may leave the machine. */
export function compactParts(): string[] {
  return ['confidence', ...otherPartitions().flatMap(({ name, isPrivate }) => (isPrivate ? [] : [name]))];
}

/**
 * Returns a release in the compact form, not compressed.
 *
 * @param dir the release directory
 * @param parts what is part of it besides the countries, of {@link compactParts}
 * @throws AtlasError E_USAGE if the confidence is wanted and the release has none, E_NO_DATABASE if another part is, and as
 *   `openReleaseRanges` does
 */
export function compactRelease(dir: string, parts: readonly string[] = []): Uint8Array {
  const { manifest, file } = openReleaseRanges(dir);
  const others = otherPartitions().filter(({ name }) => parts.includes(name));
  const sections = fileSections(COUNTRIES, file, parts.includes('confidence'));
  for (const partition of others) {
    const other = openReleasePartition(dir, manifest, partition);
    if (other === undefined) throw noPartition(manifest, partition);
    for (const [name, bytes] of fileSections(partition, other)) sections.set(name, bytes);
  }
  return writeContainer(new Map([aboutSection(aboutRelease(manifest, [COUNTRIES, ...others])), ...sections]));
}

/** Returns a partition in the compact form, alone, not compressed. */
export function compactPartition(manifest: Manifest, partition: Partition, file: PartitionFile): Uint8Array {
  return writeContainer(new Map([aboutSection(aboutRelease(manifest, [partition])), ...fileSections(partition, file)]));
}

/** A quality of Brotli that takes a thirtieth of the time of the best one. Higher ones gain a hundredth of the bytes in four times the time. */
const FAST_QUALITY = 6;

/**
 * Compresses a compact form.
 *
 * @param method with `brotli` as far as it can, which takes about three seconds for the countries of the world; with `brotli-fast` a thirtieth
 *   of that time, and an eighth more bytes
 * @returns the same bytes for the same content, with the same version of the compression library
 */
export function compressCompact(bytes: Uint8Array, method: 'brotli' | 'brotli-fast' | 'gzip'): Buffer {
  const { brotliCompressSync, constants, gzipSync } = zlib();
  if (method === 'gzip') return gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION });
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT, BROTLI_MAX_QUALITY } = constants;
  return brotliCompressSync(bytes, {
    params: {
      [BROTLI_PARAM_QUALITY]: method === 'brotli' ? BROTLI_MAX_QUALITY : FAST_QUALITY,
      [BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
}

/**
 * Unpacks a compact form.
 *
 * @param bytes a compact form, as it is or compressed with gzip or Brotli. Brotli has no magic number, so it is what
 *   begins with neither of the other two
 * @param name of the file, for messages
 * @throws AtlasError E_DAMAGED if it cannot be unpacked, or to more than MAX_COMPACT_BYTES
 */
export function unpackCompact(bytes: Uint8Array, name: string): Uint8Array {
  const [first, second] = bytes;
  if (first === 0x89 && second === 0x49) return bytes;
  const { brotliDecompressSync, gunzipSync } = zlib();
  const unpack = first === 0x1f && second === 0x8b ? gunzipSync : brotliDecompressSync;
  const unpacked = () => unpack(bytes, { maxOutputLength: MAX_COMPACT_BYTES });
  return orThrow(unpacked, 'E_DAMAGED', `${name} cannot be unpacked`, 'get the file again');
}
