/** What answers: the current release, past days, a few of which are held open, and the history of an address. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { today } from '../../day.js';
import type { WireError } from '../../errors.js';
import type { ArchiveAddress, Period, UnknownPeriod } from '../../history/periods.js';
import { HISTORY_COST, MAX_OPEN_DAYS } from '../../limits.js';
import { archivedPartitions } from '../../rangefile/partitions.js';
import { type AnswerQuestion, type Asker, HistoryQueue, historyThread, type KeptDays } from './history-queue.js';
import { type ServedAnswers, ServedDay, type ServedRelease } from './served-release.js';

/** What answers; or why nothing does, and what more there is to say. */
export type Answers = { served: ServedAnswers } | { error: WireError; more?: string };

const BUSY: Answers = { error: 'history_busy' };

export class Releases {
  readonly #dataDir: string;
  readonly #queue: HistoryQueue;
  #current: ServedRelease | undefined;
  /** How often the current release was replaced. */
  #swaps = 0;
  /** Changes whenever the archive may have changed, on which everything below depends. */
  #state = '';
  /** The days that have something to say about them, the oldest first; undefined if that is not known yet. */
  #days: KeptDays[] | undefined;
  /** The days that were asked for last, with networks or without, the latest one last. */
  readonly #open = new Map<string, ServedDay>();
  /** Days that are listed, and whose answers cannot be read. */
  readonly #damaged = new Set<string>();

  /** @param answer answers questions about the history; by default a thread */
  constructor(dataDir: string, answer: AnswerQuestion = historyThread(dataDir)) {
    this.#dataDir = dataDir;
    this.#queue = new HistoryQueue(answer);
  }

  /** The current release; undefined if none is loaded. */
  current(): ServedRelease | undefined {
    return this.#current;
  }

  /** Answers from another release from now on. */
  use(release: ServedRelease): void {
    const old = this.#current;
    this.#current = release;
    this.#swaps++;
    // No request is using the old one: each reads the release once and is answered in the same turn.
    old?.close();
  }

  close(): void {
    this.#current?.close();
  }

  /**
   * Returns what the answers of a day count against a rate at least: nothing, unless the day is kept and must be opened.
   *
   * @param day as for {@link at}
   */
  costOf(day: string, parts: readonly string[], asker: string): number {
    const mustOpen = this.#known(day, parts) === undefined && this.#days !== undefined;
    return mustOpen && !this.#queue.isFullFor(asker) ? HISTORY_COST : 0;
  }

  /**
   * Returns what answers for a day. A day that is not kept is refused without opening anything.
   *
   * @param day `YYYY-MM-DD`, UTC
   * @param parts the names of the partitions that are wanted besides the countries
   */
  at(day: string, parts: readonly string[], asker: () => Asker): Answers | Promise<Answers> {
    return this.#known(day, parts) ?? this.#openDay(day, parts, asker());
  }

  /** Returns what the history of an address counts against a rate. */
  periodsCost(asker: string): number {
    return this.#queue.isFullFor(asker) ? 1 : HISTORY_COST;
  }

  /** Returns the history of an address, the oldest period first, none if there is no history; undefined if too much is asked. */
  periods(address: ArchiveAddress, asker: Asker): Promise<(Period | UnknownPeriod)[] | undefined> {
    return this.#queue.ask<'periods'>({ asks: 'periods', address, state: this.#refresh() }, asker);
  }

  /** Returns the state of the archive, which builds, pulls and imports of other processes change. */
  #refresh(): string {
    const times = archivedPartitions().map(
      ({ history }) => statSync(join(this.#dataDir, history!), { throwIfNoEntry: false })?.mtimeMs,
    );
    const state = [this.#swaps, ...times].join(' ');
    if (state !== this.#state) {
      this.#state = state;
      this.#days = undefined;
      this.#open.clear();
      this.#damaged.clear();
    }
    return state;
  }

  /** Returns what is known of a day without asking the thread. */
  #known(day: string, parts: readonly string[]): Answers | undefined {
    const present = today();
    if (day === present) {
      const served = this.current();
      return served === undefined ? { error: 'no_database' } : { served };
    }
    this.#refresh();
    const key = `${day} ${parts}`;
    const open = this.#open.get(key);
    if (open !== undefined) {
      this.#open.delete(key);
      this.#open.set(key, open);
      return { served: open };
    }
    if (this.#days === undefined) return undefined;
    // What holds on the last of these days holds until today.
    const days = this.#days.find(({ to }) => day <= to) ?? (day < present ? this.#days.at(-1) : undefined);
    const isKept = days?.isKept && day >= days.from && !this.#damaged.has(key);
    return isKept ? undefined : this.#notKept(present);
  }

  #notKept(today: string): Answers {
    const [first, last] = [this.#days?.[0], this.#days?.at(-1)];
    if (first === undefined || last === undefined) return { error: 'day_not_kept', more: 'there is no history' };
    const to = last.to > today ? last.to : today;
    return { error: 'day_not_kept', more: `history has ${first.from} to ${to}` };
  }

  async #openDay(day: string, parts: readonly string[], asker: Asker): Promise<Answers> {
    const state = this.#state;
    if (this.#days === undefined) {
      const days = await this.#queue.ask<'days'>({ asks: 'days', state }, asker);
      if (days === undefined || state !== this.#refresh()) return BUSY;
      this.#days = days;
      const known = this.#known(day, parts);
      if (known !== undefined) return known;
    }
    const opened = await this.#queue.ask<'open'>({ asks: 'open', day, parts, state }, asker);
    if (opened === undefined) return BUSY;
    const known = this.#known(day, parts);
    if (known !== undefined) return known;
    const key = `${day} ${parts}`;
    if (opened === 'damaged') {
      this.#damaged.add(key);
      return this.#notKept(today());
    }
    const served = new ServedDay(opened);
    this.#open.set(key, served);
    if (this.#open.size > MAX_OPEN_DAYS) this.#open.delete(this.#open.keys().next().value!);
    return { served };
  }
}
