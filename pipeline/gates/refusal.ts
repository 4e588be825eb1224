/**
 * Carries out what build.ts decides for a release that does not pass the gates: it is kept for inspection, or published
 * by force, with a record.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Family } from '../../src/address/parse.js';
import {
  MANIFEST_FILE,
  type Manifest,
  REFUSED_DIR,
  RELEASES_DIR,
  type Refusal,
  refusedIds,
} from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { makeFolder, rename } from '../../src/files.js';
import { KEPT_REFUSED } from '../../src/limits.js';
import type { GateFigure } from '../../src/report/stored-report.js';
import { currentUser, findRolledBack } from '../operations/rollback.js';
import type { FinishedRelease } from '../stage.js';

/** The outcome of the gates for a release. */
export interface GateResult {
  release: FinishedRelease;
  /** Empty if the release may be published. */
  refusals: Refusal[];
  /** How the sources differ from those of the release to compare with, each as a phrase. */
  sourceChanges: readonly string[];
  /** What each gate compared. */
  gates: GateFigure[];
  /** The largest changes from one result to another. */
  flows: Flow[];
  /** What changed, as lines for a person; empty if there is no release to compare with. */
  changes: string;
}

/** Addresses that changed from one result to another. */
export interface Flow {
  family: Family;
  /** A country code, or why there is no country. */
  from: string;
  to: string;
  /** Decimal, because a JSON number is not exact. */
  addresses: string;
  /** Of all addresses of the family that had a country. */
  share: number;
}

/** What `build --json` prints for a release that is refused. */
export interface RefusedOutcome {
  outcome: 'refused';
  release: string;
  refusals: readonly Refusal[];
  gates: readonly GateFigure[];
  flows: readonly Flow[];
}

/** A release that is not published. */
export class RefusedError extends AtlasError {
  readonly refused: RefusedOutcome;

  /** By what it has: AtlasError goes by its name, which is the same. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof AtlasError && 'refused' in value;
  }

  constructor(message: string, refused: Omit<RefusedOutcome, 'outcome'>) {
    super('E_REFUSED', message);
    this.refused = { outcome: 'refused', ...refused };
  }
}

/** Returns a refusal if the inputs are those of a release that someone rolled back from. */
export function checkRolledBack(dataDir: string, inputHash: string): Refusal[] {
  const entry = findRolledBack(dataDir, inputHash);
  if (entry === undefined) return [];
  const { release, by, at } = entry;
  const message = `the sources are those of release ${release}, which ${by} rolled back at ${at}`;
  return [{ gate: 'rolledBack', message }];
}

/**
 * Moves a refused release to the folder of refused releases and removes the oldest ones there.
 *
 * @returns its new directory
 */
export function keepRefused(release: FinishedRelease, dataDir: string, workDir: string): string {
  const refusedDir = join(dataDir, RELEASES_DIR, REFUSED_DIR);
  const target = join(refusedDir, release.id);
  makeFolder(refusedDir);
  rmSync(target, { recursive: true, force: true });
  rename(release.dir, target);
  for (const id of refusedIds(dataDir).slice(KEPT_REFUSED)) {
    // Moved first: a process that is killed must not leave half a release among the whole ones.
    rename(join(refusedDir, id), join(workDir, `old-${id}`));
  }
  return target;
}

const ADVICE = {
  build: 'If the change is intended, for example after sources.json was edited, build again with --force.',
  pull: 'If the change is intended, pull again with --force.',
};

/**
 * Returns the error that says why a release is not published and what to do.
 *
 * @param current what stays in use
 * @param dir where the release is kept
 * @param command what to repeat with --force
 */
export function refusalError(
  { release, refusals, sourceChanges, gates, flows, changes }: GateResult,
  current: string,
  dir: string,
  command: 'build' | 'pull',
): RefusedError {
  const reasons = refusals.map(({ message }) => `  - ${message}`).join('\n');
  const message = [
    `release ${release.id} is refused; ${current}`,
    reasons,
    ...(sourceChanges.length === 0
      ? []
      : [`The limits are those of a change of sources: ${sourceChanges.join('; ')}.`]),
    `${changes}It is kept in ${dir}${changes && `; "ipatlas diff current ${release.id}" shows all changes`}.`,
    `${ADVICE[command]} The limits are "gates" in sources.json.`,
  ].join('\n');
  return new RefusedError(message, { release: release.id, refusals, gates, flows });
}

/** Writes into the manifest who published the release although gates refused it, and which gates. */
export function recordForce({ release, refusals }: GateResult): void {
  const path = join(release.dir, MANIFEST_FILE);
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  manifest.forced = { by: currentUser(), at: new Date().toISOString(), refusals };
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
}
