/** A whole release in the compact form, and back: its range files, mirror and manifest. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeColumn, encodeColumn } from '../src/compact/column.js';
import { writeContainer } from '../src/compact/container.js';
import { aboutSection, type CompactCountries } from '../src/compact/countries.js';
import { fileSections } from '../src/compact/range-file.js';
import { aboutRelease, MANIFEST_SECTION, manifestOf, partitionFileOf } from '../src/database/compact.js';
import { hasPartition, type Manifest, MIRROR_FILE, RANGE_FILE } from '../src/database/release.js';
import { openReleasePartition, openReleaseRanges } from '../src/database/release-files.js';
import { MAX_CONFIDENCE } from '../src/rangefile/layout.js';
import { COUNTRIES, OpenPartitions, otherPartitions, PARTITIONS } from '../src/rangefile/partitions.js';
import { rangeColumns } from '../src/rangefile/reader.js';
import { readMirrorLayers, writeLocalMirror } from './release-mirror.js';

/**
 * Returns everything of a release in the compact form, not compressed: with its confidence, if it has one, the layers of its
 * mirror, its other partitions, and its manifest.
 *
 * @param dir the release directory
 * @param manifest what is stored as its manifest, its own by default; partitions that it does not list are left out
 * @throws AtlasError as `openReleaseRanges` does
 */
export function packRelease(dir: string, manifest?: Manifest): Uint8Array {
  const release = openReleaseRanges(dir);
  const stored = manifest ?? release.manifest;
  const { file } = release;
  const sections = new Map([
    aboutSection(aboutRelease(stored, PARTITIONS)),
    ...fileSections(COUNTRIES, file, file.confidence4 !== undefined),
  ]);
  const layers = readMirrorLayers(join(dir, MIRROR_FILE));
  sections.set('sources4', encodeColumn(layers.v4));
  sections.set('sources6', encodeColumn(layers.v6));
  for (const partition of otherPartitions()) {
    const other = hasPartition(stored, partition) ? openReleasePartition(dir, release.manifest, partition) : undefined;
    if (other === undefined) continue;
    for (const [name, bytes] of fileSections(partition, other)) sections.set(name, bytes);
  }
  sections.set(MANIFEST_SECTION, new TextEncoder().encode(JSON.stringify(stored)));
  return writeContainer(sections);
}

/**
 * Writes the release that a compact form of {@link packRelease} was made from. The range files are byte-identical to the packed ones; the
 * mirror has the same content, and its entry in the manifest is made anew.
 *
 * @param compact a compact form of {@link packRelease}
 * @param name of the compact form, for messages
 * @param dir an empty directory
 * @returns the manifest that was written
 * @throws AtlasError E_DAMAGED if the files are not those of the manifest, or the layers of the mirror not as FORMAT.md says; nothing
 *   is written then
 */
export function unpackRelease(compact: CompactCountries, name: string, dir: string): Manifest {
  const manifest = manifestOf(compact, name);
  const file = partitionFileOf(COUNTRIES, compact, manifest, name)!;
  const others = new OpenPartitions();
  for (const partition of otherPartitions()) others.set(partition, partitionFileOf(partition, compact, manifest, name));
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
  const ranges = { v4: family(4), v6: family(6), records: file.records, others };
  writeFileSync(join(dir, RANGE_FILE), file.bytes);
  for (const [partition, { bytes }] of others.entries()) writeFileSync(join(dir, partition.file), bytes);
  return writeLocalMirror(dir, manifest, ranges);
}
