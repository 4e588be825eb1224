/** Runs `enrich`, `filter` and `summarize` on inputs of any format. */
import { AtlasError } from '../errors.js';
import type { Damage } from '../history/over-time.js';
import type { EnrichCounts } from './counts.js';
import type { Detection } from './detection.js';
import { enrichLines, type LineResult } from './enrich-lines.js';
import { openSources } from './input/inputs.js';
import { type DetectionPlan, Inputs } from './input/recognize.js';
import { otherPartitionsOf } from './members.js';
import type { InputOptions } from './options.js';
import type { ByteSink } from './output/sink.js';
import { publicRanges } from './public-ranges.js';
import { checkCountries, queriedMembers } from './query.js';
import { openForResults, openPast } from './range-file.js';
import { type EnrichRanges, isOverTime, openedLabels } from './ranges.js';

export interface EnrichRequest {
  /**
   * The directory of the release, or the path of the seed, as `findDatabase` returns it; the data directory for past days; undefined if
   * addresses are not looked up.
   */
  database: string | undefined;
  /** Paths of the inputs; `-` is standard input. */
  inputs: readonly string[];
  /** Bytes in all inputs, before decompression, if known. */
  total: number | undefined;
  options: InputOptions;
  /** How logs are recognized, and the options for one, if they are. */
  guess?: (DetectionPlan & { optionsFor(guessed: Detection): InputOptions }) | undefined;
  /** Number of threads. */
  jobs: number;
  output: ByteSink;
  /** Receives the records that are not valid in the format. */
  rejects: ByteSink | undefined;
  /** Updated during the run. */
  counts: EnrichCounts;
  /** Aborting stops reading. Complete records that were read are still written; then the promise resolves. */
  signal: AbortSignal;
  /** The memory of the last run, for the next one. */
  kept?: { memory?: WebAssembly.Memory };
}

/**
 * Processes inputs in order: enriches them, or applies the query of the options.
 *
 * @returns what of the history of the records' dates is damaged; `counts` has how many addresses that concerns
 * @throws AtlasError E_BAD_INPUT if an input cannot be read, is not in the format or, under the policy `fail`, has an
 *   invalid record; everything before that is written. E_USAGE for options that are not valid for the input or the kernel.
 *   E_NO_DATABASE or E_DAMAGED without a usable release. The errors of the sinks, such as EPIPE
 */
export async function enrich(request: EnrichRequest): Promise<readonly Damage[]> {
  const { options, guess, signal, output, kept = {} } = request;
  const inputs = new Inputs(openSources(request.inputs), options, guess);
  let before: InputsResult | undefined;
  try {
    do {
      if (before?.endsWithNewline === false) await output.write(Buffer.from('\n'));
      before = await enrichInputs(request, inputs, kept.memory);
      kept.memory = before.memory;
    } while (inputs.isWaiting && !signal.aborted);
    return before.damage;
  } finally {
    await inputs.close();
  }
}

/** Waits for a promise, until the signal at most. */
async function unlessAborted(signal: AbortSignal, promise: Promise<unknown>): Promise<void> {
  const waiting = new AbortController();
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { signal: waiting.signal });
    if (signal.aborted) resolve();
  });
  await Promise.race([promise, aborted]).finally(() => waiting.abort());
}

/** What a run leaves behind, and what is damaged. */
type InputsResult = LineResult & { damage: readonly Damage[] };

/** Processes the inputs of one log, in the memory of those before. */
async function enrichInputs(
  request: EnrichRequest,
  inputs: Inputs,
  memory?: WebAssembly.Memory,
): Promise<InputsResult> {
  const { database, options, guess, signal } = request;
  const { add, onInvalid, query, extracts } = options;
  let damage: readonly Damage[] = [];

  async function optionsOfInput(): Promise<InputOptions> {
    // The writer of a pipe may take its time.
    await unlessAborted(signal, inputs.open());
    return inputs.log === undefined ? options : { ...guess!.optionsFor(inputs.log), add, onInvalid, query, extracts };
  }

  function openFile(allocate?: (bytes: number) => Buffer): EnrichRanges {
    if (database === undefined) return publicRanges();
    const file = openPast(database, options) ?? openForResults(database, options, allocate);
    if (isOverTime(file)) damage = file.damage;
    for (const partition of otherPartitionsOf(queriedMembers(query), openedLabels(file))) {
      if (!isOverTime(file) && file.others?.get(partition) !== undefined) continue;
      const path = isOverTime(file) ? database : file.path;
      throw new AtlasError('E_NO_DATABASE', `${path}: the release ${partition.absence}`);
    }
    if (query?.kind === 'filter') {
      checkCountries(
        query,
        file.records.flatMap((record) => (record.kind === 'country' ? [record.code] : [])),
      );
    }
    return file;
  }
  const ofInput = optionsOfInput();
  // If the release cannot be opened, that is the error that counts.
  ofInput.catch(() => {});
  // The other formats must not wait for the library of JSON documents.
  const documents = async () => (await import('./formats/document.js')).JsonDocument;
  const result = await enrichLines({ ...request, ofInput, inputs: inputs.ofRun(), openFile, documents, memory });
  return { ...result, damage };
}
