/**
 * Questions to the history: a thread answers them one after the other, for each takes some tenths of a second.
 *
 * The queue is bounded, as a whole and for each who asks, and a question that nobody waits for any more is not answered.
 */
import { Worker } from 'node:worker_threads';
import { endedEarly } from '../../errors.js';
import type { ArchiveAddress, Period, UnknownPeriod } from '../../history/periods.js';
import { MAX_HISTORY_QUESTIONS, MAX_HISTORY_QUESTIONS_OF_ONE } from '../../limits.js';
import { packageFile } from '../../package-root.js';
import type { OpenedAnswers } from './served-release.js';

/** Days in a row, and whether their answers are kept. */
export interface KeptDays {
  from: string;
  to: string;
  isKept: boolean;
}

/** What the thread is asked, by the name of what it answers. */
interface Questions {
  days: { asks: 'days' };
  open: { asks: 'open'; day: string; parts: readonly string[] };
  periods: { asks: 'periods'; address: ArchiveAddress };
}

/** What the thread answers. */
interface Answers {
  days: KeptDays[];
  open: OpenedAnswers | 'damaged';
  periods: (Period | UnknownPeriod)[];
}

/** A question, and the state of the archive: the thread opens it anew if that changed. */
export type Question = Questions[keyof Questions] & { state: string };

/** Answers one question; rejects if the history cannot be read. */
export type AnswerQuestion = (question: Question) => Promise<unknown>;

/** Who asks. */
export interface Asker {
  /** The key or the visitor: only a part of the queue is for each. */
  id: string;
  /** Aborted when the response is sent or the client is gone. */
  signal: AbortSignal;
}

/** Returns a function that asks a thread, which starts with the first question, and anew after an error. */
export function historyThread(dataDir: string): AnswerQuestion {
  let thread: Worker | undefined;
  const start = (): Worker => {
    const started = new Worker(packageFile('dist/src/api/releases/history-thread.js'), { workerData: dataDir });
    const forget = (): void => {
      if (thread === started) thread = undefined;
    };
    started.once('error', forget).once('exit', forget).unref();
    return started;
  };
  return (question) =>
    new Promise((resolve, reject) => {
      thread ??= start();
      const asked = thread;
      const ended = (): void => settle(() => reject(endedEarly('the thread that reads the history ended')));
      const failed = (error: unknown): void => settle(() => reject(error));
      const answered = (answer: unknown): void => settle(() => resolve(answer));
      const settle = (use: () => void): void => {
        asked.off('message', answered).off('error', failed).off('exit', ended);
        use();
      };
      asked.once('message', answered).once('error', failed).once('exit', ended);
      asked.postMessage(question);
    });
}

interface Waiting {
  asker: string;
  question: Question;
  waiters: Set<{ resolve(answer: unknown): void; reject(error: unknown): void }>;
}

export class HistoryQueue {
  readonly #answer: AnswerQuestion;
  /** By their text, so that equal questions are answered once. The first one is being answered. */
  readonly #questions = new Map<string, Waiting>();
  #isAnswering = false;

  constructor(answer: AnswerQuestion) {
    this.#answer = answer;
  }

  /** Whether no further question of someone is taken now. */
  isFullFor(asker: string): boolean {
    const own = [...this.#questions.values()].filter((each) => each.asker === asker).length;
    return this.#questions.size >= MAX_HISTORY_QUESTIONS || own >= MAX_HISTORY_QUESTIONS_OF_ONE;
  }

  /** Asks. Resolves to undefined if the queue is full, or if the client is gone; rejects if the history cannot be read. */
  async ask<Kind extends keyof Questions>(
    question: Questions[Kind] & { state: string },
    { id, signal }: Asker,
  ): Promise<Answers[Kind] | undefined> {
    const name = JSON.stringify(question);
    let waiting = this.#questions.get(name);
    if (signal.aborted || (waiting === undefined && this.isFullFor(id))) return undefined;
    if (waiting === undefined) {
      waiting = { asker: id, question, waiters: new Set() };
      this.#questions.set(name, waiting);
    }
    const { waiters } = waiting;
    const answered = new Promise<unknown>((resolve, reject) => {
      const waiter = { resolve, reject };
      waiters.add(waiter);
      signal.addEventListener('abort', () => {
        waiters.delete(waiter);
        const isBeingAnswered = this.#questions.keys().next().value === name;
        if (waiters.size === 0 && !isBeingAnswered) this.#questions.delete(name);
        resolve(undefined);
      });
    });
    if (!this.#isAnswering) void this.#answerAll();
    return answered as Promise<Answers[Kind] | undefined>;
  }

  async #answerAll(): Promise<void> {
    this.#isAnswering = true;
    // Questions that are asked meanwhile are at the end of the map, and of this loop.
    for (const [name, { question, waiters }] of this.#questions) {
      try {
        const answer = await this.#answer(question);
        for (const { resolve } of waiters) resolve(answer);
      } catch (error) {
        for (const { reject } of waiters) reject(error);
      }
      this.#questions.delete(name);
    }
    this.#isAnswering = false;
  }
}
