/**
 * Watches for a new current release, verifies it, and reports it.
 *
 * The link is checked every half second: events of the file system do not cross mounted volumes. To verify a release
 * takes most of a second of computing, so a separate thread does it.
 */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { CURRENT_LINK, currentDir } from '../../database/release.js';
import { AtlasError, messageOf, systemErrorCode } from '../../errors.js';
import { RELEASE_RETRY_MS, RETRY_MAX_MS } from '../../limits.js';
import { runThread } from '../../thread.js';
import { waitAfter } from '../../waits.js';

/** Verifies a release; rejects if it is damaged. */
export type VerifyRelease = (dir: string) => Promise<void>;

/** Size of the young generation of the verifying thread in MiB: its garbage would otherwise be half of its memory. */
const VERIFY_YOUNG_MB = 4;

/** Verifies a release in a thread, so that requests are still answered. */
export const verifyInThread: VerifyRelease = (dir) =>
  runThread('src/api/releases/verify-thread', dir, { maxYoungGenerationSizeMb: VERIFY_YOUNG_MB });

export interface WatchOptions {
  dataDir: string;
  /** Milliseconds between two checks. */
  interval: number;
  verify: VerifyRelease;
  /** Called with the directory of each release that became current and was verified. What it throws is a failure. */
  onRelease(dir: string): void | Promise<void>;
  /** Called once for each reason why the current release cannot be used. */
  onFailure(message: string): void;
  /** A clock in milliseconds that is never set back. */
  now?: () => number;
}

/** The release that the link names, and a mark of the link: a link that is replaced is followed again. */
interface Current {
  dir: string;
  mark: string;
}

/** Reads the link; returns undefined if there is none. */
function readCurrent(dataDir: string): Current | undefined {
  const link = join(dataDir, CURRENT_LINK);
  const stat = lstatSync(link, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  try {
    const dir = currentDir(dataDir);
    return { dir, mark: `${stat.ino} ${stat.ctimeMs} ${dir}` };
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
    throw new AtlasError(
      'E_NO_DATABASE',
      `${link} names a release that does not exist; publish one with "ipatlas build" or "ipatlas rollback"`,
      { cause: error },
    );
  }
}

export class ReleaseWatcher {
  readonly #options: WatchOptions;
  readonly #now: () => number;
  /** The link whose release is used. */
  #usedMark = '';
  /** The link whose release could not be used, how often, and when it is tried again. */
  #failed = { mark: '', times: 0, retryAt: 0 };
  #problem = '';
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #found = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Whether a release has been used so far. */
  get found(): boolean {
    return this.#found;
  }

  /** Checks now, and from then on at every interval until stopped. Resolves after the first check. */
  async start(): Promise<void> {
    await this.check();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /**
   * Checks once: uses a release that became current.
   *
   * A release that cannot be used is tried again, since the reason may pass: too many open files, a network file system
   * that does not show all files yet. Never rejects.
   */
  async check(): Promise<void> {
    const { dataDir, verify, onRelease } = this.#options;
    let mark = '';
    try {
      const current = readCurrent(dataDir);
      if (current === undefined || current.mark === this.#usedMark) {
        this.#problem = '';
        return;
      }
      mark = current.mark;
      if (mark === this.#failed.mark && this.#now() < this.#failed.retryAt) return;
      await verify(current.dir);
      if (this.#stopped) return;
      await onRelease(current.dir);
      this.#usedMark = mark;
      this.#found = true;
      this.#problem = '';
    } catch (error) {
      this.#fail(mark, messageOf(error));
    }
  }

  #fail(mark: string, problem: string): void {
    const times = mark === this.#failed.mark ? this.#failed.times : 0;
    const retryAt = this.#now() + waitAfter(times + 1, RELEASE_RETRY_MS, RETRY_MAX_MS);
    const isNews = mark !== this.#failed.mark || problem !== this.#problem;
    this.#failed = { mark, times: times + 1, retryAt };
    this.#problem = problem;
    if (isNews) this.#options.onFailure(problem);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.check().then(() => this.#schedule());
    }, this.#options.interval);
    this.#timer.unref();
  }
}
