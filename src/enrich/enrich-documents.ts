/** Runs the formats that are read by a library rather than by the kernel. */
import type { Database } from '../database/database.js';
import type { EnrichCounts } from './counts.js';
import type { FormatContext, FormatEnricher } from './formats/format.js';
import type { ByteSource } from './input/source.js';
import type { EnrichOptions } from './options.js';
import { RecordWriter } from './output/record-writer.js';
import type { ByteSink } from './output/sink.js';

export interface DocumentRequest {
  /** Read in order, each to its end, then closed. */
  inputs: AsyncIterable<ByteSource>;
  output: ByteSink;
  /** Receives the records that are not valid in the format. */
  rejects: ByteSink | undefined;
  database: Database;
  options: EnrichOptions;
  /** Aborting stops reading. Complete records that were read are still written; then the promise resolves. */
  signal: AbortSignal;
  /** Its `bytes` is updated here, the rest by the format. */
  counts: EnrichCounts;
}

/** Ends the reading when the run is aborted. */
class Aborted extends Error {}

/** Bytes read at once; the libraries process such a chunk in one go. */
const CHUNK_BYTES = 65_536;

/** Yields the bytes of a source. Throws {@link Aborted} when the run is aborted, even while a read waits. */
async function* readChunks(source: ByteSource, { signal, counts }: DocumentRequest): AsyncGenerator<Uint8Array> {
  const bytesBefore = counts.bytes;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new Aborted());
  });
  // If no read waits when the run is aborted, this is not an unhandled rejection.
  aborted.catch(() => {});
  signal.addEventListener('abort', stop);
  try {
    while (!signal.aborted) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const bytes = await Promise.race([source.read(chunk), aborted]);
      counts.bytes = bytesBefore + source.bytesRead;
      if (bytes === 0) return;
      yield chunk.subarray(0, bytes);
    }
    throw new Aborted();
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Holds rejected records until they can be written, because a format rejects them synchronously. */
class RejectQueue {
  readonly #sink: ByteSink | undefined;
  #records: Uint8Array[] = [];

  constructor(sink: ByteSink | undefined) {
    this.#sink = sink;
  }

  add(record: Uint8Array): void {
    if (this.#sink !== undefined) this.#records.push(record);
  }

  async flush(): Promise<void> {
    if (this.#records.length === 0) return;
    const records = Buffer.concat(this.#records);
    this.#records = [];
    await this.#sink?.write(records);
  }
}

/**
 * Enriches documents.
 *
 * @param createFormat creates the format's enricher for this run
 * @throws AtlasError E_BAD_INPUT if an input cannot be read or, under the policy `fail`, for an invalid record, after
 *   writing everything before it; the errors of the sinks
 */
export async function enrichDocuments(
  createFormat: (context: FormatContext) => FormatEnricher,
  request: DocumentRequest,
): Promise<void> {
  const { inputs, database, options, counts } = request;
  const rejects = new RejectQueue(request.rejects);
  const output = new RecordWriter(request.output);
  const format = createFormat({ database, options, counts, reject: (record) => rejects.add(record) });
  let input = 0;
  try {
    for await (const source of inputs) {
      input++;
      try {
        for await (const bytes of format.enrich(source.name, readChunks(source, request))) {
          await rejects.flush();
          await output.write(bytes, input, format.newline);
        }
      } finally {
        await source.close();
      }
    }
  } catch (error) {
    if (!(error instanceof Aborted)) throw error;
  } finally {
    await rejects.flush();
  }
}
