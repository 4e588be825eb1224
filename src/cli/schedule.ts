/** What the commands that can stay and repeat their work share: build and pull. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import {
  type BuildResult,
  localTime,
  type PullResult,
  type RefusedOutcome,
  runOnSchedule,
} from '../../pipeline/index.js';
import { AtlasError, EXIT, messageOf, misuse } from '../errors.js';
import { SCHEDULE_JITTER_S } from '../limits.js';
import { watchStopSignals } from '../signals.js';
import { runSteps } from './after.js';
import { type Invocation, print, printNote, text } from './command.js';
import { withMetrics } from './metrics-file.js';
import { wholeNumber } from './number-flags.js';

/** Prints a line for the user. */
export function note(line: string): void {
  printNote(`${line}\n`);
}

/**
 * Builds or pulls once, and prints the outcome: as JSON with `--json`, also if gates refuse the release.
 *
 * @param run one build or pull
 * @returns the outcome
 * @throws what `run` throws
 */
async function runAndReport(
  run: () => Promise<BuildResult | PullResult>,
  { dataDir, values }: Pick<Invocation, 'dataDir' | 'values'>,
): Promise<'published' | 'unchanged'> {
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
    return outcome;
  } catch (error) {
    if (error instanceof AtlasError && 'refused' in error) await printJson(error.refused as RefusedOutcome);
    throw error;
  }
}

/** Exit codes after which a run within minutes would end in the same way: such a run waits for its next scheduled time. */
const PERMANENT: readonly (number | null)[] = [EXIT.usage, EXIT.refused, EXIT.badInput];

/**
 * Runs the command once in a process of its own, so that nothing that a source contains or a library does ends the schedule: not
 * even all memory or an error that cannot be caught. What it prints on stderr gets the time. When the schedule is told to stop, the process
 * is ended, which is safe at any moment.
 *
 * @returns whether to try again soon
 */
async function runInChild(
  command: string,
  { values, positionals }: Pick<Invocation, 'values' | 'positionals'>,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const flags = Object.entries(values)
    .filter(([name, value]) => name !== 'schedule' && name !== 'jitter' && value !== undefined && value !== false)
    .map(([name, value]) => (value === true ? `--${name}` : `--${name}=${value}`));
  const args = [...process.execArgv, process.argv[1]!, command, ...flags, '--', ...positionals];
  try {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'pipe'], signal });
    createInterface(child.stderr).on('line', say);
    const [code, killer] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (killer !== null)
      say(`the ${command} was ended by ${killer}; if that repeats, look whether memory is too small`);
    return code !== EXIT.ok && !PERMANENT.includes(code);
  } catch (error) {
    if (!signal.aborted) say(`the ${command} cannot be started: ${messageOf(error)}`);
    return true;
  }
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
 * @param run one build or pull, if there is no schedule
 * @throws AtlasError E_USAGE for flags that do not go together; what `run` throws if there is no schedule
 */
export async function runOnceOrScheduled(
  { what, atOnce }: { what: 'build' | 'pull'; atOnce: () => boolean },
  invocation: Invocation,
  run: () => Promise<BuildResult | PullResult>,
): Promise<number> {
  const { values } = invocation;
  const pattern = text(values, 'schedule');
  if (pattern === undefined) {
    if (values.jitter !== undefined) throw misuse('--jitter goes with --schedule only; leave it out');
    await withMetrics(what, invocation, async () => {
      const outcome = await runAndReport(run, invocation);
      await runSteps(invocation);
      return outcome;
    });
    return EXIT.ok;
  }
  for (const [flag, why] of Object.entries(NOT_SCHEDULED)) {
    if (values[flag] !== undefined) throw misuse(`--${flag} does not go with --schedule: ${why}`);
  }
  const jitterMs = 1000 * (wholeNumber(values, 'jitter', 0, 999_999) ?? SCHEDULE_JITTER_S);
  const { signal } = watchStopSignals();
  const say = (line: string): void => note(`${localTime(Date.now())} ${line}`);
  const runOnce = (): Promise<boolean> => runInChild(what, invocation, say, signal);
  await runOnSchedule({ what, pattern, jitterMs, atOnce: atOnce(), run: runOnce, note: say, signal });
  say('the schedule has ended');
  return EXIT.ok;
}
