/** Writes the results of chunks, in order. */
import type { ChunkResult, ChunkRunner } from '../chunk-runner.js';
import type { EnrichCounts } from '../counts.js';
import type { ScheduledChunk, Scheduler } from '../schedule/scheduler.js';
import type { ByteSink, PlacedBytes } from './sink.js';

const NEWLINE = 10;

export interface ChunkWriterDependencies {
  runner: ChunkRunner;
  output: ByteSink;
  rejects: ByteSink | undefined;
  /** Its `bytes` is updated after each chunk. */
  counts: EnrichCounts;
  /** Called after each chunk. */
  onProgress: (() => void) | undefined;
  /** Writes into regular files in other threads. Receives the error of a write at once, because nothing may wait for that write. */
  scheduler: Scheduler;
}

/** Writes the records of several inputs to one sink. Adds the newline that an input lacks at its end if another one follows. */
class RecordWriter {
  readonly #sink: ByteSink;
  #input = 0;
  endsWithNewline = true;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /**
   * @param bytes of an input with a number; they must not change until the promise resolves, or until another thread has written
   *   them
   * @param newline the line ending of the records
   * @param writeElsewhere lets another thread write them, if their place in a file is known
   */
  async write(
    bytes: Uint8Array,
    input: number,
    newline: string,
    writeElsewhere?: (placed: PlacedBytes) => void,
  ): Promise<void> {
    if (bytes.length === 0) return;
    if (!this.endsWithNewline && input !== this.#input) await this.#sink.write(Buffer.from(newline));
    this.#input = input;
    this.endsWithNewline = bytes[bytes.length - 1] === NEWLINE;
    if (writeElsewhere !== undefined && this.#sink.place !== undefined) writeElsewhere(this.#sink.place(bytes));
    else await this.#sink.write(bytes);
  }
}

/** One write is in progress while the kernel works on the next chunk. */
export class ChunkWriter {
  readonly #dependencies: ChunkWriterDependencies;
  readonly #output: RecordWriter;
  readonly #rejects: RecordWriter | undefined;
  /** The write in progress. */
  #writing: Promise<void> = Promise.resolve();
  #input = 0;

  constructor(dependencies: ChunkWriterDependencies) {
    this.#dependencies = dependencies;
    this.#output = new RecordWriter(dependencies.output);
    this.#rejects = dependencies.rejects === undefined ? undefined : new RecordWriter(dependencies.rejects);
  }

  /**
   * Starts to write the results of a chunk, and releases the chunk after the last write.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, after writing everything before the invalid record; the errors
   *   of the sinks
   */
  async write(scheduled: ScheduledChunk): Promise<void> {
    const { runner } = this.#dependencies;
    const { chunk, input, name, reachedEnd } = scheduled;
    await this.#writing;
    if (input !== this.#input) runner.startResults(name);
    this.#input = input;
    for (const result of runner.results(chunk, reachedEnd)) {
      this.#startWriting(result.isLast ? this.#writeLast(result, scheduled) : this.#writeResult(result, input));
      // The next run of the kernel overwrites the output.
      if (!result.isLast) await this.#writing;
    }
  }

  /** Waits for the write in progress. Returns whether what was written ends with a newline. Throws the error of the write. */
  async end(): Promise<boolean> {
    await this.#writing;
    return this.#output.endsWithNewline;
  }

  #startWriting(writing: Promise<void>): void {
    this.#writing = writing;
    writing.catch((error) => this.#dependencies.scheduler.fail(error));
  }

  async #writeLast(result: ChunkResult, scheduled: ScheduledChunk): Promise<void> {
    const { counts, scheduler } = this.#dependencies;
    const onWritten = (): void => {
      counts.bytes = Math.max(counts.bytes, scheduled.bytesRead);
      this.#dependencies.onProgress?.();
      scheduled.release();
    };
    let isElsewhere = false;
    const writeElsewhere = (placed: PlacedBytes): void => {
      isElsewhere = true;
      scheduler.write(scheduled, placed, onWritten);
    };
    await this.#writeResult(result, scheduled.input, scheduler.canWrite(scheduled) ? writeElsewhere : undefined);
    if (!isElsewhere) onWritten();
  }

  async #writeResult(
    { output, rejects }: ChunkResult,
    input: number,
    writeElsewhere?: (placed: PlacedBytes) => void,
  ): Promise<void> {
    const { newline } = this.#dependencies.runner;
    // First, because the slot is free as soon as another thread has written the output.
    await this.#rejects?.write(rejects, input, newline);
    await this.#output.write(output, input, newline, writeElsewhere);
  }
}
