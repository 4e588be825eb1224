/** The link `current` in the data directory, which names the release in use. */
import { lstatSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT_LINK, RELEASES_DIR } from '../../src/database/release.js';
import { flush } from '../../src/files.js';

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
  symlinkSync(join(RELEASES_DIR, id), newLink);
  const isLink = lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() ?? true;
  const aside = isLink ? undefined : `${link}.replaced-${Date.now()}`;
  if (aside !== undefined) renameSync(link, aside);
  renameSync(newLink, link);
  flush(dataDir);
  return aside;
}
