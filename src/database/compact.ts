/** Releases in the compact form: made, compressed, and unpacked. */
import { zlib } from '../builtins.js';
import { writeContainer } from '../compact/container.js';
import type { About, CompactCountries } from '../compact/countries.js';
import { buildNetworkFile, networkSections } from '../compact/network-file.js';
import { hasNetworks } from '../compact/networks.js';
import { buildRangeFile, rangeFileSections } from '../compact/range-file.js';
import { causedError } from '../errors.js';
import { MAX_COMPACT_BYTES } from '../limits.js';
import { decodeNetworkFile, decodeRangeFile, type NetworkFile, type RangeFile } from '../rangefile/reader.js';
import {
  type Content,
  describeFile,
  type Manifest,
  type ManifestFile,
  NETWORK_FILE,
  parseStoredManifest,
  RANGE_FILE,
  sourcesOf,
} from './release.js';
import { checkHash, noNetworks, openReleaseNetworks, openReleaseRanges } from './release-files.js';

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

/**
 * Builds the range file of a whole release.
 *
 * @param name of the compact form, for messages
 * @param allocate provides the memory for the file, which it must fill from the start
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says, or its range file not that of the manifest
 */
export function rangeFileOf(
  compact: CompactCountries,
  manifest: Manifest,
  name: string,
  allocate?: (bytes: number) => Buffer,
): RangeFile {
  const built = buildRangeFile(compact);
  checkHash(name, describeFile(RANGE_FILE, built), outputOf(compact, manifest, RANGE_FILE));
  const bytes = allocate?.(built.length) ?? built;
  if (bytes !== built) bytes.set(built);
  return decodeRangeFile(bytes, name, true); // built just now, so it need not be checked
}

/** Returns the manifest's entry for a file. */
function outputOf(compact: CompactCountries, { outputs }: Manifest, name: string): ManifestFile {
  const output = outputs.find((file) => file.name === name);
  if (output === undefined) throw compact.container.damaged(`its manifest does not list ${name}`);
  return output;
}

/**
 * Builds the networks of a whole release.
 *
 * @param name of the compact form, for messages
 * @returns undefined if the compact form has none
 * @throws AtlasError E_DAMAGED as {@link rangeFileOf} does, also if the manifest lists networks and the compact form has none
 */
export function networkFileOf(compact: CompactCountries, manifest: Manifest, name: string): NetworkFile | undefined {
  const { container, about } = compact;
  const isListed = manifest.outputs.some((file) => file.name === NETWORK_FILE);
  if (!isListed && !hasNetworks(container)) return undefined;
  const built = buildNetworkFile(container, about.as_of, name);
  checkHash(name, describeFile(NETWORK_FILE, built), outputOf(compact, manifest, NETWORK_FILE));
  return decodeNetworkFile(built, name, true);
}

/** Returns what a compact form says about a release. */
export function aboutRelease(manifest: Manifest, content: Content): About {
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

/** What a compact form has besides the countries. */
export const COMPACT_PARTS = ['confidence', 'networks'] as const;
export type CompactPart = (typeof COMPACT_PARTS)[number];

/**
 * Returns a release in the compact form, not compressed.
 *
 * @param dir the release directory
 * @param parts what is part of it besides the countries
 * @throws AtlasError E_USAGE if the confidence is wanted and the release has none, E_NO_DATABASE if the networks are, and as
 *   `openReleaseRanges` does
 */
export function compactRelease(dir: string, parts: readonly CompactPart[] = []): Uint8Array {
  const { manifest, file } = openReleaseRanges(dir);
  const about = aboutRelease(manifest, { countries: true, networks: parts.includes('networks') });
  const sections = rangeFileSections(about, file, parts.includes('confidence'));
  if (parts.includes('networks')) {
    const networks = openReleaseNetworks(dir, manifest);
    if (networks === undefined) throw noNetworks(manifest);
    for (const [name, bytes] of networkSections(networks)) sections.set(name, bytes);
  }
  return writeContainer(sections);
}

/** Returns the networks of a release in the compact form, without the countries, not compressed. */
export function compactNetworks(manifest: Manifest, networks: NetworkFile): Uint8Array {
  const about = new TextEncoder().encode(JSON.stringify(aboutRelease(manifest, { countries: false, networks: true })));
  return writeContainer(new Map([['about', about], ...networkSections(networks)]));
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
  try {
    return unpack(bytes, { maxOutputLength: MAX_COMPACT_BYTES });
  } catch (error) {
    throw causedError('E_DAMAGED', `${name} cannot be unpacked`, error, 'get the file again');
  }
}
