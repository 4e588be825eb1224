/** The valid keys in a server's memory, kept up to date with keys.sqlite. */
import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../errors.js';
import { sqlite } from '../sqlite.js';
import { checkKeysVersion, hashKey } from './keys.js';

/** A valid key. */
export interface ActiveKey {
  id: string;
  /** Addresses a minute; null for the server's rate. */
  rate: number | null;
}

/** Finds valid keys. */
export interface KeyFinder {
  /** Returns the key, or undefined if the text is not a valid key. */
  find(presented: string): ActiveKey | undefined;
}

/** How long a reader waits for a writer, in milliseconds: not long, because requests wait too. The next poll tries again. */
const READ_TIMEOUT_MS = 20;

interface Row {
  id: string;
  hash: Buffer;
  rate: number | null;
}

/**
 * Keys by the hash of their text.
 *
 * A presented key is hashed before it is searched. The time of the search can reveal something about hashes at most, and
 * nobody can choose a text by its hash: this is as good as a comparison in constant time, for any number of keys.
 */
export class KeyCache implements KeyFinder {
  readonly #path: string;
  readonly #onProblem: (message: string) => void;
  #keys: ReadonlyMap<string, ActiveKey> = new Map();
  #database: Sqlite.Database | undefined;
  /** The inode of the open file: another file may replace it. */
  #inode = 0;
  #version: unknown;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param path of keys.sqlite, which need not exist yet
   * @param onProblem called once if the file cannot be read; the keys read before still work then
   */
  constructor(path: string, onProblem: (message: string) => void) {
    this.#path = path;
    this.#onProblem = onProblem;
  }

  find(presented: string): ActiveKey | undefined {
    return this.#keys.get(hashKey(presented));
  }

  /** Reads the keys now, and checks for changes every `interval` milliseconds from then on. */
  start(interval: number): void {
    this.refresh();
    this.#timer = setInterval(() => this.refresh(), interval);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#close();
  }

  /** Reads what changed since the last time. */
  refresh(): void {
    try {
      this.#reload();
      this.#problem = '';
    } catch (error) {
      this.#close();
      const problem = messageOf(error);
      // A writer is at work; the next poll reads what it wrote.
      if (/SQLITE_BUSY/.test(String((error as { code?: unknown }).code)) || problem === this.#problem) return;
      this.#problem = problem;
      this.#onProblem(problem);
    }
  }

  #reload(): void {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (stat === undefined) {
      // No file, no keys: an operator who removes it wants no key to work.
      this.#close();
      this.#keys = new Map();
      return;
    }
    if (this.#database === undefined || this.#inode !== stat.ino) this.#open(stat.ino);
    const version = this.#database?.pragma('data_version', { simple: true });
    if (version === this.#version) return;
    const rows = this.#database!.prepare<[], Row>('SELECT id, hash, rate FROM api_key WHERE revoked IS NULL').all();
    this.#keys = new Map(rows.map(({ id, hash, rate }) => [hash.toString('hex'), { id, rate }]));
    this.#version = version;
  }

  #open(inode: number): void {
    this.#close();
    const database = new (sqlite())(this.#path, { readonly: true, fileMustExist: true, timeout: READ_TIMEOUT_MS });
    try {
      // A file of version 0 is just being created.
      if (database.pragma('user_version', { simple: true }) === 0) throw new AtlasError('E_DATA_DIR', 'no keys yet');
      checkKeysVersion(this.#path, database);
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    this.#inode = inode;
    this.#version = undefined;
  }

  #close(): void {
    this.#database?.close();
    this.#database = undefined;
  }
}
