/** Writes the results of blocks, in order. */
import type { BlockResult, BlockRunner } from '../block-runner.js';
import type { EnrichCounts } from '../counts.js';
import type { ScheduledBlock } from '../schedule/scheduler.js';
import { RecordWriter } from './record-writer.js';
import type { ByteSink } from './sink.js';

export interface BlockWriterParts {
  runner: BlockRunner;
  output: ByteSink;
  rejects: ByteSink | undefined;
  /** Returns the line ending to add to an input that lacks its last one. */
  newline: () => string;
  /** Its `bytes` is updated after each block. */
  counts: EnrichCounts;
  /** Called after each block. */
  onProgress: (() => void) | undefined;
  /** Receives the error of a write at once, because nothing may wait for that write for a long time. */
  onError: (error: unknown) => void;
}

/** One write is in progress while the kernel works on the next block. */
export class BlockWriter {
  readonly #parts: BlockWriterParts;
  readonly #output: RecordWriter;
  readonly #rejects: RecordWriter | undefined;
  /** The write in progress. */
  #writing: Promise<void> = Promise.resolve();
  #input = 0;

  constructor(parts: BlockWriterParts) {
    this.#parts = parts;
    this.#output = new RecordWriter(parts.output);
    this.#rejects = parts.rejects === undefined ? undefined : new RecordWriter(parts.rejects);
  }

  /**
   * Starts to write the results of a block, and releases the block after the last write.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, after writing everything before the invalid line; the errors
   *   of the sinks
   */
  async write(scheduled: ScheduledBlock): Promise<void> {
    const { runner } = this.#parts;
    const { block, input, name, isDone } = scheduled;
    await this.#writing;
    if (input !== this.#input) runner.startInput(name);
    this.#input = input;
    for (const result of runner.results(block, isDone)) {
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

  async #writeLast(result: BlockResult, { input, bytesRead, release }: ScheduledBlock): Promise<void> {
    await this.#writeResult(result, input);
    this.#parts.counts.bytes = bytesRead;
    this.#parts.onProgress?.();
    release();
  }

  async #writeResult({ output, rejects }: BlockResult, input: number): Promise<void> {
    const newline = this.#parts.newline();
    await this.#output.write(output, input, newline);
    await this.#rejects?.write(rejects, input, newline);
  }
}
