/**
 * Pulls the current release of a signed repository: metadata and files are checked by TUF, range file and mirror are rebuilt from
 * the pull form, and the release passes this machine's own gates before it is published, as after a
 * build.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CompactCountries } from '../src/compact/countries.js';
import { unpackCompact } from '../src/database/compact.js';
import { PULL_DIR, type PullState, pullStatePath, readPullState } from '../src/database/pull-state.js';
import {
  currentReleaseId,
  keptReleaseDirs,
  LABEL_FILE,
  MANIFEST_FILE,
  type Manifest,
  MIRROR_FILE,
  NETWORK_FILE,
  RANGE_FILE,
  RELEASE_ID,
  RELEASES_DIR,
  type Refusal,
  readManifest,
} from '../src/database/release.js';
import { checkReleaseMirror, openReleaseRanges } from '../src/database/release-files.js';
import { AtlasError, messageOf, systemErrorCode } from '../src/errors.js';
import { makeFolder, replaceFile } from '../src/files.js';
import { HISTORY_DAYS } from '../src/limits.js';
import type { MirrorRanges } from '../src/mirror/writer.js';
import { type LabelFile, openLabelFile, openNetworkFile, openRangeFile } from '../src/rangefile/reader.js';
import { withoutCredentials } from '../src/url.js';
import { unpackFiles } from './compact-release.js';
import { loadOverrides } from './config/overrides.js';
import { loadReference } from './config/reference.js';
import { loadSources } from './config/sources.js';
import { type PullLimits, RepositoryClient, removeDownloads, trustedExpiry, untrusted } from './distribution/client.js';
import { pullHistory } from './distribution/history.js';
import { COLUMNS_FILE, CURRENT_TARGET, PULL_FORM } from './distribution/repository.js';
import { RefusedError, type RefusedOutcome } from './gates/refusal.js';
import { withDataDir } from './operations/data-dir.js';
import { currentText, publishGated } from './publish-gated.js';
import { joinMirrorColumns, writeLocalMirror } from './release-mirror.js';
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
  /** Ends the pull before its next stage. */
  signal?: AbortSignal | undefined;
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

/** Returns the id of the release that the repository offers, and the targets of its packs of history. */
async function offeredByRepository(
  client: RepositoryClient,
  workDir: string,
): Promise<{ id: string; packs: string[] }> {
  const path = join(workDir, CURRENT_TARGET);
  await client.get(CURRENT_TARGET, path);
  const { release, history } = parseObject(readFileSync(path, 'utf8'));
  if (typeof release === 'string' && RELEASE_ID.test(release)) {
    return { id: release, packs: Array.isArray(history) ? history.map(String) : [] };
  }
  throw untrusted(`${CURRENT_TARGET} of the repository does not name a release`);
}

/** Parses a JSON object; returns an empty one for anything else. */
function parseObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** Returns whether a release is the current one and its files are whole. */
function isCurrent(dataDir: string, id: string, note: StageContext['note']): boolean {
  if (currentReleaseId(dataDir) !== id) return false;
  const dir = join(dataDir, RELEASES_DIR, id);
  try {
    openReleaseRanges(dir);
    checkReleaseMirror(dir);
    return true;
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    note(`the current release ${id} is damaged and will be pulled again: ${error.message}`);
    return false;
  }
}

/** Returns the files on this machine that have a name and a hash, for example after a rollback at the origin. */
function localCopies(dataDir: string, wanted: string, hash: string): string[] {
  return keptReleaseDirs(dataDir)
    .filter((dir) => {
      try {
        return readManifest(dir).outputs.some(({ name, sha256 }) => name === wanted && sha256 === hash);
      } catch (error) {
        if (error instanceof AtlasError) return false; // a damaged release
        throw error;
      }
    })
    .map((dir) => join(dir, wanted));
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

/** A release of which only the mirror is missing. */
interface FetchedRelease extends FinishedRelease {
  manifest: Manifest;
  /** What the mirror is written from. */
  ranges: MirrorRanges;
}

/**
 * Rebuilds the range file of a release, and its networks, from its pull form.
 *
 * @param manifest the signed one, which has the hashes of both
 * @param dir directory of the new files
 * @returns the ranges of the mirror; undefined if the repository has no pull form, or one that does not give the signed file
 * @throws AtlasError E_FETCH if the pull form cannot be fetched
 */
async function rebuildFiles(
  client: RepositoryClient,
  manifest: Manifest,
  dir: string,
  { workDir, note }: StageContext,
): Promise<MirrorRanges | undefined> {
  const form = `${manifest.id}/${PULL_FORM}`;
  if (!(await client.has(form))) return undefined;
  const path = join(workDir, PULL_FORM);
  try {
    await client.get(form, path);
    const compact = new CompactCountries(unpackCompact(readFileSync(path), form), form);
    return unpackFiles(compact, manifest, form, dir);
  } catch (error) {
    if (!(error instanceof AtlasError) || !['E_UNTRUSTED', 'E_DAMAGED'].includes(error.code)) throw error;
    note(`the full files are pulled, because the pull form is refused: ${error.message}`);
    return undefined;
  }
}

/**
 * Stage `fetch`: gets a release into a folder. The range file is a copy on this machine, or rebuilt from the pull form, or
 * downloaded.
 */
async function fetchRelease(
  client: RepositoryClient,
  id: string,
  context: StageContext,
): Promise<StageResult<FetchedRelease>> {
  const { dataDir, workDir } = context;
  const dir = join(workDir, 'release');
  mkdirSync(dir);
  await client.get(`${id}/${MANIFEST_FILE}`, join(dir, MANIFEST_FILE));
  const manifest = readManifest(dir);
  if (manifest.id !== id) {
    throw untrusted(`the manifest of release ${id} is that of ${manifest.id}`);
  }
  const copiesOf = async (name: string): Promise<string[]> =>
    localCopies(dataDir, name, await client.hashOf(`${id}/${name}`));
  let labels: LabelFile | undefined;
  if (manifest.labels !== undefined) {
    const path = join(dir, LABEL_FILE);
    await client.get(`${id}/${LABEL_FILE}`, path, await copiesOf(LABEL_FILE));
    labels = openLabelFile(path, manifest.labels.columns);
  }
  const rangeFile = join(dir, RANGE_FILE);
  const copies = await copiesOf(RANGE_FILE);
  const rebuilt = copies.length === 0 ? await rebuildFiles(client, manifest, dir, context) : undefined;
  if (rebuilt !== undefined) {
    return { output: { id, dir, manifest, ranges: { ...rebuilt, labels } }, counts: { release: id } };
  }
  await client.get(`${id}/${RANGE_FILE}`, rangeFile, copies);
  const columns = join(workDir, COLUMNS_FILE);
  await client.get(`${id}/${COLUMNS_FILE}`, columns);
  const file = openRangeFile(rangeFile);
  const ranges = joinMirrorColumns(file, manifest.inputs, readFileSync(columns), COLUMNS_FILE);
  if (manifest.outputs.some(({ name }) => name === NETWORK_FILE)) {
    const path = join(dir, NETWORK_FILE);
    await client.get(`${id}/${NETWORK_FILE}`, path, await copiesOf(NETWORK_FILE));
    ranges.networks = openNetworkFile(path);
  }
  return { output: { id, dir, manifest, ranges: { ...ranges, labels } }, counts: { release: id } };
}

/** Stage `compile`: writes the mirror. */
function compileMirror({ id, dir, manifest, ranges }: FetchedRelease): StageResult<FinishedRelease> {
  writeLocalMirror(dir, manifest, ranges);
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
  const { id, packs } = await offeredByRepository(client, workDir);
  const historyDays = options.historyDays ?? HISTORY_DAYS;
  const memory = new RefusalMemory(stateDir, [
    await client.hashOf(`${id}/${MANIFEST_FILE}`),
    currentReleaseId(dataDir),
    context.asOf,
    config.gates,
    config.overrides === undefined ? '' : readFileSync(config.overrides, 'utf8'),
  ]);
  if (!force) memory.repeat(note);
  if (!force && isCurrent(dataDir, id, note)) {
    note(`nothing has changed; ${currentText(dataDir)}`);
    if (historyDays > 0) await pullHistory(client, packs, context);
    return { id, outcome: 'unchanged', forced: [] };
  }
  const fetched = await timed(context, 'fetch', () => fetchRelease(client, id, context));
  const compiled = await timed(context, 'compile', () => compileMirror(fetched));
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
  const { dataDir, note, signal } = options;
  const asOf = new Date().toISOString().slice(0, 10);
  try {
    return await withDataDir(dataDir, async (workDir) => {
      const stateDir = join(dataDir, PULL_DIR);
      makeFolder(stateDir);
      const context = { dataDir, workDir, offline: false, asOf, note, signal, stages: [] };
      const result = await runPull(options, context, stateDir);
      removeDownloads(stateDir);
      recordState(options, undefined);
      return result;
    });
  } catch (error) {
    // Recorded without the temporary files: if the disk was full, there is space now. A pull or build that runs is no failure.
    if (error instanceof AtlasError && error.code !== 'E_BUSY') recordState(options, error);
    throw error;
  }
}
