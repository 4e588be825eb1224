/** Stage `fetch`: the files of every source at hand in the cache, from the network, the cache, `node_modules` or a path. */
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { glob } from 'zx';
import { AtlasError, isDiskError, messageOf, systemErrorCode } from '../../src/errors.js';
import {
  FETCH_BACKOFF_MS,
  FETCH_CONCURRENCY,
  FETCH_IDLE_TIMEOUT_MS,
  FETCH_MAX_BACKOFF_MS,
  FETCH_RETRIES,
  FETCH_TRY_TIMEOUT_MS,
  MAX_DOWNLOAD_BYTES,
  MAX_RETRY_AFTER_MS,
  MAX_UNPACKED_BYTES,
  NPM_TIMEOUT_MS,
} from '../../src/limits.js';
import { packageRoot } from '../../src/package-root.js';
import type { FetchConfig, FileFetch, HttpsFetch, NpmFetch, SourceConfig } from '../config/sources.js';
import { type CacheEntry, cachedFiles, readEntry, writeEntry } from '../fetching/cache.js';
import { type DownloadLimits, download, fillPlaceholders, nameOfUrl } from '../fetching/https.js';
import { findPinned, packPackage, resolvePackage, takeFromPinned, takeFromTarball } from '../fetching/npm.js';
import { takeFiles } from '../fetching/unpack.js';
import type { Counts, FetchedFile, FetchedSource, Stage, StageContext } from '../stage.js';

/** Limits of a fetch; the defaults are in `src/limits.ts`. */
export interface FetchLimits extends DownloadLimits {
  maxUnpackedBytes: number;
  npmTimeoutMs: number;
}

/** What may be set otherwise than usual, mostly by tests. */
export interface FetchOptions {
  limits?: Partial<FetchLimits>;
  /** Environment of npm, and of `${NAME}` in addresses. */
  env?: NodeJS.ProcessEnv;
  /** Where the search for pinned copies starts: the root of the package. */
  packageRoot?: string;
  /** Waits between tries. */
  wait?: (milliseconds: number) => Promise<unknown>;
}

const DEFAULT_LIMITS: FetchLimits = {
  maxDownloadBytes: MAX_DOWNLOAD_BYTES,
  maxUnpackedBytes: MAX_UNPACKED_BYTES,
  retries: FETCH_RETRIES,
  idleTimeoutMs: FETCH_IDLE_TIMEOUT_MS,
  tryTimeoutMs: FETCH_TRY_TIMEOUT_MS,
  backoffMs: FETCH_BACKOFF_MS,
  maxBackoffMs: FETCH_MAX_BACKOFF_MS,
  maxRetryAfterMs: MAX_RETRY_AFTER_MS,
  npmTimeoutMs: NPM_TIMEOUT_MS,
};

/** One source being fetched. */
interface Job {
  source: SourceConfig;
  dataDir: string;
  /** A folder of this job alone; removed at its end. */
  workDir: string;
  offline: boolean;
  note: (text: string) => void;
  limits: FetchLimits;
  env: NodeJS.ProcessEnv;
  packageRoot: string;
  wait: (milliseconds: number) => Promise<unknown>;
}

/**
 * The stage. It takes the sources of a build and gives their files, in the same order.
 *
 * Errors it ends with: E_FETCH for everything that kept a source from being had, each source and reason named; E_DATA_DIR
 * where the data directory can't be written.
 */
export function fetchStage(options: FetchOptions = {}): Stage<SourceConfig[], FetchedSource[]> {
  return { name: 'fetch', run: (sources, context) => fetchSources(sources, context, options) };
}

async function fetchSources(
  sources: SourceConfig[],
  context: StageContext,
  options: FetchOptions,
): Promise<{ output: FetchedSource[]; counts: Counts }> {
  const results = await settleAll(sources, FETCH_CONCURRENCY, (source) => runJob(jobOf(source, context, options)));
  const output: FetchedSource[] = [];
  const failures: AtlasError[] = [];
  for (const result of results) {
    if (result.status === 'fulfilled') output.push(result.value);
    else failures.push(result.reason);
  }
  if (failures[0] !== undefined) {
    // A full disk says the same of every source; once is enough.
    const messages = new Set(failures.map(messageOf));
    throw new AtlasError(failures[0].code, [...messages].join('\n'), { cause: failures[0] });
  }
  return { output, counts: countsOf(output) };
}

function jobOf(source: SourceConfig, context: StageContext, options: FetchOptions): Job {
  return {
    source,
    dataDir: context.dataDir,
    workDir: path.resolve(context.workDir, `fetch-${source.id}`),
    offline: context.offline,
    note: (text) => context.note(`${source.id}: ${text}`),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    env: options.env ?? process.env,
    packageRoot: options.packageRoot ?? packageRoot(),
    wait: options.wait ?? sleep,
  };
}

/** Runs `task` for each item, at most `limit` at a time. All are settled when it returns, so nothing works on behind it. */
async function settleAll<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = [];
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) {
      const [result] = await Promise.allSettled([task(item)]);
      results[index] = result;
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  return results;
}

async function runJob(job: Job): Promise<FetchedSource> {
  try {
    await mkdir(job.workDir, { recursive: true });
    return await fetchSource(job);
  } catch (error) {
    throw jobError(job, error);
  } finally {
    await rm(job.workDir, { recursive: true, force: true });
  }
}

function fetchSource(job: Job): Promise<FetchedSource> {
  const { fetch } = job.source;
  if (fetch.kind === 'file') return fetchFile(job, fetch);
  if (job.offline) return fetchOffline(job, fetch);
  return fetch.kind === 'npm' ? fetchNpm(job, fetch) : fetchHttps(job, fetch);
}

async function fetchFile(job: Job, fetch: FileFetch): Promise<FetchedSource> {
  const paths = await pathsOf(fetch);
  if (paths.length === 0) throw new Error(`no file matches, relative to ${fetch.baseDir}`);
  const inputs = paths.map((file) => ({ path: file, name: path.basename(file) }));
  const files = await takeFiles(job.dataDir, inputs, fetch.files, job.limits.maxUnpackedBytes);
  return fetched(job, 'file', '', files);
}

/** The files a path or glob names, in order of name. A path that exists is that file, whatever characters are in it. */
async function pathsOf({ pattern, baseDir }: FileFetch): Promise<string[]> {
  const literal = path.resolve(baseDir, pattern);
  if (existsSync(literal)) return [literal];
  const found = await glob(pattern, { cwd: baseDir, absolute: true });
  return found.sort();
}

async function fetchOffline(job: Job, fetch: NpmFetch | HttpsFetch): Promise<FetchedSource> {
  const cached = await cachedCopy(job);
  if (cached !== undefined) return fetched(job, 'cache', cached.entry.version, cached.files);
  if (fetch.kind === 'npm') {
    const pinned = await findPinned(fetch, job.packageRoot);
    if (pinned !== undefined) {
      const files = await takeFromPinned(job.dataDir, pinned, fetch.files);
      return fetched(job, 'pinned', pinned.version, files);
    }
  }
  const places = fetch.kind === 'npm' ? 'the cache or node_modules' : 'the cache';
  throw new Error(`no usable copy in ${places}; build once without --offline`);
}

async function fetchNpm(job: Job, fetch: NpmFetch): Promise<FetchedSource> {
  const npm = { workDir: job.workDir, env: job.env, timeoutMs: job.limits.npmTimeoutMs };
  const resolved = await resolvePackage(fetch.spec, npm);
  const { version, integrity } = resolved;
  const cached = await cachedCopy(job);
  if (cached?.entry.version === version && cached.entry.integrity === integrity) {
    return fetched(job, 'cache', version, cached.files);
  }
  const tarball = await packPackage(resolved, npm, job.limits.maxDownloadBytes);
  const files = await takeFromTarball(job.dataDir, tarball, fetch.files, job.workDir, job.limits.maxUnpackedBytes);
  await remember(job, { version, integrity, etag: '', lastModified: '' }, files);
  return fetched(job, 'network', version, files);
}

async function fetchHttps(job: Job, fetch: HttpsFetch): Promise<FetchedSource> {
  const url = fillPlaceholders(fetch.url, job.env);
  const target = path.join(job.workDir, 'download');
  const cached = await cachedCopy(job);
  const answer = await download(url, target, cached?.entry, job);
  if (answer === 'unchanged' && cached !== undefined) {
    return fetched(job, 'cache', cached.entry.version, cached.files);
  }
  if (answer === 'unchanged') throw new Error('the server answered 304 to a request without conditions');
  const input = { path: target, name: nameOfUrl(url) };
  const files = await takeFiles(job.dataDir, [input], fetch.files, job.limits.maxUnpackedBytes);
  const version = downloadVersion(answer);
  await remember(job, { version, integrity: '', ...answer }, files);
  return fetched(job, 'network', version, files);
}

/** The version of a download: its ETag without quotes and weakness mark, else its date in UTC, else nothing. */
function downloadVersion({ etag, lastModified }: { etag: string; lastModified: string }): string {
  if (etag !== '') return etag.replace(/^W\//, '').replaceAll('"', '');
  const date = new Date(lastModified);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

/** What the cache has for the source's request, every file checked, or undefined. */
async function cachedCopy(job: Job): Promise<{ entry: CacheEntry; files: FetchedFile[] } | undefined> {
  const entry = await readEntry(job.dataDir, job.source.id, requestKey(job.source.fetch));
  if (entry === undefined) return undefined;
  const files = await cachedFiles(job.dataDir, entry);
  if (files === undefined) {
    job.note('the cached copy is damaged, so it is not used');
    return undefined;
  }
  return { entry, files };
}

async function remember(
  job: Job,
  facts: Pick<CacheEntry, 'version' | 'integrity' | 'etag' | 'lastModified'>,
  files: readonly FetchedFile[],
): Promise<void> {
  await writeEntry(job.dataDir, job.source.id, {
    format: 1,
    request: requestKey(job.source.fetch),
    ...facts,
    fetchedAt: new Date().toISOString(),
    files: files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
  });
}

/** A request as text: two are the same if and only if they ask for the same files of the same origin. */
function requestKey(fetch: FetchConfig): string {
  return JSON.stringify([fetch.kind, originOf(fetch), fetch.files]);
}

/** Where a source comes from, as its configuration says it. */
function originOf(fetch: FetchConfig): string {
  switch (fetch.kind) {
    case 'npm':
      return fetch.spec;
    case 'https':
      return fetch.url;
    case 'file':
      return fetch.pattern;
  }
}

/** How a person is told where a copy came from. */
const FROM_TEXT = { network: 'fetched', cache: 'from the cache', pinned: 'pinned copy', file: 'read' } as const;

function fetched(job: Job, from: FetchedSource['from'], version: string, files: FetchedFile[]): FetchedSource {
  job.note(version === '' ? FROM_TEXT[from] : `${version}, ${FROM_TEXT[from]}`);
  return { id: job.source.id, version, from, files };
}

/** A failure of a job, as the error the build ends with. */
function jobError(job: Job, error: unknown): AtlasError {
  if (error instanceof AtlasError) return error;
  const { path: file } = error as NodeJS.ErrnoException;
  const isOurs = [path.resolve(job.dataDir, 'cache'), job.workDir].some((directory) => file?.startsWith(directory));
  // A full or read-only disk is the data directory's, whichever file the error names.
  if (isOurs || isDiskError(error) || systemErrorCode(error) === 'EROFS') {
    const advice = 'make room, or name another directory with --data';
    return new AtlasError(
      isDiskError(error) ? 'E_DISK' : 'E_DATA_DIR',
      `cannot use the data directory ${job.dataDir}: ${messageOf(error)}; ${advice}`,
      {
        cause: error,
      },
    );
  }
  const origin = originOf(job.source.fetch);
  const what = `source "${job.source.id}": cannot get ${origin}: ${messageOf(error)}`;
  return new AtlasError('E_FETCH', `${what}. The current release stays current`, { cause: error });
}

function countsOf(sources: readonly FetchedSource[]): Counts {
  const files = sources.flatMap((source) => source.files);
  const from = (origin: FetchedSource['from']) => sources.filter((source) => source.from === origin).length;
  return {
    sources: sources.length,
    files: files.length,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    network: from('network'),
    cache: from('cache'),
    pinned: from('pinned'),
    file: from('file'),
  };
}
