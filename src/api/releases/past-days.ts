/** The answers of past days, a few of which are held open. */
import { Worker } from 'node:worker_threads';
import { AtlasError } from '../../errors.js';
import { MAX_OPEN_DAYS } from '../../limits.js';
import { packageFile } from '../../package-root.js';
import type { RangeFile } from '../../rangefile/reader.js';
import { ServedDay } from './served-release.js';

/** The compiled file, because Node 20 cannot start a thread from TypeScript. */
const THREAD_FILE = 'dist/src/api/releases/past-day-thread.js';

/** What a thread opened: the answers of a day, or the days that are kept if that day is not. */
export type OpenedDay =
  | { file: RangeFile; release: string; dataDate: string }
  | { span: { from: string; to: string } | undefined };

/** Opens a day in a thread, which takes some tenths of a second, so that requests are still answered. */
export function openDayInThread(dataDir: string, day: string): Promise<OpenedDay> {
  const thread = new Worker(packageFile(THREAD_FILE), { workerData: { dataDir, day } });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new AtlasError('E_FAULT', 'the thread that opens a past day ended too early')));
  });
}

/** A day's answers; or why there are none, for people. */
export type PastDay = { served: ServedDay } | { missing: string };

export class PastDays {
  readonly #dataDir: string;
  readonly #open: typeof openDayInThread;
  /** The days that were asked for last, the latest one last. */
  readonly #days = new Map<string, Promise<PastDay>>();
  /** Ends when the last day that was asked for is open: one is opened at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(dataDir: string, open = openDayInThread) {
    this.#dataDir = dataDir;
    this.#open = open;
  }

  /** Forgets the days that are open: what is known of them may have changed. */
  clear(): void {
    this.#days.clear();
  }

  /** Returns the answers of a day, `YYYY-MM-DD`, before today. */
  day(day: string): Promise<PastDay> {
    const known = this.#days.get(day);
    if (known !== undefined) {
      this.#days.delete(day);
      this.#days.set(day, known);
      return known;
    }
    const opened = this.#last.then(() => this.#openDay(day));
    this.#last = opened.catch(() => {});
    this.#days.set(day, opened);
    for (const oldest of this.#days.keys()) {
      if (this.#days.size <= MAX_OPEN_DAYS) break;
      this.#days.delete(oldest);
    }
    // Only answers are kept: what is missing now may be there later.
    const forget = (): void => {
      if (this.#days.get(day) === opened) this.#days.delete(day);
    };
    opened.then((each) => ('missing' in each ? forget() : undefined), forget);
    return opened;
  }

  async #openDay(day: string): Promise<PastDay> {
    const opened = await this.#open(this.#dataDir, day);
    if ('file' in opened) return { served: new ServedDay(opened) };
    const { span } = opened;
    return { missing: span === undefined ? 'there is no history' : `history has ${span.from} to ${span.to}` };
  }
}
