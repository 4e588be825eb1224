/**
 * Rolls back to an earlier release. A person who rolls back does not want the next unattended build to publish the same
 * release again from unchanged sources. So the release is recorded in `rolled-back.json`, and a build from the same inputs
 * is refused until they change or it is forced.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { currentReleaseId, type Manifest, RELEASES_DIR, readManifest, releaseIds } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { AtlasError, causedError, isAtlasError, isDiskError, orElse, REBUILD } from '../../src/errors.js';
import { replaceFile } from '../../src/files.js';
import { switchCurrent } from './current-link.js';
import { explainWriteError } from './data-dir.js';
import { keepsHistory, recordPublication } from './history.js';
import { lockDataDir } from './lock.js';

const ROLLED_BACK_FILE = 'rolled-back.json';

/** Number of entries to keep; the inputs of older ones are unlikely to return. */
const MAX_ENTRIES = 100;

/** A release that someone rolled back from. */
export interface RolledBack {
  release: string;
  /** From its manifest; a build with the same hash gives the same ranges. */
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
    const advice = 'remove it to allow all releases again';
    throw causedError('E_CONFIG', `${path} cannot be read`, error, `${advice}`);
  }
}

function writeEntries(dataDir: string, entries: RolledBack[]): void {
  replaceFile(join(dataDir, ROLLED_BACK_FILE), [`${JSON.stringify(entries.slice(-MAX_ENTRIES), null, 2)}\n`]);
}

/**
 * Returns the release with these inputs that someone rolled back from; undefined if there is none.
 *
 * @throws AtlasError E_CONFIG if `rolled-back.json` cannot be read
 */
export function findRolledBack(dataDir: string, inputHash: string): RolledBack | undefined {
  return readEntries(dataDir).find((entry) => entry.input_hash === inputHash);
}

/** Removes the entry for a release with these inputs, because the release was published by force. */
export function forgetRolledBack(dataDir: string, inputHash: string): void {
  const entries = readEntries(dataDir);
  const others = entries.filter((entry) => entry.input_hash !== inputHash);
  if (others.length < entries.length) writeEntries(dataDir, others);
}

/** Returns the release made before the current one; the newest if none is current. */
function earlierRelease(dataDir: string, current: string | undefined): string {
  const ids = releaseIds(dataDir);
  const earlier = ids[current === undefined ? 0 : ids.indexOf(current) + 1];
  if (earlier !== undefined) return earlier;
  const before = current === undefined ? '' : ` made before the current one, ${current}`;
  const advice =
    current === undefined ? '"ipatlas build" makes one' : '"ipatlas releases" lists those that can be named';
  throw new AtlasError('E_NO_DATABASE', `there is no release in ${dataDir}${before}; ${advice}`);
}

/** Records a rollback from release `left`, undefined if its manifest is missing or damaged, to release `chosen`. */
function remember(dataDir: string, left: Manifest | undefined, chosen: Manifest): void {
  const entries = readEntries(dataDir).filter(
    ({ input_hash }) => input_hash !== chosen.input_hash && input_hash !== left?.input_hash,
  );
  if (left !== undefined && left.input_hash !== chosen.input_hash) {
    const { id: release, input_hash } = left;
    entries.push({ release, input_hash, by: currentUser(), at: new Date().toISOString() });
  }
  writeEntries(dataDir, entries);
}

/** Returns a release's manifest; undefined if it cannot be read, which may be the reason for the rollback. */
function manifestOf(dataDir: string, id: string): Manifest | undefined {
  return orElse(() => readManifest(join(dataDir, RELEASES_DIR, id)), isAtlasError, undefined);
}

/** Verifies the release to go back to. What to do about a damaged one is to name another: the same rollback would find it again. */
function verifyChosen(dir: string): Manifest {
  try {
    return verifyRelease(dir).manifest;
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    const advice = 'name another one with "ipatlas rollback ID"; "ipatlas releases" lists them';
    throw new AtlasError(error.code, error.message.replace(REBUILD, advice), { cause: error });
  }
}

/** Runs an action that a rollback can do without, and returns whether the disk had space for it. */
function unlessFull(action: () => void): boolean {
  const run = (): boolean => {
    action();
    return true;
  };
  return orElse(run, isDiskError, false);
}

/**
 * Makes an earlier release the current one again, in one step.
 *
 * @param dataDir the data directory
 * @param id a release; undefined for the one made before the current one
 * @returns the release that was current, if any, and the one that is now; `isIncomplete` if the disk was too full to record the rollback
 * @throws AtlasError E_NO_DATABASE if there is no such release, E_DAMAGED if it is damaged, E_BUSY if a build is running,
 *   E_DATA_DIR or E_DISK if the data directory cannot be written
 */
export function rollBack(
  dataDir: string,
  id: string | undefined,
): { from: string | undefined; to: string; isIncomplete: boolean } {
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory())
    throw new AtlasError('E_NO_DATABASE', `there is no data directory ${dataDir}; name one with --data`);
  let unlock: (() => void) | undefined;
  try {
    // On a full disk SQLite cannot lock its file; a build that runs there cannot publish either.
    unlessFull(() => {
      unlock = lockDataDir(dataDir);
    });
    const from = currentReleaseId(dataDir);
    const to = id ?? earlierRelease(dataDir, from);
    if (!releaseIds(dataDir).includes(to)) {
      const advice = '"ipatlas releases" lists the releases';
      throw new AtlasError('E_NO_DATABASE', `there is no release ${to} in ${dataDir}; ${advice}`);
    }
    const dir = join(dataDir, RELEASES_DIR, to);
    const manifest = verifyChosen(dir);
    if (to === from) return { from, to, isIncomplete: false };
    // Recorded first: if the process is killed between the two steps, the next build is refused, and a person notices.
    const left = from === undefined ? undefined : manifestOf(dataDir, from);
    const isRecorded = unlessFull(() => remember(dataDir, left, manifest));
    // How long history is kept is for the next build to say; a rollback removes nothing.
    const days = keepsHistory(dataDir) ? Number.POSITIVE_INFINITY : 0;
    const switchTo = () => switchCurrent(dataDir, to);
    const isKept = unlessFull(() => recordPublication(dataDir, dir, { event: 'rollback', days }, switchTo));
    if (!isKept && currentReleaseId(dataDir) !== to) switchTo();
    return { from, to, isIncomplete: !isRecorded || !isKept };
  } catch (error) {
    throw explainWriteError(error, dataDir);
  } finally {
    unlock?.();
  }
}

/** Returns the name of the account; under sudo, that of the person who called it. */
export function currentUser(): string {
  if (process.env.SUDO_USER) return process.env.SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // an account without a name, which containers may have
  }
}
