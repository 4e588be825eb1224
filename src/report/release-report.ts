/** What a report says about a release: its origin, its stages, its gates, the age of its sources, and what changed. */
import type { CountryNames } from '../country/names.js';
import { ageDays, ageText, changeRate, releaseAge } from '../database/age.js';
import { type Manifest, type ManifestInput, namedRelease, readManifest } from '../database/release.js';
import { hasCode, orElse } from '../errors.js';
import { type Changes, changesJson, compareReleases } from './changes.js';
import { readStoredReport, type StoredReport } from './stored-report.js';

/** A source as a report shows it. */
export type ReportedSource = Pick<ManifestInput, 'id' | 'version' | 'license' | 'attribution' | 'rows' | 'rejected'> & {
  [Member in 'seed' | 'data_date' | 'data_date_evidence']: ManifestInput[Member] | undefined;
} & {
  /** Rows that were read but not used, such as those of another kind; undefined if it was not recorded. */
  skipped: number | undefined;
  /** Whole days since the date of the data; undefined if that is not known. */
  age_days: number | undefined;
};

/** All facts of a report. */
export interface ReleaseReport {
  manifest: Manifest;
  /** Whole days since the date of the data. */
  ageDays: number;
  /** The same, and what it means. */
  age: string;
  /** Undefined if the release has no `report.json`. */
  stored: StoredReport | undefined;
  sources: ReportedSource[];
  /** Id of the release that the gates compared with; undefined if there was none or it is not known. */
  comparedWith: string | undefined;
  /** Undefined if there was no release to compare with, or it is not kept any more. */
  changes: Changes | undefined;
}

/** Returns the id of the release that the gates compared with. */
function comparedWith(stored: StoredReport | undefined): string | undefined {
  const id = stored?.stages.find(({ stage }) => stage === 'gate')?.counts.compared_with;
  return typeof id === 'string' && id !== 'nothing' ? id : undefined;
}

/** Returns the directory of a release, or undefined if it is not kept any more. */
function keptRelease(dataDir: string, id: string): string | undefined {
  return orElse(() => namedRelease(dataDir, id), hasCode('E_NO_DATABASE'), undefined);
}

/**
 * Collects the facts of a report.
 *
 * @param dataDir the data directory, which has the release to compare with
 * @param dir directory of the release
 * @param now milliseconds since 1970, for ages
 * @param names as for {@link compareReleases}
 * @throws AtlasError if a release or its report is damaged
 */
export function describeRelease(
  dataDir: string,
  dir: string,
  now: number = Date.now(),
  names?: CountryNames,
): ReleaseReport {
  const manifest = readManifest(dir);
  const stored = readStoredReport(dir);
  const days = ageDays(releaseAge(manifest, now));
  const ingested = stored?.stages.find(({ stage }) => stage === 'ingest')?.counts ?? {};
  const previous = comparedWith(stored);
  const previousDir = previous === undefined ? undefined : keptRelease(dataDir, previous);
  return {
    manifest,
    ageDays: days,
    age: ageText(days, changeRate(dir)),
    stored,
    sources: manifest.inputs.map(({ id, version, license, attribution, rows, rejected, seed, ...input }) => {
      const count = ingested[`${id}.skipped`];
      const skipped = typeof count === 'number' ? count : undefined;
      const { data_date, data_date_evidence } = input;
      const age_days = data_date === undefined ? undefined : ageDays(releaseAge({ as_of: data_date }, now));
      const read = { id, version, license, attribution, rows, rejected, seed, skipped };
      return { ...read, data_date, data_date_evidence, age_days };
    }),
    comparedWith: previous,
    changes: previousDir === undefined ? undefined : compareReleases(previousDir, dir, names),
  };
}

/** Returns the facts of a report as a JSON value. */
export function reportJson({ manifest, ageDays, stored, sources, comparedWith, changes }: ReleaseReport): object {
  return {
    release: manifest.id,
    as_of: manifest.as_of,
    data_date: manifest.data_date ?? null,
    age_days: ageDays,
    tool_version: manifest.tool_version,
    outcome: stored?.outcome ?? null,
    finished: stored?.finished ?? null,
    forced: manifest.forced ?? null,
    counts: manifest.counts,
    refusals: stored?.refusals ?? [],
    gates: stored?.gates ?? null,
    source_changes: stored?.source_changes ?? null,
    stages: stored?.stages ?? null,
    sources,
    missing: manifest.missing ?? [],
    compared_with: comparedWith ?? null,
    changes: changes === undefined ? null : changesJson(changes),
  };
}
