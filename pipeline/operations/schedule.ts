/** Builds at set times, for ever: no failure ends it, and no two builds run at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cron } from 'croner';
import { AtlasError, type ErrorCode, messageOf } from '../../src/errors.js';
import { SCHEDULE_CLOCK_MS, SCHEDULE_MAX_RETRY_MS, SCHEDULE_RETRY_MS } from '../../src/limits.js';

export interface ScheduleOptions {
  /** Cron pattern of five fields, or six with seconds in front; in local time. */
  pattern: string;
  /** Longest random delay behind each time, in milliseconds. */
  jitterMs: number;
  /** Whether to run at once, before the first time. */
  atOnce: boolean;
  /** One run. Whatever it throws is told and not passed on. */
  run: () => Promise<unknown>;
  /** Says something to the person who watches, a line. */
  note: (line: string) => void;
  /** Ends the schedule: at once between two runs; during one, with that run. */
  signal: AbortSignal;
  /** Waits between tries of a failed run, in milliseconds: the first, and the longest. */
  retryMs?: number;
  maxRetryMs?: number;
}

/** Errors that the next minutes will not mend: such a run is tried again at its next time only. */
const LASTING: readonly ErrorCode[] = ['E_REFUSED', 'E_BAD_INPUT', 'E_CONFIG', 'E_USAGE'];

/**
 * Reads a cron pattern.
 *
 * @throws AtlasError E_USAGE where the text is none, or its time never comes
 */
export function parsePattern(text: string): Cron {
  const advice = 'write five fields, as in "17 4 * * *": minute, hour, day, month, day of the week';
  let cron: Cron;
  try {
    cron = new Cron(text, { mode: '5-or-6-parts', paused: true });
  } catch (error) {
    const why = messageOf(error).replace(/^Cron\w+: /, '');
    throw new AtlasError('E_USAGE', `--schedule ${JSON.stringify(text)} is no cron pattern (${why}); ${advice}`);
  }
  // A date, which croner takes as well, comes once; a pattern such as "0 0 30 2 *" never does.
  if (cron.getPattern() !== undefined && cron.nextRun() !== null) return cron;
  throw new AtlasError('E_USAGE', `--schedule ${JSON.stringify(text)} names no time that comes again; ${advice}`);
}

/** Waits until a time, in short steps: the machine may sleep or its clock be set meanwhile. Returns early when aborted. */
async function waitUntil(time: number, signal: AbortSignal): Promise<void> {
  for (let left = time - Date.now(); left > 0 && !signal.aborted; left = time - Date.now()) {
    // An abort rejects the wait; the loop's condition tells.
    await sleep(Math.min(left, SCHEDULE_CLOCK_MS), undefined, { signal }).catch(() => {});
  }
}

function isoSeconds(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Runs once, and again with growing waits while it fails in a way that may pass, until the next time is due. */
async function runWithRetries(options: ScheduleOptions, nextTime: () => number): Promise<void> {
  const { run, note, signal, retryMs = SCHEDULE_RETRY_MS, maxRetryMs = SCHEDULE_MAX_RETRY_MS } = options;
  const due = nextTime();
  for (let wait = retryMs; ; wait = Math.min(2 * wait, maxRetryMs)) {
    try {
      await run();
      return;
    } catch (error) {
      if (signal.aborted) return;
      const known = error instanceof AtlasError;
      note(
        known ? `${error.code}: ${error.message}` : `internal error: ${error instanceof Error ? error.stack : error}`,
      );
      const again = Date.now() + wait;
      if ((known && LASTING.includes(error.code)) || again >= due) return;
      note(`trying again at ${isoSeconds(again)}`);
      await waitUntil(again, signal);
      if (signal.aborted) return;
    }
  }
}

/**
 * Runs at the times of a cron pattern until it is aborted. A time that comes while a run is still at work is passed over.
 *
 * @throws AtlasError E_USAGE for a pattern that is none; nothing that a run throws
 */
export async function runOnSchedule(options: ScheduleOptions): Promise<void> {
  const { pattern, jitterMs, atOnce, note, signal } = options;
  const cron = parsePattern(pattern);
  const nextTime = (): number => cron.nextRun()?.getTime() ?? Number.POSITIVE_INFINITY;
  if (atOnce) await runWithRetries(options, nextTime);
  while (!signal.aborted) {
    const next = nextTime();
    if (next === Number.POSITIVE_INFINITY) return; // a pattern with a year in it
    const time = next + Math.random() * jitterMs;
    note(`next build at ${isoSeconds(time)}`);
    await waitUntil(time, signal);
    if (!signal.aborted) await runWithRetries(options, nextTime);
  }
}
