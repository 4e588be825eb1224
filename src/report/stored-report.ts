/** `report.json` of a release: what each stage of its build did, and what each gate compared. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPORT_FILE, type Refusal } from '../database/release.js';
import { type Schema, schemaViolation } from '../database/schema.js';
import { damagedRelease, orThrow, REBUILD } from '../errors.js';
import { packageFile } from '../package-root.js';
import { counted, grouped, percent } from '../text-table.js';

/** What a gate compared. It refuses a release if the value is above the limit. */
export interface GateFigure {
  /** The limit's name in sources.json. */
  gate: string;
  /** A share (0 to 1; a gain may be more), a number, or a size in addresses (IPv4) or /48s (IPv6), as the limit. */
  value: number;
  limit: number;
  /** Days that the data had to change; null if the limit is that of a change of sources. */
  days: number | null;
  /** What has the value: a country, a source, or a range. */
  subject?: string;
}

/** Returns a gate's value or limit in its unit. */
export function gateText(gate: string, value: number): string {
  return /Share|Rows|Delegations/.test(gate) ? percent(value) : grouped(value);
}

/** Returns whether a gate refuses. */
export function isExceeded({ value, limit }: GateFigure): boolean {
  return value > limit;
}

/** The content of `report.json`; its schema is schemas/report.schema.json. */
export interface StoredReport {
  /** Id of the release. */
  release: string;
  /** When the gates had checked it, ISO 8601, UTC. */
  finished: string;
  /** `forced`: published although gates refused. Missing in reports of earlier versions. */
  outcome?: 'published' | 'refused' | 'forced';
  refusals: Refusal[];
  /** What each gate compared. Missing in reports of earlier versions. */
  gates?: GateFigure[];
  /**
   * Why the release does not follow from one night to the next, each reason as a phrase, so that it has the limits of a
   * change of sources; missing if only time has passed, or if there is nothing to compare with.
   */
  source_changes?: string[];
  /** In the order in which they ran. A count of a single source is named `<id of the source>.<count>`. */
  stages: { stage: string; seconds: number; counts: Record<string, number | string> }[];
}

/** Returns how the release follows from the one that it was compared with, as a sentence. */
export function stepText({ gates = [], source_changes: changes }: StoredReport): string {
  if (changes !== undefined) return `The limits are those of a change of sources: ${changes.join('; ')}.`;
  const days = gates.find((figure) => figure.days !== null)?.days;
  if (days === undefined || days === null) return 'There was nothing to compare with.';
  return `The limits are those of ${counted(days, 'day')} that the data had to change.`;
}

/**
 * Reads the report of a release.
 *
 * @param dir the release directory
 * @returns undefined if there is none
 * @throws AtlasError E_DAMAGED if it is not valid
 */
export function readStoredReport(dir: string): StoredReport | undefined {
  const path = join(dir, REPORT_FILE);
  if (!existsSync(path)) return undefined;
  const report: unknown = orThrow(
    () => JSON.parse(readFileSync(path, 'utf8')),
    'E_DAMAGED',
    `${path} cannot be read`,
    REBUILD,
  );
  const schema = JSON.parse(readFileSync(packageFile('schemas/report.schema.json'), 'utf8')) as Schema;
  const problem = schemaViolation(schema, report);
  if (problem === undefined) return report as StoredReport;
  throw damagedRelease(`${path} is not a valid report: ${problem}`);
}
