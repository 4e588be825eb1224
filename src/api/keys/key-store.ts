/**
 * keys.sqlite, the file of API keys: creates, lists and revokes them. Only the SHA-256 of a key is stored.
 *
 * The file uses a rollback journal, not a write-ahead log, so that a server that may only read the data directory can
 * read it too. It is written a few times a day at most.
 */
import { hash, randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { AtlasError, causedError, fileAdvice, isDiskError, misuse, systemErrorCode } from '../../errors.js';
import { makeFolder } from '../../files.js';
import { MAX_KEY_FILE_BYTES, SELF_ISSUED_KEY_MS } from '../../limits.js';
import { packageFile } from '../../package-root.js';
import { sqlite } from '../../sqlite.js';
import { KEY_FILE_FRAME_BYTES, keyLines, type SharedKey } from './key-file.js';

const KEYS_FILE = 'keys.sqlite';

/** The script that makes the file, and the version that it has then (`PRAGMA user_version`); version 0 is an empty file. */
const SCRIPT = 'schemas/keys.sql';
const KEYS_VERSION = 1;

/** Permissions of a new file: the hashes and labels are for its owner only. */
const KEYS_MODE = 0o600;

/** How long a command waits for another writer, in milliseconds. */
const WRITE_TIMEOUT_MS = 5_000;

/** How long a server waits for another writer, in milliseconds: not long, because requests wait too. */
export const SERVER_WRITE_TIMEOUT_MS = 100;

/** Prefix of every key, so that people and scanners recognize a leaked one. */
export const KEY_PREFIX = 'ipa_';
const KEY_BYTES = 32;
const ID_BYTES = 4;

/** What is stored about a key; not the key itself. */
export interface KeyRecord extends Omit<SharedKey, 'hash'> {
  label: string;
  /** ISO 8601, UTC; null while the key is valid. */
  revoked: string | null;
}

/** What the creator of a key decides. */
export type KeyOptions = Pick<KeyRecord, 'label' | 'rate' | 'origins' | 'self_issued'>;

/** Returns the path of the keys of a data directory. */
export function keysPath(dataDir: string): string {
  return join(dataDir, KEYS_FILE);
}

/** Returns the hexadecimal SHA-256 of a key's text, which identifies the key. */
export function hashKey(key: string): string {
  return hash('sha256', key);
}

function keysError(path: string, error: unknown): AtlasError {
  const what = `${path} cannot be used`;
  if (isDiskError(error)) return causedError('E_DISK', what, error, fileAdvice(error));
  return causedError('E_DATA_DIR', what, error, 'fix its permissions, or restore it from a copy');
}

/** Returns the version of a file of keys. Throws AtlasError E_DATA_DIR if it is another one than this program knows. */
export function keysVersion(path: string, database: Sqlite.Database): number {
  const version = database.pragma('user_version', { simple: true }) as number;
  if (version === 0 || version === KEYS_VERSION) return version;
  throw new AtlasError(
    'E_DATA_DIR',
    `${path} is of version ${version}, but this ipatlas knows version ${KEYS_VERSION}; move it away or use another version`,
  );
}

/** Makes the tables of an empty file. */
function createTables(path: string, database: Sqlite.Database): void {
  database
    .transaction(() => {
      // Another process may have done it since the version was read.
      if (keysVersion(path, database) === 0) database.exec(readFileSync(packageFile(SCRIPT), 'utf8'));
    })
    .immediate();
}

/** Creates an empty file if there is none: SQLite would create it readable for everyone. */
function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', KEYS_MODE));
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  }
}

function openForWriting(dataDir: string, timeout: number): Sqlite.Database {
  const path = keysPath(dataDir);
  const SqliteDatabase = sqlite();
  let database: Sqlite.Database;
  try {
    makeFolder(dataDir);
    createPrivately(path);
    database = new SqliteDatabase(path, { timeout });
  } catch (error) {
    throw keysError(path, error);
  }
  try {
    if (keysVersion(path, database) === 0) createTables(path, database);
    return database;
  } catch (error) {
    database.close();
    throw error instanceof AtlasError ? error : keysError(path, error);
  }
}

/** @param timeout how long to wait for another writer, in milliseconds */
function withKeys<Result>(
  dataDir: string,
  use: (database: Sqlite.Database) => Result,
  timeout = WRITE_TIMEOUT_MS,
): Result {
  const database = openForWriting(dataDir, timeout);
  try {
    return use(database);
  } catch (error) {
    throw error instanceof AtlasError ? error : keysError(keysPath(dataDir), error);
  } finally {
    database.close();
  }
}

/**
 * Returns the origin that a URL names, as browsers send it (RFC 6454 §6.2): scheme, host, and a port that is not the
 * default one.
 *
 * @throws AtlasError E_USAGE if the text is not a URL of http or https, or names more than an origin
 */
export function parseOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.hostname.includes('*')) {
    throw misuse(`${JSON.stringify(text)} has a wildcard; name each origin, repeat --origin for it`);
  }
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw misuse(`${JSON.stringify(text)} is not an origin such as https://example.com`);
}

/** The columns of {@link KeyRecord}. */
const RECORD_COLUMNS = 'id, label, rate, origins, self_issued, created, expires, revoked';

/** A row of the table, by what it becomes. */
type Row<Key> = Omit<Key, 'origins' | 'self_issued'> & { origins: string | null; self_issued: number };

function keyOf<Key>(row: Row<Key>): Key {
  return { ...row, origins: parseOrigins(row.origins), self_issued: row.self_issued === 1 } as Key;
}

const INSERT = `INSERT INTO api_key (id, hash, label, rate, origins, self_issued, created, expires)
  VALUES (@id, @hash, @label, @rate, @origins, @self_issued, @created, @expires)`;

/** Returns the columns of a key for {@link INSERT}. */
function rowOf(key: Omit<SharedKey, 'id'> & { label: string; id?: string }) {
  const { hash, origins, self_issued } = key;
  const text = origins === null ? null : JSON.stringify(origins);
  return { ...key, hash: Buffer.from(hash, 'hex'), origins: text, self_issued: Number(self_issued) };
}

/** Parses the column `origins`. */
export function parseOrigins(json: string | null): string[] | null {
  return json === null ? null : (JSON.parse(json) as string[]);
}

/**
 * Creates a key.
 *
 * @param dataDir the data directory; created if it does not exist
 * @param timeout how long to wait for another writer, in milliseconds
 * @param also work in the same transaction; if it throws, no key is created
 * @returns the key's text, which is not stored, its id, and until when it is valid (ISO 8601 in UTC; null: for ever)
 * @throws AtlasError E_DATA_DIR if it cannot be stored, E_USAGE if the label has control characters or the keys are
 *   imported
 */
export function createKey(
  dataDir: string,
  { label = '', rate = null, origins = null, self_issued = false }: Partial<KeyOptions> = {},
  timeout = WRITE_TIMEOUT_MS,
  also: (database: Sqlite.Database) => void = () => {},
): { id: string; key: string; expires: string | null } {
  // A terminal would interpret some of them as commands.
  if (/\p{Cc}/u.test(label)) throw misuse('the label has a control character; remove it');
  const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
  const now = Date.now();
  const expires = self_issued ? new Date(now + SELF_ISSUED_KEY_MS).toISOString() : null;
  const created = new Date(now).toISOString();
  const row = rowOf({ hash: hashKey(key), label, rate, origins, self_issued, created, expires });
  const create = (database: Sqlite.Database): string => {
    refuseImported(dataDir, database);
    also(database);
    database.prepare('DELETE FROM api_key WHERE expires <= ?').run(created);
    const insert = database.prepare(`${INSERT} ON CONFLICT (id) DO NOTHING`);
    for (;;) {
      const id = randomBytes(ID_BYTES).toString('hex');
      // Ids are short, for people, so another key may have it.
      if (insert.run({ ...row, id }).changes === 1) return id;
    }
  };
  const id = withKeys(dataDir, (database) => database.transaction(create).immediate(database), timeout);
  return { id, key, expires };
}

/**
 * Checks that a server can make keys in a data directory.
 *
 * @throws AtlasError E_DATA_DIR if the file cannot be written, E_USAGE if its keys are imported
 */
export function requireWritableKeys(dataDir: string): void {
  withKeys(dataDir, (database) =>
    database
      .transaction(() => {
        refuseImported(dataDir, database);
        // A file that may only be read is noticed by the first write.
        database.pragma(`user_version = ${KEYS_VERSION}`);
      })
      .immediate(),
  );
}

/** Returns all keys, including revoked ones, the oldest first. */
export function listKeys(dataDir: string): KeyRecord[] {
  if (!keysExist(dataDir)) return [];
  return withKeys(dataDir, (database) =>
    database
      .prepare<[], Row<KeyRecord>>(`SELECT ${RECORD_COLUMNS} FROM api_key ORDER BY created, id`)
      .all()
      .map(keyOf<KeyRecord>),
  );
}

/** Revokes the key of an id that fits a condition. Returns what is stored about it; undefined if there is none. */
function revoke(dataDir: string, id: string, condition: string, timeout?: number): KeyRecord | undefined {
  return withKeys(
    dataDir,
    (database) => {
      refuseImported(dataDir, database);
      database
        .prepare(`UPDATE api_key SET revoked = ? WHERE id = ? AND ${condition} AND revoked IS NULL`)
        .run(new Date().toISOString(), id);
      const row = database
        .prepare<[string], Row<KeyRecord>>(`SELECT ${RECORD_COLUMNS} FROM api_key WHERE id = ? AND ${condition}`)
        .get(id);
      return row && keyOf<KeyRecord>(row);
    },
    timeout,
  );
}

/**
 * Revokes a key permanently. Servers notice within a second.
 *
 * @returns what is stored about it; its `revoked` is the time of the first revocation
 * @throws AtlasError E_USAGE if there is no such key
 */
export function revokeKey(dataDir: string, id: string): KeyRecord {
  const revoked = keysExist(dataDir) ? revoke(dataDir, id, 'TRUE') : undefined;
  if (revoked !== undefined) return revoked;
  throw misuse(`there is no key ${JSON.stringify(id)}; "ipatlas keys list" shows the ids`);
}

/** SQL for "the key is valid"; its parameter is the time, ISO 8601 in UTC. */
const IS_VALID = 'revoked IS NULL AND (expires IS NULL OR expires > ?)';

/** Returns all valid keys as a file of keys has them: first those that the operator made, then the others by their age. */
function sharedKeys(database: Sqlite.Database): SharedKey[] {
  return database
    .prepare<[string], Row<SharedKey>>(
      `SELECT id, lower(hex(hash)) AS hash, rate, origins, self_issued, created, expires FROM api_key
       WHERE ${IS_VALID} ORDER BY self_issued, created, id`,
    )
    .all(new Date().toISOString())
    .map(keyOf<SharedKey>);
}

/** The table, without rows, that a file has after an import. */
const IMPORTED = 'imported';

function isImported(database: Sqlite.Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(IMPORTED) !== undefined;
}

/** Refuses to change keys that an import would change back. */
function refuseImported(dataDir: string, database: Sqlite.Database): void {
  if (!isImported(database)) return;
  throw misuse(`the keys of ${dataDir} are imported; create and revoke keys where they are exported`);
}

/**
 * Returns as many of the keys as a server imports. Operators' keys come first: they are never left out for those that
 * people made by signing up, of which the newest are left out, so that nobody can crowd out a key that is in use.
 *
 * @throws AtlasError E_USAGE if the keys that the operator made are too many
 */
function withinLimit(keys: SharedKey[], maxBytes: number): SharedKey[] {
  let bytes = KEY_FILE_FRAME_BYTES;
  const count = keys.findIndex((key) => {
    bytes += Buffer.byteLength(keyLines([key])) + 2;
    return bytes > maxBytes;
  });
  if (count === -1) return keys;
  if (keys[count]!.self_issued) return keys.slice(0, count);
  throw misuse(`the keys are too many for one file: it may have ${maxBytes} bytes; revoke some`);
}

/** Returns the valid keys, for a file of keys; the same after no change. Throws as {@link withinLimit} does. */
export function exportKeys(dataDir: string, maxBytes = MAX_KEY_FILE_BYTES): SharedKey[] {
  return withKeys(dataDir, (database) => withinLimit(sharedKeys(database), maxBytes));
}

/** What an import did. */
export interface KeyImport {
  /** Keys that are valid now. */
  keys: number;
  /** Keys that were added or changed, and keys that were removed. */
  changed: number;
  removed: number;
}

/**
 * Makes the keys of a file the keys of a data directory: all others are removed. Servers notice within a second.
 *
 * @param replace whether keys that were created here may be removed
 * @throws AtlasError E_USAGE if there are keys that were created here, unless `replace` is true
 */
export function importKeys(dataDir: string, keys: readonly SharedKey[], replace: boolean): KeyImport {
  return withKeys(dataDir, (database) => {
    // The file is locked only while it is committed: servers read keys until then.
    database.pragma('cache_spill = OFF');
    return database
      .transaction(() => {
        const present = new Map(sharedKeys(database).map((key) => [key.id, keyLines([key])]));
        const count = database.prepare<[], number>('SELECT count(*) FROM api_key').pluck().get()!;
        if (!isImported(database) && count > 0 && !replace) {
          throw misuse(
            `${dataDir} has ${count} keys of its own, which the import would remove; repeat it with --replace to do so`,
          );
        }
        const wanted = new Set(keys.map(({ id }) => id));
        const ids = database.prepare<[], string>('SELECT id FROM api_key').pluck().all();
        const remove = database.prepare('DELETE FROM api_key WHERE id = ?');
        const unwanted = ids.filter((id) => !wanted.has(id));
        const changed = keys.filter((key) => present.get(key.id) !== keyLines([key]));
        for (const id of unwanted) remove.run(id);
        // First all, because two keys may have exchanged their ids.
        for (const { id } of changed) remove.run(id);
        const insert = database.prepare(INSERT);
        for (const key of changed) insert.run(rowOf({ ...key, label: '' }));
        database.exec(`CREATE TABLE IF NOT EXISTS ${IMPORTED} (unused TEXT) STRICT`);
        return { keys: keys.length, changed: changed.length, removed: unwanted.length };
      })
      .immediate();
  });
}

/**
 * Revokes a key whose holder made it by signing up.
 *
 * @returns the time of the first revocation, ISO 8601 in UTC; undefined if there is no such key, or an operator made it
 * @throws AtlasError E_USAGE if the keys are imported
 */
export function revokeSelfIssuedKey(dataDir: string, id: string): string | undefined {
  return revoke(dataDir, id, 'self_issued = 1', SERVER_WRITE_TIMEOUT_MS)?.revoked ?? undefined;
}

/** Returns whether an error means that another process is writing the keys, so that the same call may succeed later. */
export function keysAreBusy(error: unknown): boolean {
  return error instanceof AtlasError && systemErrorCode(error.cause)?.startsWith('SQLITE_BUSY') === true;
}

/** Returns whether a text is a valid key. */
export function isValidKey(dataDir: string, key: string): boolean {
  if (!keysExist(dataDir)) return false;
  return withKeys(
    dataDir,
    (database) =>
      database
        .prepare(`SELECT 1 FROM api_key WHERE hash = ? AND ${IS_VALID}`)
        .get(Buffer.from(hashKey(key), 'hex'), new Date().toISOString()) !== undefined,
  );
}

function keysExist(dataDir: string): boolean {
  try {
    return statSync(keysPath(dataDir), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOTDIR') return false;
    throw keysError(keysPath(dataDir), error);
  }
}
