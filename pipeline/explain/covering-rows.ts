/** Finds every row of a release's inputs that covers an address, in the cached files. */
import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Family } from '../../src/address/parse.js';
import { addressWords, rangeContains } from '../../src/address/words.js';
import { resolveCountry } from '../../src/country/country.js';
import { recordLabel } from '../../src/database/diff.js';
import type { Manifest, ManifestFile, ManifestInput } from '../../src/database/release.js';
import { loadOverrides } from '../config/overrides.js';
import type { Reference } from '../config/reference.js';
import { hashFile, objectPath } from '../fetching/cache.js';
import { type OwnedRange, OwnerSpace } from '../merging/evidence.js';
import { LAYERS, sourceLayer } from '../merging/layers.js';
import type { RowPosition } from '../source-formats/csv-rows.js';
import { readSource } from '../source-formats/read-source.js';
import { readRowText } from '../source-formats/rejects.js';
import type { FetchedFile, IngestedSource } from '../stage.js';

/** An address to explain. */
export interface Target {
  family: Family;
  /** `addressWords(family)` words, most significant first. */
  words: Uint32Array;
}

/** A row that covers a target. */
export interface CoveringRow {
  /** Id of the source, or `special-purpose` or `overrides`. */
  source: string;
  layer: number;
  target: Target;
  first: Uint32Array;
  last: Uint32Array;
  /** The country code; or in lower case the reason for no country, or the scheme of an embedded IPv4 address. */
  label: string;
  /** Null for special-purpose ranges, which are part of ipatlas. */
  file: string | null;
  /** Line in the file, from 1; null in a file without lines. */
  line: number | null;
  /** The row as written in the file; for special-purpose ranges the block, its name and its RFC. */
  text: string;
  /** Whether a build did not use it because it is not inside the space of its source's owner. */
  isOutsideSpace: boolean;
}

export interface CoveringRows {
  /** In the order in which a build adds them: within a layer, the later of two equal ranges wins. */
  rows: CoveringRow[];
  /** Layers whose rows are no longer available, with the reason. */
  missing: { layer: number; reason: string }[];
  /** All rows of the sources that are available, and the ranges that belong to networks. */
  ingested: IngestedSource[];
  owned: OwnedRange[];
}

/** Returns the cached files of an input, or the name of the first one that is missing or damaged. */
async function cachedInput(dataDir: string, files: readonly ManifestFile[]): Promise<FetchedFile[] | string> {
  const found: FetchedFile[] = [];
  for (const { name, bytes, sha256 } of files) {
    const path = objectPath(dataDir, sha256);
    if ((await hashFile(path, 'sha256', 'hex')) !== sha256) return name;
    found.push({ name, path, bytes, sha256 });
  }
  return found;
}

/** A row and the position of its text, which is not read yet. */
interface LocatedRow {
  row: CoveringRow;
  path: string;
  position: RowPosition | undefined;
}

async function withTexts(located: readonly LocatedRow[]): Promise<CoveringRow[]> {
  const rows: CoveringRow[] = [];
  for (const { row, path, position } of located) {
    if (position === undefined) {
      rows.push(row);
      continue;
    }
    const handle = await open(path);
    try {
      rows.push({ ...row, line: position.line, text: await readRowText(handle, position) });
    } finally {
      await handle.close();
    }
  }
  return rows;
}

/** Finds the covering rows of one source. A row without a country is in the lowest layer, as in a build. */
async function rowsOfSource(
  { id, format }: ManifestInput,
  layer: number,
  files: FetchedFile[],
  asns: ReadonlySet<number>,
  targets: readonly Target[],
  reference: Reference,
): Promise<{ rows: CoveringRow[]; ingested: IngestedSource; owned: readonly OwnedRange[] }> {
  const located: LocatedRow[] = [];
  const source = { id, format, maxRejectShare: 1 };
  const { ingested, owned } = await readSource(
    { source, fetched: { files }, asns },
    () => {},
    ({ family, first, last, code, file, position }) => {
      for (const target of targets) {
        if (target.family !== family || !rangeContains(first, last, target.words)) continue;
        const country = resolveCountry(reference, code);
        const hasCountry = typeof country === 'object';
        const words = addressWords(family);
        const row: CoveringRow = {
          source: id,
          layer: hasCountry ? layer : LAYERS.noCountry,
          target,
          first: first.slice(0, words),
          last: last.slice(0, words),
          label: hasCountry ? country.code : 'unknown',
          file: file.name,
          line: null,
          text: code,
          isOutsideSpace: false,
        };
        located.push({ row, path: file.path, position: position && { ...position } });
      }
    },
  );
  return { rows: await withTexts(located), ingested, owned };
}

function rowsOfRegistries(targets: readonly Target[], { special }: Reference): CoveringRow[] {
  return special.flatMap(({ family, first, last, result, layer, block, name, rfc }) =>
    targets
      .filter((target) => target.family === family && rangeContains(first, last, target.words))
      .map((target) => ({
        ...{ source: 'special-purpose', layer: layer === 'under' ? LAYERS.embedded : LAYERS.special, target },
        ...{ first, last, label: recordLabel(result), file: null, line: null },
        text: `${block} ${name} (${rfc})`,
        isOutsideSpace: false,
      })),
  );
}

function rowsOfOverrides(
  file: ManifestFile,
  path: string,
  targets: readonly Target[],
  reference: Reference,
  asOf: string,
): CoveringRow[] {
  const lines = readFileSync(path, 'utf8').split(/\r\n?|\n/);
  return loadOverrides(path, reference, asOf).rows.flatMap(({ family, first, last, result, line }) =>
    targets
      .filter((target) => target.family === family && rangeContains(first, last, target.words))
      .map((target) => ({
        ...{ source: 'overrides', layer: LAYERS.overrides, target, first, last, file: file.name, line },
        label: result.kind === 'country' ? result.code : result.reason,
        text: lines[line - 1] ?? '',
        isOutsideSpace: false,
      })),
  );
}

/**
 * Finds the rows of a release's inputs that cover some addresses.
 *
 * @param dataDir the data directory, whose cache has the files of its releases
 * @param manifest of the release
 * @param targets the addresses
 * @param reference the reference tables
 */
export async function findCoveringRows(
  dataDir: string,
  manifest: Manifest,
  targets: readonly Target[],
  reference: Reference,
): Promise<CoveringRows> {
  const { inputs, overrides, as_of: asOf } = manifest;
  const rows: CoveringRow[] = [];
  const missing: CoveringRows['missing'] = [];
  const asns = new Set(inputs.flatMap((input) => input.asns ?? []));
  const ingested: IngestedSource[] = [];
  const owned: OwnedRange[] = [];
  for (const [position, input] of inputs.entries()) {
    const layer = sourceLayer(position, inputs.length);
    const files = await cachedInput(dataDir, input.files);
    if (typeof files === 'string') {
      missing.push({ layer, reason: `${files} of source ${input.id} is no longer in the cache` });
      continue;
    }
    const found = await rowsOfSource(input, layer, files, asns, targets, reference);
    rows.push(...found.rows);
    ingested.push(found.ingested);
    owned.push(...found.owned);
  }
  // Only now it is known which space belongs to whom.
  for (const { id, space = [], asns: own = [] } of inputs) {
    const ownerSpace = OwnerSpace.of({ space, asns: own }, owned);
    for (const row of rows.filter(({ source }) => source === id)) {
      row.isOutsideSpace = !ownerSpace.contains(row.target.family, row.first, row.last, 0);
    }
  }
  rows.push(...rowsOfRegistries(targets, reference));
  if (overrides !== undefined) {
    const files = await cachedInput(dataDir, [overrides]);
    if (typeof files === 'string') {
      missing.push({ layer: LAYERS.overrides, reason: `${files} is no longer in the cache` });
    } else rows.push(...rowsOfOverrides(overrides, files[0]!.path, targets, reference, asOf));
  }
  return { rows, missing, ingested, owned };
}
