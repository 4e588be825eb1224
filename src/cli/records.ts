/** What the commands that process records share: their flags, inputs, outputs, signals and statistics. */
import { closeSync, openSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { seedFacts } from '../database/origin.js';
import { type EnrichCounts, emptyCounts, warningOf } from '../enrich/counts.js';
import type { EnrichRequest } from '../enrich/enrich.js';
import { splitSpec } from '../enrich/field-path.js';
import { type DetectedFields, describe, findFields } from '../enrich/find-fields.js';
import { checkInputs, isInput } from '../enrich/input/inputs.js';
import { addressNames, knownLogs } from '../enrich/known-logs.js';
import { formsOf, type Logs, logOf, recognizeLog, withoutJson } from '../enrich/logs.js';
import { addable, SCHEMA_NAMES } from '../enrich/members.js';
import {
  FORMAT_NAMES,
  type FormatName,
  hasFields,
  type InputOptions,
  MISSING_DATES,
  PICKS,
  parseEnrichOptions,
  parseLogOptions,
  type RequestedOptions,
} from '../enrich/options.js';
import { COMPRESSIONS, checkCompression, compressedOutput, type OutputCompression } from '../enrich/output/compress.js';
import { type Output, plainOutput, replacedOutput, standardOutput, statOutput } from '../enrich/output/output.js';
import { showProgress, summaryText } from '../enrich/progress.js';
import { EXIT, misuse } from '../errors.js';
import type { Damage } from '../history/over-time.js';
import { MAX_JOBS } from '../limits.js';
import { isUnderNohup, STOP_SIGNALS } from '../signals.js';
import { inputName, isTerminal, STANDARD_FD, STDIN_PATH, standardStat } from '../standard-streams.js';
import { SYSTEM } from '../system.js';
import { grouped } from '../text-table.js';
import {
  databaseOf,
  expectStdin,
  type FlagTable,
  type Invocation,
  LANG_FLAG,
  type OptionValues,
  outputPath,
  print,
  printNote,
  table,
  text,
} from './command.js';
import { wholeNumber } from './number-flags.js';

/** The path that means standard output. */
const STDOUT_PATH = '-';

const FIELD_HELP =
  'where the address is: a key, a path with dots (client.ip), an element of an array (hops[0]), its first element with a ' +
  'country (hops[]), a column, or several of these with bars between them (src_ip|client.ip), of which the first one with an address ' +
  'counts; repeatable, default ip';

/** The flags of the inputs, for the commands that change nothing. */
export const INPUT_FLAGS = {
  field: { value: 'PATH', repeatable: true, help: FIELD_HELP },
  lenient: {
    help: 'also find addresses with a port, brackets, a prefix length, a zone or a name and a slash before it, and the first one in a list with commas, such as that of X-Forwarded-For or Forwarded',
  },
  'in-text': {
    help: 'for jsonl, json, csv and tsv: the fields are text in which the address is anywhere, as in the message of a log',
  },
  pick: {
    value: 'WHICH',
    choices: PICKS,
    help: 'which address counts if there are several, in text and for []: public (default), the first that has a country, or else the first; first; last',
  },
  format: {
    value: 'FORMAT',
    choices: FORMAT_NAMES,
    help: `${FORMAT_NAMES.join(', ')}; default jsonl. "ipatlas help enrich" describes them`,
  },
  at: { value: 'YYYY-MM-DD', help: 'with the answers of this day (UTC), see "ipatlas history"' },
  'at-field': {
    value: 'PATH',
    help: 'with the answers of the date of each record: a key, a path with dots, a column; for combined, "time". Dates: RFC 3339, of access logs, seconds, ms, µs or ns since 1970',
  },
  'at-missing': {
    value: 'WHICH',
    choices: MISSING_DATES,
    help: 'for a date that is missing, no date, or not kept: null (default), no result; first, the answers of the first day; now, those of today',
  },
  log: {
    value: 'NAME',
    help: 'a log by its name, such as nginx, iis or suricata, which sets --format, --field, --lenient and --pick. "--log list" prints the names. Without --format and --log, the first lines decide',
  },
  logs: { value: 'FILE', help: 'more names for --log, as docs/logs.md describes' },
  delimiter: { value: 'C', help: 'for csv and tsv: the character between two cells' },
  'no-header': {
    help: 'for csv and tsv: the first record is not a header; --field is the number of a column, from 1',
  },
  items: {
    value: 'PATH',
    help: 'for json: the keys, with dots, that lead to the array inside the document; groups[].rows for one in each element of an array',
  },
  'no-guess': {
    help: 'without --format, inputs that are no log by name are JSON lines with the address at ip; nothing is found by the first lines',
  },
  jobs: {
    value: 'N',
    help: `threads: 1 to ${MAX_JOBS}; 0, the default, is one per core. The order of lines is kept`,
  },
} as const satisfies FlagTable;

/** The flags of the inputs of `enrich`, which also say where the results go. */
export const ENRICH_INPUT_FLAGS: FlagTable = {
  ...INPUT_FLAGS,
  field: {
    value: 'PATH[=TARGET]',
    repeatable: true,
    help: `${FIELD_HELP}. A dot in a key is written as \\. (client\\.ip). TARGET is the key of the result, or its path in an object of PATH (client.ip=client.geo): default geo or, with several fields, the path and _geo`,
  },
  format: {
    value: 'FORMAT',
    choices: {
      jsonl: 'one JSON object per line (default)',
      json: 'one array of objects, or a document with such an array (--items)',
      'json-seq':
        'JSON objects one after the other: without line breaks between them, on several lines each, or as in RFC 7464',
      csv: 'a table with a header; columns such as NAME_country are appended',
      tsv: 'the same with tabs',
      w3c: 'W3C Extended Log Format, such as IIS and CloudFront write: "#Fields:" names the columns; default field c-ip',
      zeek: 'logs of Zeek, not those in JSON; default field id.orig_h',
      logfmt:
        'key=value or key="a value" anywhere in a line: logfmt, iptables, CEF, LEEF; --field is a key. KEY_country=… and so on is appended',
      list: 'one address per line; the result is appended after tabs',
      combined: 'access logs of nginx and Apache; the result is appended as quoted fields',
      text: 'any lines; the result of the first address that has a country is appended after tabs',
    } satisfies Record<FormatName, string>,
    help: 'the format of the input:',
  },
};

/** The flags that say what is added. */
export const ADD_FLAGS: FlagTable = {
  add: {
    value: 'LIST',
    help: `what to add, in this order: of ${addable().join(', ')}, with commas; default the first three. Also the names of labels`,
  },
  schema: {
    value: 'NAME',
    choices: SCHEMA_NAMES,
    help: 'for jsonl, json and json-seq: the field names of the Elastic Common Schema (ecs) or of OpenTelemetry (otel), in the object that --field names (client.ip=client), default source',
  },
  lang: LANG_FLAG,
};

/** The flags of the outputs. */
export const OUTPUT_FLAGS = {
  output: {
    value: 'FILE',
    short: 'o',
    help: 'write to FILE, which is replaced at the end and may be an input; "-" is stdout',
  },
  compress: {
    value: 'KIND',
    short: 'z',
    choices: COMPRESSIONS,
    help: 'compress the output: gzip or zstd (from Node 22.15 on)',
  },
  stats: { value: 'FILE', help: 'write the counts to FILE as JSON; "-" is stdout, if the output is a file' },
} as const satisfies FlagTable;

export interface StreamRequest {
  /** The directory of the release, or the path of the seed; the data directory for past days. */
  database: string;
  /** Paths of the inputs; `-` is standard input. */
  inputs: string[];
  /** Bytes in all inputs, before decompression, if known. */
  total: number | undefined;
  /** Those of the log that was recognized last. */
  options: InputOptions;
  guess: EnrichRequest['guess'];
  jobs: number;
  /** Paths of the outputs; for the first, undefined is standard output. */
  output: string | undefined;
  rejects: string | undefined;
  stats: string | undefined;
  /** Compression of the first output. */
  compression: OutputCompression | undefined;
}

/** Returns how messages call an option of an enrichment: as a flag. */
function flagOf(option: keyof RequestedOptions): string {
  if (option === 'header') return '--no-header';
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Refuses a flag that needs the networks together with the day of each record. @throws AtlasError E_USAGE */
export function refuseEachDay(values: OptionValues, flag: string): void {
  if (values['at-field'] === undefined) return;
  throw misuse(`${flag} does not go with --at-field: the networks are not known for each day; use --at`);
}

/** Parses the flags that say how records are enriched. @throws AtlasError as {@link parseEnrichOptions} does */
export function enrichOptionsOf(values: OptionValues): InputOptions {
  return parseEnrichOptions(requestedOptions(values), flagOf, logsFor.get(values));
}

function requestedOptions(values: OptionValues): RequestedOptions {
  const delimiter = text(values, 'delimiter');
  const requested = {
    format: text(values, 'format'),
    log: text(values, 'log'),
    items: text(values, 'items'),
    delimiter: delimiter === '\\t' ? '\t' : delimiter,
    header: values['no-header'] !== true,
    field: values.field as string[] | undefined,
    add: text(values, 'add')?.split(','),
    schema: text(values, 'schema'),
    lang: text(values, 'lang'),
    lenient: values.lenient === true ? true : undefined,
    inText: values['in-text'] === true ? true : undefined,
    pick: text(values, 'pick'),
    onInvalid: text(values, 'on-invalid'),
    at: text(values, 'at'),
    atField: text(values, 'at-field'),
    atMissing: text(values, 'at-missing'),
  };
  return requested as RequestedOptions;
}

/** The names of logs of a command line with --logs. */
const logsFor = new WeakMap<OptionValues, Logs>();

/** Runs a command after reading the names of logs of --logs, or prints the names for `--log list`. */
export async function withLogs({ values }: Invocation, run: () => number | Promise<number>): Promise<number> {
  const file = text(values, 'logs');
  if (file !== undefined) logsFor.set(values, await (await import('../enrich/logs-file.js')).readLogs(file));
  if (text(values, 'log') !== 'list') return run();
  const logs = Object.entries(logsFor.get(values) ?? knownLogs());
  const rows = logs.map(([name, { title, format, client }]) => [name, title, format, client]);
  await print(table([['name', 'log', 'format', 'address'], ...rows]));
  return EXIT.ok;
}

/** How long a pipe is waited for after its first line, in ms. */
const PATIENCE = 50;

/** Returns a function that finds what the flags do not say. */
function finderOf(values: OptionValues): (text: string, isWhole: boolean, name: string) => DetectedFields | undefined {
  const { format, delimiter, lenient, field } = requestedOptions(values);
  const specs = field as string[] | undefined;
  const given = { format, delimiter, lenient, field: specs?.map((spec) => splitSpec(spec).path) };
  return (head, isWhole, name) => {
    const found = findFields(head, isWhole, given, addressNames(), name);
    return found && specs ? { ...found, field: specs } : found;
  };
}

/** Returns the options that were found; a flag that is given stays. */
function optionsOf(found: DetectedFields, requested: RequestedOptions): RequestedOptions {
  const { format, items, delimiter, header, field, lenient, inText } = found;
  const { lenient: isLenient = lenient, inText: isInText = inText } = requested;
  return { format, items, delimiter, header: header ?? true, field, lenient: isLenient, inText: isInText };
}

/** Says what was looked for, and what to do. */
export const NOTHING_FOUND =
  'no addresses were found in the first 64 KiB or 100 lines as a log by name, JSON, a table, a list, key=value or text; if there are some further on, say where with --format and --field';

/** Returns how the inputs are recognized, undefined if the format is known. */
export function guessOf(
  values: OptionValues,
  setOptions: (options: StreamRequest['options']) => void,
): StreamRequest['guess'] {
  const format = text(values, 'format') as FormatName | undefined;
  const name = text(values, 'log');
  const isFixed = ['log', 'items', 'no-header', 'no-guess'].some((flag) => values[flag] !== undefined);
  // With a format, only its fields can be found.
  const isFound =
    format === undefined || (values.field === undefined && ['jsonl', 'json', 'csv', 'tsv'].includes(format));
  const find = isFound && !isFixed ? finderOf(values) : undefined;
  if (format !== undefined && find === undefined) return undefined;
  const all = (): Logs => logsFor.get(values) ?? knownLogs();
  const forms = name === undefined ? undefined : formsOf(name, all());
  if (forms !== undefined && Object.keys(forms).length < 2) return undefined;
  const requested = { ...requestedOptions(values), log: undefined };
  return {
    find,
    patience: () =>
      new Promise((resolve) => {
        setTimeout(resolve, PATIENCE).unref();
      }),
    takesJson: name === undefined && format === undefined,
    // JSON is recognized by its first byte.
    recognize: (input, head, isWhole) => {
      if (format !== undefined) return undefined;
      const found = recognizeLog(input, head, isWhole, forms ?? withoutJson(all()));
      return name !== undefined && found?.log === logOf(name, all()) ? undefined : found;
    },
    onLog(input, guessed) {
      printNote(`ipatlas: ${input}: ${describe(guessed)}\n`);
      this.publicElsewhere ??= guessed.publicElsewhere;
    },
    optionsFor(guessed) {
      const options =
        'log' in guessed
          ? parseLogOptions(requested, guessed.log, flagOf)
          : parseEnrichOptions({ ...requested, ...optionsOf(guessed, requested) }, flagOf);
      setOptions(options);
      return options;
    },
  };
}

/**
 * Returns the path of a secondary output. It must not be an input, because it is written before all inputs are read.
 * (`--output` may be: it is replaced at the end.)
 */
function parseSideOutput(values: OptionValues, flag: string, inputs: string[]): string | undefined {
  const path = text(values, flag);
  if (path === undefined) return undefined;
  if (path === '') throw misuse(`--${flag} is empty; name a file`);
  if (path === STDOUT_PATH) {
    if (outputPath(values) === undefined) {
      throw misuse(`--${flag} - is standard output, which the output already uses; name a file`);
    }
  } else if (isInput(path, inputs)) {
    throw misuse(`--${flag} names the input ${path}; choose another file`);
  }
  return path;
}

function parseCompression(values: OptionValues): OutputCompression | undefined {
  const compression = text(values, 'compress') as OutputCompression | undefined;
  if (compression !== undefined) checkCompression(compression);
  return compression;
}

/** Refuses two outputs to one file, because one would overwrite the other. */
function checkDistinct(values: OptionValues): void {
  const files = ['output', 'rejects', 'stats'].flatMap((flag) => {
    const path = text(values, flag);
    if (path === undefined || path === '') return [];
    if (path === STDOUT_PATH) return [{ flag, path, file: STDOUT_PATH }];
    const stat = statOutput(path);
    // A device such as /dev/null may be used twice.
    if (stat?.isFile() === false) return [];
    return [{ flag, path, file: stat === undefined ? resolve(path) : `${stat.dev}:${stat.ino}` }];
  });
  for (const [index, { flag, path, file }] of files.entries()) {
    const other = files.slice(0, index).find((one) => one.file === file);
    if (other !== undefined) throw misuse(`--${other.flag} and --${flag} both name ${path}; choose two files`);
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

/** Parses the flags in {@link INPUT_FLAGS} and {@link OUTPUT_FLAGS}, `--on-invalid` and `--rejects`; checks the inputs. */
export function parseStreamRequest(invocation: Invocation): StreamRequest {
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
  const compression = parseCompression(values);
  const request: StreamRequest = {
    // Last, so that only a valid command line is answered from the seed. Without a database, no output is opened.
    database: (options.at ?? options.atField) === undefined ? databaseOf(invocation) : invocation.dataDir,
    inputs,
    total,
    options,
    guess: guessOf(values, (ofLog) => {
      request.options = ofLog;
    }),
    jobs,
    output,
    rejects,
    stats,
    compression,
  };
  return request;
}

/**
 * Makes the first signal stop the reading, so that what was read is processed and written. The second ends the process.
 *
 * @param abandon removes incomplete output
 */
function watchSignals(abandon: () => void) {
  const controller = new AbortController();
  const names: NodeJS.Signals[] = [...STOP_SIGNALS, ...(isUnderNohup() ? [] : ['SIGHUP' as const])];
  let received: NodeJS.Signals | undefined;

  function stop(): void {
    for (const name of names) process.off(name, onSignal);
  }
  /** Ends the process by a signal, so that its parent sees the cause. On Windows a process cannot send itself each signal. */
  function raise(name: NodeJS.Signals): void {
    if (SYSTEM.isWindows) process.exit(EXIT.interrupted);
    stop();
    process.kill(process.pid, name);
  }
  function onSignal(name: NodeJS.Signals): void {
    if (received !== undefined) {
      abandon();
      raise(name);
    }
    received = name;
    controller.abort();
  }
  for (const name of names) process.on(name, onSignal);
  return { signal: controller.signal, received: () => received, stop, raise };
}

/** What a run reads from and writes to. */
export interface StreamWork {
  output: Output;
  rejects: Output | undefined;
  counts: EnrichCounts;
  signal: AbortSignal;
}

/** Thrown if the reader of the first output has closed the pipe, so that it has all it wants. */
class OutputClosed extends Error {}

/** Opens the output of records. */
function openOutput({ output: path, compression }: StreamRequest): Output {
  const target =
    path === undefined
      ? standardOutput(() => {
          throw new OutputClosed();
        })
      : replacedOutput(path);
  return compression === undefined ? target : compressedOutput(target, compression);
}

/** Opens a secondary output. If it is a pipe that its reader closes, the rest of it is dropped; the other outputs go on. */
function openSideOutput(path: string | undefined): Output | undefined {
  if (path === undefined) return undefined;
  return path === STDOUT_PATH ? standardOutput(() => {}) : plainOutput(path);
}

/**
 * Opens the named pipes among the outputs, which blocks this thread until they have readers; meanwhile signals must end the
 * process.
 *
 * @returns a function that closes them, to be called when they were opened again
 */
function awaitReaders(paths: readonly (string | undefined)[]): () => void {
  const pipes = paths.filter((path) => path !== undefined && statOutput(path)?.isFIFO());
  const fds = pipes.map((path) => openSync(path!, 'w'));
  return () => {
    for (const fd of fds) closeSync(fd);
  };
}

/** Shows the progress, unless its line would be among records on the same terminal. */
function startProgress({ output, rejects, total }: StreamRequest, counts: EnrichCounts): () => void {
  const usesStdout = output === undefined || rejects === STDOUT_PATH;
  return usesStdout && isTerminal(STANDARD_FD.output) ? () => {} : showProgress(counts, total);
}

/** Says which days of the history are damaged, and what to do. */
function damageText({ damaged_history: count }: EnrichCounts, damage: readonly Damage[]): string {
  const days = damage.map(({ from, to, problem }) => `  ${from === to ? from : `${from} to ${to}`}: ${problem}\n`);
  return (
    `ipatlas: E_DAMAGED: ${grouped(count)} ${count === 1 ? 'address has' : 'addresses have'} no result, because the history of their dates is damaged; ` +
    `all others have theirs. Restore the files of these days, then run this again:\n${days.join('')}`
  );
}

/**
 * Opens the outputs, runs a command's work, and writes the statistics.
 *
 * @param finish what to do at the end; by default, the counts are printed to stderr
 * @returns the exit code
 */
export async function runStream(
  request: StreamRequest,
  work: (work: StreamWork) => Promise<readonly Damage[]>,
  finish?: (counts: EnrichCounts) => Promise<void>,
): Promise<number> {
  const releasePipes = awaitReaders([request.output, request.rejects, request.stats]);
  let output: Output | undefined;
  const signals = watchSignals(() => output?.abandon());
  output = openOutput(request);
  const rejects = openSideOutput(request.rejects);
  const stats = openSideOutput(request.stats);
  releasePipes();
  const counts = emptyCounts();
  const startedAt = process.uptime();
  const stopProgress = startProgress(request, counts);
  const seconds = () => process.uptime() - startedAt;
  let warning: string | undefined;
  let damage: readonly Damage[] = [];
  try {
    damage = await work({ output, rejects, counts, signal: signals.signal });
    await output.end();
    if (signals.received() === undefined) output.commit();
    const { fields, input, lenient } = request.options;
    warning = warningOf(counts, hasFields(input) ? fields : [], lenient === true);
    stopProgress();
    await finish?.(counts);
  } catch (error) {
    if (error instanceof OutputClosed) return EXIT.ok;
    // What was written stays a complete compressed file. If the output itself has failed, its first error counts.
    if (request.compression !== undefined) await output.end().catch(() => {});
    throw error;
  } finally {
    stopProgress();
    signals.stop();
    output.abandon();
    rejects?.commit();
    await stats?.write(
      Buffer.from(`${JSON.stringify({ ...counts, seconds: seconds(), warning, ...seedFacts(request.database) })}\n`),
    );
    stats?.commit();
  }
  if (finish === undefined) printNote(summaryText(counts, seconds()));
  if (warning !== undefined) printNote(`ipatlas: warning: ${warning}\n`);
  const received = signals.received();
  if (received === undefined) {
    if (counts.damaged_history > 0) {
      printNote(damageText(counts, damage));
      return EXIT.noDatabase;
    }
    const { found, no_country, invalid_address, missing_field, invalid_line } = counts;
    const { publicElsewhere, find } = request.guess ?? {};
    if (found === 0 && no_country > 0 && publicElsewhere !== undefined)
      printNote(
        `ipatlas: all addresses that were looked up are private, as those of a proxy are; other addresses of the same records are public: ${publicElsewhere}\n`,
      );
    if (find !== undefined && found + no_country === 0 && missing_field > 0) printNote(`ipatlas: ${NOTHING_FOUND}\n`);
    // Not even text with an address was found.
    const isUsed = found + no_country + invalid_address + missing_field > 0;
    if (request.guess?.takesJson !== true || isUsed || invalid_line === 0) return EXIT.ok;
    if (request.guess.find !== undefined) printNote(`ipatlas: ${NOTHING_FOUND}\n`);
    return EXIT.badInput;
  }
  printNote(`ipatlas: stopped by ${received} before the end of the input\n`);
  if (received !== 'SIGINT') signals.raise(received);
  return EXIT.interrupted;
}
