/** Opens the SQLite mirror. */
import type Sqlite from 'better-sqlite3';
import { AtlasError, causedError, orThrow, REBUILD } from '../errors.js';
import { sqlite } from '../sqlite.js';

/** `PRAGMA user_version` of schemas/mirror.sql. */
export const MIRROR_VERSION = 1;

/**
 * Opens a mirror for reading.
 *
 * @param path of the mirror
 * @throws AtlasError E_NO_DATABASE if it cannot be opened, E_DAMAGED if it is not a mirror of this version
 */
export function openMirror(path: string): Sqlite.Database {
  const Database = sqlite();
  const open = () => new Database(path, { readonly: true, fileMustExist: true });
  const database = orThrow(open, 'E_NO_DATABASE', `${path} cannot be opened`, REBUILD);
  try {
    const version = database.pragma('user_version', { simple: true });
    if (version === MIRROR_VERSION) return database;
    throw new AtlasError(
      'E_DAMAGED',
      `${path}: mirror version ${version}, but this ipatlas reads version ${MIRROR_VERSION}; ${REBUILD}`,
    );
  } catch (error) {
    database.close();
    if (error instanceof AtlasError) throw error;
    throw causedError('E_DAMAGED', `${path} is not a SQLite database`, error, REBUILD);
  }
}
