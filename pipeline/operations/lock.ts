/**
 * One build at a time in a data directory.
 *
 * The lock is an exclusive transaction on a small SQLite file, and so a lock of the operating system on that file: when
 * its holder dies, however it dies, the system frees it. No time-out has to guess whether a holder is still alive.
 */
import { join } from 'node:path';
import { AtlasError, systemErrorCode } from '../../src/errors.js';
import { sqlite } from '../../src/sqlite.js';

/**
 * Takes the lock of a data directory.
 *
 * @returns a function that gives it back
 * @throws AtlasError E_BUSY where another build holds it
 */
export function lockDataDir(dataDir: string): () => void {
  const database = new (sqlite())(join(dataDir, 'lock.sqlite'), { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (systemErrorCode(error) === 'SQLITE_BUSY') {
      throw new AtlasError(
        'E_BUSY',
        `another build is at work in ${dataDir}; wait for it to end, or name another --data`,
      );
    }
    throw error;
  }
  return () => {
    database.close();
  };
}
