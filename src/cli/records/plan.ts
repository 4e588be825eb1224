/** What a command line of the commands that process records asks for: parsed and checked, before anything is opened. */
import { availableParallelism } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { EnrichRequest } from '../../enrich/enrich.js';
import { checkInputs, isInput } from '../../enrich/input/inputs.js';
import { checkCompression, type OutputCompression } from '../../enrich/output/compress.js';
import { statOutput } from '../../enrich/output/output.js';
import { misuse } from '../../errors.js';
import { MAX_JOBS } from '../../limits.js';
import { inputName, STANDARD_FD, STDIN_PATH, standardStat } from '../../standard-streams.js';
import { counted } from '../../text-table.js';
import {
  databaseOf,
  expectStdin,
  type Invocation,
  type OptionValues,
  outputPath,
  printNotice,
  text,
} from '../command.js';
import { wholeNumber } from '../number-flags.js';
import { enrichOptionsOf } from './flags.js';
import { type Recognition, recognitionOf } from './recognition.js';

/** The path that means standard output. */
export const STDOUT_PATH = '-';

/** Inputs whose records go to one output. */
export interface Target {
  /** What messages call its output. */
  name: string;
  inputs: readonly string[];
  /** Its path; undefined is standard output. */
  output: string | undefined;
  compression: OutputCompression | undefined;
}

export interface RecordPlan extends Pick<EnrichRequest, 'database' | 'total' | 'options' | 'jobs'> {
  guess: Recognition | undefined;
  /** One, or one for each input of `--output-dir` and `--suffix` that is left to do. */
  targets: readonly Target[];
  /** The folder of `--output-dir`, which may not exist. */
  folder: string | undefined;
  /** Paths of the other outputs. */
  rejects: string | undefined;
  stats: string | undefined;
  /** Whether inputs without any address are an error. */
  needsAddress?: boolean;
}

/**
 * Returns the path of a secondary output. It must not be an input, because it is written before all inputs are read.
 * (`--output` may be: it is replaced at the end.)
 */
function parseSideOutput(
  values: OptionValues,
  flag: string,
  inputs: readonly string[],
  usesStdout: boolean,
): string | undefined {
  const path = text(values, flag);
  if (path === '') throw misuse(`--${flag} is empty; name a file`);
  if (path === STDOUT_PATH && usesStdout)
    throw misuse(`--${flag} - is standard output, which the output already uses; name a file`);
  if (path !== undefined && path !== STDOUT_PATH && isInput(path, inputs))
    throw misuse(`--${flag} names the input ${path}; choose another file`);
  return path;
}

/** Returns what tells a file from others under any of its names; undefined for a device, such as /dev/null, which may be used twice. */
function identityOf(path: string): string | undefined {
  if (path === STDOUT_PATH) return path;
  const stat = statOutput(path);
  if (stat === undefined) return resolve(path);
  return stat.isFile() ? `${stat.dev}:${stat.ino}` : undefined;
}

/** Refuses two outputs to one file, because one would overwrite the other. */
function checkDistinct(outputs: readonly Pick<Target, 'name' | 'output'>[]): void {
  const names = new Map<string, string>();
  for (const { name, output: path = '' } of outputs) {
    const file = path === '' ? undefined : identityOf(path);
    if (file === undefined) continue;
    const other = names.get(file);
    if (other !== undefined) throw misuse(`${other} and ${name} both name ${path}; choose two files`);
    names.set(file, name);
  }
}

function compressionOf(values: OptionValues): OutputCompression | undefined {
  return text(values, 'compress') as OutputCompression | undefined;
}

/** What the names of compressed files end with. */
const EXTENSIONS = { gzip: '.gz', zstd: '.zst' } as const;

/** Returns the file for each input, under `--output-dir` and `--suffix`. @throws AtlasError E_USAGE */
function filesOf(values: OptionValues, inputs: readonly string[]): Target[] {
  const folder = text(values, 'output-dir');
  const suffix = text(values, 'suffix') ?? '';
  if (folder === '' || (folder === undefined && suffix === ''))
    throw misuse('--output-dir and --suffix are empty; name a folder');
  if (/[\\/]/.test(suffix))
    throw misuse(`--suffix ${JSON.stringify(suffix)} has a slash; name the folder with --output-dir`);
  if (values.output !== undefined)
    throw misuse('--output does not go with --output-dir and --suffix: each input has a file');
  if (inputs.includes(STDIN_PATH)) throw misuse('standard input has no name for --output-dir and --suffix; name files');
  const files = new Map(inputs.map((path) => [identityOf(path), path]));
  return inputs.map((input) => {
    const compressions = Object.entries(EXTENSIONS) as [OutputCompression, string][];
    const [named, extension = ''] = compressions.find(([, end]) => input.endsWith(end)) ?? [];
    const compression = compressionOf(values) ?? named;
    const name = `${basename(input, extension)}${suffix}${compression === undefined ? '' : EXTENSIONS[compression]}`;
    const output = join(folder ?? dirname(input), name);
    const replaced = files.get(identityOf(output));
    if (replaced !== undefined)
      throw misuse(`${output} would replace the input ${replaced}; choose another --suffix or --output-dir`);
    return { name: `the file for ${input}`, inputs: [input], output, compression };
  });
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

/** Returns which inputs go to which output. @throws AtlasError E_USAGE */
function targetsOf(values: OptionValues, inputs: readonly string[]): Target[] {
  if ((values['output-dir'] ?? values.suffix) !== undefined) return filesOf(values, inputs);
  if (values.resume === true) throw misuse('--resume goes with --output-dir or --suffix');
  return [{ name: '--output', inputs, output: outputPath(values), compression: compressionOf(values) }];
}

/** Parses and checks the command line of a command without a database, and the inputs that it names. @throws AtlasError */
export function planWithoutDatabase({ values, positionals }: Invocation): RecordPlan {
  const options = enrichOptionsOf(values);
  const jobs = wholeNumber(values, 'jobs', 0, MAX_JOBS) || Math.min(availableParallelism(), MAX_JOBS);
  const all = targetsOf(values, positionals.length === 0 ? [STDIN_PATH] : positionals);
  const others = ['rejects', 'stats'].map((flag) => ({ name: `--${flag}`, output: text(values, flag) }));
  checkDistinct([...all, ...others]);
  const targets = values.resume === true ? all.filter(({ output }) => statOutput(output!) === undefined) : all;
  const inputs = targets.flatMap((target) => target.inputs);
  expectStdin(inputs);
  const total = checkInputs(inputs);
  const usesStdout = targets.some(({ output }) => output === undefined);
  if (usesStdout) checkStandardOutput(inputs);
  const [rejects, stats] = ['rejects', 'stats'].map((flag) => parseSideOutput(values, flag, inputs, usesStdout));
  for (const kind of new Set(targets.map(({ compression }) => compression)))
    if (kind !== undefined) checkCompression(kind);
  if (targets.length < all.length)
    printNotice(`ipatlas: ${counted(all.length - targets.length, 'input')} passed over, because the files exist\n`);
  const folder = text(values, 'output-dir');
  return { database: undefined, total, options, guess: recognitionOf(values), jobs, targets, folder, rejects, stats };
}

/** Does the same for a command that looks addresses up, and finds the database. @throws AtlasError */
export function planOf(invocation: Invocation): RecordPlan & { database: string } {
  const plan = planWithoutDatabase(invocation);
  // Last, so that only a valid command line is answered from the seed. Without a database, no output is opened.
  const isPast = (plan.options.at ?? plan.options.atField) !== undefined;
  return { ...plan, database: isPast ? invocation.dataDir : databaseOf(invocation) };
}
