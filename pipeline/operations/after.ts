/**
 * The steps after a publication: exports for other programs, and commands that make them read these.
 *
 * `after.json` in the data directory says which step of which release is next, and is written before and after each of them. So
 * a step is done, or done again by the next build, `ipatlas after`, or any command that publishes.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { currentReleaseId } from '../../src/database/release.js';
import { AtlasError, configError } from '../../src/errors.js';
import { flush, makeFolder, rename, replaceFile } from '../../src/files.js';
import { readJsonFile } from '../../src/json-file.js';
import { packageFile } from '../../src/package-root.js';
import { compileSchema, describeSchemaErrors } from '../../src/schema-errors.js';
import { checkOwner, milliseconds, runCommand } from '../config/commands.js';
import { type AfterStep, type ExportStep, loadSources } from '../config/sources.js';
import { withDataDir } from './data-dir.js';

/** Where the steps are: a list of them, or a file of sources. */
export interface AfterFile {
  path: string;
  kind: 'list' | 'sources';
}

/** What is done, as `after.json` has it. */
interface State {
  release: string;
  /** The release before it; empty for the first. */
  previous: string;
  /** Hash of the steps. */
  steps: string;
  /** Where they are from, for `ipatlas after` and `ipatlas rollback`. */
  file: AfterFile;
  /** Number of steps that are done. */
  done: number;
  /** Whether an export before the next step changed its file. */
  isChanged: boolean;
}

export interface AfterOptions {
  dataDir: string;
  /** By default where the steps were from the last time. */
  file: AfterFile | undefined;
  note: (line: string) => void;
  /** How to start ipatlas; only tests change it. */
  program?: readonly string[];
}

const STATE_FILE = 'after.json';
const DEFAULT_TIMEOUT = '5m';
const EXPORT_TIMEOUT_MS = 3_600_000;
const PROGRAM = [process.execPath, packageFile(join('dist', 'src', 'cli', 'start.cjs'))];

function readState(dataDir: string): State | undefined {
  const path = join(dataDir, STATE_FILE);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as State) : undefined;
}

/** Reads the steps. @throws AtlasError E_CONFIG if the file is not valid, or others can write it */
async function readSteps({ path, kind }: AfterFile): Promise<AfterStep[]> {
  if (kind === 'sources') return (await loadSources(path)).after;
  const value = await readJsonFile(path, 'the steps of --after');
  const validator = compileSchema<AfterStep[]>(['after']);
  if (!validator(value))
    throw configError(describeSchemaErrors(validator.errors ?? []).map((text) => `${path}: ${text}`));
  if (value.length > 0) checkOwner(path);
  return value;
}

/** Returns the hash of a file; undefined if there is none. */
function hashOf(path: string): string | undefined {
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : undefined;
}

/**
 * Runs the steps that are not done for the current release.
 *
 * @returns the number of steps that there are
 * @throws AtlasError E_AFTER if a step fails, and the rest is left for the next time; E_CONFIG for a file that is not valid; and as
 *   `withDataDir`
 */
export async function runAfter({ dataDir, file: given, note, program = PROGRAM }: AfterOptions): Promise<number> {
  const last = readState(dataDir);
  const file = given === undefined ? last?.file : { ...given, path: resolve(given.path) };
  const release = currentReleaseId(dataDir);
  if (file === undefined || release === undefined) return 0;
  const steps = await readSteps(file);
  if (steps.length === 0) return 0;
  const hash = createHash('sha256').update(JSON.stringify(steps)).digest('hex');
  const isSame = last?.release === release && last.steps === hash;
  if (isSame && last.done === steps.length) return steps.length;
  const previous = last === undefined ? '' : last.release === release ? last.previous : last.release;
  const state: State = isSame ? last : { release, previous, steps: hash, file, done: 0, isChanged: false };
  const save = (): void => {
    replaceFile(join(dataDir, STATE_FILE), [`${JSON.stringify(state)}\n`]);
  };
  const cwd = dirname(file.path);
  const env = { ...process.env, IPATLAS_RELEASE: release, IPATLAS_PREVIOUS: previous, IPATLAS_DATA: resolve(dataDir) };

  /** Writes an export beside its file, and replaces the file if it changed. */
  const runExport = async ({ export: format, output, flags = [] }: ExportStep): Promise<string | undefined> => {
    const target = resolve(cwd, output);
    const beside = `${target}.ipatlas-new`;
    makeFolder(dirname(target));
    const command = [...program, 'export', format, '-o', beside, '--data', resolve(dataDir), ...flags];
    try {
      const failure = await runCommand(command, { cwd, env, timeoutMs: EXPORT_TIMEOUT_MS });
      if (failure !== undefined) return failure.message;
      if (hashOf(beside) === hashOf(target)) {
        note(`after: ${output} is as it was`);
        return undefined;
      }
      // Before the file is replaced: after a kill in between, it would be as it was, and what reads it would not be told.
      state.isChanged = true;
      save();
      flush(beside);
      rename(beside, target);
      flush(dirname(target));
      note(`after: ${output} is written`);
      return undefined;
    } finally {
      rmSync(beside, { force: true });
    }
  };

  await withDataDir(dataDir, async () => {
    save();
    for (let index = state.done; index < steps.length; index++) {
      const step = steps[index]!;
      let problem: string | undefined;
      if ('export' in step) {
        problem = await runExport(step);
      } else {
        const hasExports = steps.slice(0, index).some((each) => 'export' in each);
        if (hasExports && !state.isChanged && step.always !== true) note(`after: ${step.run.join(' ')} is not needed`);
        else {
          const timeoutMs = milliseconds(step.timeout ?? DEFAULT_TIMEOUT);
          problem = (await runCommand(step.run, { cwd, env, timeoutMs }))?.message;
          if (problem === undefined) note(`after: ${step.run.join(' ')}`);
        }
      }
      if (problem !== undefined) {
        const name = 'export' in step ? `export ${step.export}` : step.run.join(' ');
        const rest = 'fix it, then "ipatlas after" does this step and those after it; the next build tries it, too';
        const message = `release ${release} is published, but step ${index + 1} of "after" failed: ${name}: ${problem}\n${rest}`;
        throw new AtlasError('E_AFTER', message);
      }
      state.done = index + 1;
      // Exports count for the commands after them, up to the next export.
      const next = steps[index + 1];
      if ('run' in step && next !== undefined && 'export' in next) state.isChanged = false;
      save();
    }
  });
  return steps.length;
}
