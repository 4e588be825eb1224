/** What a release's inputs say of an address: every row that covers it, read again from the cached files. */

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
import type { RowPlace } from '../source-formats/csv-rows.js';
import { readRowText } from '../source-formats/rejects.js';
import type { FetchedFile } from '../stage.js';
import { ingestSource } from '../stages/ingest.js';
import { LAYERS, sourceLayer } from '../stages/normalize.js';

/** An address of a family. */
export interface Target {
  family: Family;
  /** `addressWords(family)` words, most significant first. */
  words: Uint32Array;
}

/** A row that covers a target. */
export interface Claim {
  /** Id of the source; `special-purpose` or `overrides`. */
  source: string;
  layer: number;
  target: Target;
  first: Uint32Array;
  last: Uint32Array;
  /** The country, or in lower case why there is none, or the scheme whose embedded IPv4 address answers. */
  says: string;
  /** Where it stands; null for special-purpose ranges, which are part of ipatlas, and where a file has no lines. */
  file: string | null;
  line: number | null;
  /** The row as it stands in the file; for special-purpose ranges block, name and RFC. */
  text: string;
}

/** All claims on some targets, and what could not be asked. */
export interface Claims {
  /** In the order in which a build lays them over one another: within a layer, the later one counts. */
  claims: Claim[];
  /** Layers whose rows cannot be read any more, with the reason. */
  missing: { layer: number; reason: string }[];
}

/** The files of a release's input in the cache, or the name of the first that is not there as it was. */
async function cachedInput(dataDir: string, files: readonly ManifestFile[]): Promise<FetchedFile[] | string> {
  const found: FetchedFile[] = [];
  for (const { name, bytes, sha256 } of files) {
    const path = objectPath(dataDir, sha256);
    if ((await hashFile(path, 'sha256', 'hex')) !== sha256) return name;
    found.push({ name, path, bytes, sha256 });
  }
  return found;
}

/** A claim whose text is still to be read. */
interface Found {
  claim: Claim;
  path: string;
  place: RowPlace | undefined;
}

async function withTexts(found: readonly Found[]): Promise<Claim[]> {
  const claims: Claim[] = [];
  for (const { claim, path, place } of found) {
    if (place === undefined) {
      claims.push(claim);
      continue;
    }
    const handle = await open(path);
    try {
      claims.push({ ...claim, line: place.line, text: await readRowText(handle, place) });
    } finally {
      await handle.close();
    }
  }
  return claims;
}

/** What one source says of the targets. A row without a country is the lowest layer's, as in a build. */
async function sourceClaims(
  { id, format }: ManifestInput,
  layer: number,
  files: FetchedFile[],
  targets: readonly Target[],
  reference: Reference,
): Promise<Claim[]> {
  const found: Found[] = [];
  const source = { id, format, maxRejectShare: 1 };
  const fetched = { id, version: '', from: 'cache' as const, files };
  await ingestSource(
    { source, fetched },
    () => {},
    ({ family, first, last, code, file, place }) => {
      for (const target of targets) {
        if (target.family !== family || !rangeContains(first, last, target.words)) continue;
        const country = resolveCountry(reference, code);
        const named = typeof country === 'object';
        const words = addressWords(family);
        const claim: Claim = {
          source: id,
          layer: named ? layer : LAYERS.noCountry,
          target,
          first: first.slice(0, words),
          last: last.slice(0, words),
          says: named ? country.code : 'unknown',
          file: file.name,
          line: null,
          text: code,
        };
        found.push({ claim, path: file.path, place: place && { ...place } });
      }
    },
  );
  return withTexts(found);
}

function specialClaims(targets: readonly Target[], { special }: Reference): Claim[] {
  return special.flatMap(({ family, first, last, answer, layer, block, name, rfc }) =>
    targets
      .filter((target) => target.family === family && rangeContains(first, last, target.words))
      .map((target) => ({
        ...{ source: 'special-purpose', layer: layer === 'under' ? LAYERS.embedded : LAYERS.special, target },
        ...{ first, last, says: recordLabel(answer), file: null, line: null },
        text: `${block} ${name} (${rfc})`,
      })),
  );
}

function overrideClaims(
  file: ManifestFile,
  path: string,
  targets: readonly Target[],
  reference: Reference,
  asOf: string,
): Claim[] {
  const lines = readFileSync(path, 'utf8').split(/\r\n?|\n/);
  return loadOverrides(path, reference, asOf).rows.flatMap(({ family, first, last, answer, line }) =>
    targets
      .filter((target) => target.family === family && rangeContains(first, last, target.words))
      .map((target) => ({
        ...{ source: 'overrides', layer: LAYERS.overrides, target, first, last, file: file.name, line },
        says: answer.kind === 'country' ? answer.code : answer.reason,
        text: lines[line - 1] ?? '',
      })),
  );
}

/**
 * Collects what the inputs of a release say of some addresses.
 *
 * @param dataDir the data directory, whose cache has the files of its releases
 * @param manifest of the release
 * @param targets the addresses
 * @param reference the tables
 */
export async function claimsAt(
  dataDir: string,
  manifest: Manifest,
  targets: readonly Target[],
  reference: Reference,
): Promise<Claims> {
  const { inputs, overrides, as_of: asOf } = manifest;
  const claims: Claim[] = [];
  const missing: Claims['missing'] = [];
  for (const [place, input] of inputs.entries()) {
    const layer = sourceLayer(place, inputs.length);
    const files = await cachedInput(dataDir, input.files);
    if (typeof files !== 'string') claims.push(...(await sourceClaims(input, layer, files, targets, reference)));
    else missing.push({ layer, reason: `${files} of source ${input.id} is no longer in the cache` });
  }
  claims.push(...specialClaims(targets, reference));
  if (overrides !== undefined) {
    const files = await cachedInput(dataDir, [overrides]);
    if (typeof files === 'string')
      missing.push({ layer: LAYERS.overrides, reason: `${files} is no longer in the cache` });
    else claims.push(...overrideClaims(overrides, files[0]!.path, targets, reference, asOf));
  }
  return { claims, missing };
}
