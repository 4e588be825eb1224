/** The library's enricher of messages, in all formats: one message in, one out, synchronously. */
import type { Database } from '../database/database.js';
import { checkBytes, type EnricherOptions, LineEnricher, parseEnricherOptions, type WithCounts } from './enricher.js';
import type { EnrichOptions, RequestedOptions } from './options.js';
import { OutputMemory } from './output-memory.js';
import { rangesOfDatabase } from './range-file.js';

/** The options that streams do not have. */
const OTHER_NAMES = ['format', 'log', 'items', 'delimiter', 'header'] as const;

/** A message of `csv`, `tsv` or `json` is a whole table or document. */
export interface BlockEnricherOptions extends EnricherOptions, Pick<RequestedOptions, (typeof OTHER_NAMES)[number]> {}

/** Enriches messages. */
export interface BlockEnricher extends WithCounts {
  /**
   * Enriches a message. The line numbers of errors start again with each message.
   *
   * @param message its last line may lack its newline; then so does the last one of the result
   * @returns the enriched message, in memory of its own
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, at a record that is not valid in the format, and for a table or
   *   document that cannot be read. TypeError if the message is not a Uint8Array
   */
  enrichBlock(message: Uint8Array): Uint8Array;
}

/** Share by which the memory for an output exceeds what the message before it suggests. */
const OUTPUT_MARGIN = 1.02;
/** Most bytes of output that are expected for a byte of input: a short message may have grown far more. */
const MAX_GROWTH = 4;

/**
 * Collects the output of a message in memory of its own. Its size is estimated from the message before, so that the output
 * is copied once.
 */
class Collector {
  readonly memory = new OutputMemory();
  #output: Buffer = Buffer.alloc(0);
  #length = 0;
  #inputLength = 0;
  /** Bytes of output for a byte of input. */
  #growth = 1;

  start(inputLength: number): void {
    this.#inputLength = inputLength;
    this.#length = 0;
    this.#output = this.memory.take(Math.ceil(inputLength * this.#growth * OUTPUT_MARGIN));
  }

  add(bytes: Uint8Array): void {
    const length = this.#length + bytes.length;
    if (length > this.#output.length) {
      const smaller = this.#output;
      this.#output = this.memory.take(Math.max(length, Math.ceil(1.25 * smaller.length)));
      this.#output.set(smaller.subarray(0, this.#length));
      this.memory.give(smaller);
    }
    this.#output.set(bytes, this.#length);
    this.#length = length;
  }

  finish(): Uint8Array {
    const memory = this.#output;
    const output = memory.subarray(0, this.#length);
    this.#output = Buffer.alloc(0);
    if (this.#inputLength > 0) this.#growth = Math.min(output.length / this.#inputLength, MAX_GROWTH);
    // The caller may keep the output for long: it must not hold much more memory than it has bytes.
    if (2 * output.length >= memory.length) return output;
    const copy = Uint8Array.from(output);
    this.memory.give(memory);
    return copy;
  }
}

/** A {@link BlockEnricher} that can use the memory of an output again. */
export interface MessageEnricher extends BlockEnricher {
  /**
   * Gives the memory of an output back, for the outputs of later messages.
   *
   * @param output what `enrichBlock` returned, once; nothing may refer to it any more
   */
  recycle(output: Uint8Array): void;
}

/**
 * Creates a function that enriches messages synchronously, for message brokers: one message in, one out.
 *
 * @param database an open database. It may be closed
 * @throws AtlasError E_USAGE for options that are not valid; E_NO_DATABASE or E_DAMAGED if the release was removed
 */
export function createBlockEnricher(database: Database, options: BlockEnricherOptions = {}): BlockEnricher {
  const parsed = parseEnricherOptions(options, OTHER_NAMES);
  const { counts, enrichBlock } = createMessageEnricher(database, parsed, options.onReject);
  return { counts, enrichBlock };
}

/** As {@link createBlockEnricher}, for options that were checked. `onReject` receives records that are not valid in the format. */
export function createMessageEnricher(
  database: Database,
  options: EnrichOptions,
  onReject?: (records: Uint8Array) => void,
): MessageEnricher {
  const collector = new Collector();
  const file = rangesOfDatabase(database, options);
  const enricher = new LineEnricher(file, options, (bytes) => collector.add(bytes), onReject);
  return {
    counts: enricher.counts,
    enrichBlock(message) {
      checkBytes(message);
      // A message before this one may have failed in the middle.
      collector.start(message.length);
      enricher.reset();
      enricher.write(message);
      enricher.end();
      return collector.finish();
    },
    recycle: (output) => collector.memory.give(output),
  };
}
