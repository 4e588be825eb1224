/** Runs builds or pulls on a schedule. No failure ends it, and no two runs overlap. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cron } from 'croner';
import { messageOf, misuse } from '../../src/errors.js';
import { waitAfter } from '../../src/waits.js';

/** How often a waiting schedule reads the clock, in milliseconds: the machine may sleep, or the clock may be set. */
const SCHEDULE_CLOCK_MS = 60_000;

/** Longest wait before a failed scheduled build is retried, in milliseconds. */
const SCHEDULE_MAX_RETRY_MS = 3_600_000;

/** First wait before a failed scheduled build is retried, in milliseconds. Each later wait is twice as long. */
const SCHEDULE_RETRY_MS = 60_000;

export interface ScheduleOptions {
  /** Cron pattern in local time: five fields, or six with seconds first. */
  pattern: string;
  /** Longest random delay after each time, in milliseconds. It is never longer than until the time after that. */
  jitterMs: number;
  /** Whether to run once immediately. */
  atOnce: boolean;
  /** What a run is, for messages: `build` or `pull`. */
  what: string;
  /** One run, which reports its errors. Returns whether to try again soon. */
  run: () => Promise<boolean>;
  /** Reports progress to the user; one line without a line end. */
  note: (line: string) => void;
  /** Ends the schedule, after the current run. */
  signal: AbortSignal;
  /** Wait before the first retry of a failed run, in milliseconds; it doubles with each retry. */
  retryMs?: number;
  /** Longest wait before a retry, in milliseconds. */
  maxRetryMs?: number;
}

/**
 * Parses a cron pattern.
 *
 * @throws AtlasError E_USAGE if the text is not a cron pattern, or describes no recurring time
 */
export function parsePattern(text: string): Cron {
  const advice = 'write five fields, as in "17 4 * * *": minute, hour, day, month, day of the week';
  let cron: Cron;
  try {
    cron = new Cron(text, { mode: '5-or-6-parts', paused: true });
  } catch (error) {
    const why = messageOf(error).replace(/^Cron\w+: /, '');
    throw misuse(`--schedule ${JSON.stringify(text)} is not a cron pattern (${why}); ${advice}`);
  }
  // croner also accepts a date, which occurs once, and a pattern such as "0 0 30 2 *", which never occurs.
  if (cron.getPattern() !== undefined && cron.nextRun() !== null) return cron;
  throw misuse(`--schedule ${JSON.stringify(text)} describes no recurring time; ${advice}`);
}

/** Waits until a time, in short steps, because the machine may sleep or its clock be set. Returns early if aborted. */
async function waitUntil(time: number, signal: AbortSignal): Promise<void> {
  for (let left = time - Date.now(); left > 0 && !signal.aborted; left = time - Date.now()) {
    // An abort rejects the wait; the loop's condition then ends the loop.
    await sleep(Math.min(left, SCHEDULE_CLOCK_MS), undefined, { signal }).catch(() => {});
  }
}

/** Formats a time in the zone of the pattern, that of this machine: `2026-01-31T04:17:00+01:00`. */
export function localTime(time: number): string {
  const minutes = -new Date(time).getTimezoneOffset();
  const local = new Date(time + 60_000 * minutes).toISOString().slice(0, 19);
  const twoDigits = (value: number): string => String(value).padStart(2, '0');
  const zone = `${twoDigits(Math.floor(Math.abs(minutes) / 60))}:${twoDigits(Math.abs(minutes) % 60)}`;
  return `${local}${minutes < 0 ? '-' : '+'}${zone}`;
}

/** Runs once, and retries with growing waits after temporary failures, until the next scheduled time. */
async function runWithRetries(options: ScheduleOptions, nextTime: () => number): Promise<void> {
  const { run, note, signal, retryMs = SCHEDULE_RETRY_MS, maxRetryMs = SCHEDULE_MAX_RETRY_MS } = options;
  const due = nextTime();
  for (let failures = 1; (await run()) && !signal.aborted; failures++) {
    const again = Date.now() + waitAfter(failures, retryMs, maxRetryMs);
    if (again >= due) return;
    note(`trying again at ${localTime(again)}`);
    await waitUntil(again, signal);
    if (signal.aborted) return;
  }
}

/**
 * Runs at the times of a cron pattern until aborted. A time that comes during a run is skipped.
 *
 * @throws AtlasError E_USAGE if the pattern is not valid
 */
export async function runOnSchedule(options: ScheduleOptions): Promise<void> {
  const { pattern, jitterMs, atOnce, what, note, signal } = options;
  const cron = parsePattern(pattern);
  const nextTime = (): number => cron.nextRun()?.getTime() ?? Number.POSITIVE_INFINITY;
  if (atOnce) await runWithRetries(options, nextTime);
  while (!signal.aborted) {
    const [next, following = Number.POSITIVE_INFINITY] = cron.nextRuns(2).map((date) => date.getTime());
    if (next === undefined) return; // a pattern with a year, which has passed
    const time = next + Math.random() * Math.min(jitterMs, following - next);
    note(`next ${what} at ${localTime(time)}`);
    await waitUntil(time, signal);
    if (!signal.aborted) await runWithRetries(options, nextTime);
  }
}
