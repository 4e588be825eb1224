/** The end of a build and of a pull: the gates compare the new release with the current one, then it is published or kept aside. */
import { join } from 'node:path';
import { currentReleaseId, REPORT_FILE, type Refusal } from '../src/database/release.js';
import { replaceFile } from '../src/files.js';
import type { BoundedRanges } from '../src/range/columns.js';
import type { StoredReport } from '../src/report/stored-report.js';
import type { Override } from './config/overrides.js';
import type { Sentinel } from './config/reference.js';
import type { SourcesConfig } from './config/sources.js';
import { type GateResult, keepRefused, recordForce, refusalError } from './gates/refusal.js';
import { removeUnusedFiles } from './operations/prune.js';
import { forgetRolledBack } from './operations/rollback.js';
import type { FinishedRelease, StageContext } from './stage.js';
import type { StageRunner } from './stage-runner.js';
import { type GateInput, gateStage } from './stages/gate.js';
import { publishStage } from './stages/publish.js';
import { writeReportPage } from './write-report-page.js';

export interface PublishOptions {
  /** Has the limits of the gates, and the number of releases to keep. */
  config: SourcesConfig;
  sentinels: readonly Sentinel[];
  overrides: readonly Override[];
  /** The registries' IPv6 delegations, if they are among the sources. */
  delegations?: BoundedRanges | undefined;
  /** What to compare a first release with; see GateInput. */
  seed?: GateInput['seed'];
  /** The refusal of a release that someone rolled back from; empty if there is none. */
  rolledBack: readonly Refusal[];
  /** Whether to publish although gates refuse. */
  force: boolean;
  /** What to repeat with --force, for the message. */
  command: 'build' | 'pull';
  /** Of the release's manifest. */
  inputHash: string;
}

/** Returns what stays in use if a release is refused. */
export function currentText(dataDir: string): string {
  const current = currentReleaseId(dataDir);
  return current === undefined ? 'there is still no release' : `release ${current} stays current`;
}

/**
 * Publishes a verified release unless gates refuse it.
 *
 * @returns the gates that refused a release that was published by force
 * @throws AtlasError E_REFUSED if gates refuse it; it is then kept for inspection
 */
export async function publishGated(
  runner: StageRunner,
  { dataDir, workDir, note }: StageContext,
  verified: FinishedRelease,
  { config, sentinels, overrides, delegations, seed, rolledBack, force, command, inputHash }: PublishOptions,
): Promise<Refusal[]> {
  const gated = await runner.run(
    gateStage({ limits: config.gates, sentinels, overrides, delegations, seed }),
    verified,
  );
  const result: GateResult = { ...gated, refusals: [...rolledBack, ...gated.refusals] };
  const { release, refusals, gates, sourceChanges } = result;
  const outcome = refusals.length === 0 ? 'published' : force ? 'forced' : 'refused';
  const finished = new Date().toISOString();
  const report: StoredReport = {
    ...{ release: release.id, finished, outcome, refusals, gates },
    ...(sourceChanges.length > 0 && { source_changes: [...sourceChanges] }),
    stages: runner.report,
  };
  replaceFile(join(release.dir, REPORT_FILE), [`${JSON.stringify(report, null, 2)}\n`]);
  if (outcome === 'forced') recordForce(result);
  // Before publishing: that may remove the release to compare with.
  if (config.report !== undefined) writeReportPage(config.report, dataDir, release, note);
  if (outcome === 'refused') {
    const refusedDir = keepRefused(release, dataDir, workDir);
    await removeUnusedFiles(dataDir);
    throw refusalError(result, currentText(dataDir), refusedDir, command);
  }
  await runner.run(publishStage(config.keepReleases), verified);
  if (rolledBack.length > 0) forgetRolledBack(dataDir, inputHash);
  return refusals;
}
