/** The library's enrichers of JSON lines: a Node stream and a web stream. Those of messages are in block-enricher.ts. */

import { Transform, type TransformCallback } from 'node:stream';
import type { Database } from '../database/database.js';
import { AtlasError } from '../errors.js';
import { ENRICH_BLOCK_BYTES } from '../limits.js';
import type { RangeFile } from '../rangefile/reader.js';
import { BlockRunner } from './block-runner.js';
import { type EnrichCounts, emptyCounts } from './counts.js';
import type { Table } from './formats/table.js';
import { createBlockBuffer, createTable, maxRecordBytes } from './input/block-buffer.js';
import type { Block, BlockBuffer } from './input/line-buffer.js';
import { Kernel, Slot } from './kernel/kernel.js';
import { type KernelLayout, layOut } from './kernel/layout.js';
import {
  type Addable,
  checkAdd,
  type EnrichOptions,
  type FormatName,
  INVALID_POLICIES,
  type InvalidPolicy,
  parseFields,
} from './options.js';
import { openForResults } from './range-file.js';

export interface EnricherOptions {
  /**
   * Where the address is: `ip`, `client.ip`, `hops[0]`, `hops[]` (the first element with a country), or `client.ip=geo` or
   * `client.ip=client.geo` to say where the result goes. Default `ip`.
   */
  field?: string | readonly string[];
  /** The members of the result, in this order; default `country`, `country_code`, `is_eu`. */
  add?: readonly Addable[];
  /** Also finds addresses with a port, brackets or a prefix length, and the first one in a list. Default: false. */
  lenient?: boolean;
  /** What happens to a line that is not a JSON object; default `keep`: it is passed on byte for byte. */
  onInvalid?: InvalidPolicy;
  /** Receives such lines, each with its newline. A line that is too long arrives in parts. */
  onReject?: (lines: Uint8Array) => void;
}

export interface WithCounts {
  /** What has been processed so far; `bytes` is the size of the input. */
  readonly counts: Readonly<EnrichCounts>;
}
/** A Node stream that enriches. */
export type Enricher = Transform & WithCounts;
/** A web stream that enriches. */
export type EnricherStream = TransformStream<Uint8Array, Uint8Array> & WithCounts;
/** Sizes in bytes that tests make small. */
export interface EnricherSizes {
  blockBytes?: number;
  maxLineBytes?: number;
}

/** The name of a table in messages of errors. */
const TABLE_NAME = 'message';

/** Enriches chunk by chunk, synchronously and in this thread. */
export class LineEnricher {
  readonly counts = emptyCounts();
  readonly #options: EnrichOptions;
  readonly #maxLineBytes: number;
  readonly #layout: KernelLayout;
  readonly #kernel: Kernel;
  readonly #table: Table | undefined;
  readonly #runner: BlockRunner;
  readonly #slot: Slot;
  readonly #emit: (bytes: Uint8Array) => void;
  readonly #onReject: ((lines: Uint8Array) => void) | undefined;
  #buffer: BlockBuffer;

  /** @param emit receives output, valid until it returns: the kernel reuses its memory */
  constructor(
    file: RangeFile,
    options: EnrichOptions,
    emit: (bytes: Uint8Array) => void,
    onReject?: (lines: Uint8Array) => void,
    sizes: EnricherSizes = {},
  ) {
    this.#options = options;
    this.#maxLineBytes = sizes.maxLineBytes ?? maxRecordBytes(options);
    this.#layout = layOut({
      file,
      options,
      threadCount: 1,
      slotCount: 1,
      blockBytes: Math.min(sizes.blockBytes ?? ENRICH_BLOCK_BYTES, this.#maxLineBytes),
      maxLineBytes: this.#maxLineBytes,
      keepsRejects: onReject !== undefined,
    });
    this.#kernel = new Kernel(this.#layout);
    this.#table = createTable(this.#layout, options, this.counts);
    this.#runner = new BlockRunner(this.#kernel, {
      table: this.#table,
      onInvalid: options.onInvalid,
      maxLineBytes: this.#maxLineBytes,
      counts: this.counts,
    });
    this.#slot = new Slot(this.#layout, this.#layout.slots[0]!);
    this.#buffer = this.#newBuffer();
    this.#emit = emit;
    this.#onReject = onReject;
  }

  /** Starts another input: forgets an incomplete line, and restarts the line numbers. A table has its own header. */
  reset(): void {
    this.#buffer = this.#newBuffer();
    this.#table?.restart(TABLE_NAME);
    this.#runner.startInput(this.#table && TABLE_NAME);
  }

  /**
   * Adds bytes. Emits the lines that they complete.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, at a line that is not a JSON object
   */
  write(chunk: Uint8Array): void {
    this.counts.bytes += chunk.length;
    for (let from = 0; from < chunk.length; ) {
      const space = this.#buffer.space;
      const bytes = Math.min(space.length, chunk.length - from);
      space.set(chunk.subarray(from, from + bytes));
      from += bytes;
      this.#process(this.#buffer.add(bytes));
    }
  }

  /** Emits a last line that lacks its newline. Throws as `write` does. */
  end(): void {
    this.#process(this.#buffer.end());
  }

  #newBuffer(): BlockBuffer {
    const large = new Slot(this.#layout, this.#layout.large);
    return createBlockBuffer(this.#kernel, this.#options, this.#slot, large, this.#maxLineBytes);
  }

  #process(first: Block | undefined): void {
    for (let block = first; block !== undefined; block = this.#buffer.next()) this.#processBlock(block);
  }

  #processBlock(block: Block): void {
    this.#table?.prepare(block);
    const isDone = !this.#runner.prepare(block) || this.#runner.run(block);
    for (const { output, rejects } of this.#runner.results(block, isDone)) {
      if (output.length > 0) this.#emit(output);
      // A copy, because the kernel reuses its memory.
      if (rejects.length > 0) this.#onReject?.(Uint8Array.from(rejects));
    }
    if (block.slot === this.#slot) this.#buffer.useSlot(this.#slot);
  }
}

function usageError(message: string): AtlasError {
  return new AtlasError('E_USAGE', message);
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((element) => typeof element === 'string');
}

const OPTION_NAMES: readonly string[] = [
  'field',
  'add',
  'lenient',
  'onInvalid',
  'onReject',
] satisfies (keyof EnricherOptions)[];

/**
 * Checks the options of a caller that may not use TypeScript.
 *
 * @param format of the input, which says what a field is
 * @param otherNames options that the caller checks
 * @throws AtlasError E_USAGE for an unknown option or a value that is not allowed
 */
export function parseEnricherOptions(
  options: EnricherOptions,
  format: FormatName = 'jsonl',
  otherNames: readonly string[] = [],
): EnrichOptions {
  const names = [...OPTION_NAMES, ...otherNames];
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw usageError(`there is no option ${JSON.stringify(unknown)}; the options are ${names.join(', ')}`);
  }
  const { field = [], add, lenient = false, onInvalid = 'keep', onReject } = options;
  const fields = typeof field === 'string' ? [field] : field;
  if (!isStringArray(fields)) throw usageError('the option field must be a string or an array of strings');
  if (add !== undefined && !isStringArray(add)) throw usageError('the option add must be an array of strings');
  if (typeof lenient !== 'boolean') throw usageError('the option lenient must be true or false');
  if (!INVALID_POLICIES.includes(onInvalid)) {
    throw usageError(`the option onInvalid must be ${INVALID_POLICIES.join(', ')}, not ${JSON.stringify(onInvalid)}`);
  }
  if (onReject !== undefined && typeof onReject !== 'function') {
    throw usageError('the option onReject must be a function');
  }
  return { fields: parseFields(fields, format), add: checkAdd(add), onInvalid, lenient };
}

function openEnricher(database: Database, options: EnricherOptions, emit: (bytes: Uint8Array) => void): LineEnricher {
  const parsed = parseEnricherOptions(options);
  const file = openForResults(database.dir, parsed.add);
  return new LineEnricher(file, parsed, emit, options.onReject);
}

/** Checks a chunk of a caller that may not use TypeScript. Uint8Arrays of other realms are accepted. */
export function checkBytes(chunk: Uint8Array): void {
  if (Object.prototype.toString.call(chunk) !== '[object Uint8Array]') {
    throw new TypeError('a chunk is not a Uint8Array');
  }
}

/**
 * Creates a Node stream that enriches JSON lines: `input.pipe(createEnricher(database)).pipe(output)`. It takes and returns
 * bytes in chunks of any size.
 *
 * @param database an open database. Its release is opened again, so the database may be closed
 * @throws AtlasError E_USAGE for options that are not valid; E_NO_DATABASE or E_DAMAGED if the release was removed. The
 *   stream fails with E_BAD_INPUT under the policy `fail`
 */
export function createEnricher(database: Database, options: EnricherOptions = {}): Enricher {
  const attempt = (work: () => void, done: TransformCallback): void => {
    try {
      work();
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
  const stream = new Transform({
    transform: (chunk: Uint8Array, _, done) => attempt(() => enricher.write(chunk), done),
    flush: (done) => attempt(() => enricher.end(), done),
  });
  const enricher = openEnricher(database, options, (bytes) => stream.push(Uint8Array.from(bytes)));
  return Object.assign(stream, { counts: enricher.counts });
}

/**
 * Creates a web stream that enriches JSON lines: `body.pipeThrough(createEnricherStream(database))`.
 *
 * @throws as {@link createEnricher} does. The stream fails with a TypeError if a chunk is not a Uint8Array
 */
export function createEnricherStream(database: Database, options: EnricherOptions = {}): EnricherStream {
  let enqueue: (bytes: Uint8Array) => void = () => {};
  const enricher = openEnricher(database, options, (bytes) => enqueue(Uint8Array.from(bytes)));
  const stream = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) => {
      enqueue = (bytes) => controller.enqueue(bytes);
    },
    transform: (chunk) => {
      checkBytes(chunk);
      enricher.write(chunk);
    },
    flush: () => enricher.end(),
  });
  return Object.assign(stream, { counts: enricher.counts });
}
