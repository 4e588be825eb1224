/** What the commands that can stay and repeat their work share: build and pull. */
import type { Refusal } from '../database/release.js';
import { AtlasError, EXIT } from '../errors.js';
import { SCHEDULE_STOP_MS } from '../limits.js';

/** Prints a line for the user. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Prints which gates refused a release that was published nevertheless. */
export function noteForced(forced: readonly Refusal[]): void {
  if (forced.length === 0) return;
  const reasons = forced.map(({ message }) => `  - ${message}`).join('\n');
  note(`published by force; the manifest records these refusals:\n${reasons}`);
}

/**
 * Returns the longest random delay of a scheduled run, in milliseconds.
 *
 * @param value of `--jitter`, in seconds
 * @param seconds the default
 * @throws AtlasError E_USAGE if it is not a number of seconds
 */
export function parseJitter(value: string | undefined, seconds: number): number {
  if (value === undefined) return 1000 * seconds;
  if (/^\d{1,6}$/.test(value)) return 1000 * Number(value);
  throw new AtlasError('E_USAGE', `--jitter is ${JSON.stringify(value)}; write a number of seconds`);
}

/**
 * Returns an abort signal for SIGTERM and SIGINT. The current run ends before its next stage. If a stage takes longer, the
 * process exits, which is safe because a build or pull may be killed at any moment. A second signal ends the process at once.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (): void => {
    controller.abort();
    setTimeout(() => process.exit(EXIT.ok), SCHEDULE_STOP_MS).unref();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  return controller.signal;
}
