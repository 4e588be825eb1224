/** `ipatlas enrich`: the country put into every line, record or item of a stream. */
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { openDatabase } from '../database/database.js';
import { RANGE_FILE, releaseDir } from '../database/release.js';
import { type EnrichCounts, emptyCounts } from '../enrich/counts.js';
import { enrichDocuments } from '../enrich/enrich-documents.js';
import { enrichLines } from '../enrich/enrich-lines.js';
import type { FormatContext, FormatEnricher } from '../enrich/formats/format.js';
import { checkInputs, isInput, openInputs, STDIN_PATH } from '../enrich/input/inputs.js';
import { type EnrichOptions, INVALID_POLICIES, type InvalidPolicy, parseAdd, parseFields } from '../enrich/options.js';
import { type Output, plainOutput, replacedOutput, standardOutput, statOutput } from '../enrich/output/output.js';
import { showProgress, summaryText } from '../enrich/progress.js';
import { AtlasError, EXIT, systemErrorCode } from '../errors.js';
import { MAX_JOBS } from '../limits.js';
import { openRangeFile } from '../rangefile/reader.js';
import { type Command, type Invocation, type OptionValues, outputPath, text } from './command.js';

const FORMATS = ['jsonl', 'json', 'csv', 'tsv', 'list'] as const;
type FormatName = (typeof FORMATS)[number];

/** What the command line asks for. */
interface Request {
  inputs: string[];
  /** Bytes in the inputs, where that is known. */
  total: number | undefined;
  format: FormatName;
  /** For `json`: the keys that lead to the array of items. */
  itemsPath: string[];
  options: EnrichOptions;
  jobs: number;
  output: string | undefined;
  rejects: string | undefined;
  stats: string | undefined;
}

function oneOf<T extends string>(values: OptionValues, flag: string, choices: readonly T[], fallback: T): T {
  const value = text(values, flag) ?? fallback;
  if (choices.includes(value as T)) return value as T;
  throw new AtlasError('E_USAGE', `--${flag} is ${JSON.stringify(value)}; it can be ${choices.join(', ')}`);
}

function parseJobs(value: string | undefined): number {
  if (value === undefined) return Math.min(availableParallelism(), MAX_JOBS);
  const jobs = /^\d{1,4}$/.test(value) ? Number(value) : 0;
  if (jobs >= 1 && jobs <= MAX_JOBS) return jobs;
  throw new AtlasError('E_USAGE', `--jobs is ${JSON.stringify(value)}; it can be 1 to ${MAX_JOBS}`);
}

function parseItems(value: string | undefined, format: FormatName): string[] {
  if (value === undefined) return [];
  if (format !== 'json') throw new AtlasError('E_USAGE', '--items goes with --format json only');
  const keys = value.split('.');
  if (!keys.includes('')) return keys;
  throw new AtlasError('E_USAGE', `--items ${JSON.stringify(value)} has an empty key; write it as data or data.rows`);
}

/** A file to be written must not be one that is read. (`-o` may be: it is replaced when all has been read.) */
function sideFile(values: OptionValues, flag: string, inputs: string[]): string | undefined {
  const path = text(values, flag);
  if (path === undefined || !isInput(path, inputs)) return path;
  throw new AtlasError('E_USAGE', `--${flag} names the input ${path}; choose another file`);
}

/** Two outputs into one file would undo each other. */
function checkDistinct(values: OptionValues): void {
  const files = ['output', 'rejects', 'stats'].flatMap((flag) => {
    const path = text(values, flag);
    const stat = path === undefined ? undefined : statOutput(path);
    // What is no file, such as /dev/null, takes everything.
    if (path === undefined || stat?.isFile() === false) return [];
    return [{ flag, path, file: stat === undefined ? resolve(path) : `${stat.dev}:${stat.ino}` }];
  });
  for (const [index, { flag, path, file }] of files.entries()) {
    const other = files.slice(0, index).find((one) => one.file === file);
    if (other === undefined) continue;
    throw new AtlasError('E_USAGE', `--${other.flag} and --${flag} both name ${path}; choose two files`);
  }
}

function parseRequest({ values, positionals }: Invocation): Request {
  const format = oneOf(values, 'format', FORMATS, 'jsonl');
  const fields = (values.field ?? []) as string[];
  if (format === 'list' && fields.length > 0) {
    throw new AtlasError('E_USAGE', '--field does not go with --format list: a line is an address and nothing else');
  }
  const options = {
    fields: parseFields(fields),
    add: parseAdd(text(values, 'add')),
    onInvalid: oneOf<InvalidPolicy>(values, 'on-invalid', INVALID_POLICIES, 'keep'),
  };
  const itemsPath = parseItems(text(values, 'items'), format);
  const jobs = parseJobs(text(values, 'jobs'));
  checkDistinct(values);
  const inputs = positionals.length === 0 ? [STDIN_PATH] : positionals;
  return {
    inputs,
    total: checkInputs(inputs),
    format,
    itemsPath,
    options,
    jobs,
    output: outputPath(values),
    rejects: sideFile(values, 'rejects', inputs),
    stats: sideFile(values, 'stats', inputs),
  };
}

/** Loads a format. JSON lines, which have an engine of their own, must not wait for the libraries of the others. */
async function loadFormat(
  name: Exclude<FormatName, 'jsonl'>,
  itemsPath: string[],
): Promise<(context: FormatContext) => FormatEnricher> {
  switch (name) {
    case 'json': {
      const { jsonFormat } = await import('../enrich/formats/json.js');
      return (context) => jsonFormat(context, itemsPath);
    }
    case 'csv':
    case 'tsv': {
      const { tableFormat } = await import('../enrich/formats/csv.js');
      return (context) => tableFormat(context, name === 'csv' ? ',' : '\t');
    }
    case 'list':
      return (await import('../enrich/formats/list.js')).listFormat;
  }
}

/** What one run works with. */
interface Work {
  output: Output;
  rejects: Output | undefined;
  counts: EnrichCounts;
  signal: AbortSignal;
}

/** One run reads one release: it is opened once, and one that is published meanwhile is not noticed. */
async function enrich(request: Request, dataDir: string, work: Work): Promise<void> {
  const { format, options, jobs, itemsPath } = request;
  const inputs = openInputs(request.inputs);
  if (format === 'jsonl') {
    const path = join(releaseDir(dataDir), RANGE_FILE);
    return enrichLines({ ...work, inputs, openFile: () => openRangeFile(path), options, jobs, total: request.total });
  }
  const database = openDatabase(dataDir);
  await enrichDocuments(await loadFormat(format, itemsPath), { ...work, inputs, database, options });
  database.close();
}

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Lets the first signal to end stop the reading, so that what was read is finished and written; the second ends at once.
 *
 * @param abandon undoes what must not stay behind
 */
function watchSignals(abandon: () => void) {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;

  function stop(): void {
    for (const name of ENDING_SIGNALS) process.off(name, onSignal);
  }
  /** Lets a signal do what it does to a program that does not watch it. */
  function raise(name: NodeJS.Signals): void {
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
  for (const name of ENDING_SIGNALS) process.on(name, onSignal);
  return { signal: controller.signal, received: () => received, stop, raise };
}

async function run(invocation: Invocation): Promise<number> {
  const request = parseRequest(invocation);
  // Opened before any output is touched, so that a missing release leaves no trace.
  releaseDir(invocation.dataDir);
  let output: Output | undefined;
  const signals = watchSignals(() => output?.abandon());
  output = request.output === undefined ? standardOutput() : replacedOutput(request.output);
  const rejects = request.rejects === undefined ? undefined : plainOutput(request.rejects);
  const stats = request.stats === undefined ? undefined : plainOutput(request.stats);
  const counts = emptyCounts();
  const begun = performance.now();
  const stopProgress = showProgress(counts, request.total);
  const seconds = () => (performance.now() - begun) / 1000;
  try {
    await enrich(request, invocation.dataDir, { output, rejects, counts, signal: signals.signal });
    if (signals.received() === undefined) output.commit();
  } catch (error) {
    // A reader that has gone has what it wanted.
    if (systemErrorCode(error) !== 'EPIPE') throw error;
    return EXIT.ok;
  } finally {
    stopProgress();
    signals.stop();
    output.abandon();
    rejects?.commit();
    await stats?.write(Buffer.from(`${JSON.stringify({ ...counts, seconds: seconds() })}\n`));
    stats?.commit();
  }
  process.stderr.write(summaryText(counts, seconds()));
  const received = signals.received();
  if (received === undefined) return EXIT.ok;
  process.stderr.write(`ipatlas: stopped by ${received} before the end of the input\n`);
  if (received !== 'SIGINT') signals.raise(received);
  return EXIT.interrupted;
}

export const command: Command = {
  help: `Usage: ipatlas enrich [FILE…]

Puts the country of an address into every line, record or item, and leaves all other bytes as they are. Reads stdin
where no file is named (or for "-"), several files one after the other; gzip is recognized. Writes to stdout.

  --field PATH[=NAME]  where the address is: a key, a path with dots (client.ip), or a column; repeatable, default ip.
                       The answer goes to NAME: default geo, or, with several fields, the path and _geo
  --add LIST           what to add: of country,country_code,is_eu,reason; default the first three
  --format FORMAT      jsonl  one JSON object a line (default)
                       json   one array of objects, or a document with such an array (--items)
                       csv    a table with a header; the columns NAME_country and so on are appended
                       tsv    the same with tabs
                       list   one address a line; the answer is put behind it, with tabs
  --items PATH         for json: the keys, with dots, that lead to the array inside the document
  --on-invalid POLICY  a line that is no JSON object, a record that does not fit the header: keep it as it is
                       (default), drop it, or fail (exit code 4)
  --rejects FILE       such lines also go there
  --jobs N             worker threads for jsonl, 1 to ${MAX_JOBS}; default one a core. Order is kept
  -o, --output FILE    write to FILE instead, which is replaced when all is done; it may be an input
  --stats FILE         write the summary there as JSON
  --data DIR           the data directory (or IPATLAS_DATA; default data)
`,
  options: {
    field: { type: 'string', multiple: true },
    add: { type: 'string' },
    format: { type: 'string' },
    items: { type: 'string' },
    'on-invalid': { type: 'string' },
    rejects: { type: 'string' },
    jobs: { type: 'string' },
    output: { type: 'string', short: 'o' },
    stats: { type: 'string' },
  },
  arguments: [0, Number.POSITIVE_INFINITY],
  run,
};
