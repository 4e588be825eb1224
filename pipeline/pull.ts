/**
 * Pulls the current release of a signed repository: metadata and files are checked by TUF, range files and mirror are rebuilt from
 * the pull form, and the release passes this machine's own gates before it is published, as after a build.
 */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CompactCountries } from '../src/compact/countries.js';
import { unpackCompact } from '../src/database/compact.js';
import { PULL_DIR, type PullState, pullStatePath, readPullState } from '../src/database/pull-state.js';
import { currentReleaseId, MIRROR_FILE, RELEASE_ID, RELEASES_DIR, type Refusal } from '../src/database/release.js';
import { checkReleaseMirror, openReleaseRanges } from '../src/database/release-files.js';
import { today } from '../src/day.js';
import { AtlasError, isUnreadable, messageOf, orElse, systemErrorCode } from '../src/errors.js';
import { makeFolder, replaceFile } from '../src/files.js';
import { HISTORY_DAYS } from '../src/limits.js';
import { withoutCredentials } from '../src/url.js';
import { unpackRelease } from './compact-release.js';
import { loadOverrides } from './config/overrides.js';
import { loadReference } from './config/reference.js';
import { loadSources } from './config/sources.js';
import { type PullLimits, RepositoryClient, removeDownloads, trustedExpiry, untrusted } from './distribution/client.js';
import { pullHistory } from './distribution/history.js';
import {
  CURRENT_TARGET,
  type CurrentTarget,
  PULL_FORM,
  REPOSITORY_FORMAT,
  signedOutputs,
} from './distribution/repository.js';
import { RefusedError, type RefusedOutcome } from './gates/refusal.js';
import { withDataDir } from './operations/data-dir.js';
import { currentText, publishGated } from './publish-gated.js';
import { type FinishedRelease, type StageContext, type StageResult, timed } from './stage.js';

export interface PullOptions {
  dataDir: string;
  /** Address of the repository: that of the directory that `ipatlas repo init` made. */
  url: string;
  /** Content of the root metadata that the operator trusts. */
  root: Buffer;
  /** Has the limits of the gates, the overrides and the number of releases to keep; its sources are not used. */
  sourcesFile: string;
  /** Whether to publish although gates refuse. */
  force: boolean;
  /** Days of own publications that the archive keeps; 0 for no history. Default: HISTORY_DAYS. */
  historyDays?: number;
  /** How long to wait for another build or pull that runs. */
  waitMs?: number | undefined;
  /** Limits that only tests change. */
  limits?: Partial<PullLimits>;
  /** Reports progress to the user; one line without a line end. */
  note: (line: string) => void;
}

export interface PullResult {
  id: string;
  /** `unchanged`: the current release is that of the repository. */
  outcome: 'published' | 'unchanged';
  /** The gates that refused a release that was published by force. */
  forced: Refusal[];
}

/**
 * Returns what the repository offers.
 *
 * @throws AtlasError E_UNTRUSTED if it names no release, E_DAMAGED if it has another format
 */
async function offeredByRepository(client: RepositoryClient, workDir: string): Promise<CurrentTarget> {
  const path = join(workDir, CURRENT_TARGET);
  await client.get(CURRENT_TARGET, path);
  const { format, release, outputs, history } = parseObject(readFileSync(path, 'utf8'));
  if (typeof release !== 'string' || !RELEASE_ID.test(release)) {
    throw untrusted(`${CURRENT_TARGET} of the repository does not name a release`);
  }
  if (format === REPOSITORY_FORMAT) {
    const list = Array.isArray(history) ? history.map(String) : [];
    return { format, release, outputs: Array.isArray(outputs) ? outputs.map(String) : [], history: list };
  }
  const isNewer = typeof format === 'number' && format > REPOSITORY_FORMAT;
  const advice = isNewer ? 'update ipatlas here' : 'its operator must update ipatlas, and run "ipatlas repo add" again';
  throw new AtlasError(
    'E_DAMAGED',
    `the repository has the format ${format ?? 1}, and this ipatlas reads format ${REPOSITORY_FORMAT}; ${advice}`,
  );
}

/** Parses a JSON object; returns an empty one for anything else. */
function parseObject(text: string): Record<string, unknown> {
  return Object(orElse(() => JSON.parse(text), isUnreadable, {}));
}

/** Returns whether a release is the current one, with the files that were signed, and they are whole. */
function isCurrent(dataDir: string, { release: id, outputs }: CurrentTarget, note: StageContext['note']): boolean {
  if (currentReleaseId(dataDir) !== id) return false;
  const dir = join(dataDir, RELEASES_DIR, id);
  try {
    const { manifest } = openReleaseRanges(dir);
    checkReleaseMirror(dir);
    return String(signedOutputs(manifest)) === String(outputs);
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    note(`the current release ${id} is damaged and will be pulled again: ${error.message}`);
    return false;
  }
}

/**
 * Remembers that the gates refused a release: a schedule that asks each few minutes must not download, write and compare it
 * each time. Anything that may change the outcome ends the memory.
 */
class RefusalMemory {
  readonly #path: string;
  readonly #attempt: string;

  /** @param circumstances what the outcome depends on */
  constructor(stateDir: string, circumstances: readonly unknown[]) {
    this.#path = join(stateDir, 'refused.json');
    this.#attempt = createHash('sha256').update(JSON.stringify(circumstances)).digest('hex');
  }

  /** @throws AtlasError E_REFUSED with the same message if the last attempt was the same and was refused */
  repeat(note: (line: string) => void): void {
    const { attempt, message, refused } = parseObject(readIfPresent(this.#path));
    if (attempt !== this.#attempt) return;
    note('this release was refused before, and nothing has changed since');
    throw new RefusedError(String(message), refused as RefusedOutcome);
  }

  /** Runs the gates, and remembers if they refuse. */
  async keep<Result>(publish: () => Promise<Result>): Promise<Result> {
    rmSync(this.#path, { force: true });
    try {
      return await publish();
    } catch (error) {
      if (error instanceof RefusedError) {
        const { message, refused } = error;
        replaceFile(this.#path, [`${JSON.stringify({ attempt: this.#attempt, message, refused })}\n`]);
      }
      throw error;
    }
  }
}

function readIfPresent(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** Stage `fetch`: gets the pull form of a release; returns its path. */
async function fetchForm(
  client: RepositoryClient,
  id: string,
  { workDir }: StageContext,
): Promise<StageResult<string>> {
  const path = join(workDir, PULL_FORM);
  await client.get(`${id}/${PULL_FORM}`, path);
  return { output: path, counts: { release: id, bytes: statSync(path).size } };
}

/**
 * Stage `compile`: rebuilds the files of the release, and writes its mirror.
 *
 * @throws AtlasError E_UNTRUSTED if it is another release; E_DAMAGED if this ipatlas cannot read it
 */
function compileForm(path: string, id: string, { workDir }: StageContext): StageResult<FinishedRelease> {
  const dir = join(workDir, 'release');
  mkdirSync(dir);
  const form = `${id}/${PULL_FORM}`;
  const manifest = unpackRelease(new CompactCountries(unpackCompact(readFileSync(path), form), form), form, dir);
  if (manifest.id !== id) throw untrusted(`${form} is that of release ${manifest.id}`);
  return { output: { id, dir }, counts: { mirror_bytes: statSync(join(dir, MIRROR_FILE)).size } };
}

async function runPull(options: PullOptions, context: StageContext, stateDir: string): Promise<PullResult> {
  const { url, root, limits, force } = options;
  const { dataDir, workDir, note } = context;
  const config = await loadSources(options.sourcesFile);
  const reference = loadReference();
  const { rows: overrides } =
    config.overrides === undefined ? { rows: [] } : loadOverrides(config.overrides, reference, context.asOf);

  const client = await RepositoryClient.open({ url, root, stateDir, workDir, limits, note });
  const offered = await offeredByRepository(client, workDir);
  const { release: id, history: packs } = offered;
  const historyDays = options.historyDays ?? HISTORY_DAYS;
  const memory = new RefusalMemory(stateDir, [
    await client.hashOf(`${id}/${PULL_FORM}`),
    currentReleaseId(dataDir),
    context.asOf,
    config.gates,
    config.overrides === undefined ? '' : readFileSync(config.overrides, 'utf8'),
  ]);
  if (!force) memory.repeat(note);
  if (!force && isCurrent(dataDir, offered, note)) {
    note(`nothing has changed; ${currentText(dataDir)}`);
    if (historyDays > 0) await pullHistory(client, packs, context);
    return { id, outcome: 'unchanged', forced: [] };
  }
  const form = await timed(context, 'fetch', () => fetchForm(client, id, context));
  const compiled = await timed(context, 'compile', () => compileForm(form, id, context));
  const { sentinels, networkSentinels } = reference;
  const forced = await memory.keep(() =>
    publishGated(compiled, context, {
      config,
      sentinels,
      networkSentinels,
      overrides,
      force,
      command: 'pull',
      historyDays,
    }),
  );
  if (historyDays > 0) await pullHistory(client, packs, context);
  return { id, outcome: 'published', forced };
}

/** Records the outcome of a pull for the metrics. */
function recordState({ dataDir, url, note }: PullOptions, problem: AtlasError | undefined): void {
  const stateDir = join(dataDir, PULL_DIR);
  const checked = new Date().toISOString();
  const state: PullState = {
    url: withoutCredentials(url),
    checked,
    succeeded: problem === undefined ? checked : (readPullState(dataDir)?.succeeded ?? null),
    expires: trustedExpiry({ stateDir, url }),
    problem: problem === undefined ? null : { code: problem.code, message: problem.message },
  };
  try {
    makeFolder(stateDir);
    replaceFile(pullStatePath(dataDir), [`${JSON.stringify(state, null, 2)}\n`]);
  } catch (error) {
    if (problem === undefined || systemErrorCode(error) === undefined) throw error;
    note(`the failure cannot be recorded: ${messageOf(error)}`);
  }
}

/**
 * Pulls the current release of a repository and publishes it, unless it is current already.
 *
 * @throws AtlasError for every failure that is not a bug; the current release then stays current. E_FETCH if the repository
 *   cannot be fetched, E_UNTRUSTED or E_EXPIRED if its metadata is not to be trusted, E_REFUSED if gates refuse the release
 */
export async function pull(options: PullOptions): Promise<PullResult> {
  const { dataDir, note } = options;
  const asOf = today();
  try {
    return await withDataDir(
      dataDir,
      async (workDir) => {
        const stateDir = join(dataDir, PULL_DIR);
        makeFolder(stateDir);
        const context = { dataDir, workDir, offline: false, asOf, note, stages: [] };
        const result = await runPull(options, context, stateDir);
        removeDownloads(stateDir);
        recordState(options, undefined);
        return result;
      },
      options.waitMs,
    );
  } catch (error) {
    // Recorded without the temporary files: if the disk was full, there is space now. A pull or build that runs is no failure.
    if (error instanceof AtlasError && error.code !== 'E_BUSY') recordState(options, error);
    throw error;
  }
}
