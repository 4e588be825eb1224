/**
 * One build at a time in a data directory.
 *
 * The lock is an exclusive transaction on a small SQLite file, hence a lock of the operating system on that file. When its
 * holder ends in any way, the system releases it. No time-out has to guess whether the holder is still running.
 */
import { join } from 'node:path';
import { AtlasError, systemErrorCode } from '../../src/errors.js';
import { sqlite } from '../../src/sqlite.js';

/**
 * Takes the lock of a data directory.
 *
 * @returns a function that releases it
 * @throws AtlasError E_BUSY if another build holds it
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
        `another build is running in ${dataDir}; wait until it ends, or choose another directory with --data`,
      );
    }
    throw error;
  }
  return () => {
    database.close();
  };
}
