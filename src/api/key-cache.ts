/** The valid keys in a server's memory, kept up to date with keys.sqlite. */
import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../errors.js';
import { sqlite } from '../sqlite.js';
import { BROWSERS_VERSION, CHANGES_VERSION, hashKey, keysVersion, parseOrigins } from './keys.js';

/** A valid key. */
export interface ActiveKey {
  id: string;
  /** Addresses a minute; null for the server's rate. */
  rate: number | null;
  /** The only origins from which it works; null for no restriction. */
  origins: readonly string[] | null;
  /** Whether its holder made it by signing up. */
  selfIssued: boolean;
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
  origins: string | null;
  self_issued: number;
}

/** Returns the columns of {@link Row} as SQL, for a file of a version. */
function rowColumns(version: number): string {
  return `id, hash, rate, ${version >= BROWSERS_VERSION ? 'origins, self_issued' : 'NULL AS origins, 0 AS self_issued'}`;
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
  /** Valid keys by the hash of their text. */
  #keys = new Map<string, ActiveKey>();
  /** The hash of each of them, by id. */
  #hashes = new Map<string, string>();
  /**
   * Valid keys by their text, those that were presented since the last change: to hash each time would be a tenth of the
   * work for a request. Other texts are not kept. V8 hashes strings with a random seed and compares whole strings only if
   * these hashes are equal, so its time says no more about a key than that of the search above.
   */
  readonly #presented = new Map<string, ActiveKey>();
  #database: Sqlite.Database | undefined;
  /** The inode of the open file: another file may replace it. */
  #inode = 0;
  /** `PRAGMA data_version` when the file was last read; undefined if all of it must be read. */
  #dataVersion: unknown;
  /** The last change that was read; undefined if the file does not record changes. */
  #sequence: number | undefined;
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
    const known = this.#presented.get(presented);
    if (known !== undefined) return known;
    const key = this.#keys.get(hashKey(presented));
    if (key !== undefined) this.#presented.set(presented, key);
    return key;
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
      this.#clear();
      return;
    }
    if (this.#database === undefined || this.#inode !== stat.ino) this.#open(stat.ino);
    const database = this.#database!;
    const dataVersion = database.pragma('data_version', { simple: true });
    if (dataVersion === this.#dataVersion) return;
    // One transaction: a change between two of its statements would be missed, or read twice.
    database.transaction(() => {
      // A writer may have upgraded the file.
      const version = keysVersion(this.#path, database);
      if (version >= CHANGES_VERSION && this.#sequence !== undefined)
        this.#readChanges(database, version, this.#sequence);
      else this.#readAll(database, version);
    })();
    this.#dataVersion = dataVersion;
  }

  #readAll(database: Sqlite.Database, version: number): void {
    const rows = database.prepare<[], Row>(`SELECT ${rowColumns(version)} FROM api_key WHERE revoked IS NULL`).all();
    this.#clear();
    for (const row of rows) this.#add(row);
    this.#sequence = version >= CHANGES_VERSION ? lastChange(database) : undefined;
  }

  #readChanges(database: Sqlite.Database, version: number, after: number): void {
    const last = lastChange(database);
    const changed = database
      .prepare<[number], { id: string }>('SELECT DISTINCT key_id AS id FROM key_change WHERE sequence > ?')
      .all(after);
    const read = database.prepare<[string], Row>(
      `SELECT ${rowColumns(version)} FROM api_key WHERE id = ? AND revoked IS NULL`,
    );
    this.#presented.clear();
    for (const { id } of changed) {
      const hash = this.#hashes.get(id);
      if (hash !== undefined) this.#keys.delete(hash);
      this.#hashes.delete(id);
      const row = read.get(id);
      if (row !== undefined) this.#add(row);
    }
    this.#sequence = last;
  }

  #add({ id, hash, rate, origins, self_issued }: Row): void {
    const text = hash.toString('hex');
    this.#keys.set(text, { id, rate, origins: parseOrigins(origins), selfIssued: self_issued === 1 });
    this.#hashes.set(id, text);
  }

  #clear(): void {
    this.#keys = new Map();
    this.#hashes = new Map();
    this.#presented.clear();
  }

  #open(inode: number): void {
    this.#close();
    const database = new (sqlite())(this.#path, { readonly: true, fileMustExist: true, timeout: READ_TIMEOUT_MS });
    try {
      // A file of version 0 is just being created.
      if (keysVersion(this.#path, database) === 0) throw new AtlasError('E_DATA_DIR', `${this.#path} is empty`);
    } catch (error) {
      database.close();
      throw error;
    }
    this.#database = database;
    this.#inode = inode;
    this.#dataVersion = undefined;
    this.#sequence = undefined;
  }

  #close(): void {
    this.#database?.close();
    this.#database = undefined;
  }
}

/** Returns the number of the newest change; 0 if there is none. */
function lastChange(database: Sqlite.Database): number {
  return database.prepare<[], number>('SELECT coalesce(max(sequence), 0) FROM key_change').pluck().get()!;
}
