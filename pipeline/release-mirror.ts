/**
 * Writes the SQLite mirror of a release, and the columns of it that the range file does not have.
 *
 * A node that pulls a release gets these columns and writes the mirror itself: its indexes and texts make it three times as
 * large as all other files together.
 */
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  describeStoredFile,
  MANIFEST_FILE,
  type Manifest,
  type ManifestInput,
  MIRROR_FILE,
} from '../src/database/release.js';
import { AtlasError, messageOf } from '../src/errors.js';
import { replaceFile } from '../src/files.js';
import { openMirror } from '../src/mirror/reader.js';
import { type MirrorRanges, type MirrorSource, writeMirror } from '../src/mirror/writer.js';
import { type RangeFile, rangeColumns } from '../src/rangefile/reader.js';
import { LAYERS, sourceLayer } from './merging/candidates.js';

/** Largest size in bytes that the mirror's columns may unpack to (256 MiB); those of 600,000 ranges have 4 MB. */
const MAX_MIRROR_COLUMNS_BYTES = 268_435_456;

/** What the mirror says about a release as a whole. */
export interface MirroredRelease {
  id: string;
  /** `YYYY-MM-DD`. */
  asOf: string;
  toolVersion: string;
  /** The source with the highest priority first. */
  inputs: ManifestInput[];
}

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
  { id, asOf, toolVersion, inputs }: MirroredRelease,
  ranges: MirrorRanges,
): void {
  writeMirror(path, {
    meta: { as_of: asOf, release: id, tool_version: toolVersion },
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
  const { id, as_of: asOf, tool_version: toolVersion, inputs } = manifest;
  const path = join(dir, MIRROR_FILE);
  writeReleaseMirror(path, { id, asOf, toolVersion, inputs }, ranges);
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

/** The columns of one family, by range. */
interface FamilyColumns {
  /** The layers that won somewhere in the range, one bit per layer. */
  sources: number[];
  /** In percent, 0 to 100; only if the sources voted. */
  confidence?: number[];
}

/** The content of the columns file, before compression. */
interface MirrorColumns {
  ipv4: FamilyColumns;
  ipv6: FamilyColumns;
}

/**
 * Reads the columns of a mirror that the range file does not have.
 *
 * @param path of the mirror, verified to have the ranges of the range file
 * @param inputs of the release
 * @returns gzip-compressed JSON: `{"ipv4":{"sources":[…],"confidence":[…]},"ipv6":{…}}`, one number per range
 */
export function readMirrorColumns(path: string, inputs: readonly ManifestInput[]): Buffer {
  const database = openMirror(path);
  try {
    const numbers = (sql: string): number[] => database.prepare<[], number>(sql).pluck().all();
    const family = (name: 'ipv4' | 'ipv6'): FamilyColumns => ({
      sources: numbers(`SELECT sources FROM ${name}_range ORDER BY first`),
      ...(isByEvidence(inputs) && {
        confidence: numbers(
          `SELECT coalesce(percent, 100) FROM ${name}_range LEFT JOIN ${name}_confidence USING (first) ORDER BY first`,
        ),
      }),
    });
    const columns: MirrorColumns = { ipv4: family('ipv4'), ipv6: family('ipv6') };
    return gzipSync(JSON.stringify(columns));
  } finally {
    database.close();
  }
}

/** Returns a column as a typed array, after checking its length and its values. */
function checkedColumn<Column extends Uint32Array | Uint8Array>(
  values: unknown,
  column: Column,
  max: number,
  name: string,
): Column {
  const isWhole =
    Array.isArray(values) &&
    values.length === column.length &&
    values.every((value) => Number.isInteger(value) && value >= 0 && value <= max);
  if (!isWhole) throw new Error(`${name} is not a list of ${column.length} whole numbers from 0 to ${max}`);
  column.set(values);
  return column;
}

/**
 * Joins the ranges of a range file with the columns that {@link readMirrorColumns} returned.
 *
 * @param compressed the columns
 * @param name of their file, for the message
 * @throws AtlasError E_DAMAGED if they are not the columns of such a file
 */
export function joinMirrorColumns(
  file: RangeFile,
  inputs: readonly ManifestInput[],
  compressed: Buffer,
  name: string,
): MirrorRanges {
  try {
    const json = gunzipSync(compressed, { maxOutputLength: MAX_MIRROR_COLUMNS_BYTES }).toString('utf8');
    const columns = JSON.parse(json) as Partial<Record<string, Partial<FamilyColumns>>> | null;
    const join = (family: 4 | 6) => {
      const ranges = rangeColumns(file, family);
      const { sources, confidence } = columns?.[`ipv${family}`] ?? {};
      return {
        ...ranges,
        layers: checkedColumn(sources, new Uint32Array(ranges.count), 2 ** 32 - 1, `ipv${family}.sources`),
        confidence: isByEvidence(inputs)
          ? checkedColumn(confidence, new Uint8Array(ranges.count), 100, `ipv${family}.confidence`)
          : new Uint8Array(ranges.count).fill(100),
      };
    };
    return { v4: join(4), v6: join(6), records: file.records };
  } catch (error) {
    throw new AtlasError('E_DAMAGED', `${name} is damaged: ${messageOf(error)}`, { cause: error });
  }
}
