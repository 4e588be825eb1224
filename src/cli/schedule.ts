/** What the commands that can stay and repeat their work share: build and pull. */
import type { BuildResult, PullResult, RefusedOutcome } from '../../pipeline/index.js';
import { AtlasError, EXIT } from '../errors.js';
import { type Invocation, print, printNote } from './command.js';

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
export async function runAndReport(
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
