/** Writes the results of chunks, in order. */
import type { ChunkResult, ChunkRunner } from '../chunk-runner.js';
import type { EnrichCounts } from '../counts.js';
import type { ScheduledChunk } from '../schedule/scheduler.js';
import type { ByteSink } from './sink.js';

const NEWLINE = 10;

export interface ChunkWriterParts {
  runner: ChunkRunner;
  output: ByteSink;
  rejects: ByteSink | undefined;
  /** Its `bytes` is updated after each chunk. */
  counts: EnrichCounts;
  /** Called after each chunk. */
  onProgress: (() => void) | undefined;
  /** Receives the error of a write at once, because nothing may wait for that write for a long time. */
  onError: (error: unknown) => void;
}

/** Writes the records of several inputs to one sink. Adds the newline that an input lacks at its end if another one follows. */
class RecordWriter {
  readonly #sink: ByteSink;
  #input = 0;
  #endsWithNewline = true;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /** `bytes`, of an input with a number, must not change until the promise resolves; `newline` is the line ending of the records. */
  async write(bytes: Uint8Array, input: number, newline: string): Promise<void> {
    if (bytes.length === 0) return;
    if (!this.#endsWithNewline && input !== this.#input) await this.#sink.write(Buffer.from(newline));
    this.#input = input;
    this.#endsWithNewline = bytes[bytes.length - 1] === NEWLINE;
    await this.#sink.write(bytes);
  }
}

/** One write is in progress while the kernel works on the next chunk. */
export class ChunkWriter {
  readonly #parts: ChunkWriterParts;
  readonly #output: RecordWriter;
  readonly #rejects: RecordWriter | undefined;
  /** The write in progress. */
  #writing: Promise<void> = Promise.resolve();
  #input = 0;

  constructor(parts: ChunkWriterParts) {
    this.#parts = parts;
    this.#output = new RecordWriter(parts.output);
    this.#rejects = parts.rejects === undefined ? undefined : new RecordWriter(parts.rejects);
  }

  /**
   * Starts to write the results of a chunk, and releases the chunk after the last write.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, after writing everything before the invalid record; the errors
   *   of the sinks
   */
  async write(scheduled: ScheduledChunk): Promise<void> {
    const { runner } = this.#parts;
    const { chunk, input, name, isDone } = scheduled;
    await this.#writing;
    if (input !== this.#input) runner.startResults(name);
    this.#input = input;
    for (const result of runner.results(chunk, isDone)) {
      this.#startWriting(result.isLast ? this.#writeLast(result, scheduled) : this.#writeResult(result, input));
      // The next run of the kernel overwrites the output.
      if (!result.isLast) await this.#writing;
    }
  }

  /** Waits for the write in progress. Throws its error. */
  async end(): Promise<void> {
    await this.#writing;
  }

  #startWriting(writing: Promise<void>): void {
    this.#writing = writing;
    writing.catch(this.#parts.onError);
  }

  async #writeLast(result: ChunkResult, { input, bytesRead, release }: ScheduledChunk): Promise<void> {
    await this.#writeResult(result, input);
    this.#parts.counts.bytes = bytesRead;
    this.#parts.onProgress?.();
    release();
  }

  async #writeResult({ output, rejects }: ChunkResult, input: number): Promise<void> {
    const { newline } = this.#parts.runner;
    await this.#output.write(output, input, newline);
    await this.#rejects?.write(rejects, input, newline);
  }
}
