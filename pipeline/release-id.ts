/** Computes the id of a release: the same inputs and the same date give the same id. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Country } from '../src/country/country.js';
import { type ManifestFile, type MissingList, releaseId } from '../src/database/release.js';
import { MIRROR_VERSION } from '../src/mirror/reader.js';
import { packageFile } from '../src/package-root.js';
import { MAJOR_VERSION, MINOR_VERSION } from '../src/rangefile/layout.js';
import type { Override } from './config/overrides.js';
import type { Reference } from './config/reference.js';
import type { SourceConfig } from './config/sources.js';
import type { MergeStrategy } from './merging/evidence.js';
import { loadOperatorRegions } from './source-formats/operator-ranges.js';
import type { FetchedSource } from './stage.js';

/**
 * Version of the rules by which files become ranges. It must change with every rule of reading and merging, so that the same
 * files are built again; the version of ipatlas does not count, nor what a server says about a file.
 */
const RULES_VERSION = 4;

export interface ReleaseIdentity {
  /** `YYYY-MM-DD-` and twelve hex digits. */
  id: string;
  /** SHA-256 of everything that determines the ranges. Of the date, only its effects are part of it: EU membership, expired overrides. */
  inputHash: string;
  toolVersion: string;
}

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/**
 * Computes the identity of a release from its inputs.
 *
 * @param sources each with its fetched files, in order of priority
 * @param merge how they are merged
 * @param countries as of the build's date
 * @param overrides the rows that apply
 * @param overridesFile SHA-256 of their file, which counts as a whole because `explain` shows its rows; empty if there
 *   is none
 * @param labels the files of labels
 * @param missingLists the lists of kinds of networks that are configured, but not among the sources
 * @param asOf the build's date, `YYYY-MM-DD`
 */
export function identifyRelease(
  sources: readonly { source: SourceConfig; fetched: FetchedSource }[],
  merge: MergeStrategy,
  reference: Reference,
  countries: ReadonlyMap<string, Country>,
  overrides: readonly Override[],
  overridesFile: string,
  labels: readonly ManifestFile[],
  missingLists: readonly MissingList[],
  asOf: string,
): ReleaseIdentity {
  const { version: toolVersion } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string };
  const inputHash = sha256({
    rules: [RULES_VERSION, MAJOR_VERSION, MINOR_VERSION, MIRROR_VERSION],
    sources: sources.map(({ source, fetched }) => ({
      id: source.id,
      format: source.format,
      license: source.license,
      attribution: source.attribution,
      files: fetched.files.map(({ name, sha256: hash }) => [name, hash]),
    })),
    // They change nothing if sources are merged by priority.
    ...(merge === 'evidence' && {
      evidence: sources.map(({ source: { lineage, kind, interpolates, space, asns } }) => {
        return [lineage, kind, interpolates, space, ...asns];
      }),
    }),
    anycast: reference.anycast.map(({ block }) => block),
    networks: sources.map(({ source: { kind, network } }) => [kind === 'anycast', network?.kind, network?.operator]),
    missingLists: missingLists.map(({ id, kind }) => [id, kind]),
    countries: [...countries.values()],
    aliases: [...reference.aliases],
    regions: [...loadOperatorRegions()],
    special: reference.special.map(({ block, result, layer }) => [block, result, layer]),
    overrides: overrides.map(({ family, first, last, result }) => [family, [...first], [...last], result]),
    overridesFile,
    ...(labels.length > 0 && { labels: labels.map(({ name, sha256: hash }) => [name, hash]) }),
  });
  return { id: releaseId(asOf, inputHash), inputHash, toolVersion };
}
