/** The link `current` in the data directory, which names the release in use. */
import { lstatSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT_LINK, RELEASES_DIR } from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import { flush } from '../../src/files.js';

/**
 * Checks that `current` is a symbolic link or does not exist, since a release cannot replace a file or folder.
 *
 * @throws AtlasError E_DATA_DIR if something else has the name
 */
export function checkCurrentLink(dataDir: string): void {
  const link = join(dataDir, CURRENT_LINK);
  const stats = lstatSync(link, { throwIfNoEntry: false });
  if (stats === undefined || stats.isSymbolicLink()) return;
  const kind = stats.isDirectory() ? 'a folder' : 'a file';
  throw new AtlasError(
    'E_DATA_DIR',
    `${link} is ${kind}; it must be a symbolic link to a release, which the build makes itself. Move it away, then build again`,
  );
}

/**
 * Makes `current` name a release, in one step: a process that is killed leaves the old link or the new one.
 *
 * @param id a release in `releases/`
 */
export function switchCurrent(dataDir: string, id: string): void {
  const newLink = join(dataDir, `${CURRENT_LINK}.new`);
  rmSync(newLink, { force: true });
  symlinkSync(join(RELEASES_DIR, id), newLink);
  renameSync(newLink, join(dataDir, CURRENT_LINK));
  flush(dataDir);
}
