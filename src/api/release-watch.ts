/**
 * Notices that another release became the current one, checks it whole, and says so.
 *
 * The link is looked at every half second: events of the file system do not reach across mounted volumes. Checking takes
 * the better part of a second of computing, so it is done by a thread of its own.
 */
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CURRENT_LINK } from '../database/release.js';
import { AtlasError, messageOf, systemErrorCode } from '../errors.js';

/** Checks a release; rejects with AtlasError where it is not whole. */
export type VerifyRelease = (dir: string) => Promise<void>;

/** What a thread that verifies sends back. */
export type VerifyAnswer = { ok: true } | { ok: false; message: string };

/** Verifies in a thread, so that requests go on being answered. */
export function verifyInThread(dir: string): Promise<void> {
  const thread = new Worker(new URL('./verify-thread.js', import.meta.url), { workerData: dir });
  return new Promise((resolve, reject) => {
    thread.once('message', (answer: VerifyAnswer) => {
      if (answer.ok) resolve();
      else reject(new AtlasError('E_DAMAGED', answer.message));
    });
    thread.once('error', reject);
    thread.once('exit', () => reject(new AtlasError('E_FAULT', 'the thread that verifies a release ended early')));
  });
}

export interface WatchOptions {
  dataDir: string;
  /** Milliseconds between two looks. */
  interval: number;
  verify: VerifyRelease;
  /** Called with the directory of each release that became current and is whole; what it throws counts as damage. */
  onRelease(dir: string): void | Promise<void>;
  /** Called once for each release that is not, and where the link cannot be read. */
  onFailure(message: string): void;
}

/** Where the link points, and which link that is: one that is replaced is looked at again, even to the same release. */
interface Current {
  dir: string;
  mark: string;
}

function readCurrent(dataDir: string): Current | undefined {
  const link = join(dataDir, CURRENT_LINK);
  try {
    const { ino, ctimeMs } = lstatSync(link);
    const dir = realpathSync(link);
    return { dir, mark: `${ino} ${ctimeMs} ${dir}` };
  } catch (error) {
    // No link yet, or one whose release is not there (yet).
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export class ReleaseWatch {
  readonly #options: WatchOptions;
  /** The link that was last dealt with, for better or worse. */
  #mark = '';
  #problem = '';
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #found = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Whether a release was taken up so far. */
  get found(): boolean {
    return this.#found;
  }

  /** Looks now, and from then on at every interval, until stopped. Resolves after the first look. */
  async start(): Promise<void> {
    await this.check();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** One look: takes up a release that became current. Never rejects. */
  async check(): Promise<void> {
    const { dataDir, verify, onRelease, onFailure } = this.#options;
    try {
      const current = readCurrent(dataDir);
      this.#problem = '';
      if (current === undefined || current.mark === this.#mark) return;
      // Marked before it is checked: a damaged release is checked once, not twice a second.
      this.#mark = current.mark;
      await verify(current.dir);
      if (this.#stopped) return;
      await onRelease(current.dir);
      this.#found = true;
    } catch (error) {
      const problem = messageOf(error);
      if (problem === this.#problem) return;
      this.#problem = problem;
      onFailure(problem);
    }
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.check().then(() => this.#schedule());
    }, this.#options.interval);
    this.#timer.unref();
  }
}
