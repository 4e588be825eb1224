/**
 * Runs `enrich`, `filter` and `summarize` on inputs of any format: lines and tables by the line engine (enrich-lines.ts), JSON
 * documents by enrich-documents.ts.
 */

import { openDatabase } from '../database/database.js';
import { releaseDir } from '../database/release.js';
import type { RangeFile } from '../rangefile/reader.js';
import type { EnrichCounts } from './counts.js';
import { enrichDocuments } from './enrich-documents.js';
import { enrichLines } from './enrich-lines.js';
import type { FormatContext, FormatEnricher } from './formats/format.js';
import { openInputs } from './input/inputs.js';
import { type EnrichOptions, type FormatName, kernelInput } from './options.js';
import type { ByteSink } from './output/sink.js';
import { checkCountries } from './query.js';
import { openForResults } from './range-file.js';

export interface EnrichRequest {
  /** The data directory. Its current release is opened once; a release published during the run is not noticed. */
  dataDir: string;
  /** Paths of the inputs; `-` is standard input. */
  inputs: readonly string[];
  /** Bytes in all inputs, before decompression, if known. */
  total: number | undefined;
  format: FormatName;
  /** For `json`: the keys that lead to the array of items. */
  itemsPath: readonly string[];
  /** For tables: the delimiter, if it is not the format's, and whether there is a header. */
  delimiter?: string | undefined;
  hasHeader?: boolean | undefined;
  options: EnrichOptions;
  /** Number of threads, for the formats that the kernel reads. */
  jobs: number;
  output: ByteSink;
  /** Receives the records that are not valid in the format. */
  rejects: ByteSink | undefined;
  /** Updated during the run. */
  counts: EnrichCounts;
  /** Aborting stops reading. Complete records that were read are still written; then the promise resolves. */
  signal: AbortSignal;
}

/**
 * Loads the format of JSON documents. The line engine must not wait for its library.
 *
 * @param file the release's range file for the fast path, which needs memory of its own; none for short documents
 */
export async function loadDocuments(
  itemsPath: readonly string[],
  file?: RangeFile,
): Promise<(context: FormatContext) => FormatEnricher> {
  const { jsonFormat } = await import('./formats/json.js');
  if (file === undefined) return (context) => jsonFormat(context, itemsPath);
  const { ItemReader } = await import('./formats/json-items.js');
  return (context) => {
    const { options, counts } = context;
    // The fast path puts results at the ends of items only.
    const isFast = options.fields.every(({ target }) => target.length === 1);
    return jsonFormat(context, itemsPath, isFast ? new ItemReader(file, options, counts) : undefined);
  };
}

/**
 * Processes inputs in order: enriches them, or applies the query of the options.
 *
 * @throws AtlasError E_BAD_INPUT if an input cannot be read, is not in the format or, under the policy `fail`, has an
 *   invalid record; everything before that is written. E_USAGE for options that are not valid for the input or the kernel.
 *   E_NO_DATABASE or E_DAMAGED without a usable release. The errors of the sinks, such as EPIPE
 */
export async function enrich(request: EnrichRequest): Promise<void> {
  const { dataDir, format, options } = request;
  const inputs = openInputs(request.inputs, { format, fields: options.fields });
  const input = kernelInput(format, request.delimiter, request.hasHeader);
  const release = releaseDir(dataDir);
  const { query } = options;

  function openFile(allocate?: (bytes: number) => Buffer): RangeFile {
    const file = openForResults(release, options.add, allocate);
    if (query?.kind === 'filter') {
      checkCountries(
        query,
        file.records.flatMap((record) => (record.kind === 'country' ? [record.code] : [])),
      );
    }
    return file;
  }
  if (input !== undefined) {
    return enrichLines({ ...request, options: { ...options, input }, inputs, openFile });
  }
  const createFormat = await loadDocuments(request.itemsPath, openFile());
  const database = openDatabase(dataDir, { confidence: options.add.includes('confidence') });
  try {
    await enrichDocuments(createFormat, { ...request, inputs, database });
  } finally {
    database.close();
  }
}
