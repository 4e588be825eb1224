/** Computes the id of a release: the same inputs and the same date give the same id. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { countryTable } from '../src/country/country.js';
import { type ManifestFile, type MissingList, type NetworkList, releaseId } from '../src/database/release.js';
import { MIRROR_VERSION } from '../src/mirror/reader.js';
import { packageFile } from '../src/package-root.js';
import { MAJOR_VERSION, MINOR_VERSION } from '../src/rangefile/layout.js';
import type { Override } from './config/overrides.js';
import type { Reference } from './config/reference.js';
import type { MergeStrategy, SourceEvidence } from './merging/evidence.js';
import { loadOperatorRegions } from './source-formats/operator-ranges.js';

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

/** What of a source determines the ranges. */
export interface IdentifiedSource extends SourceEvidence {
  id: string;
  format: string | object;
  license: string;
  attribution: string;
  network?: NetworkList | undefined;
  files: readonly Pick<ManifestFile, 'name' | 'sha256'>[];
}

/** What determines the ranges of a release. */
export interface IdentifiedInputs {
  /** In order of priority. */
  sources: readonly IdentifiedSource[];
  merge: MergeStrategy;
  reference: Reference;
  /** The rows that apply. */
  overrides: readonly Override[];
  /** SHA-256 of their file, which counts as a whole because `explain` shows its rows; empty if there is none. */
  overridesFile: string;
  labels: readonly ManifestFile[];
  /** The lists of kinds of networks that are configured, but not among the sources. */
  missingLists: readonly MissingList[];
  /** The build's date, `YYYY-MM-DD`. */
  asOf: string;
}

/** Computes the identity of a release from its inputs. */
export function identifyRelease(inputs: IdentifiedInputs): ReleaseIdentity {
  const { sources, merge, reference, overrides, overridesFile, labels, missingLists, asOf } = inputs;
  const { version: toolVersion } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string };
  const inputHash = sha256({
    rules: [RULES_VERSION, MAJOR_VERSION, MINOR_VERSION, MIRROR_VERSION],
    sources: sources.map(({ id, format, license, attribution, files }) => {
      return { id, format, license, attribution, files: files.map(({ name, sha256: hash }) => [name, hash]) };
    }),
    // They change nothing if sources are merged by priority.
    ...(merge === 'evidence' && {
      evidence: sources.map(({ lineage, kind, interpolates, space, asns }) => {
        return [lineage, kind, interpolates, space, ...asns];
      }),
    }),
    anycast: reference.anycast.map(({ block }) => block),
    networks: sources.map(({ kind, network }) => [kind === 'anycast', network?.kind, network?.operator]),
    missingLists: missingLists.map(({ id, kind }) => [id, kind]),
    countries: [...countryTable(reference, asOf).values()],
    aliases: [...reference.aliases],
    regions: [...loadOperatorRegions()],
    special: reference.special.map(({ block, result, layer }) => [block, result, layer]),
    overrides: overrides.map(({ family, first, last, result }) => [family, [...first], [...last], result]),
    overridesFile,
    ...(labels.length > 0 && { labels: labels.map(({ name, sha256: hash }) => [name, hash]) }),
  });
  return { id: releaseId(asOf, inputHash), inputHash, toolVersion };
}
