/** Opens a release and looks addresses up in it. */
import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import {
  IPV6_IN_FULL,
  isMapped,
  looksLikeIPv6,
  NOT_IPV6,
  parseAddress,
  parseIPv4,
  parseIPv6Form,
} from '../address/parse.js';
import type { Reason } from '../country/assignment.js';
import { AtlasError, messageOf } from '../errors.js';
import { RELEASE_POLL_MS } from '../limits.js';
import { withConfidence } from '../rangefile/confidence.js';
import { BinaryEngine } from './binary-engine.js';
import type { Engine } from './engine.js';
import { CURRENT_LINK, MANIFEST_FILE, type Manifest, releaseDir } from './release.js';
import { checkReleaseMirror, openReleaseRanges } from './release-files.js';
import { openSqliteEngine } from './sqlite-engine.js';

/** A lookup result: these four fields, in this order. */
export interface LookupResult {
  /** Dotted decimal, or eight groups of four lower-case hex digits. */
  ip: string;
  /** English short name, or null if the address has no country. */
  country: string | null;
  /** ISO 3166-1 alpha-2, upper case, and XK for Kosovo; or null. */
  country_code: string | null;
  /** Whether the country is in the European Union. */
  is_eu: boolean;
}

/** A lookup result with the reason why it has no country; null if it has one. */
export interface ReasonedResult extends LookupResult {
  reason: Reason | null;
  /**
   * Share of the lineages of sources that agree with the result, in percent; null without a country. Only if the database
   * was opened with `confidence`.
   */
  confidence?: number | null;
}

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

/** Receives parsed addresses. One array serves all lookups, because they are synchronous. */
const words = new Uint32Array(4);

/** An open release. */
interface Release {
  dir: string;
  manifest: Manifest;
  engine: Engine;
}

export class Database implements Disposable {
  #dir: string;
  #manifest: Manifest;
  #engine: Engine;
  #timer: NodeJS.Timeout | undefined;

  constructor(dir: string, manifest: Manifest, engine: Engine) {
    this.#dir = dir;
    this.#manifest = manifest;
    this.#engine = engine;
  }

  /** The directory of the release, with symbolic links resolved. */
  get dir(): string {
    return this.#dir;
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  /**
   * Looks up an address.
   *
   * @param text an IPv4 address in dotted decimal or an IPv6 address in any form of RFC 4291, without white space
   * @returns the result, or undefined if the text is not an address
   */
  lookup(text: string): LookupResult | undefined {
    // IPv6 has a method of its own to keep this one small: V8 then inlines the engine, which halves the time.
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    if (address < 0) return this.#lookupIPv6(text);
    const { country, country_code, is_eu } = this.#engine.lookupIPv4(address | 0);
    // Leading zeros are not accepted, so the text of an IPv4 address is its canonical form.
    return { ip: text, country, country_code, is_eu };
  }

  /**
   * Looks up an address as {@link lookup}, with the reason why it has no country.
   *
   * @returns the result, or undefined if the text is not an address
   */
  lookupWithReason(text: string): ReasonedResult | undefined {
    const family = parseAddress(text, words);
    if (family === 0) return undefined;
    if (family === 4) return { ip: formatIPv4(words[0]!), ...this.#engine.lookupIPv4(words[0]! | 0) };
    return { ip: formatIPv6Full(words), ...this.#engine.lookupIPv6(words) };
  }

  /**
   * Looks up an address given as bytes in network order.
   *
   * @param bytes 4 bytes (IPv4) or 16 (IPv6)
   * @returns the result, or undefined for any other number of bytes
   */
  lookupBytes(bytes: Uint8Array): LookupResult | undefined {
    if (bytes.length === 4) {
      const address = readWord(bytes, 0);
      const { country, country_code, is_eu } = this.#engine.lookupIPv4(address | 0);
      return { ip: formatIPv4(address), country, country_code, is_eu };
    }
    if (bytes.length !== 16) return undefined;
    for (let i = 0; i < 4; i++) words[i] = readWord(bytes, 4 * i);
    return this.#lookupWords();
  }

  /** Frees the resources and stops following the data directory. The database must not be used afterwards. */
  close(): void {
    clearInterval(this.#timer);
    this.#engine.close();
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
      const previous = this.#engine;
      ({ dir: this.#dir, manifest: this.#manifest, engine: this.#engine } = release);
      previous.close();
    }, RELEASE_POLL_MS);
    this.#timer.unref();
  }

  #lookupIPv6(text: string): LookupResult | undefined {
    const form = parseIPv6Form(text, words);
    if (form === NOT_IPV6) return undefined;
    return this.#lookupWords(form === IPV6_IN_FULL ? text : undefined);
  }

  /** Returns the result for the IPv6 address in `words`; `full` is its text in full, if known. */
  #lookupWords(full?: string): LookupResult {
    if (isMapped(words)) {
      const { country, country_code, is_eu } = this.#engine.lookupIPv4(words[3]! | 0);
      return { ip: formatIPv4(words[3]!), country, country_code, is_eu };
    }
    const { country, country_code, is_eu } = this.#engine.lookupIPv6(words);
    return { ip: full ?? formatIPv6Full(words), country, country_code, is_eu };
  }
}

/** Reads four bytes in network order as an unsigned number. */
function readWord(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
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
