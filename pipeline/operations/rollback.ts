/**
 * Going back to an earlier release, and remembering it: a person who goes back from a release does not want the next
 * unattended build, which may well find the same sources, to publish it again. So what was left is written into
 * `rolled-back.json`, and a build of the same inputs is refused until it is forced or the inputs change.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { currentReleaseId, type Manifest, RELEASES_DIR, readManifest, releaseIds } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError, messageOf } from '../../src/errors.js';
import { switchCurrent } from '../stages/publish.js';
import { whoAmI } from './current-user.js';
import { lockDataDir } from './lock.js';

const ROLLED_BACK_FILE = 'rolled-back.json';

/** Entries kept; older ones are about inputs that will hardly come again. */
const MAX_ENTRIES = 100;

/** A release that someone went back from. */
export interface RolledBack {
  release: string;
  /** Of its manifest; a build with the same one would give the same ranges. */
  input_hash: string;
  /** Name of the account. */
  by: string;
  /** ISO 8601, UTC. */
  at: string;
}

function readEntries(dataDir: string): RolledBack[] {
  const path = join(dataDir, ROLLED_BACK_FILE);
  if (!existsSync(path)) return [];
  try {
    const entries = JSON.parse(readFileSync(path, 'utf8'));
    if (!Array.isArray(entries)) throw new Error('not a list');
    return entries;
  } catch (error) {
    const advice = 'remove it to forget which releases were gone back from';
    throw new AtlasError('E_CONFIG', `${path} cannot be read: ${messageOf(error)}; ${advice}`, { cause: error });
  }
}

function writeEntries(dataDir: string, entries: RolledBack[]): void {
  const path = join(dataDir, ROLLED_BACK_FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify(entries.slice(-MAX_ENTRIES), null, 2)}\n`);
  renameSync(`${path}.new`, path);
}

/**
 * The release that someone went back from, if these are its inputs.
 *
 * @throws AtlasError E_CONFIG where the record of that cannot be read
 */
export function findRolledBack(dataDir: string, inputHash: string): RolledBack | undefined {
  return readEntries(dataDir).find((entry) => entry.input_hash === inputHash);
}

/** Forgets that someone went back from a release with these inputs: it is wanted again. */
export function forgetRolledBack(dataDir: string, inputHash: string): void {
  const entries = readEntries(dataDir);
  const others = entries.filter((entry) => entry.input_hash !== inputHash);
  if (others.length < entries.length) writeEntries(dataDir, others);
}

/** The release before the current one, by the time they were made; the newest where none is current. */
function earlierRelease(dataDir: string, current: string | undefined): string {
  const ids = releaseIds(dataDir);
  const earlier = ids[current === undefined ? 0 : ids.indexOf(current) + 1];
  if (earlier !== undefined) return earlier;
  const before = current === undefined ? '' : ` made before the current one, ${current}`;
  throw new AtlasError('E_NO_DATABASE', `there is no release in ${dataDir}${before}`);
}

/** Writes down that one release was left for another; `left` is undefined where its manifest is gone or damaged. */
function remember(dataDir: string, left: Manifest | undefined, chosen: Manifest): void {
  const entries = readEntries(dataDir).filter(
    ({ input_hash }) => input_hash !== chosen.input_hash && input_hash !== left?.input_hash,
  );
  if (left !== undefined && left.input_hash !== chosen.input_hash) {
    const { id: release, input_hash } = left;
    entries.push({ release, input_hash, by: whoAmI(), at: new Date().toISOString() });
  }
  writeEntries(dataDir, entries);
}

/** A release's manifest; undefined where it cannot be read, which may be why someone leaves the release. */
function manifestOf(dataDir: string, id: string): Manifest | undefined {
  try {
    return readManifest(join(dataDir, RELEASES_DIR, id));
  } catch (error) {
    if (error instanceof AtlasError) return undefined;
    throw error;
  }
}

/**
 * Makes an earlier release the current one again, in one step.
 *
 * @param dataDir the data directory
 * @param id a release; undefined for the one made before the current one
 * @returns the release that was current, if any, and the one that is
 * @throws AtlasError E_NO_DATABASE where there is no such release, E_DAMAGED where it is not whole, E_BUSY where a build is at
 *   work
 */
export function rollBack(dataDir: string, id: string | undefined): { from: string | undefined; to: string } {
  if (!existsSync(dataDir)) throw new AtlasError('E_NO_DATABASE', `there is no data directory ${dataDir}`);
  const unlock = lockDataDir(dataDir);
  try {
    const from = currentReleaseId(dataDir);
    const to = id ?? earlierRelease(dataDir, from);
    if (!releaseIds(dataDir).includes(to)) {
      const advice = '"ipatlas releases" lists those there are';
      throw new AtlasError('E_NO_DATABASE', `there is no release ${to} in ${dataDir}; ${advice}`);
    }
    const { manifest } = verifyRelease(join(dataDir, RELEASES_DIR, to));
    if (to === from) return { from, to };
    // Remembered first: killed between the two steps, the next build is refused, which a person notices and undoes.
    remember(dataDir, from === undefined ? undefined : manifestOf(dataDir, from), manifest);
    switchCurrent(dataDir, to);
    return { from, to };
  } finally {
    unlock();
  }
}
