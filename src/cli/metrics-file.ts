/** `--metrics FILE`: what a build or pull did, for the textfile collector of Prometheus's node_exporter. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RefusedOutcome } from '../../pipeline/index.js';
import { currentReleaseId, type Manifest, RELEASES_DIR, readManifest } from '../database/release.js';
import { startOfDay } from '../day.js';
import { type AtlasError, ERROR_TABLE, EXIT, hasCode, isAtlasError, messageOf, orElse, writeError } from '../errors.js';
import { replaceFile } from '../files.js';
import { type GateFigure, readStoredReport, type StoredReport } from '../report/stored-report.js';
import { type FlagTable, type Invocation, printNote, text } from './command.js';

/** The flag of the commands that publish. */
export const METRICS_FLAG: FlagTable = {
  metrics: {
    value: 'FILE',
    help: "write how it ended to this file, as Prometheus metrics for node_exporter's textfile collector, which wants a name that ends in .prom",
  },
};

/** How a run ends: `step_failed` is published, but a step of "after" failed. */
const OUTCOMES = ['published', 'unchanged', 'refused', 'step_failed', 'failed'] as const;
type Outcome = (typeof OUTCOMES)[number];

/** Reads a metric that the last run wrote, in seconds since 1970; 0 if it has none. */
function lastValue(file: string, name: string): number {
  const metric = new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'm');
  return orElse(() => Number(metric.exec(readFileSync(file, 'utf8'))?.[1] ?? 0), hasCode('ENOENT'), 0);
}

/** Returns what is known of the current release; undefined if there is none, or it is damaged. */
function currentRelease(dataDir: string): { manifest: Manifest; report: StoredReport | undefined } | undefined {
  const id = currentReleaseId(dataDir);
  if (id === undefined) return undefined;
  const dir = join(dataDir, RELEASES_DIR, id);
  return orElse(() => ({ manifest: readManifest(dir), report: readStoredReport(dir) }), isAtlasError, undefined);
}

/**
 * Runs a build or pull, and writes how it ended to the file of `--metrics`, if that is given. A run that found another one at work
 * writes nothing.
 *
 * @param run returns its outcome
 * @throws what `run` throws; AtlasError E_OUTPUT or E_DISK if the file cannot be written, before anything is run if possible
 */
export async function withMetrics(
  command: 'build' | 'pull',
  { dataDir, values }: Pick<Invocation, 'dataDir' | 'values'>,
  run: () => Promise<'published' | 'unchanged'>,
): Promise<void> {
  const file = text(values, 'metrics');
  if (file === undefined) {
    await run();
    return;
  }
  const { Gauge, Registry } = await import('prom-client');
  const start = Date.now();
  /** @param gates if they refused */
  const write = async (outcome: Outcome, exit: number, gates?: readonly GateFigure[]): Promise<void> => {
    const registry = new Registry();
    registry.setDefaultLabels({ command });
    const add = (name: string, help: string, values: [labels: Record<string, string>, value: number][]): void => {
      const labelNames = Object.keys(values[0]?.[0] ?? {});
      const gauge = new Gauge({ name: `ipatlas_run_${name}`, help, labelNames, registers: [registry] });
      for (const [labels, value] of values) gauge.set(labels, value);
    };
    const seconds = (time: number): number => Math.round(time / 1000);
    const end = Date.now();
    const last = (name: string): number => lastValue(file, `ipatlas_run_${name}`);
    const isNew = outcome !== 'failed' && outcome !== 'refused';
    const since = outcome === 'refused' ? last('refused_since_seconds') || seconds(end) : last('refused_since_seconds');
    add('outcome', 'How the last run ended: 1 for that, 0 for the others.', [
      ...OUTCOMES.map((each): [{ outcome: string }, number] => [{ outcome: each }, Number(each === outcome)]),
    ]);
    add('exit_code', 'Exit code of the last run.', [[{}, exit]]);
    add('end_seconds', 'When the last run ended, in seconds since 1970.', [[{}, seconds(end)]]);
    add('duration_seconds', 'How long the last run took.', [[{}, (end - start) / 1000]]);
    add('completed_seconds', 'When a run last ended without a failure: published, unchanged, or refused by gates.', [
      [{}, outcome === 'failed' ? last('completed_seconds') : seconds(end)],
    ]);
    add('refused_since_seconds', 'When gates first refused, if nothing has passed them since; else 0.', [
      [{}, isNew ? 0 : since],
    ]);
    const current = currentRelease(dataDir);
    if (current !== undefined) {
      const { id, inputs } = current.manifest;
      add('release_info', 'The current release.', [[{ release: id }, 1]]);
      const dated = inputs.flatMap(({ id: source, data_date: date }): [{ source: string }, number][] =>
        date === undefined ? [] : [[{ source }, seconds(end - startOfDay(date))]],
      );
      add('source_age_seconds', 'Age of the data of each source of the current release, when the run ended.', dated);
    }
    const figures = gates ?? current?.report?.gates ?? [];
    for (const what of ['value', 'limit'] as const) {
      add(
        `gate_${what}`,
        `The ${what} of each gate, of the release that was refused, else of the current one.`,
        figures.map((figure) => [{ gate: figure.gate }, figure[what]]),
      );
    }
    const metrics = await registry.metrics();
    try {
      // Not only the owner's: node_exporter is another user.
      replaceFile(file, [metrics], { mode: 0o644 });
    } catch (error) {
      throw writeError(`--metrics ${file}`, error);
    }
  };
  try {
    lastValue(file, 'x');
  } catch (error) {
    throw writeError(`--metrics ${file}`, error);
  }
  let outcome: Outcome = 'failed';
  try {
    outcome = await run();
  } catch (error) {
    const { code, refused } = error as AtlasError & { refused?: RefusedOutcome };
    const exitCode = isAtlasError(error) ? ERROR_TABLE[error.code].exit : EXIT.fault;
    if (exitCode === EXIT.afterFailed) outcome = 'step_failed';
    if (exitCode === EXIT.refused) outcome = 'refused';
    if (code !== 'E_BUSY') {
      await write(outcome, exitCode, refused?.gates).catch((problem) => printNote(`${messageOf(problem)}\n`));
    }
    throw error;
  }
  await write(outcome, EXIT.ok);
}
