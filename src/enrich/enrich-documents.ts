/** Takes inputs through a format to an output: what the line engine does for JSON lines, for all the others. */
import type { Database } from '../database/database.js';
import type { EnrichCounts } from './counts.js';
import type { Format, FormatContext } from './formats/format.js';
import type { ByteSource } from './input/source.js';
import type { EnrichOptions } from './options.js';
import type { ByteSink } from './output/sink.js';

export interface FormatRun {
  /** Read in order, each to its end, then closed. */
  inputs: AsyncIterable<ByteSource>;
  output: ByteSink;
  /** Receives the records that are none of the format. */
  rejects: ByteSink | undefined;
  database: Database;
  options: EnrichOptions;
  /** Aborting stops reading; the records that are whole have been written when the promise resolves. */
  signal: AbortSignal;
  /** Its `bytes` is counted here, the rest by the format. */
  counts: EnrichCounts;
}

/** What reading ends with when the run is aborted. */
class Aborted extends Error {}

/** How much is read at once, in bytes; the libraries behind the formats take it in one go. */
const CHUNK_BYTES = 65_536;
const NEWLINE = 10;

/** The bytes of a source until it ends; throws {@link Aborted} where the run is aborted, even while a read waits. */
async function* chunksOf(source: ByteSource, { signal, counts }: FormatRun): AsyncGenerator<Uint8Array> {
  const before = counts.bytes;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new Aborted());
  });
  // Where no read waits, nobody looks at the promise.
  aborted.catch(() => {});
  signal.addEventListener('abort', stop);
  try {
    while (!signal.aborted) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const bytes = await Promise.race([source.read(chunk), aborted]);
      counts.bytes = before + source.taken;
      if (bytes === 0) return;
      yield chunk.subarray(0, bytes);
    }
    throw new Aborted();
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Takes what a format rejects, which it does in the middle of its work, until there is time to write it. */
class RejectQueue {
  readonly #sink: ByteSink | undefined;
  #records: Uint8Array[] = [];

  constructor(sink: ByteSink | undefined) {
    this.#sink = sink;
  }
  add(record: Uint8Array): void {
    if (this.#sink !== undefined) this.#records.push(record);
  }
  async write(): Promise<void> {
    if (this.#records.length === 0) return;
    const records = Buffer.concat(this.#records);
    this.#records = [];
    await this.#sink?.write(records);
  }
}

/**
 * @param makeFormat makes the format for this run
 * @throws AtlasError E_BAD_INPUT where an input cannot be read or, under the policy `fail`, for a record that is none of
 *   the format, all in front of it having been written; what a sink throws
 */
export async function enrichByFormat(makeFormat: (context: FormatContext) => Format, run: FormatRun): Promise<void> {
  const { inputs, output, database, options, counts } = run;
  const rejects = new RejectQueue(run.rejects);
  const format = makeFormat({ database, options, counts, reject: (record) => rejects.add(record) });
  // The last line of an input may lack its newline; the next input's first must not grow onto it.
  let endsOpen = false;
  try {
    for await (const source of inputs) {
      let needsNewline = endsOpen;
      try {
        for await (const bytes of format.enrich(source.name, chunksOf(source, run))) {
          await rejects.write();
          if (bytes.length === 0) continue;
          if (needsNewline) await output.write(Buffer.from(format.newline));
          needsNewline = false;
          await output.write(bytes);
          endsOpen = bytes[bytes.length - 1] !== NEWLINE;
        }
      } finally {
        await source.close();
      }
    }
  } catch (error) {
    if (!(error instanceof Aborted)) throw error;
  } finally {
    await rejects.write();
  }
}
