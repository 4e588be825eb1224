/**
 * Writes the SQLite mirror of a release, and the columns of it that the range file does not have.
 *
 * A node that pulls a release gets these columns and writes the mirror itself: its indexes and texts make it three times as
 * large as all other files together.
 */
import { join } from 'node:path';
import {
  describeStoredFile,
  MANIFEST_FILE,
  type Manifest,
  type ManifestInput,
  MIRROR_FILE,
} from '../src/database/release.js';
import { replaceFile } from '../src/files.js';
import { openMirror } from '../src/mirror/reader.js';
import { type MirrorRanges, type MirrorSource, writeMirror } from '../src/mirror/writer.js';
import { LAYERS, sourceLayer } from './merging/candidates.js';

/** Returns the layers as rows of the mirror's table `source`. */
function mirrorSources(inputs: ManifestInput[]): MirrorSource[] {
  const own = (layer: number, id: string, attribution: string): MirrorSource => ({
    layer,
    id,
    version: '',
    license: '',
    attribution,
  });
  return [
    own(LAYERS.noCountry, 'no-country', 'a source covers the range but names no country'),
    own(LAYERS.embedded, 'embedded-ipv4', 'the country is that of the IPv4 address inside'),
    ...inputs.map(({ id, version, license, attribution }, position) => ({
      layer: sourceLayer(position, inputs.length),
      id,
      version,
      license,
      attribution,
    })),
    own(LAYERS.special, 'special-purpose', 'IANA special-purpose address registries'),
    own(LAYERS.overrides, 'overrides', 'overrides.csv of this installation'),
  ];
}

/**
 * Writes the mirror of a release. The same content gives the same bytes, with the same version of SQLite.
 *
 * @param path of the new file; must not exist
 */
export function writeReleaseMirror(
  path: string,
  { id, as_of, tool_version, inputs }: Pick<Manifest, 'id' | 'as_of' | 'tool_version' | 'inputs'>,
  ranges: MirrorRanges,
): void {
  writeMirror(path, {
    meta: { as_of, release: id, tool_version },
    sources: mirrorSources(inputs),
    hasConfidence: isByEvidence(inputs),
    ...ranges,
  });
}

/**
 * Writes the mirror of a release that was made elsewhere, and its manifest. The manifest lists the mirror as it is here, because
 * another version of SQLite writes other bytes for the same content.
 *
 * @param dir the release directory, without a mirror
 * @returns the manifest that was written
 */
export function writeLocalMirror(dir: string, manifest: Manifest, ranges: MirrorRanges): Manifest {
  const path = join(dir, MIRROR_FILE);
  writeReleaseMirror(path, manifest, ranges);
  const mirror = describeStoredFile(path);
  const outputs = manifest.outputs.map((output) => (output.name === MIRROR_FILE ? mirror : output));
  const local: Manifest = { ...manifest, outputs };
  replaceFile(join(dir, MANIFEST_FILE), [`${JSON.stringify(local, null, 2)}\n`]);
  return local;
}

/** Returns whether the sources of a release voted. */
export function isByEvidence(inputs: readonly ManifestInput[]): boolean {
  return inputs.some(({ lineage }) => lineage !== undefined);
}

/**
 * Reads the column `sources` of a mirror: the layers that won somewhere in each range, one bit per layer.
 *
 * @param path of the mirror, verified to have the ranges of the range file
 */
export function readMirrorLayers(path: string): { v4: Uint32Array; v6: Uint32Array } {
  const database = openMirror(path);
  try {
    const layers = (family: 4 | 6): Uint32Array =>
      Uint32Array.from(
        database.prepare<[], number>(`SELECT sources FROM ipv${family}_range ORDER BY first`).pluck().all(),
      );
    return { v4: layers(4), v6: layers(6) };
  } finally {
    database.close();
  }
}
