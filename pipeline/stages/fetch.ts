/** Stage `fetch`: puts the files of every source into the cache, from the network, `node_modules`, or a path. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AtlasError, messageOf } from '../../src/errors.js';
import {
  FETCH_BACKOFF_MS,
  FETCH_DEADLINE_MS,
  FETCH_IDLE_TIMEOUT_MS,
  FETCH_MAX_BACKOFF_MS,
  MAX_DOWNLOAD_BYTES,
  MAX_UNPACKED_BYTES,
} from '../../src/limits.js';
import { packageRoot } from '../../src/package-root.js';
import { counted } from '../../src/text-table.js';
import type { SourceConfig } from '../config/sources.js';
import { type FetchJob, type FetchLimits, fetchSource } from '../fetching/fetch-source.js';
import type { Counts, FetchedSource, FetchedSources, MissingSource, StageContext, StageResult } from '../stage.js';

/** Sources fetched at the same time. */
const FETCH_CONCURRENCY = 4;

/** How often a failed download is retried. */
const FETCH_RETRIES = 4;

/** Longest `Retry-After` that is obeyed, in milliseconds. A server that asks for more is asked again earlier. */
const MAX_RETRY_AFTER_MS = 120_000;

/** Settings that only tests change. */
export interface FetchOptions {
  limits?: Partial<FetchLimits>;
  /** Environment of `${NAME}` in addresses, and for proxies. */
  env?: NodeJS.ProcessEnv;
  /** Directory in which the search for installed packages starts: the root of the package. */
  packageRoot?: string;
  /** Waits between attempts. */
  wait?: (milliseconds: number) => Promise<unknown>;
}

const DEFAULT_LIMITS: FetchLimits = {
  maxDownloadBytes: MAX_DOWNLOAD_BYTES,
  maxUnpackedBytes: MAX_UNPACKED_BYTES,
  retries: FETCH_RETRIES,
  idleTimeoutMs: FETCH_IDLE_TIMEOUT_MS,
  tryTimeoutMs: FETCH_DEADLINE_MS,
  deadlineMs: FETCH_DEADLINE_MS,
  backoffMs: FETCH_BACKOFF_MS,
  maxBackoffMs: FETCH_MAX_BACKOFF_MS,
  maxRetryAfterMs: MAX_RETRY_AFTER_MS,
};

/**
 * The stage. Its output has the sources in the order of its input, without the optional ones that cannot be had.
 *
 * Errors it ends with: E_FETCH with each source that cannot be had, and why; E_CONFIG if an environment variable is not
 * set; E_DATA_DIR or E_DISK if the data directory cannot be written.
 */
export async function fetchSources(
  sources: SourceConfig[],
  context: StageContext,
  options: FetchOptions = {},
): Promise<StageResult<FetchedSources>> {
  const details: string[] = [];
  const clockErrors: number[] = [];
  const results = await settleAll(sources, FETCH_CONCURRENCY, (source) =>
    fetchSource(jobOf(source, context, options, details, clockErrors)),
  );
  const output: FetchedSources = { sources: [], missing: [], clockErrors };
  const failures: AtlasError[] = [];
  results.forEach((result, index) => {
    const { id, optional } = sources[index]!;
    if (result.status === 'fulfilled') output.sources.push(result.value);
    else if (!(result.reason instanceof AtlasError)) throw result.reason;
    else if (optional && result.reason.code === 'E_FETCH') output.missing.push({ id, reason: result.reason.message });
    else failures.push(result.reason);
  });
  if (failures.length === 0 && output.sources.length === 0) {
    failures.push(...output.missing.map(({ reason }) => new AtlasError('E_FETCH', reason)));
  }
  const summary = failures.length === 0 && context.brief === true ? withoutServers(output, context.offline) : undefined;
  if (summary !== undefined) details.splice(0, details.length, summary);
  // The error says everything about the sources that cannot be had.
  if (failures[0] !== undefined && context.brief === true) throw fetchError(failures);
  for (const line of details) context.note(line);
  if (failures[0] !== undefined) throw fetchError(failures);
  for (const { reason } of summary === undefined ? output.missing : []) {
    context.note(`${reason}. It is optional, so the build continues without it`);
  }
  return { output, counts: countsOf(output) };
}

/** Returns one line on all sources if no server was reached and some are missing or a seed, else undefined. */
function withoutServers({ sources, missing }: FetchedSources, offline: boolean): string | undefined {
  const seeds = sources.filter(({ seed }) => seed !== undefined);
  if (sources.some(({ from }) => from === 'network') || seeds.length + missing.length === 0) return undefined;
  const seedDate = seeds.map(({ dataDate }) => dataDate?.date ?? '').sort()[0];
  const cached = sources.filter(({ from }) => from === 'cache').length;
  const facts = [
    seedDate === undefined ? '' : `seed${seedDate === '' ? '' : ` of ${month(seedDate)}`}`,
    cached === 0 ? '' : `${counted(cached, 'source')} from the cache`,
    missing.length === 0 ? '' : `${counted(missing.length, 'live source')} skipped`,
  ];
  const head = offline ? 'offline' : 'no server was reached';
  return `${head}: ${facts.filter((fact) => fact !== '').join('; ')} (--verbose has the details)`;
}

/** Formats the month of a date: `June 2026`. */
function month(date: string): string {
  return new Date(date).toLocaleDateString('en-US', { month: 'long', year: 'numeric', timeZone: 'UTC' });
}

/** Returns the error for sources that cannot be had. */
function fetchError(failures: readonly AtlasError[]): AtlasError {
  // A full disk gives the same message for every source.
  const messages = [...new Set(failures.map(messageOf))];
  const { code } = failures[0]!;
  const advice = 'fix the place or the network, or choose other sources with --only; a current release stays';
  const text = messages.join('\n');
  const separator = messages.some((message) => message.includes('\n')) ? '\n' : '; ';
  return new AtlasError(code, code === 'E_FETCH' ? `${text}${separator}${advice}` : text, { cause: failures[0] });
}

/**
 * @param details receives what says where the files are from, if that is to be brief
 * @param clockErrors receives by how much the clock is ahead of each server that answers
 */
function jobOf(
  source: SourceConfig,
  context: StageContext,
  options: FetchOptions,
  details: string[],
  clockErrors: number[],
): FetchJob {
  const note = (text: string): void => context.note(`${source.id}: ${text}`);
  let hasFailed = false;
  return {
    source,
    dataDir: context.dataDir,
    workDir: path.resolve(context.workDir, `fetch-${source.id}`),
    offline: context.offline,
    asOf: context.asOf,
    note,
    // To be brief, only the first try that fails is told.
    retrying: (text) => {
      if (!hasFailed || context.brief !== true) note(text);
      hasFailed = true;
    },
    detail: context.brief === true ? (text) => details.push(`${source.id}: ${text}`) : note,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    env: options.env ?? process.env,
    packageRoot: options.packageRoot ?? packageRoot(),
    wait: options.wait ?? sleep,
    serverTime: (time) => clockErrors.push(Date.now() - time),
  };
}

/** Runs `task` for each item, at most `limit` at a time. Returns when all are settled, so none is still running then. */
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

function countsOf({ sources, missing }: { sources: FetchedSource[]; missing: MissingSource[] }): Counts {
  const files = sources.flatMap((source) => source.files);
  const from = (origin: FetchedSource['from']) => sources.filter((source) => source.from === origin).length;
  return {
    sources: sources.length,
    ...(missing.length > 0 && { missing: missing.length }),
    files: files.length,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    network: from('network'),
    cache: from('cache'),
    bundled: from('bundled'),
    file: from('file'),
  };
}
