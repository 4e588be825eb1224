/** Fetches one source: tries its locations in order, and uses the cached copy of a location that cannot be reached. */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { glob } from 'zx';
import { AtlasError, causedError, fileAdvice, isDiskError, messageOf, systemErrorCode } from '../../src/errors.js';
import { makeFolder } from '../../src/files.js';
import { withoutCredentials } from '../../src/url.js';
import { milliseconds, runCommand } from '../config/commands.js';
import type {
  CommandLocation,
  FileLocation,
  HttpsLocation,
  Location,
  NpmLocation,
  SourceConfig,
} from '../config/sources.js';
import { fillDate, fillVariables, hasDate } from '../config/url.js';
import type { DataDate, FetchedFile, FetchedSource } from '../stage.js';
import { type CachedDownload, type CacheEntry, cachedFiles, readEntry, writeEntry } from './cache.js';
import { findDataDate } from './data-date.js';
import {
  checkDownload,
  type DownloadLimits,
  download,
  NotFoundError,
  nameOfUrl,
  TransientError,
  withRetries,
} from './https.js';
import { findBundled, takeFromBundled } from './npm.js';
import { takeFiles } from './unpack.js';

/** Periods (months or days) that a download goes back if its address has a date and there is no such file yet. */
const MAX_PERIODS_BACK = 1;

/** Limits of a fetch; the defaults are in `stages/fetch.ts`. */
export interface FetchLimits extends DownloadLimits {
  maxUnpackedBytes: number;
}

/** One source being fetched. */
export interface FetchJob {
  source: SourceConfig;
  dataDir: string;
  /** A temporary folder of this job; removed at its end. */
  workDir: string;
  offline: boolean;
  /** Day of the build, `YYYY-MM-DD`, for dates in addresses. */
  asOf: string;
  note: (text: string) => void;
  /** See DownloadContext. */
  retrying: (text: string) => void;
  /** As `note`, for what says where the files are from. */
  detail: (text: string) => void;
  limits: FetchLimits;
  env: NodeJS.ProcessEnv;
  /** Directory in which the search for installed packages starts. */
  packageRoot: string;
  wait: (milliseconds: number) => Promise<unknown>;
  /** See DownloadContext. */
  serverTime: (time: number) => void;
}

/** What a location gives. */
type Copy = Pick<FetchedSource, 'version' | 'from' | 'files' | 'dataDate' | 'accept'>;

/**
 * Fetches a source.
 *
 * @throws AtlasError E_FETCH with the reason for each location if none has the source, E_CONFIG if an environment variable is
 *   not set, E_DATA_DIR or E_DISK if the data directory cannot be written
 */
export async function fetchSource(job: FetchJob): Promise<FetchedSource> {
  const { source } = job;
  const failures: string[] = [];
  for (const [index, location] of source.locations.entries()) {
    try {
      makeFolder(job.workDir);
      const copy = await fetchLocation(job, location, index);
      job.detail(copy.version === '' ? FROM_TEXT[copy.from] : `${copy.version}, ${FROM_TEXT[copy.from]}`);
      if (location.seed !== undefined) job.detail(`only a seed for the first build: ${location.seed}`);
      return {
        id: source.id,
        source: withLocation(source, location),
        seed: location.seed,
        location: originText(location),
        ...copy,
      };
    } catch (error) {
      const failure = locationError(job, location, error);
      if (typeof failure !== 'string') throw failure;
      if (index < source.locations.length - 1) job.detail(`${failure}; trying the next location`);
      failures.push(failure);
    } finally {
      await rm(job.workDir, { recursive: true, force: true });
    }
  }
  throw new AtlasError('E_FETCH', `source "${source.id}": ${failures.join('; ')}`);
}

/** Notes about the origin of a copy. */
const FROM_TEXT = { network: 'fetched', cache: 'from the cache', bundled: 'bundled copy', file: 'read' } as const;

/** Returns the source with what the location sets instead. */
function withLocation(source: SourceConfig, { format, license, attribution }: Location): SourceConfig {
  return {
    ...source,
    ...(format !== undefined && { format }),
    ...(license !== undefined && { license }),
    ...(attribution !== undefined && { attribution }),
  };
}

/** Returns the message for a failed location; the error itself if no other location can help. */
function locationError(job: FetchJob, location: Location, error: unknown): string | AtlasError {
  if (error instanceof AtlasError) return error;
  const { path: file } = error as NodeJS.ErrnoException;
  const isOurs = [path.resolve(job.dataDir, 'cache'), job.workDir].some((directory) => file?.startsWith(directory));
  // A full or read-only disk is that of the data directory, whichever file the error names.
  if (isOurs || isDiskError(error) || systemErrorCode(error) === 'EROFS') {
    return causedError(
      isDiskError(error) ? 'E_DISK' : 'E_DATA_DIR',
      `cannot use the data directory ${job.dataDir}`,
      error,
      `${fileAdvice(error)}, or choose another directory with --data`,
    );
  }
  return `cannot get ${originText(location)}: ${messageOf(error)}`;
}

/** Returns the origins of a location as sources.json writes them, but without credentials or the arguments of a command. */
function originsOf(location: Location): string[] {
  if (location.kind === 'npm') return [location.spec];
  if (location.kind === 'command') return [`${location.file} from ${path.basename(location.command[0]!)}`];
  return location.kind === 'file' ? [location.pattern] : location.urls.map(withoutCredentials);
}

/** Returns the origin of a location for messages. */
function originText(location: Location): string {
  const [first, ...others] = originsOf(location);
  return others.length === 0 ? first! : `${first} and ${others.length} more`;
}

/** Returns a request as text: two are equal if they ask for the same files of the same origin. */
function requestKey(location: Location): string {
  const key: unknown[] = [location.kind, originsOf(location), location.files];
  // A hash, because an argument may be a secret.
  if (location.kind === 'command') {
    key.push(createHash('sha256').update(JSON.stringify(location.command)).digest('hex'));
  }
  return JSON.stringify(key);
}

async function fetchLocation(job: FetchJob, location: Location, index: number): Promise<Copy> {
  if (location.kind === 'file') return fetchFiles(job, location);
  if (location.kind === 'npm') return bundledCopy(job, location);
  const cached = await cachedCopy(job, location, index);
  if (job.offline) {
    if (cached !== undefined) return fromCache(cached);
    throw new Error('no usable copy in the cache; build once without --offline');
  }
  try {
    const known = cached?.entry.downloads.map((facts, at) => ({ ...facts, stored: cached.files[at]! }));
    const downloads =
      location.kind === 'command' ? [await runOne(job, location)] : await downloadAll(job, location, known);
    return copyOf(downloads, (fetchedAt, facts) => remember(job, location, index, fetchedAt, facts));
  } catch (error) {
    // Only a failure of the location can be helped by its cached copy.
    if (cached === undefined || typeof locationError(job, location, error) !== 'string') throw error;
    const { date } = cached.entry.dataDate ?? {};
    const age = date === undefined ? '' : `, with data of ${date}`;
    job.note(`${messageOf(error)}; using the copy fetched on ${cached.entry.fetchedAt.slice(0, 10)}${age}`);
    return fromCache(cached);
  }
}

async function fetchFiles(job: FetchJob, location: FileLocation): Promise<Copy> {
  const paths = await pathsOf(location);
  if (paths.length === 0) throw new Error(`no file matches, relative to ${location.baseDir}`);
  let modifiedAt: Date | undefined;
  for (const file of paths) {
    const stats = await stat(file);
    if (stats.isDirectory()) throw new Error(`${file} is a directory`);
    // Reading a named pipe or a device may never end.
    if (!stats.isFile()) throw new Error(`${file} is not a regular file`);
    if (modifiedAt === undefined || stats.mtime < modifiedAt) modifiedAt = stats.mtime;
  }
  const inputs = paths.map((file) => ({ path: file, name: path.basename(file) }));
  const files = await takeFiles(job.dataDir, inputs, location.files, job.limits.maxUnpackedBytes);
  return { from: 'file', version: '', files, dataDate: await findDataDate(files, { modifiedAt }), ...NOT_CACHED };
}

/** Returns the files of a path or glob, in order of name. A path that exists is that file, whatever characters are in it. */
async function pathsOf({ pattern, baseDir }: FileLocation): Promise<string[]> {
  const literal = path.resolve(baseDir, pattern);
  if (existsSync(literal)) return [literal];
  const found = await glob(pattern, { cwd: baseDir, absolute: true });
  return found.sort();
}

/** A cache entry with its files, which have been checked. */
interface CachedCopy {
  entry: CacheEntry;
  /** By download. */
  files: FetchedFile[][];
}

/** Returns what the cache has for a location; undefined if there is nothing, or a file is damaged. */
async function cachedCopy(job: FetchJob, location: Location, index: number): Promise<CachedCopy | undefined> {
  const entry = await readEntry(job.dataDir, job.source.id, index, requestKey(location));
  if (entry === undefined) return undefined;
  const files: FetchedFile[][] = [];
  for (const each of entry.downloads) {
    const found = await cachedFiles(job.dataDir, each.files);
    if (found === undefined) {
      job.note('the cached copy is damaged, so it is not used');
      return undefined;
    }
    files.push(found);
  }
  return { entry, files };
}

function fromCache({ entry, files }: CachedCopy): Copy {
  const { version, dataDate } = entry;
  return { from: 'cache', version, files: files.flat(), dataDate: dataDate ?? undefined, ...NOT_CACHED };
}

async function bundledCopy(job: FetchJob, location: NpmLocation): Promise<Copy> {
  const bundled = await findBundled(location, job.packageRoot);
  if (bundled === undefined) throw new Error('it is not installed; add the package to the project that has ipatlas');
  const { version } = bundled;
  const files = await takeFromBundled(job.dataDir, bundled, location.files);
  return { from: 'bundled', version, files, dataDate: await findDataDate(files, { version }), ...NOT_CACHED };
}

/** Of a copy that needs no cache entry. */
const NOT_CACHED = { accept: async (): Promise<void> => {} };

/** What one address or command gave. */
interface Download {
  facts: CachedDownload;
  files: FetchedFile[];
  /** Whether the files are not those of the cache. */
  isNew: boolean;
  dataDate: DataDate | undefined;
}

/** A download of the cached copy. */
type KnownDownload = CachedDownload & { stored: FetchedFile[] };

/** Downloads the files of a location. Those that are unchanged come from the cache. */
async function downloadAll(job: FetchJob, location: HttpsLocation, known: KnownDownload[] = []): Promise<Download[]> {
  const downloads: Download[] = [];
  for (const [position, url] of location.urls.entries()) {
    downloads.push(await downloadOne(job, location, url, known[position]));
  }
  return downloads;
}

/** Runs the command of a location. Its output goes to a file by a descriptor, so that it is never in memory. */
async function runOne(
  job: FetchJob,
  { command, file, files: wanted, baseDir, timeout }: CommandLocation,
): Promise<Download> {
  const { dataDir, env, workDir } = job;
  const { maxDownloadBytes: maxBytes, maxUnpackedBytes, tryTimeoutMs, deadlineMs = 0 } = job.limits;
  const target = path.join(workDir, 'output');
  const timeoutMs = timeout === undefined ? tryTimeoutMs : milliseconds(timeout);
  const limits = { ...job.limits, tryTimeoutMs: timeoutMs, deadlineMs: Math.max(timeoutMs, deadlineMs) };
  await withRetries({ ...job, limits }, async (timeoutMs) => {
    const fd = openSync(target, 'w');
    try {
      const failure = await runCommand(command, { cwd: baseDir, env, timeoutMs, output: { fd, maxBytes } });
      if (failure !== undefined) throw new (failure.isPermanent ? Error : TransientError)(failure.message);
    } finally {
      closeSync(fd);
    }
  });
  const files = await takeFiles(dataDir, [{ path: target, name: file }], wanted, maxUnpackedBytes);
  const facts = { address: '', etag: '', lastModified: '', files: files.map(withoutPath) };
  return { facts, files, isNew: true, dataDate: await findDataDate(files, {}) };
}

/** Returns a copy of what was downloaded. @param accept see FetchedSource */
function copyOf(downloads: Download[], accept: (fetchedAt: string, facts: DownloadFacts) => Promise<void>): Copy {
  const files = downloads.flatMap((each) => each.files);
  const names = files.map(({ name }) => name);
  const duplicate = names.find((name, at) => names.indexOf(name) !== at);
  if (duplicate !== undefined) throw new Error(`two of its downloads have a file ${duplicate}`);
  const version = downloads
    .map(({ facts }) => downloadVersion(facts))
    .filter((text) => text !== '')
    .join(' ');
  const dates = downloads.map((each) => each.dataDate);
  const dataDate = dates.includes(undefined) ? undefined : dates.toSorted((a, b) => (a!.date < b!.date ? -1 : 1))[0];
  const isNew = downloads.some((each) => each.isNew);
  const facts = { version, dataDate, downloads: downloads.map((each) => each.facts) };
  const fetchedAt = new Date().toISOString();
  return { from: isNew ? 'network' : 'cache', version, files, dataDate, accept: () => accept(fetchedAt, facts) };
}

/** Downloads one file, of the period before if its address has a date and there is no file of that date yet. */
async function downloadOne(
  job: FetchJob,
  location: HttpsLocation,
  template: string,
  cached: KnownDownload | undefined,
): Promise<Download> {
  for (let back = 0; ; back++) {
    const { address, date } = fillDate(template, job.asOf, back);
    const url = fillVariables(address, job.env);
    const shown = withoutCredentials(address);
    const known = cached?.address === shown ? cached : undefined;
    const target = path.join(job.workDir, 'download');
    try {
      const { isUnchanged, ...validators } = await download(url, target, known, job);
      if (isUnchanged) {
        if (known === undefined) throw new Error('the server answered 304 to a request without conditions');
        const { stored, ...facts } = known;
        const dataDate = await findDataDate(stored, { addressDate: date, ...validators });
        return { facts: { ...facts, ...validators }, files: stored, isNew: false, dataDate };
      }
      const name = nameOfUrl(url);
      if (location.checksum !== undefined)
        await checkDownload(target, name, checksumUrl(location, url, name, job), job);
      const files = await takeFiles(job.dataDir, [{ path: target, name }], location.files, job.limits.maxUnpackedBytes);
      const dataDate = await findDataDate(files, { addressDate: date, ...validators });
      return { facts: { address: shown, ...validators, files: files.map(withoutPath) }, files, isNew: true, dataDate };
    } catch (error) {
      if (!(error instanceof NotFoundError) || !hasDate(template) || back >= MAX_PERIODS_BACK) throw error;
      job.note(`${shown} does not exist yet; trying the period before`);
    }
  }
}

function checksumUrl({ checksum = '' }: HttpsLocation, url: string, name: string, job: FetchJob): string {
  const values: Record<string, string> = { url, file: encodeURIComponent(name) };
  return fillVariables(checksum, job.env).replace(/\$\{(url|file)\}/g, (_placeholder, key: string) => values[key]!);
}

/** Returns the version of a download: its ETag without quotes and weakness mark, or else its date in UTC; empty if it has none. */
function downloadVersion({ etag, lastModified }: { etag: string; lastModified: string }): string {
  if (etag !== '') return etag.replace(/^W\//, '').replaceAll('"', '');
  const date = new Date(lastModified);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

function withoutPath({ name, bytes, sha256 }: FetchedFile) {
  return { name, bytes, sha256 };
}

/** What a cache entry has of its downloads. */
type DownloadFacts = Pick<CacheEntry, 'version' | 'downloads'> & { dataDate: DataDate | undefined };

async function remember(
  job: FetchJob,
  location: Location,
  index: number,
  fetchedAt: string,
  facts: DownloadFacts,
): Promise<void> {
  await writeEntry(job.dataDir, job.source.id, index, {
    format: 3,
    request: requestKey(location),
    ...facts,
    dataDate: facts.dataDate ?? null,
    fetchedAt,
  });
}
