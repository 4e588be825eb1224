/** Opens a release and looks addresses up in it. */
import { lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, messageOf, misuse } from '../errors.js';
import { RELEASE_POLL_MS } from '../limits.js';
import { withConfidence } from '../rangefile/confidence.js';
import { withNames } from '../rangefile/names.js';
import { LABELS, NETWORKS, type Partition } from '../rangefile/partitions.js';
import type { PartitionFile, RangeFile } from '../rangefile/reader.js';
import { BinaryEngine } from './binary-engine.js';
import type { Engine } from './engine.js';
import { checkFields, type FieldLookup, type FieldSources, fieldLookup, type ResultField } from './fields.js';
import { Lookups } from './lookups.js';
import { dataPlace, findDatabase, isSeed, openPartition, openRanges } from './origin.js';
import { CURRENT_LINK, currentDir, hasPartition, MANIFEST_FILE, type Manifest } from './release.js';
import { checkReleaseMirror } from './release-files.js';
import { openSqliteEngine } from './sqlite-engine.js';

export interface OpenOptions {
  /** `binary`, the range file in memory (default), or `sqlite`, the mirror. */
  engine?: 'binary' | 'sqlite';
  /**
   * Whether `lookupWithReason` also gives the confidence. Only releases whose sources were merged by evidence have it.
   * Default: false.
   */
  confidence?: boolean;
  /** The language of the countries' names, a tag such as `de`; with the engine `binary`. Default: English. */
  lang?: string | undefined;
  /**
   * Follows the data directory: when another release becomes current, lookups use it, without an interruption. A release
   * that cannot be opened or does not match its manifest is reported by `process.emitWarning`, and the previous one stays
   * in use. `close` stops following. Default: false.
   */
  watch?: boolean;
  /**
   * Opens the seed, the database that comes with the package; with `watch`, until there is a release. Default: false.
   */
  seed?: boolean;
}

/** An open release. */
interface Release {
  dir: string;
  manifest: Manifest;
  engine: Engine;
  /** Undefined with the engine `sqlite`. */
  file?: RangeFile | undefined;
}

export class Database extends Lookups implements Disposable {
  #dir: string;
  #manifest: Manifest;
  #file: RangeFile | undefined;
  /** The other partitions that something has needed; undefined for those that the release does not have. */
  #others = new Map<Partition, PartitionFile | undefined>();
  #timer: NodeJS.Timeout | undefined;

  constructor(dir: string, manifest: Manifest, engine: Engine, file?: RangeFile) {
    super(engine);
    this.#dir = dir;
    this.#manifest = manifest;
    this.#file = file;
  }

  /** The directory of the release, with symbolic links resolved; the path of the seed if the database is the seed. */
  get dir(): string {
    return this.#dir;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /** Whether this is the seed, the database that comes with the package. `manifest.data_date` is the date of its data. */
  get isSeed(): boolean {
    return isSeed(this.#dir);
  }

  /** Whether the release says who announces the addresses. If not, `asn` and `as_name` are null. */
  get hasNetworks(): boolean {
    return hasPartition(this.#manifest, NETWORKS);
  }

  /** The names of the labels of the release, the user's own columns. */
  get labelNames(): readonly string[] {
    return LABELS.columns!(this.#manifest);
  }

  /** @internal Returns another partition of the release than the countries, opened at the first call; undefined if it has none. */
  partition<File extends PartitionFile>(partition: Partition<File>): File | undefined {
    if (!this.#others.has(partition)) {
      this.#others.set(partition, openPartition(this.#dir, this.#manifest, partition));
    }
    return this.#others.get(partition) as File | undefined;
  }

  /** @internal Returns where lookups of fields find them. @throws AtlasError E_USAGE with the engine `sqlite` */
  sources(): FieldSources {
    if (this.#file === undefined) {
      throw misuse('fields can be looked up with the engine binary only; leave out the engine sqlite');
    }
    return { file: this.#file, open: (partition) => this.partition(partition), labels: this.labelNames };
  }

  /**
   * Prepares lookups of chosen fields: of the country, of the network that announces an address (`asn`, `as_name`), labels, and
   * `network`, the largest CIDR block around the address within which all fields asked for are the same.
   *
   * ```ts
   * const find = database.fields(['country_code', 'asn', 'as_name', 'network']);
   * find('8.8.8.8'); // { ip: '8.8.8.8', country_code: 'US', asn: 15169, as_name: 'Google LLC', network: '8.8.8.0/24' }
   * ```
   *
   * @param fields of country, country_code, is_eu, is_eea, continent, reason, confidence, asn, as_name, anycast, kind, operator, network and the names of labels; each once
   * @returns looks an address up; its result has `ip` and the fields, in this order. Undefined if the text is not an address
   * @throws AtlasError E_USAGE for other fields, with the engine `sqlite`, and for `confidence` if the release has none;
   *   E_DAMAGED if the networks are damaged
   */
  fields(fields: readonly ResultField[]): FieldLookup {
    const checked = checkFields(fields, this.labelNames, 'fields');
    let engine: Engine | undefined;
    let find: FieldLookup;
    const prepare = (): void => {
      find = fieldLookup(checked, this.sources());
      engine = this.engine;
    };
    prepare();
    return (text) => {
      // Another release may have become current, with `watch`.
      if (engine !== this.engine) prepare();
      return find(text);
    };
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
      ({ dir: this.#dir, manifest: this.#manifest, engine: this.engine, file: this.#file } = release);
      this.#others = new Map();
      previous.close();
    }, RELEASE_POLL_MS);
    this.#timer.unref();
  }
}

/** What determines how a release is opened. */
type EngineOptions = Pick<OpenOptions, 'engine' | 'confidence' | 'lang'>;

function openEngine(dir: string, { engine = 'binary', confidence = false, lang }: EngineOptions): Release {
  if (engine === 'sqlite') {
    if (lang !== undefined) throw misuse('lang goes with the engine binary only; leave out the engine sqlite');
    if (isSeed(dir)) {
      throw new AtlasError(
        'E_NO_DATABASE',
        'the database that comes with ipatlas has no SQLite mirror; publish it as a release with "ipatlas build --offline"',
      );
    }
    const { manifest, path } = checkReleaseMirror(dir);
    return { dir, manifest, engine: openSqliteEngine(path, confidence) };
  }
  const { manifest, file: english } = openRanges(dir);
  const file = withNames(english, lang);
  return { dir, manifest, engine: new BinaryEngine(confidence ? withConfidence(file) : file), file };
}

/**
 * Opens a release or the seed.
 *
 * @param dir as `findDatabase` returns it
 * @throws AtlasError as {@link openDatabase} does
 */
export function openFound(dir: string, options: EngineOptions = {}): Database {
  const release = openEngine(dir, options);
  return new Database(release.dir, release.manifest, release.engine, release.file);
}

/** Returns what changes if another release becomes current, or the same one is built again. */
function markOf(dir: string): string {
  const { ino, ctimeMs } = statSync(join(dir, MANIFEST_FILE));
  return `${dir} ${ino} ${ctimeMs}`;
}

/**
 * Returns a function that opens the current release if it has changed since the last call.
 *
 * @param mark of the release that is open; empty for the seed
 */
function releaseFollower(dataDir: string, mark: string, engine: EngineOptions): () => Release | undefined {
  let seen = mark;
  let reported = '';
  return () => {
    let current = '';
    try {
      const link = join(dataDir, CURRENT_LINK);
      if (seen === '' && lstatSync(link, { throwIfNoEntry: false }) === undefined) return undefined;
      const dir = currentDir(dataDir);
      current = markOf(dir);
      if (current === seen) return undefined;
      const release = openEngine(dir, engine);
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
 * @param dir a data directory, whose current release is opened, or a release directory. Without it, the data directory is
 *   that of the command line: IPATLAS_DATA, `./data` if it exists, or `~/.local/share/ipatlas`. If neither `dir` nor
 *   IPATLAS_DATA names one and it never had a release, the seed is opened
 * @returns the database; close it when done
 * @throws AtlasError E_NO_DATABASE if there is no release, E_DAMAGED if it is damaged or of another version, E_USAGE for
 *   `watch` with a release directory, for `confidence` with a release that has none, and for an unknown `lang`
 */
export function openDatabase(dir?: string, { watch = false, seed = false, ...options }: OpenOptions = {}): Database {
  const place = dataPlace(dir, seed);
  const { dataDir } = place;
  const found = findDatabase(place);
  if (!watch) return openFound(found, options);
  if (statSync(join(dataDir, MANIFEST_FILE), { throwIfNoEntry: false }) !== undefined) {
    throw misuse(
      `watch needs a data directory, but ${dataDir} is a release, which never changes; open it without watch`,
    );
  }
  // The mark is read first: a release that changes while it is opened is opened again.
  const mark = isSeed(found) ? '' : markOf(found);
  const database = openFound(found, options);
  database.follow(releaseFollower(dataDir, mark, options));
  return database;
}
