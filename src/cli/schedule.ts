/** What the commands that can stay and repeat their work share: build and pull. */
import { type BuildResult, type PullResult, type RefusedOutcome, runOnSchedule } from '../../pipeline/index.js';
import { AtlasError, EXIT, misuse } from '../errors.js';
import { SCHEDULE_JITTER_S } from '../limits.js';
import { STOP_SIGNALS } from '../system.js';
import { type Invocation, print, printNote, text } from './command.js';
import { wholeNumber } from './number-flags.js';

/** How long a scheduled build that was told to stop may take to finish its stage, in milliseconds. */
const SCHEDULE_STOP_MS = 10_000;

/** Prints a line for the user. */
export function note(line: string): void {
  printNote(`${line}\n`);
}

/**
 * Builds or pulls once, and prints the outcome: as JSON with `--json`, also if gates refuse the release.
 *
 * @param run one build or pull
 * @throws what `run` throws
 */
async function runAndReport(
  run: () => Promise<BuildResult | PullResult>,
  { dataDir, values }: Pick<Invocation, 'dataDir' | 'values'>,
): Promise<void> {
  const printJson = async (outcome: object): Promise<void> => {
    if (values.json === true) await print(`${JSON.stringify(outcome)}\n`);
  };
  try {
    const { id, outcome, forced } = await run();
    if (forced.length > 0) {
      const reasons = forced.map(({ message }) => `  - ${message}`).join('\n');
      note(`published by force; the manifest records these refusals:\n${reasons}`);
    }
    if (values.json !== true && outcome === 'published') note(`published release ${id} in ${dataDir}`);
    await printJson({ release: id, outcome });
  } catch (error) {
    if (error instanceof AtlasError && 'refused' in error) await printJson(error.refused as RefusedOutcome);
    throw error;
  }
}

/**
 * Returns an abort signal for the signals to stop. The current run ends before its next stage. If a stage takes longer, the
 * process exits, which is safe because a build or pull may be killed at any moment. A second signal ends the process at once.
 */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (): void => {
    controller.abort();
    setTimeout(() => process.exit(EXIT.ok), SCHEDULE_STOP_MS).unref();
  };
  for (const signal of STOP_SIGNALS) process.once(signal, stop);
  return controller.signal;
}

/** The flags that do not go together with a schedule, and why. */
const NOT_SCHEDULED = {
  force: 'a schedule without gates would publish anything',
  'as-of': 'a schedule builds as of the day it runs',
};

/**
 * Builds or pulls once, or at the times of `--schedule`.
 *
 * @param atOnce returns whether the first run of a schedule does not wait
 * @param run one build or pull, which ends early if the signal is aborted
 * @throws AtlasError E_USAGE for flags that do not go together; what `run` throws if there is no schedule
 */
export async function runOnceOrScheduled(
  { what, atOnce }: { what: 'build' | 'pull'; atOnce: () => boolean },
  invocation: Invocation,
  run: (signal?: AbortSignal) => Promise<BuildResult | PullResult>,
): Promise<number> {
  const { values } = invocation;
  const pattern = text(values, 'schedule');
  if (pattern === undefined) {
    if (values.jitter !== undefined) throw misuse('--jitter goes with --schedule only; leave it out');
    await runAndReport(run, invocation);
    return EXIT.ok;
  }
  for (const [flag, why] of Object.entries(NOT_SCHEDULED)) {
    if (values[flag] !== undefined) throw misuse(`--${flag} does not go with --schedule: ${why}`);
  }
  const jitterMs = 1000 * (wholeNumber(values, 'jitter', 0, 999_999) ?? SCHEDULE_JITTER_S);
  const signal = stopSignal();
  const runOnce = (): Promise<void> => runAndReport(() => run(signal), invocation);
  await runOnSchedule({ what, pattern, jitterMs, atOnce: atOnce(), run: runOnce, note, signal });
  note('the schedule has ended');
  return EXIT.ok;
}
