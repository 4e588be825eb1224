/** The data directory that is used if none is given. */
import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** The default, as help texts describe it. */
export const DATA_DIR_HELP =
  'the data directory (default: IPATLAS_DATA, else ./data if it exists, else ~/.local/share/ipatlas)';

/**
 * Returns the data directory that is used without `--data` and `IPATLAS_DATA`: `data` in the working directory if it
 * exists, so that a checkout and a project keep their own database, else a directory of the user, so that any other
 * working directory stays clean.
 *
 * Source of the second: XDG Base Directory Specification 0.8. A relative XDG_DATA_HOME is invalid and is ignored.
 *
 * @param env the environment; only XDG_DATA_HOME is read
 */
export function defaultDataDir(env: NodeJS.ProcessEnv = process.env): string {
  if (statSync('data', { throwIfNoEntry: false })?.isDirectory() === true) return 'data';
  const base = env.XDG_DATA_HOME;
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), '.local', 'share'), 'ipatlas');
}
