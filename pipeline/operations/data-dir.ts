/** Exclusive use of the data directory during a build or a pull. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtlasError, fileAdvice, isDiskError, messageOf, systemErrorCode } from '../../src/errors.js';
import { makeFolder } from '../../src/files.js';
import { lockDataDir } from './lock.js';

/** Errors of the operating system, or of SQLite, that mean that this path cannot be written. */
const PATH_ERRORS = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EEXIST', 'SQLITE_READONLY']);

/** Replaces a failed write by an error that says what to do. */
export function explainWriteError(error: unknown, dataDir: string): unknown {
  const code = systemErrorCode(error);
  if (error instanceof AtlasError || code === undefined) return error;
  if (!isDiskError(error) && !PATH_ERRORS.has(code) && !code.startsWith('SQLITE_CANTOPEN')) return error;
  return new AtlasError(
    isDiskError(error) ? 'E_DISK' : 'E_DATA_DIR',
    `the data directory ${dataDir} cannot be written (${messageOf(error)}); ${fileAdvice(error)}, or choose another directory with --data`,
    { cause: error },
  );
}

/**
 * Locks the data directory, which is created if it does not exist, and runs an action with a temporary folder in it.
 *
 * @param action receives the folder; it is removed afterwards
 * @param waitMs how long to wait for another build or pull that runs
 * @throws AtlasError E_BUSY if another build or pull holds the lock, E_DATA_DIR if the directory cannot be written, E_DISK if the
 *   disk is full; or what the
 *   action throws
 */
export async function withDataDir<Result>(
  dataDir: string,
  action: (workDir: string) => Promise<Result>,
  waitMs?: number,
): Promise<Result> {
  let unlock: (() => void) | undefined;
  const temporary = join(dataDir, 'tmp');
  try {
    makeFolder(dataDir);
    unlock = lockDataDir(dataDir, waitMs);
    // Nobody else uses the folder while the lock is held: its content is from a process that was killed.
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary);
    return await action(temporary);
  } catch (error) {
    throw explainWriteError(error, dataDir);
  } finally {
    if (unlock !== undefined) {
      try {
        rmSync(temporary, { recursive: true, force: true });
      } finally {
        unlock(); // otherwise a schedule would refuse its own next build
      }
    }
  }
}
