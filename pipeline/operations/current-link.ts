/** The link `current` in the data directory, or the file on Windows, which names the release in use. */
import { lstatSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT_LINK, RELEASES_DIR } from '../../src/database/release.js';
import { flush, rename, replaceFile } from '../../src/files.js';
import { SYSTEM } from '../../src/system.js';

/**
 * Makes `current` name a release, in one step: a process that is killed leaves the old link or the new one. A file or folder
 * of that name, such as one that a backup left, cannot be replaced in one step, so it is moved aside first.
 *
 * @param id a release in `releases/`
 * @returns where a file or folder was moved; undefined if there was none
 */
export function switchCurrent(dataDir: string, id: string): string | undefined {
  const link = join(dataDir, CURRENT_LINK);
  const newLink = `${link}.new`;
  rmSync(newLink, { recursive: true, force: true });
  if (SYSTEM.isWindows) replaceFile(newLink, [`${id}\n`]);
  else symlinkSync(join(RELEASES_DIR, id), newLink);
  const old = lstatSync(link, { throwIfNoEntry: false });
  const isReplaceable = old === undefined || (SYSTEM.isWindows ? old.isFile() : old.isSymbolicLink());
  const aside = isReplaceable ? undefined : `${link}.replaced-${Date.now()}`;
  if (aside !== undefined) rename(link, aside);
  rename(newLink, link);
  flush(dataDir);
  return aside;
}
