/** The keys that a server checks: looked up in keys.sqlite by their hash, and remembered until the file changes. */
import { type Stats, statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../../errors.js';
import { KEY_CACHE_SIZE } from '../../limits.js';
import { sqlite } from '../../sqlite.js';
import type { RateLimiter } from '../rates/rate-limit.js';
import { hashKey, KEY_PREFIX, keysVersion, parseOrigins } from './key-store.js';

/** A valid key. */
export interface ActiveKey {
  id: string;
  /** Addresses a minute; null for the server's rate. */
  rate: number | null;
  /** The only origins from which it works; null for no restriction. */
  origins: readonly string[] | null;
  /** Whether its holder made it by signing up. */
  selfIssued: boolean;
  /** Counts its addresses; undefined for the server's own limiter. */
  limiter: RateLimiter | undefined;
}

/** Finds valid keys. */
export interface KeyFinder {
  /**
   * Returns the key, or undefined if the text is not a valid key.
   *
   * @throws KeysUnavailableError if that cannot be told now
   */
  find(presented: string): ActiveKey | undefined;
}

/** The keys cannot be read now. */
export class KeysUnavailableError extends Error {}

/** How long a lookup waits for a writer, in milliseconds: not long, because all requests wait with it. */
const READ_TIMEOUT_MS = 250;

interface Row {
  id: string;
  rate: number | null;
  origins: string | null;
  self_issued: number;
  expires: string | null;
}

/** A key that was found, and the time in milliseconds since 1970 until which it is valid. */
interface FoundKey {
  key: ActiveKey;
  validUntil: number;
}

/**
 * Finds keys by the hash of their text.
 *
 * A presented key is hashed before it is searched. The time of the search can reveal something about hashes at most, and
 * nobody can choose a text by its hash: this is as good as a comparison in constant time, for any number of keys.
 */
export class KeyCache implements KeyFinder {
  readonly #path: string;
  readonly #onProblem: (message: string) => void;
  readonly #now: () => number;
  /**
   * Valid keys by their text, those that were presented since the last change of the file; other texts are not kept. V8
   * hashes strings with a random seed and compares whole strings only if these hashes are equal, so its time says no more
   * about a key than that of the search in the file.
   */
  readonly #found = new Map<string, FoundKey>();
  #database: Sqlite.Database | undefined;
  #query: Sqlite.Statement<[Buffer], Row> | undefined;
  /** The inode of the open file: another file may replace it. */
  #inode = 0;
  /** What identifies the content of a file in which a lookup met damage: it is not opened again. */
  #damaged = '';
  /** `PRAGMA data_version` at the last check for changes. */
  #dataVersion: unknown;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param path of keys.sqlite, which need not exist yet
   * @param onProblem called once if the file cannot be read; the keys that are remembered still work then
   * @param now the time in milliseconds since 1970
   */
  constructor(path: string, onProblem: (message: string) => void, now: () => number = Date.now) {
    this.#path = path;
    this.#onProblem = onProblem;
    this.#now = now;
  }

  /** Whether the keys can be read, as far as the last check or lookup shows. A missing file has no keys. */
  get isReadable(): boolean {
    return this.#problem === '';
  }

  find(presented: string): ActiveKey | undefined {
    const known = this.#found.get(presented);
    if (known !== undefined && known.validUntil > this.#now()) return known.key;
    if (!presented.startsWith(KEY_PREFIX)) return undefined;
    if (!this.isReadable) throw new KeysUnavailableError(this.#problem);
    // No file, no keys.
    if (this.#query === undefined) return undefined;
    try {
      const row = this.#query.get(Buffer.from(hashKey(presented), 'hex'));
      const validUntil = row?.expires == null ? Number.POSITIVE_INFINITY : Date.parse(row.expires);
      if (row === undefined || validUntil <= this.#now()) return undefined;
      return this.#remember(presented, { key: activeKey(row), validUntil });
    } catch (error) {
      this.#report(error);
      const { code } = error as { code?: unknown };
      if (/^SQLITE_(CORRUPT|NOTADB)/.test(String(code))) this.#damaged = contentOf(statSync(this.#path));
      throw new KeysUnavailableError(messageOf(error), { cause: error });
    }
  }

  /** Opens the keys now, and checks for changes every `interval` milliseconds from then on. */
  start(interval: number): void {
    this.refresh();
    this.#timer = setInterval(() => this.refresh(), interval);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#close();
  }

  /** Forgets the remembered keys if the file changed since the last time. */
  refresh(): void {
    try {
      const stat = statSync(this.#path, { throwIfNoEntry: false });
      if (stat !== undefined && contentOf(stat) === this.#damaged) return;
      if (stat === undefined) {
        // An operator who removes the file wants no key to work.
        this.#close();
        this.#found.clear();
      } else {
        if (this.#database === undefined || this.#inode !== stat.ino) this.#open(stat.ino);
        const dataVersion = this.#database!.pragma('data_version', { simple: true });
        if (dataVersion !== this.#dataVersion) this.#found.clear();
        this.#dataVersion = dataVersion;
      }
      this.#problem = '';
    } catch (error) {
      this.#report(error);
    }
  }

  #remember(text: string, found: FoundKey): ActiveKey {
    if (this.#found.size >= KEY_CACHE_SIZE) this.#found.delete(this.#found.keys().next().value!);
    this.#found.set(text, found);
    return found.key;
  }

  #report(error: unknown): void {
    // A writer is at work; the next lookup reads what it wrote.
    if (/^SQLITE_BUSY/.test(String((error as { code?: unknown }).code))) return;
    this.#close();
    const problem = messageOf(error);
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#onProblem(problem);
  }

  #open(inode: number): void {
    this.#close();
    // Not as `readonly`: SQLite then reads a file that may not be written all the same, and if it may be written, it
    // completes what a killed writer left.
    const database = new (sqlite())(this.#path, { fileMustExist: true, timeout: READ_TIMEOUT_MS });
    try {
      database.pragma('query_only = ON');
      // A file of version 0 is just being created.
      if (keysVersion(this.#path, database) === 0)
        throw new AtlasError('E_DATA_DIR', `${this.#path} is empty; restore it from a copy`);
      this.#query = database.prepare<[Buffer], Row>(
        'SELECT id, rate, origins, self_issued, expires FROM api_key WHERE hash = ? AND revoked IS NULL',
      );
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    this.#inode = inode;
    this.#dataVersion = undefined;
  }

  #close(): void {
    this.#query = undefined;
    this.#database?.close();
    this.#database = undefined;
  }
}

/** Returns what changes if the content of a file does. */
function contentOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino} ${size} ${mtimeMs}`;
}

function activeKey({ id, rate, origins, self_issued }: Row): ActiveKey {
  return { id, rate, origins: parseOrigins(origins), selfIssued: self_issued === 1, limiter: undefined };
}
