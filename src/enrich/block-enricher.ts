/** The library's enricher of messages, in all formats: one message in, one out, synchronously. */
import { type Database, openDatabase } from '../database/database.js';
import { AtlasError } from '../errors.js';
import { emptyCounts } from './counts.js';
import { checkBytes, type EnricherOptions, LineEnricher, parseEnricherOptions, type WithCounts } from './enricher.js';
import { documentEnricher } from './formats/json.js';
import {
  type EnrichOptions,
  FORMAT_NAMES,
  type FormatName,
  isDelimiter,
  kernelInput,
  TABLE_FORMATS,
} from './options.js';
import { OutputMemory } from './output-memory.js';
import { openForResults } from './range-file.js';

export interface BlockEnricherOptions extends EnricherOptions {
  /** The format of the messages; default `jsonl`. A message of `csv`, `tsv` or `json` is a whole table or document. */
  format?: FormatName;
  /** For `json`: the keys, with dots, that lead to the array inside the document; default: the document is the array. */
  items?: string;
  /** For `csv` and `tsv`: the character between two cells. */
  delimiter?: string;
  /** For `csv` and `tsv`: whether the first record is a header; if not, a field is the number of a column. Default: true. */
  header?: boolean;
}

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

const OTHER_OPTION_NAMES: readonly string[] = [
  'format',
  'items',
  'delimiter',
  'header',
] satisfies (keyof BlockEnricherOptions)[];

/** What the errors of a message call it. */
const MESSAGE_NAME = 'message';

function usageError(message: string): AtlasError {
  return new AtlasError('E_USAGE', message);
}

/** Share by which the memory for an output exceeds what the message before it suggests. */
const OUTPUT_MARGIN = 1.02;

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
    if (this.#inputLength > 0) this.#growth = output.length / this.#inputLength;
    // The caller may keep the output for long: it must not hold much more memory than it has bytes.
    if (2 * output.length >= memory.length) return output;
    const copy = Uint8Array.from(output);
    this.memory.give(memory);
    return copy;
  }
}

/**
 * Creates a function that enriches messages synchronously, for message brokers: one message in, one out.
 *
 * @param database an open database. Its release is opened again, so the database may be closed
 * @throws AtlasError E_USAGE for options that are not valid; E_NO_DATABASE or E_DAMAGED if the release was removed
 */
export function createBlockEnricher(database: Database, options: BlockEnricherOptions = {}): BlockEnricher {
  const { format = 'jsonl', items, delimiter, header = true } = options;
  if (!FORMAT_NAMES.includes(format)) {
    throw usageError(`the option format must be ${FORMAT_NAMES.join(', ')}, not ${JSON.stringify(format)}`);
  }
  if (items !== undefined && (typeof items !== 'string' || format !== 'json')) {
    throw usageError('the option items must be a string, for the format json');
  }
  if (typeof header !== 'boolean') throw usageError('the option header must be true or false');
  if ((delimiter !== undefined || !header) && !TABLE_FORMATS.includes(format)) {
    throw usageError(`the options delimiter and header are for ${TABLE_FORMATS.join(' and ')}`);
  }
  if (delimiter !== undefined && !isDelimiter(delimiter)) {
    throw usageError(`the option delimiter must be one ASCII character, not ${JSON.stringify(delimiter)}`);
  }
  const parsed = parseEnricherOptions(options, format, OTHER_OPTION_NAMES);
  const input = kernelInput(format, delimiter, header);
  const itemsPath = format === 'json' ? (items?.split('.') ?? []) : undefined;
  if (itemsPath?.includes('')) throw usageError(`the option items ${JSON.stringify(items)} has an empty key`);
  const { counts, enrichBlock } = createMessageEnricher(
    database,
    { ...parsed, input },
    { itemsPath, onReject: options.onReject },
  );
  return { counts, enrichBlock };
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

export interface MessageOptions {
  /** For JSON documents, and only for them: the keys that lead to the array. */
  itemsPath?: readonly string[] | undefined;
  /** Receives records that are not valid in the format. */
  onReject?: ((records: Uint8Array) => void) | undefined;
}

/** As {@link createBlockEnricher}, for options that were checked. */
export function createMessageEnricher(
  database: Database,
  options: EnrichOptions,
  { itemsPath, onReject }: MessageOptions = {},
): MessageEnricher {
  if (itemsPath === undefined) return createLinesEnricher(database, options, onReject);
  const counts = emptyCounts();
  const open = openDatabase(database.dir, { confidence: options.add.includes('confidence') });
  const context = { database: open, options, counts, reject: onReject ?? (() => {}) };
  const enrichDocument = documentEnricher(context, itemsPath);
  return {
    counts,
    enrichBlock(message) {
      checkBytes(message);
      counts.bytes += message.length;
      return enrichDocument(MESSAGE_NAME, message);
    },
    recycle() {},
  };
}

function createLinesEnricher(
  database: Database,
  options: EnrichOptions,
  onReject: ((records: Uint8Array) => void) | undefined,
): MessageEnricher {
  const collector = new Collector();
  const file = openForResults(database.dir, options.add);
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
