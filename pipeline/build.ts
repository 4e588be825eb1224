/** The stages in order, under the lock, with progress and a report. */
import { createReadStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { countryTable } from '../src/country/country.js';
import { openDatabase } from '../src/database/database.js';
import {
  currentReleaseId,
  type ManifestFile,
  type ManifestInput,
  RELEASES_DIR,
  REPORT_FILE,
  type Refusal,
  readManifest,
} from '../src/database/release.js';
import { AtlasError, isDiskError, messageOf, systemErrorCode } from '../src/errors.js';
import { loadOverrides, type Override } from './config/overrides.js';
import { loadReference, type Reference } from './config/reference.js';
import { loadSources, type SourceConfig, type SourcesConfig, selectSources } from './config/sources.js';
import { storeObject } from './fetching/cache.js';
import { type Identity, identify } from './identity.js';
import { lockDataDir } from './operations/lock.js';
import { findRolledBack, forgetRolledBack } from './operations/rollback.js';
import type { Counts, FetchedSource, IngestedSource, Stage, StageContext } from './stage.js';
import { compileStage } from './stages/compile.js';
import { fetchStage } from './stages/fetch.js';
import { gateStage, type Judgement, keepRefused, recordForce, refusalError } from './stages/gate.js';
import { ingest } from './stages/ingest.js';
import { normalizeStage } from './stages/normalize.js';
import { pruneStored, publishStage } from './stages/publish.js';
import { verifyStage } from './stages/verify.js';

export interface BuildOptions {
  dataDir: string;
  sourcesFile: string;
  /** Ids of the sources to use, or none for all. */
  only: string[];
  /** `YYYY-MM-DD`, or undefined for today (UTC). */
  asOf: string | undefined;
  offline: boolean;
  /** Whether to publish whatever the gates say. */
  force: boolean;
  /** Ends the build between two stages. */
  signal?: AbortSignal | undefined;
  /** Progress for people, a line a stage. */
  note: (line: string) => void;
}

export interface BuildResult {
  id: string;
  /** `unchanged`: the current release was made of the same inputs, so nothing was built. */
  outcome: 'published' | 'unchanged';
  /** What the gates said, where the release was forced through them. */
  forced: Refusal[];
}

/** Runs stages, telling and recording what each did. */
class Runner {
  readonly report: { stage: string; seconds: number; counts: Counts }[] = [];
  readonly #context: StageContext;
  readonly #signal: AbortSignal | undefined;

  constructor(context: StageContext, signal: AbortSignal | undefined) {
    this.#context = context;
    this.#signal = signal;
  }

  async run<Input, Output>(stage: Stage<Input, Output>, input: Input): Promise<Output> {
    this.#signal?.throwIfAborted();
    const start = performance.now();
    const { output, counts } = await stage.run(input, this.#context);
    const seconds = (performance.now() - start) / 1000;
    this.report.push({ stage: stage.name, seconds: Number(seconds.toFixed(3)), counts });
    // Counts of a single source, `id.rows`, are for the report; the line would grow without end.
    const facts = Object.entries(counts)
      .filter(([name]) => !name.includes('.'))
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`);
    this.#context.note(`${stage.name.padEnd(9)}  ${seconds.toFixed(2).padStart(6)} s  ${facts.join(', ')}`);
    return output;
  }
}

/** Errors of the operating system that mean the data directory cannot take what is written; SQLite has names of its own. */
const WRITE_ERRORS = new Set([
  ...['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'SQLITE_CANTOPEN', 'SQLITE_READONLY'],
]);

/** A failed write as an error that says what to do. */
function explainWriteError(error: unknown, dataDir: string): unknown {
  const code = systemErrorCode(error);
  if (error instanceof AtlasError || code === undefined) return error;
  if (!isDiskError(error) && !WRITE_ERRORS.has(code) && !code.startsWith('SQLITE_CANTOPEN')) return error;
  return new AtlasError(
    isDiskError(error) ? 'E_DISK' : 'E_DATA_DIR',
    `the data directory ${dataDir} cannot be written (${messageOf(error)}); free space, fix its permissions or name another with --data`,
    { cause: error },
  );
}

/** The current release, if it was made of the same inputs and opens. A damaged one must be built anew. */
function isUnchanged(dataDir: string, identity: Identity, asOfGiven: boolean): boolean {
  const id = currentReleaseId(dataDir);
  if (id === undefined) return false;
  try {
    const manifest = readManifest(join(dataDir, RELEASES_DIR, id));
    if (manifest.input_hash !== identity.inputHash || (asOfGiven && manifest.id !== identity.id)) return false;
    openDatabase(join(dataDir, RELEASES_DIR, id)).close();
    return true;
  } catch (error) {
    if (error instanceof AtlasError) return false;
    throw error;
  }
}

function manifestInputs(
  sources: SourceConfig[],
  fetched: FetchedSource[],
  ingested: IngestedSource[],
): ManifestInput[] {
  return sources.map(({ id, license, attribution, format }, index) => ({
    id,
    version: fetched[index]!.version,
    license,
    attribution,
    rows: ingested[index]!.rows,
    rejected: ingested[index]!.rejected,
    format,
    files: fetched[index]!.files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
  }));
}

/** The overrides in force, and their file: kept in the cache, so that the release stays explainable when it is edited. */
async function readOverrides(
  { overrides: path }: SourcesConfig,
  reference: Reference,
  { dataDir, asOf }: StageContext,
): Promise<{ rows: Override[]; file: ManifestFile | undefined }> {
  if (path === undefined) return { rows: [], file: undefined };
  const { rows } = loadOverrides(path, reference, asOf);
  const { name, bytes, sha256 } = await storeObject(dataDir, basename(path), () => [createReadStream(path)]);
  return { rows, file: { name, bytes, sha256 } };
}

/** A refusal of inputs that someone went back from, or none. */
function judgeRollback(dataDir: string, { inputHash }: Identity): Refusal[] {
  const found = findRolledBack(dataDir, inputHash);
  if (found === undefined) return [];
  const { release, by, at } = found;
  const message = `the sources are those of release ${release}, which ${by} went back from at ${at}`;
  return [{ gate: 'rolledBack', message }];
}

/** What stays as it is when a build is refused. */
function whatStands(dataDir: string): string {
  const current = currentReleaseId(dataDir);
  return current === undefined ? 'there is still no release' : `release ${current} stands`;
}

/** Ends a build whose inputs someone went back from, before the work begins. */
function refuseRolledBack([refusal]: Refusal[], dataDir: string): void {
  if (refusal === undefined) return;
  const advice = 'Nothing is built until they change, or --force says that the release is wanted again.';
  throw new AtlasError('E_REFUSED', `${refusal.message}; ${whatStands(dataDir)}. ${advice}`);
}

function writeReport({ release, refusals }: Judgement, stages: Runner['report']): void {
  const report = { release: release.id, finished: new Date().toISOString(), refusals, stages };
  writeFileSync(join(release.dir, REPORT_FILE), `${JSON.stringify(report, null, 2)}\n`);
}

/** Puts the release aside and says why. */
async function refuse(judgement: Judgement, { dataDir, workDir }: StageContext): Promise<never> {
  const place = keepRefused(judgement.release, dataDir, workDir);
  await pruneStored(dataDir);
  throw refusalError(judgement, whatStands(dataDir), place);
}

async function runStages(options: BuildOptions, context: StageContext): Promise<BuildResult> {
  const { dataDir, asOf } = context;
  const { force } = options;
  const config = await loadSources(options.sourcesFile);
  const sources = options.only.length === 0 ? config.sources : selectSources(config, options.only);
  const reference = loadReference();
  const countries = countryTable(reference, asOf);
  const { rows: overrides, file: overridesFile } = await readOverrides(config, reference, context);

  const runner = new Runner(context, options.signal);
  const fetched = await runner.run(fetchStage(), sources);
  const identity = identify(
    sources.map((source, index) => ({ config: source, fetched: fetched[index]! })),
    reference,
    countries,
    overrides,
    overridesFile?.sha256 ?? '',
    asOf,
  );
  if (isUnchanged(dataDir, identity, options.asOf !== undefined)) {
    const id = currentReleaseId(dataDir)!;
    context.note(`nothing has changed; release ${id} stands`);
    return { id, outcome: 'unchanged', forced: [] };
  }
  const rolledBack = judgeRollback(dataDir, identity);
  if (!force) refuseRolledBack(rolledBack, dataDir);
  const ingested = await runner.run(
    ingest,
    sources.map((source, index) => ({ source, fetched: fetched[index]! })),
  );
  const normalized = await runner.run(normalizeStage, { sources: ingested, reference, countries, overrides });
  const inputs = manifestInputs(sources, fetched, ingested);
  const compiled = await runner.run(compileStage, { normalized, inputs, overrides: overridesFile, identity });
  const verified = await runner.run(verifyStage, compiled);
  const gates = gateStage({ limits: config.gates, sentinels: reference.sentinels, overrides });
  const judged = await runner.run(gates, verified);
  const judgement = { ...judged, refusals: [...rolledBack, ...judged.refusals] };
  const { refusals } = judgement;
  writeReport(judgement, runner.report);
  if (refusals.length > 0) {
    if (!force) return refuse(judgement, context);
    recordForce(judgement);
  }
  const id = await runner.run(publishStage(config.keepReleases), verified);
  if (rolledBack.length > 0) forgetRolledBack(dataDir, identity.inputHash);
  return { id, outcome: 'published', forced: refusals };
}

/**
 * Builds a release from its sources and publishes it.
 *
 * @throws AtlasError, for everything but internal errors; the current release stays current
 */
export async function build(options: BuildOptions): Promise<BuildResult> {
  const { dataDir, offline, note } = options;
  let unlock: (() => void) | undefined;
  const scratch = join(dataDir, 'tmp');
  try {
    mkdirSync(dataDir, { recursive: true });
    unlock = lockDataDir(dataDir);
    // Under the lock nobody else is at work here: what stands in the way was left by a build that was killed.
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch);
    const workDir = mkdtempSync(join(scratch, 'build-'));
    const asOf = options.asOf ?? new Date().toISOString().slice(0, 10);
    return await runStages(options, { dataDir, workDir, offline, asOf, note });
  } catch (error) {
    throw explainWriteError(error, dataDir);
  } finally {
    if (unlock !== undefined) {
      rmSync(scratch, { recursive: true, force: true });
      unlock();
    }
  }
}
