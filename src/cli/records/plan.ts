/** What a command line of the commands that process records asks for: parsed and checked, before anything is opened. */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { EnrichRequest } from '../../enrich/enrich.js';
import { checkInputs, isInput } from '../../enrich/input/inputs.js';
import { checkCompression, type OutputCompression } from '../../enrich/output/compress.js';
import { statOutput } from '../../enrich/output/output.js';
import { misuse } from '../../errors.js';
import { MAX_JOBS } from '../../limits.js';
import { inputName, STANDARD_FD, STDIN_PATH, standardStat } from '../../standard-streams.js';
import { databaseOf, expectStdin, type Invocation, type OptionValues, outputPath, text } from '../command.js';
import { wholeNumber } from '../number-flags.js';
import { enrichOptionsOf } from './flags.js';
import { type Recognition, recognitionOf } from './recognition.js';

/** The path that means standard output. */
export const STDOUT_PATH = '-';

export interface RecordPlan extends Pick<EnrichRequest, 'database' | 'inputs' | 'total' | 'options' | 'jobs'> {
  guess: Recognition | undefined;
  /** Paths of the outputs; for the first, undefined is standard output. */
  output: string | undefined;
  rejects: string | undefined;
  stats: string | undefined;
  /** Compression of the first output. */
  compression: OutputCompression | undefined;
}

/**
 * Returns the path of a secondary output. It must not be an input, because it is written before all inputs are read.
 * (`--output` may be: it is replaced at the end.)
 */
function parseSideOutput(values: OptionValues, flag: string, inputs: readonly string[]): string | undefined {
  const path = text(values, flag);
  if (path === '') throw misuse(`--${flag} is empty; name a file`);
  if (path === STDOUT_PATH && outputPath(values) === undefined)
    throw misuse(`--${flag} - is standard output, which the output already uses; name a file`);
  if (path !== undefined && path !== STDOUT_PATH && isInput(path, inputs))
    throw misuse(`--${flag} names the input ${path}; choose another file`);
  return path;
}

/** Refuses two outputs to one file, because one would overwrite the other. */
function checkDistinct(values: OptionValues): void {
  const flags = new Map<string, string>();
  for (const flag of ['output', 'rejects', 'stats']) {
    const path = text(values, flag);
    if (path === undefined || path === '') continue;
    const stat = path === STDOUT_PATH ? undefined : statOutput(path);
    // A device such as /dev/null may be used twice.
    if (stat?.isFile() === false) continue;
    const file = path === STDOUT_PATH ? path : stat === undefined ? resolve(path) : `${stat.dev}:${stat.ino}`;
    const other = flags.get(file);
    if (other !== undefined) throw misuse(`--${other} and --${flag} both name ${path}; choose two files`);
    flags.set(file, flag);
  }
}

/** Refuses an input that is also standard output, as in `enrich FILE >> FILE`: the run would read its own output. */
function checkStandardOutput(inputs: readonly string[]): void {
  const stdout = standardStat(STANDARD_FD.output);
  if (stdout?.isFile() !== true) return;
  const input = inputs.find((path) => {
    const stat = path === STDIN_PATH ? standardStat(STANDARD_FD.input) : statOutput(path);
    return stat !== undefined && stat.dev === stdout.dev && stat.ino === stdout.ino;
  });
  if (input === undefined) return;
  throw misuse(
    `${inputName(input)} is also the output; write to another file, or use -o FILE, which replaces it at the end`,
  );
}

/** Parses and checks the command line, and the inputs that it names. @throws AtlasError */
export function planOf(invocation: Invocation): RecordPlan {
  const { values, positionals } = invocation;
  const options = enrichOptionsOf(values);
  const jobs = wholeNumber(values, 'jobs', 0, MAX_JOBS) || Math.min(availableParallelism(), MAX_JOBS);
  checkDistinct(values);
  const inputs = positionals.length === 0 ? [STDIN_PATH] : positionals;
  expectStdin(inputs);
  const total = checkInputs(inputs);
  const output = outputPath(values);
  if (output === undefined) checkStandardOutput(inputs);
  const rejects = parseSideOutput(values, 'rejects', inputs);
  const stats = parseSideOutput(values, 'stats', inputs);
  const compression = text(values, 'compress') as OutputCompression | undefined;
  if (compression !== undefined) checkCompression(compression);
  // Last, so that only a valid command line is answered from the seed. Without a database, no output is opened.
  const isPast = (options.at ?? options.atField) !== undefined;
  const database = isPast ? invocation.dataDir : databaseOf(invocation);
  return { database, inputs, total, options, guess: recognitionOf(values), jobs, output, rejects, stats, compression };
}
