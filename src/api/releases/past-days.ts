/** The history: the answers of past days, a few of which are held open, and the periods of an address. */
import type { ArchiveAddress, Period, UnknownPeriod } from '../../history/periods.js';
import { MAX_OPEN_DAYS } from '../../limits.js';
import { type OpenedAnswers, ServedDay } from './served-release.js';
import { runThread } from './thread.js';

/** What a thread is asked: to open a day, or for the history of an address. */
export type HistoryJob = { dataDir: string } & ({ day: string; wantsNetworks: boolean } | { address: ArchiveAddress });

/** What a thread opened: the answers of a day, or the days that are kept if that day is not. */
export type OpenedDay = OpenedAnswers | { span: { from: string; to: string } | undefined };

/** Opens a day in a thread: it takes some tenths of a second. */
const openDayInThread = (dataDir: string, day: string, wantsNetworks: boolean): Promise<OpenedDay> =>
  runThread('history-thread', { dataDir, day, wantsNetworks } satisfies HistoryJob);

/** A day's answers; or why there are none, for people. */
export type PastDay = { served: ServedDay } | { missing: string };

export class PastDays {
  readonly #dataDir: string;
  readonly #open: typeof openDayInThread;
  /** The days that were asked for last, with networks or without, the latest one last. */
  readonly #days = new Map<string, Promise<PastDay>>();
  /** Ends when the thread that was asked for last has ended: one runs at a time. */
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
  day(day: string, wantsNetworks: boolean): Promise<PastDay> {
    const key = `${day} ${wantsNetworks}`;
    const known = this.#days.get(key);
    if (known !== undefined) {
      this.#days.delete(key);
      this.#days.set(key, known);
      return known;
    }
    const opened = this.#last.then(() => this.#openDay(day, wantsNetworks));
    this.#last = opened.catch(() => {});
    this.#days.set(key, opened);
    for (const oldest of this.#days.keys()) {
      if (this.#days.size <= MAX_OPEN_DAYS) break;
      this.#days.delete(oldest);
    }
    // Only answers are kept: what is missing now may be there later.
    const forget = (): void => {
      if (this.#days.get(key) === opened) this.#days.delete(key);
    };
    opened.then((each) => ('missing' in each ? forget() : undefined), forget);
    return opened;
  }

  /** Returns the history of an address, the oldest period first; none if there is no history. */
  periods(address: ArchiveAddress): Promise<(Period | UnknownPeriod)[]> {
    const job: HistoryJob = { dataDir: this.#dataDir, address };
    const found = this.#last.then(() => runThread<(Period | UnknownPeriod)[]>('history-thread', job));
    this.#last = found.catch(() => {});
    return found;
  }

  async #openDay(day: string, wantsNetworks: boolean): Promise<PastDay> {
    const opened = await this.#open(this.#dataDir, day, wantsNetworks);
    if ('file' in opened) return { served: new ServedDay(opened) };
    const { span } = opened;
    return { missing: span === undefined ? 'there is no history' : `history has ${span.from} to ${span.to}` };
  }
}
