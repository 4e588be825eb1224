/** The keys that work, in a server's memory, kept up to date with keys.sqlite. */
import { statSync } from 'node:fs';
import type Sqlite from 'better-sqlite3';
import { AtlasError, messageOf } from '../errors.js';
import { sqlite } from '../sqlite.js';
import { checkKeysVersion, hashKey } from './keys.js';

/** A key that works. */
export interface ActiveKey {
  id: string;
  /** Addresses a minute; null where the server's rate holds. */
  rate: number | null;
}

/** Something that knows which keys work. */
export interface KeyFinder {
  /** @returns the key, or undefined where the text is no key that works */
  find(presented: string): ActiveKey | undefined;
}

/** How long a reader waits for a writer, in milliseconds: briefly, since requests wait too. The next poll tries again. */
const READ_TIMEOUT_MS = 20;

interface Row {
  id: string;
  hash: Buffer;
  rate: number | null;
}

/**
 * Keys by the hash of their text.
 *
 * A presented key is hashed before it is looked for. The time of the search can then tell something about hashes at
 * most, and which text has a hash near to a stored one cannot be planned: as good as a comparison in constant time, and
 * independent of how many keys there are.
 */
export class KeyRing implements KeyFinder {
  readonly #path: string;
  readonly #onProblem: (message: string) => void;
  #keys: ReadonlyMap<string, ActiveKey> = new Map();
  #database: Sqlite.Database | undefined;
  /** Which file is open: another one may take its place. */
  #inode = 0;
  #version: unknown;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param path of keys.sqlite; it need not be there yet
   * @param onProblem told once where the file cannot be read; the keys known so far go on working
   */
  constructor(path: string, onProblem: (message: string) => void) {
    this.#path = path;
    this.#onProblem = onProblem;
  }

  find(presented: string): ActiveKey | undefined {
    return this.#keys.get(hashKey(presented));
  }

  /** Reads the keys now and from then on whenever they changed, which is looked for every `interval` milliseconds. */
  start(interval: number): void {
    this.refresh();
    this.#timer = setInterval(() => this.refresh(), interval);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#close();
  }

  /** Takes up what changed since the last time. */
  refresh(): void {
    try {
      this.#reload();
      this.#problem = '';
    } catch (error) {
      this.#close();
      const problem = messageOf(error);
      // A writer in the middle of its work; the next poll will see what it wrote.
      if (/SQLITE_BUSY/.test(String((error as { code?: unknown }).code)) || problem === this.#problem) return;
      this.#problem = problem;
      this.#onProblem(problem);
    }
  }

  #reload(): void {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (stat === undefined) {
      // No file, no keys: whoever removes it wants none to work.
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
      // A file of version 0 is being made at this moment.
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
