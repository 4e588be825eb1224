/**
 * The end of a build and of a pull: the new release is read back, the gates compare it with the current one, then it is
 * published or kept for inspection.
 */
import { join } from 'node:path';
import { currentReleaseId, REPORT_FILE, type Refusal } from '../src/database/release.js';
import { type VerifiedRelease, verifyRelease } from '../src/database/verify.js';
import { messageOf } from '../src/errors.js';
import { makeFolder, replaceFile } from '../src/files.js';
import type { BoundedRanges } from '../src/range/columns.js';
import { NETWORKS } from '../src/rangefile/partitions.js';
import { describeRelease } from '../src/report/release-report.js';
import { reportPage } from '../src/report/report-page.js';
import type { StoredReport } from '../src/report/stored-report.js';
import type { Override } from './config/overrides.js';
import type { NetworkSentinel, Sentinel } from './config/reference.js';
import type { SourcesConfig } from './config/sources.js';
import { checkRolledBack, type GateResult, keepRefused, recordForce, refusalError } from './gates/refusal.js';
import { removeUnusedFiles } from './operations/prune.js';
import { forgetRolledBack } from './operations/rollback.js';
import { type FinishedRelease, type StageContext, type StageResult, timed } from './stage.js';
import { compareWithCurrent, type GateInput } from './stages/gate.js';
import { publish } from './stages/publish.js';

export interface PublishOptions {
  /** Has the limits of the gates, and the number of releases to keep. */
  config: SourcesConfig;
  sentinels: readonly Sentinel[];
  networkSentinels: readonly NetworkSentinel[];
  overrides: readonly Override[];
  /** The registries' IPv6 delegations, if they are among the sources. */
  delegations?: BoundedRanges | undefined;
  /** What to compare a first release with; see GateInput. */
  seed?: GateInput['seed'];
  /** Whether to publish although gates refuse. */
  force: boolean;
  /** What to repeat with --force, for the message, and how the archive names the publication. */
  command: 'build' | 'pull';
  /** Days of own publications that the archive keeps; 0 for no history. */
  historyDays: number;
  /** Checks the release against the rows of its sources, if they are at hand. */
  check?: ((verified: VerifiedRelease, dir: string) => Promise<StageResult<Refusal[]>>) | undefined;
  /** The day that the user gave; the archive then has the publication on that day. */
  asOf?: string | undefined;
}

/** Returns what stays in use if a release is refused. */
export function currentText(dataDir: string): string {
  const current = currentReleaseId(dataDir);
  return current === undefined ? 'there is still no release' : `release ${current} stays current`;
}

/**
 * Publishes a release unless gates refuse it.
 *
 * @returns the gates that refused a release that was published by force
 * @throws AtlasError E_DAMAGED if it is not intact, E_REFUSED if gates refuse it; it is then kept for inspection
 */
export async function publishGated(
  release: FinishedRelease,
  context: StageContext,
  { config, force, command, historyDays, asOf, check, ...checks }: PublishOptions,
): Promise<Refusal[]> {
  const { dataDir, workDir, note } = context;
  const { verified, wrong } = await timed(context, 'verify', async () => {
    const verified = verifyRelease(release.dir);
    const checked = await check?.(verified, release.dir);
    const counts = { ipv4_ranges: verified.file.count4, ipv6_ranges: verified.file.count6, ...checked?.counts };
    return { output: { verified, wrong: checked?.output ?? [] }, counts };
  });
  const inputHash = verified.manifest.input_hash;
  const gated = await timed(context, 'gate', () =>
    compareWithCurrent(release, { ...verified, networks: verified.others.get(NETWORKS) }, context, {
      limits: config.gates,
      ...checks,
    }),
  );
  const rolledBack = checkRolledBack(dataDir, inputHash);
  const result: GateResult = { ...gated, refusals: [...wrong, ...rolledBack, ...gated.refusals] };
  const { refusals, gates, sourceChanges } = result;
  const outcome = refusals.length === 0 ? 'published' : force ? 'forced' : 'refused';
  const finished = new Date().toISOString();
  const report: StoredReport = {
    release: release.id,
    finished,
    outcome,
    refusals,
    gates,
    ...(sourceChanges.length > 0 && { source_changes: [...sourceChanges] }),
    stages: context.stages,
  };
  replaceFile(join(release.dir, REPORT_FILE), [`${JSON.stringify(report, null, 2)}\n`]);
  // Also of a release that is current already: it is made again because somebody wants it.
  if (outcome === 'forced' || (force && currentReleaseId(dataDir) === release.id)) recordForce(result);
  // Before publishing: that may remove the release to compare with.
  if (config.report !== undefined) writeReportPage(config.report, dataDir, release, note);
  if (outcome === 'refused') {
    const refusedDir = keepRefused(release, dataDir, workDir);
    await removeUnusedFiles(dataDir);
    throw refusalError(result, currentText(dataDir), refusedDir, command);
  }
  await timed(context, 'publish', () =>
    publish(release, context, config.keepReleases, { event: command, days: historyDays, asOf }),
  );
  if (rolledBack.length > 0) forgetRolledBack(dataDir, inputHash);
  return refusals;
}

/** Name of the copy of the newest report. */
const LATEST = 'latest.html';

/**
 * Writes the report as an HTML page, for operators who look at builds rather than at messages:
 * `<id>.html` and `latest.html`, each in one step. If that fails, the build goes on with a note: a release must not
 * be held back, nor the reason of a refusal hidden, because a page about it cannot be written.
 *
 * @param directory for reports; made if it does not exist
 * @param release that the gates have checked, with its `report.json`
 */
function writeReportPage(
  directory: string,
  dataDir: string,
  release: FinishedRelease,
  note: StageContext['note'],
): void {
  try {
    const page = reportPage(describeRelease(dataDir, release.dir));
    makeFolder(directory);
    for (const name of [`${release.id}.html`, LATEST]) replaceFile(join(directory, name), [page]);
    note(`report: ${join(directory, LATEST)}`);
  } catch (error) {
    note(`the report cannot be written in ${directory}: ${messageOf(error)}`);
  }
}
