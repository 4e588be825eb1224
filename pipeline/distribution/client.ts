/**
 * The client of a signed repository. The workflow of TUF (specification 1.0.31 §5), with all checks of signatures, versions,
 * expiry, lengths and hashes, is that of the library tuf-js; here are the downloads and the state on disk.
 *
 * The trusted metadata of the last run protects against older metadata, so it must never be lost or half written. The library
 * works on a copy. Each file of the copy that has changed is then replaced atomically: the library writes only what it has
 * checked, and accepts any mixture of older and newer files.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Metadata, MetadataKind, type TargetFile } from '@tufjs/models';
import { type Fetcher, Updater } from 'tuf-js';
import { AtlasError, messageOf, systemErrorCode } from '../../src/errors.js';
import { makeFolder, replaceFile } from '../../src/files.js';
import {
  FETCH_BACKOFF_MS,
  FETCH_IDLE_TIMEOUT_MS,
  FETCH_MAX_BACKOFF_MS,
  MAX_METADATA_BYTES,
  MAX_ROOT_VERSIONS,
  MAX_TIMESTAMP_BYTES,
  METADATA_TRY_TIMEOUT_MS,
  PULL_TRY_TIMEOUT_MS,
} from '../../src/limits.js';
import { withoutCredentials } from '../../src/url.js';
import { type DownloadContext, type DownloadLimits, download, StatusError } from '../fetching/https.js';
import { ROLES, type Role } from './keys.js';
import { METADATA_DIR, TARGETS_DIR } from './repository.js';

/** Retries of a failed request of a pull. A pull is repeated soon anyway. */
export const PULL_RETRIES = 2;

/** Longest wait in milliseconds that a pull accepts from a server (Retry-After): the schedule comes back anyway. */
export const PULL_MAX_RETRY_AFTER_MS = 5_000;

/** Limits of the downloads of a pull; the defaults are below. Times in milliseconds. */
export interface PullLimits extends Omit<DownloadLimits, 'maxDownloadBytes'> {
  /** Longest time of one try of a metadata file; `tryTimeoutMs` is that of a release's file. */
  metadataTryTimeoutMs: number;
}

const DEFAULT_LIMITS: PullLimits = {
  retries: PULL_RETRIES,
  idleTimeoutMs: FETCH_IDLE_TIMEOUT_MS,
  tryTimeoutMs: PULL_TRY_TIMEOUT_MS,
  metadataTryTimeoutMs: METADATA_TRY_TIMEOUT_MS,
  backoffMs: FETCH_BACKOFF_MS,
  maxBackoffMs: FETCH_MAX_BACKOFF_MS,
  maxRetryAfterMs: PULL_MAX_RETRY_AFTER_MS,
};

export interface ClientOptions {
  /** Address of the repository. */
  url: string;
  /** The root metadata that the operator trusts. */
  root: Buffer;
  /** Directory of this client, which is kept between two runs. */
  stateDir: string;
  /** A temporary folder. */
  workDir: string;
  limits?: Partial<PullLimits> | undefined;
  note: (line: string) => void;
}

/** Folder of interrupted downloads, in the state directory. */
const DOWNLOADS_DIR = 'downloads';

/** By role: the time until which the trusted metadata is valid (ISO 8601, UTC). A role without metadata is missing. */
export type Expiry = Partial<Record<Role, string>>;

/** Transfers files for the library, which checks them. */
class RepositoryFetcher implements Fetcher {
  /** Why the last download failed: the library keeps only the message of some errors. */
  failure: unknown;
  /** The newer versions of the root metadata, by file name. */
  readonly roots = new Map<string, Buffer>();
  readonly #options: ClientOptions;
  readonly #limits: PullLimits;
  readonly #downloads: string;

  /** @param downloads folder for files that are continued by the next pull if this one is interrupted */
  constructor(options: ClientOptions, downloads: string) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#downloads = downloads;
  }

  async #download(url: string, target: string, limits: DownloadLimits, resume: boolean): Promise<void> {
    const { note } = this.#options;
    const wait = (ms: number) => sleep(ms);
    const context: DownloadContext = { limits, env: process.env, wait, retrying: note, resume, isSigned: true };
    try {
      await download(url, target, undefined, context);
    } catch (error) {
      this.failure = new Error(`${withoutCredentials(url)}: ${messageOf(error)}`, { cause: error });
      throw error;
    }
  }

  /** Downloads a metadata file, and checks what the library does not. */
  async downloadBytes(url: string, maxLength: number): Promise<Buffer> {
    const known = this.roots.get(basename(new URL(url).pathname));
    if (known !== undefined) return known;
    const target = join(this.#options.workDir, 'metadata-download');
    const { metadataTryTimeoutMs: tryTimeoutMs } = this.#limits;
    await this.#download(url, target, { ...this.#limits, maxDownloadBytes: maxLength, tryTimeoutMs }, false);
    const content = await readFile(target);
    const problem = metadataProblem(content);
    if (problem === undefined) return content;
    throw untrusted(`${withoutCredentials(url)} ${problem}`);
  }

  /**
   * Downloads a target; the part that an earlier run got is not downloaded again.
   *
   * @param handler checks the file, and copies it
   */
  async downloadFile<Result>(
    url: string,
    maxLength: number,
    handler: (file: string) => Promise<Result>,
  ): Promise<Result> {
    makeFolder(this.#downloads);
    // Its name begins with the hash of its content.
    const file = join(this.#downloads, basename(new URL(url).pathname));
    const limits = { ...this.#limits, maxDownloadBytes: maxLength };
    for (;;) {
      const begun = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      if (maxLength === 0) writeFileSync(file, '');
      else if (begun < maxLength) await this.#download(url, file, limits, true);
      try {
        const result = await handler(file);
        rmSync(file);
        return result;
      } catch (error) {
        if (systemErrorCode(error) !== undefined) throw error;
        rmSync(file, { force: true });
        // The part from an earlier run may have been wrong.
        if (begun === 0) throw untrusted(`${withoutCredentials(url)}: ${messageOf(error)}`);
      }
    }
  }

  /**
   * Downloads the versions of the root metadata after the trusted one. The library would find the last one by an error of a
   * class that it does not export, so it is told the number instead.
   *
   * @param version of the trusted root metadata
   */
  async downloadRoots(metadataUrl: string, version: number): Promise<void> {
    for (let next = version + 1; this.roots.size < MAX_ROOT_VERSIONS; next++) {
      try {
        const name = rootName(next);
        this.roots.set(name, await this.downloadBytes(`${metadataUrl}/${name}`, MAX_METADATA_BYTES));
      } catch (error) {
        // Object stores answer 403 for a file that does not exist if the client may not list them.
        if (!(error instanceof StatusError) || ![403, 404, 410].includes(error.status)) throw error;
        this.failure = undefined;
        return;
      }
    }
  }
}

/** Date and time of metadata (TUF specification 1.0.31 §4.2.1). */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/**
 * Returns what is wrong with a metadata file, as far as the library does not tell it: a time that is not one would never
 * pass, and servers that answer a page instead of 404 should be recognized.
 */
function metadataProblem(content: Buffer): string | undefined {
  try {
    const { expires } = (JSON.parse(content.toString('utf8')) as { signed: { expires: unknown } }).signed;
    if (typeof expires === 'string' && DATE_TIME.test(expires) && !Number.isNaN(Date.parse(expires))) return undefined;
    return `expires ${JSON.stringify(expires)}, which is not a time such as 2026-01-31T12:00:00Z`;
  } catch {
    return `is not metadata; it begins with ${JSON.stringify(content.toString('latin1', 0, 20))}`;
  }
}

/** Returns the metadata of a role in a folder; undefined if there is none that can be read. */
function readMetadata(dir: string, role: Role): { version: number; expires: string } | undefined {
  try {
    const { signed } = JSON.parse(readFileSync(join(dir, `${role}.json`), 'utf8')) as {
      signed: { version: number; expires: string };
    };
    return { version: signed.version, expires: signed.expires };
  } catch (error) {
    // Missing or damaged: the library then fetches it again.
    if (error instanceof SyntaxError || error instanceof TypeError || systemErrorCode(error) === 'ENOENT')
      return undefined;
    throw error;
  }
}

/** Name of a version of the root metadata. */
const rootName = (version: number): string => `${version}.root.json`;

/** Stores a file of the trusted metadata, unless it is there. */
function storeFile(target: string, content: Buffer): void {
  if (!existsSync(target) || !readFileSync(target).equals(content)) replaceFile(target, [content]);
}

/**
 * Stores the metadata that has changed.
 *
 * @param roots versions of the root metadata by file name; those that the library has not accepted are not stored
 */
function storeMetadata(from: string, to: string, roots: ReadonlyMap<string, Buffer>): void {
  const last = readMetadata(from, 'root')?.version ?? 0;
  for (const [name, content] of roots) {
    if (Number.parseInt(name, 10) <= last) storeFile(join(to, name), content);
  }
  for (const role of ROLES) {
    // A file that was cut off, because the disk was full, is not whole JSON.
    if (readMetadata(from, role) === undefined) continue;
    storeFile(join(to, `${role}.json`), readFileSync(join(from, `${role}.json`)));
  }
}

/** Returns the error for what the keys of a repository did not sign. @param what is wrong, and where */
export function untrusted(what: string): AtlasError {
  return new AtlasError('E_UNTRUSTED', `${what}; tell the operator of the repository`);
}

/** Returns an error of the library as an error of ours. */
function explain(error: unknown, failure: unknown, url: string): unknown {
  if (error instanceof AtlasError || systemErrorCode(error) !== undefined) return error;
  // A download that could not be written: the library reports some errors only as text.
  const cause = failure instanceof Error ? failure.cause : undefined;
  if (systemErrorCode(cause) !== undefined) return cause;
  const shown = withoutCredentials(url);
  if (failure !== undefined) {
    return new AtlasError(
      'E_FETCH',
      `the repository cannot be fetched: ${messageOf(failure)}; check its address and the network`,
      { cause: error },
    );
  }
  // The library keeps only the text of what it meets in a snapshot or in targets.
  const message = messageOf(error).replace(/^(Unable to load \w+)( metadata)? error (\w*Error: )?/, '$1: ');
  const expired = /(\w+)\.json is expired/.exec(message);
  if (expired !== null) {
    const advice = `if it is not under attack, run "ipatlas repo refresh" there`;
    return new AtlasError('E_EXPIRED', `the ${expired[1]} metadata of ${shown} has expired; ${advice}`, {
      cause: error,
    });
  }
  return new AtlasError(
    'E_UNTRUSTED',
    `the repository ${shown} is not trusted: ${message}; ask its operator whether its keys were replaced`,
    { cause: error },
  );
}

/** Returns the directory of the trusted metadata of a repository. */
function trustedMetadataDir({ stateDir, url }: Pick<ClientOptions, 'stateDir' | 'url'>): string {
  const { origin, pathname } = new URL(url);
  const repository = `${origin}${pathname.replace(/\/+$/, '')}`;
  return join(stateDir, `metadata-${createHash('sha256').update(repository).digest('hex').slice(0, 16)}`);
}

/** Returns the version of root metadata, or undefined if it is not whole or not signed by its own keys. */
function rootVersion(content: Buffer): number | undefined {
  try {
    if (metadataProblem(content) !== undefined) return undefined;
    const root = Metadata.fromJSON(MetadataKind.Root, JSON.parse(content.toString('utf8')));
    root.verifyDelegate('root', root);
    return root.signed.version;
  } catch {
    return undefined; // the library reports each problem as another error
  }
}

/**
 * Copies the trusted metadata to a folder. Its root is replaced by that of the operator if this is none of the versions that
 * led to it: then the operator has another reason to trust it. The other metadata stays, so that an older state is still
 * refused; the library ignores it if the root names other keys.
 *
 * @returns the version of the root metadata
 * @throws AtlasError E_CONFIG if the operator's root metadata is not valid
 */
function prepareMetadata({ root, note }: ClientOptions, trustedDir: string, workingDir: string): number {
  for (const dir of [trustedDir, workingDir]) makeFolder(dir);
  for (const role of ROLES) {
    const trusted = join(trustedDir, `${role}.json`);
    if (existsSync(trusted)) copyFileSync(trusted, join(workingDir, `${role}.json`));
  }
  const given = rootVersion(root);
  if (given === undefined) {
    throw new AtlasError(
      'E_CONFIG',
      `--root is not the root metadata of a repository, its root.json; get it from the operator`,
    );
  }
  const rootFile = join(workingDir, 'root.json');
  if (existsSync(rootFile)) {
    const version = rootVersion(readFileSync(rootFile));
    const seen = join(trustedDir, rootName(given));
    if (version !== undefined && existsSync(seen) && readFileSync(seen).equals(root)) return version;
    const reason = version === undefined ? 'the stored root metadata is damaged' : '--root is another one than before';
    note(`${reason}; starting with that of --root`);
    for (const name of readdirSync(trustedDir)) if (/^\d+\.root\.json$/.test(name)) rmSync(join(trustedDir, name));
  }
  writeFileSync(rootFile, root);
  return given;
}

/** A repository whose metadata was checked. */
export class RepositoryClient {
  readonly #url: string;
  readonly #fetcher: RepositoryFetcher;
  readonly #updater: Updater;

  private constructor(url: string, fetcher: RepositoryFetcher, updater: Updater) {
    this.#url = url;
    this.#fetcher = fetcher;
    this.#updater = updater;
  }

  /**
   * Fetches and checks the metadata of a repository.
   *
   * @throws AtlasError E_FETCH if it cannot be fetched, E_UNTRUSTED if it is not what the keys signed, E_EXPIRED if it has
   *   expired, E_CONFIG if the operator's root metadata is not valid
   */
  static async open(options: ClientOptions): Promise<RepositoryClient> {
    const { url, stateDir, workDir, note } = options;
    const trustedDir = trustedMetadataDir(options);
    const workingDir = join(workDir, 'metadata');
    const version = prepareMetadata(options, trustedDir, workingDir);
    const fetcher = new RepositoryFetcher(options, join(stateDir, DOWNLOADS_DIR));
    const metadataBaseUrl = `${url.replace(/\/+$/, '')}/${METADATA_DIR}`;
    try {
      await fetcher.downloadRoots(metadataBaseUrl, version);
      if (fetcher.roots.size === MAX_ROOT_VERSIONS) note('there may be more versions of the root metadata; pull again');
      const updater = new Updater({
        metadataDir: workingDir,
        metadataBaseUrl,
        targetBaseUrl: `${url.replace(/\/+$/, '')}/${TARGETS_DIR}`,
        fetcher,
        config: {
          maxRootRotations: fetcher.roots.size,
          rootMaxLength: MAX_METADATA_BYTES,
          timestampMaxLength: MAX_TIMESTAMP_BYTES,
          snapshotMaxLength: MAX_METADATA_BYTES,
          targetsMaxLength: MAX_METADATA_BYTES,
        },
      });
      await updater.refresh();
      return new RepositoryClient(url, fetcher, updater);
    } catch (error) {
      throw explain(error, fetcher.failure, url);
    } finally {
      // After a failure, too: what the library accepted before it is trusted from now on.
      storeMetadata(workingDir, trustedDir, new Map([[rootName(version), options.root], ...fetcher.roots]));
    }
  }

  async #target(path: string): Promise<TargetFile> {
    const target = await this.#updater.getTargetInfo(path);
    if (target !== undefined) return target;
    throw untrusted(`the repository ${withoutCredentials(this.#url)} has no target ${path}`);
  }

  /**
   * Returns the SHA-256 of a target, hexadecimal.
   *
   * @throws AtlasError E_UNTRUSTED if there is no such target
   */
  async hashOf(path: string): Promise<string> {
    return (await this.#target(path)).hashes.sha256!;
  }

  /**
   * Downloads a target. Its length and hash are checked.
   *
   * @param path the target's name in the repository
   * @param file path of the new file
   * @throws AtlasError E_FETCH if it cannot be fetched, E_UNTRUSTED if there is no such target or it is not what was signed
   */
  async get(path: string, file: string): Promise<void> {
    const target = await this.#target(path);
    this.#fetcher.failure = undefined;
    try {
      await this.#updater.downloadTarget(target, file);
    } catch (error) {
      throw explain(error, this.#fetcher.failure, this.#url);
    }
  }
}

/** Returns until when the trusted metadata of a repository is valid. */
export function trustedExpiry(options: Pick<ClientOptions, 'stateDir' | 'url'>): Expiry {
  const dir = trustedMetadataDir(options);
  const entries = ROLES.map((role) => [role, readMetadata(dir, role)?.expires] as const);
  return Object.fromEntries(entries.filter(([, expires]) => expires !== undefined));
}

/** Removes the interrupted downloads. */
export function removeDownloads(stateDir: string): void {
  rmSync(join(stateDir, DOWNLOADS_DIR), { recursive: true, force: true });
}
