/** The valid keys in a server's memory, kept up to date with keys.sqlite. */
import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../../errors.js';
import { sqlite } from '../../sqlite.js';
import type { RateLimiter } from '../rates/rate-limit.js';
import { BROWSERS_VERSION, CHANGES_VERSION, hashKey, keysVersion, parseOrigins } from './key-store.js';

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

/** Keys that are read at once: a few milliseconds, in which no request is answered. */
const SLICE = 250;

interface KeyMaps {
  /** Valid keys by the hash of their text. */
  keys: Map<string, ActiveKey>;
  /** The hash of each of them, by id. */
  hashes: Map<string, string>;
}

interface FullRead extends KeyMaps {
  /** The last key that was read. */
  lastId: string;
  /** Of the file. */
  version: number;
  /** `PRAGMA data_version`, and the last change, before the first key was read. */
  dataVersion: unknown;
  sequence: number | undefined;
}

function addKey({ keys, hashes }: KeyMaps, { id, hash, rate, origins, self_issued }: Row): void {
  const text = hash.toString('hex');
  keys.set(text, { id, rate, origins: parseOrigins(origins), selfIssued: self_issued === 1, limiter: undefined });
  hashes.set(id, text);
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
  /** A read of all keys that is not finished. */
  #fullRead: FullRead | undefined;
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
    this.#guard(() => this.#reload());
  }

  #guard(work: () => unknown): void {
    try {
      work();
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
    // A writer may have upgraded the file.
    const version = keysVersion(this.#path, database);
    if (this.#fullRead !== undefined) return;
    if (version >= CHANGES_VERSION && this.#sequence !== undefined) this.#readChanges(version, dataVersion);
    else this.#startFullRead(version, dataVersion);
  }

  /** Reads all keys, in slices: requests are answered between them, by the keys that were read before. */
  #startFullRead(version: number, dataVersion: unknown): void {
    const sequence = version >= CHANGES_VERSION ? lastChange(this.#database!) : undefined;
    this.#fullRead = { keys: new Map(), hashes: new Map(), lastId: '', version, dataVersion, sequence };
    this.#readSlice();
  }

  /** Reads the next keys. Keys that change meanwhile are read by the next poll. */
  #readSlice(): void {
    const read = this.#fullRead!;
    const rows = this.#database!.prepare<[string], Row>(
      `SELECT ${rowColumns(read.version)} FROM api_key WHERE revoked IS NULL AND id > ? ORDER BY id LIMIT ${SLICE}`,
    ).all(read.lastId);
    for (const row of rows) addKey(read, row);
    if (rows.length === SLICE) {
      read.lastId = rows.at(-1)!.id;
      this.#soon(() => this.#fullRead === read && this.#readSlice());
      return;
    }
    this.#fullRead = undefined;
    this.#keys = read.keys;
    this.#hashes = read.hashes;
    this.#presented.clear();
    this.#sequence = read.sequence;
    this.#dataVersion = read.dataVersion;
  }

  /** Reads the keys that changed, in slices too. */
  #readChanges(version: number, dataVersion: unknown): void {
    const database = this.#database!;
    // One transaction: a change between two of its statements would be missed.
    const count = database.transaction(() => {
      const changes = database
        .prepare<[number], { sequence: number; id: string }>(
          `SELECT sequence, key_id AS id FROM key_change WHERE sequence > ? ORDER BY sequence LIMIT ${SLICE}`,
        )
        .all(this.#sequence!);
      const read = database.prepare<[string], Row>(
        `SELECT ${rowColumns(version)} FROM api_key WHERE id = ? AND revoked IS NULL`,
      );
      this.#presented.clear();
      // First all: a key may have got the hash of another one.
      for (const { id } of changes) this.#remove(id);
      for (const id of new Set(changes.map((change) => change.id))) {
        const row = read.get(id);
        if (row !== undefined) addKey({ keys: this.#keys, hashes: this.#hashes }, row);
      }
      this.#sequence = changes.at(-1)?.sequence ?? this.#sequence;
      return changes.length;
    })();
    if (count < SLICE) this.#dataVersion = dataVersion;
    else this.#soon(() => this.refresh());
  }

  /** Works on in the next turn of the event loop, or now if nothing else is to be done yet. */
  #soon(work: () => unknown): void {
    if (this.#timer === undefined) work();
    else setImmediate(() => this.#guard(work));
  }

  #remove(id: string): void {
    const hash = this.#hashes.get(id);
    if (hash !== undefined && this.#keys.get(hash)?.id === id) this.#keys.delete(hash);
    this.#hashes.delete(id);
  }

  #clear(): void {
    this.#fullRead = undefined;
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
    this.#fullRead = undefined;
    this.#database?.close();
    this.#database = undefined;
  }
}

/** Returns the number of the newest change; 0 if there is none. */
function lastChange(database: Sqlite.Database): number {
  return database.prepare<[], number>('SELECT coalesce(max(sequence), 0) FROM key_change').pluck().get()!;
}
