/**
 * One build or pull at a time in a data directory, and one command at a time in a signed repository.
 *
 * The lock is an exclusive transaction on a small SQLite file, hence a lock of the operating system on that file. When its
 * holder ends in any way, the system releases it. No time-out has to guess whether the holder is still running.
 */
import { join } from 'node:path';
import { AtlasError, systemErrorCode } from '../../src/errors.js';
import { sqlite } from '../../src/sqlite.js';

/** Name of the lock file in a data directory and in a repository. */
const LOCK_FILE = 'lock.sqlite';

/**
 * Takes the lock of a directory.
 *
 * @param dir an existing directory
 * @param busy message of the error if another process holds the lock
 * @param waitMs how long to wait for it
 * @returns a function that releases it
 * @throws AtlasError E_BUSY if another process holds it
 */
export function lockDirectory(dir: string, busy: string, waitMs = 0): () => void {
  const database = new (sqlite())(join(dir, LOCK_FILE), { timeout: waitMs });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (systemErrorCode(error) === 'SQLITE_BUSY') throw new AtlasError('E_BUSY', busy);
    throw error;
  }
  return () => {
    database.close();
  };
}

/**
 * Takes the lock of a data directory.
 *
 * @returns a function that releases it
 * @throws AtlasError E_BUSY if another build or pull holds it
 */
export function lockDataDir(dataDir: string, waitMs?: number): () => void {
  const advice = 'wait until it ends (--wait SECONDS), or choose another directory with --data';
  return lockDirectory(dataDir, `another build or pull is running in ${dataDir}; ${advice}`, waitMs);
}
