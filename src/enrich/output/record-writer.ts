/** Writes the records of several inputs to one output. */
import type { ByteSink } from './sink.js';

const NEWLINE = 10;

/** Adds the newline that an input lacks at its end if records of another input follow. */
export class RecordWriter {
  readonly #sink: ByteSink;
  #input = 0;
  #endsWithNewline = true;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  /**
   * @param bytes must not change until the promise resolves
   * @param input number of the input that they belong to
   * @param newline line ending of the records
   * @throws the sink's errors
   */
  async write(bytes: Uint8Array, input: number, newline = '\n'): Promise<void> {
    if (bytes.length === 0) return;
    if (!this.#endsWithNewline && input !== this.#input) await this.#sink.write(Buffer.from(newline));
    this.#input = input;
    this.#endsWithNewline = bytes[bytes.length - 1] === NEWLINE;
    await this.#sink.write(bytes);
  }
}
