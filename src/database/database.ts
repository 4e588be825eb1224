/** Opens a release and looks addresses up in it. */
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, messageOf } from '../errors.js';
import { RELEASE_POLL_MS } from '../limits.js';
import { withConfidence } from '../rangefile/confidence.js';
import { BinaryEngine } from './binary-engine.js';
import type { Engine } from './engine.js';
import { Lookups } from './lookups.js';
import { CURRENT_LINK, MANIFEST_FILE, type Manifest, releaseDir } from './release.js';
import { checkReleaseMirror, openReleaseRanges } from './release-files.js';
import { openSqliteEngine } from './sqlite-engine.js';

export interface OpenOptions {
  /** `binary`, the range file in memory (default), or `sqlite`, the mirror. */
  engine?: 'binary' | 'sqlite';
  /**
   * Whether `lookupWithReason` also gives the confidence. Only releases whose sources were merged by evidence have it.
   * Default: false.
   */
  confidence?: boolean;
  /**
   * Follows the data directory: when another release becomes current, lookups use it, without an interruption. A release
   * that cannot be opened or does not match its manifest is reported by `process.emitWarning`, and the previous one stays
   * in use. `close` stops following. Default: false.
   */
  watch?: boolean;
}

/** An open release. */
interface Release {
  dir: string;
  manifest: Manifest;
  engine: Engine;
}

export class Database extends Lookups implements Disposable {
  #dir: string;
  #manifest: Manifest;
  #timer: NodeJS.Timeout | undefined;

  constructor(dir: string, manifest: Manifest, engine: Engine) {
    super(engine);
    this.#dir = dir;
    this.#manifest = manifest;
  }

  /** The directory of the release, with symbolic links resolved. */
  get dir(): string {
    return this.#dir;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Frees the resources and stops following the data directory. The database must not be used afterwards. */
  close(): void {
    clearInterval(this.#timer);
    this.engine.close();
  }

  /** Calls {@link close} at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal Calls `open` at every interval and uses the release that it returns, if any. */
  follow(open: () => Release | undefined): void {
    this.#timer = setInterval(() => {
      const release = open();
      if (release === undefined) return;
      const previous = this.engine;
      ({ dir: this.#dir, manifest: this.#manifest, engine: this.engine } = release);
      previous.close();
    }, RELEASE_POLL_MS);
    this.#timer.unref();
  }
}

/** What determines how a release is opened. */
type EngineOptions = Required<Pick<OpenOptions, 'engine' | 'confidence'>>;

function openRelease(dir: string, { engine, confidence }: EngineOptions): Release {
  if (engine === 'sqlite') {
    const { manifest, path } = checkReleaseMirror(dir);
    return { dir, manifest, engine: openSqliteEngine(path, confidence) };
  }
  const { manifest, file } = openReleaseRanges(dir);
  return { dir, manifest, engine: new BinaryEngine(confidence ? withConfidence(file) : file) };
}

function openFixed(dir: string, engine: EngineOptions): Database {
  const release = openRelease(dir, engine);
  return new Database(release.dir, release.manifest, release.engine);
}

/** Returns what changes if another release becomes current, or the same one is built again. */
function markOf(dir: string): string {
  const { ino, ctimeMs } = statSync(join(dir, MANIFEST_FILE));
  return `${dir} ${ino} ${ctimeMs}`;
}

/** Returns a function that opens the current release if it has changed since the last call. */
function releaseFollower(dataDir: string, mark: string, engine: EngineOptions): () => Release | undefined {
  let seen = mark;
  let reported = '';
  return () => {
    let current = '';
    try {
      const dir = realpathSync(join(dataDir, CURRENT_LINK));
      current = markOf(dir);
      if (current === seen) return undefined;
      const release = openRelease(dir, engine);
      seen = current;
      return release;
    } catch (error) {
      // A damaged release stays damaged until it is built again; any other error may be temporary.
      if (error instanceof AtlasError && error.code === 'E_DAMAGED') seen = current;
      const message = `ipatlas: the current release of ${dataDir} is not used: ${messageOf(error)}`;
      if (message !== reported) process.emitWarning(message, { code: 'IPATLAS_RELEASE' });
      reported = message;
      return undefined;
    }
  };
}

/**
 * Opens a release for lookups. Its hash is checked against the manifest, unless that was done before and the file has not
 * changed since; see release-files.ts.
 *
 * Without the option `watch`, a release that is published later is not used.
 *
 * @param dir a data directory, whose current release is opened, or a release directory
 * @returns the database; close it when done
 * @throws AtlasError E_NO_DATABASE if there is no release, E_DAMAGED if it is damaged or of another version, E_USAGE for
 *   `watch` with a release directory, and for `confidence` with a release that has none
 */
export function openDatabase(
  dir: string,
  { engine = 'binary', confidence = false, watch = false }: OpenOptions = {},
): Database {
  const release = releaseDir(dir);
  const options: EngineOptions = { engine, confidence };
  if (!watch) return openFixed(release, options);
  if (statSync(join(dir, MANIFEST_FILE), { throwIfNoEntry: false }) !== undefined) {
    throw new AtlasError('E_USAGE', `watch needs a data directory, but ${dir} is a release, which never changes`);
  }
  // The mark is read first: a release that changes while it is opened is opened again.
  const mark = markOf(release);
  const database = openFixed(release, options);
  database.follow(releaseFollower(dir, mark, options));
  return database;
}
