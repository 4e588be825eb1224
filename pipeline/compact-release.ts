/** A whole release in the compact form, and back: range file, mirror and manifest. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeColumn, encodeColumn } from '../src/compact/column.js';
import { writeContainer } from '../src/compact/container.js';
import type { CompactCountries } from '../src/compact/countries.js';
import { networkSections } from '../src/compact/network-file.js';
import { rangeFileSections } from '../src/compact/range-file.js';
import { aboutRelease, MANIFEST_SECTION, manifestOf, networkFileOf, rangeFileOf } from '../src/database/compact.js';
import { type Manifest, MIRROR_FILE, NETWORK_FILE, RANGE_FILE } from '../src/database/release.js';
import { openReleaseNetworks, openReleaseRanges } from '../src/database/release-files.js';
import type { MirrorRanges } from '../src/mirror/writer.js';
import { MAX_CONFIDENCE } from '../src/rangefile/layout.js';
import { rangeColumns } from '../src/rangefile/reader.js';
import { readMirrorLayers, writeLocalMirror } from './release-mirror.js';

/**
 * Returns everything of a release in the compact form, not compressed: with its confidence, if it has one, the layers of its
 * mirror, its networks, and its manifest.
 *
 * @param dir the release directory
 * @param manifest what is stored as its manifest; its own by default
 * @throws AtlasError as `openReleaseRanges` does
 */
export function packRelease(dir: string, manifest?: Manifest): Uint8Array {
  const release = openReleaseRanges(dir);
  const stored = manifest ?? release.manifest;
  const sections = rangeFileSections(
    aboutRelease(stored, { countries: true, networks: true }),
    release.file,
    release.file.confidence4 !== undefined,
  );
  const layers = readMirrorLayers(join(dir, MIRROR_FILE));
  sections.set('sources4', encodeColumn(layers.v4));
  sections.set('sources6', encodeColumn(layers.v6));
  const networks = openReleaseNetworks(dir, release.manifest);
  for (const [name, bytes] of networks === undefined ? [] : networkSections(networks)) sections.set(name, bytes);
  sections.set(MANIFEST_SECTION, new TextEncoder().encode(JSON.stringify(stored)));
  return writeContainer(sections);
}

/**
 * Writes the range file of a release, and its networks if it has any, with the bytes of then.
 *
 * @param compact a compact form of {@link packRelease}
 * @param name of the compact form, for messages
 * @returns the ranges of its mirror
 * @throws AtlasError E_DAMAGED if the files are not those of the manifest, or the layers of the mirror not as FORMAT.md says; nothing
 *   is written then
 */
export function unpackFiles(compact: CompactCountries, manifest: Manifest, name: string, dir: string): MirrorRanges {
  const file = rangeFileOf(compact, manifest, name);
  const networks = networkFileOf(compact, manifest, name);
  const family = (number: 4 | 6) => {
    const ranges = rangeColumns(file, number);
    const layers = compact.container.section(`sources${number}`);
    const confidence = number === 4 ? file.confidence4 : file.confidence6;
    return {
      ...ranges,
      layers: decodeColumn(layers, ranges.count, 2 ** 32 - 1, name),
      confidence: confidence ?? new Uint8Array(ranges.count).fill(MAX_CONFIDENCE),
    };
  };
  const ranges = { v4: family(4), v6: family(6), records: file.records, networks };
  writeFileSync(join(dir, RANGE_FILE), file.bytes);
  if (networks !== undefined) writeFileSync(join(dir, NETWORK_FILE), networks.bytes);
  return ranges;
}

/**
 * Writes the release that a compact form of {@link packRelease} was made from. The range file has the bytes of then; the mirror has
 * the content of then, and its entry in the manifest is made anew.
 *
 * @param dir an empty directory
 * @param name of the compact form, for messages
 * @returns the manifest that was written
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says, or its range file not that of its manifest
 */
export function unpackRelease(compact: CompactCountries, name: string, dir: string): Manifest {
  const manifest = manifestOf(compact, name);
  return writeLocalMirror(dir, manifest, unpackFiles(compact, manifest, name, dir));
}
