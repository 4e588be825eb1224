/** The line engine: JSON lines in, the same lines with the answer spliced in out. */
import type { RangeFile } from '../rangefile/reader.js';
import type { EnrichOptions } from './options.js';
import type { ByteSink } from './sink.js';
import type { ByteSource } from './source.js';
import type { EnrichCounts } from './summary.js';

export interface LineRequest {
  /** Read in order, each to its end, then closed. Line numbers begin anew with each. */
  inputs: Iterable<ByteSource> | AsyncIterable<ByteSource>;
  output: ByteSink;
  /** Receives the lines that are no JSON objects, each with its newline. */
  rejects?: ByteSink | undefined;
  /** The release's ranges; one run keeps to one release. */
  file: RangeFile;
  options: EnrichOptions;
  /** Worker threads; 1 works in this thread. */
  jobs: number;
  /** Aborting stops reading; what is in flight is finished and written, whole lines only. The promise then resolves. */
  signal?: AbortSignal | undefined;
  /** Added to as output is written, so that it says at any time what has been done. */
  counts: EnrichCounts;
  /** Called after each block that was written. */
  onProgress?: (() => void) | undefined;
}

/**
 * Enriches JSON lines. Order is kept whatever `jobs` is.
 *
 * @throws AtlasError E_BAD_INPUT where an input cannot be read or, under the policy `fail`, at the first line that is no
 *   JSON object, naming input and line; all lines before it have been written. Whatever a sink throws (such as EPIPE)
 */
export async function enrichLines(request: LineRequest): Promise<void> {
  void request;
  throw new Error('not built yet');
}
