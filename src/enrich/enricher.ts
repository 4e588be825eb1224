/** The library's enrichers of JSON lines: a Node stream and a web stream. Those of messages are in block-enricher.ts. */

import { Transform, type TransformCallback } from 'node:stream';
import type { Database } from '../database/database.js';
import { misuse } from '../errors.js';
import { ENRICH_CHUNK_BYTES } from '../limits.js';
import { ChunkRunner } from './chunk-runner.js';
import { type EnrichCounts, emptyCounts } from './counts.js';
import { JsonDocument } from './formats/document.js';
import type { Chunk, ChunkBuffer } from './input/chunk-buffer.js';
import { Slot } from './kernel/kernel.js';
import { layOut } from './kernel/layout.js';
import { kernelModule } from './kernel/module.js';
import { type EnrichOptions, maxRecordBytes, parseEnrichOptions, type RequestedOptions } from './options.js';
import { rangesOfDatabase } from './range-file.js';
import type { EnrichRanges } from './ranges.js';

/** What can be asked of a stream. */
const REQUESTED = [
  ...(['field', 'add', 'schema', 'lenient', 'pick', 'onInvalid'] as const),
  ...(['at', 'atField', 'atMissing', 'redact', 'redactKey', 'redactAll'] as const),
] as const;

export interface EnricherOptions extends Pick<RequestedOptions, (typeof REQUESTED)[number]> {
  /** Receives such records, each with its newline. One that is too long arrives in pieces. */
  onReject?: ((lines: Uint8Array) => void) | undefined;
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
  chunkBytes?: number;
  maxLineBytes?: number;
}

/** The name of a message in errors, except for lines, whose numbers say enough. */
const MESSAGE_NAME = 'message';

/** Enriches the bytes that it is given, synchronously and in this thread. */
export class LineEnricher {
  readonly counts: EnrichCounts;
  readonly #runner: ChunkRunner;
  readonly #slot: Slot;
  readonly #buffer: ChunkBuffer;
  readonly #name: string | undefined;
  readonly #emit: (bytes: Uint8Array) => void;
  readonly #onReject: ((lines: Uint8Array) => void) | undefined;

  /** @param emit receives output, valid until it returns: the kernel reuses its memory */
  constructor(
    file: EnrichRanges,
    options: EnrichOptions,
    emit: (bytes: Uint8Array) => void,
    onReject?: (lines: Uint8Array) => void,
    sizes: EnricherSizes = {},
  ) {
    this.counts = emptyCounts(options.redaction !== undefined);
    const maxLineBytes = sizes.maxLineBytes ?? maxRecordBytes(options);
    const layout = layOut({
      file,
      options,
      threadCount: 1,
      slotCount: 1,
      chunkBytes: Math.min(sizes.chunkBytes ?? ENRICH_CHUNK_BYTES, maxLineBytes),
      maxLineBytes,
      keepsRejects: onReject !== undefined,
    });
    this.#runner = new ChunkRunner({
      layout,
      module: kernelModule(layout),
      options,
      maxRecordBytes: maxLineBytes,
      counts: this.counts,
      documents: JsonDocument,
    });
    this.#slot = new Slot(layout, layout.slots[0]!);
    this.#buffer = this.#runner.createBuffer(this.#slot);
    const kind = options.input?.kind;
    this.#name = kind === 'table' || kind === 'json' ? MESSAGE_NAME : undefined;
    this.#emit = emit;
    this.#onReject = onReject;
    this.reset();
  }

  /** Starts another input: forgets an incomplete record, and restarts the line numbers. A table has its own header. */
  reset(): void {
    this.#buffer.start(MESSAGE_NAME);
    this.#runner.forgetHeader();
    this.#runner.startReading(MESSAGE_NAME);
    this.#runner.startResults(this.#name);
  }

  /**
   * Adds bytes. Emits the records that they complete.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, at a record that is not valid in the format, and for a table or
   *   document that cannot be read
   */
  write(bytes: Uint8Array): void {
    this.counts.bytes += bytes.length;
    this.#buffer.addAll(bytes, (chunk) => this.#process(chunk));
  }

  /** Ends the input: emits a last line that lacks its newline. Throws as `write` does. */
  end(): void {
    this.#process(this.#buffer.end());
  }

  #process(first: Chunk | undefined): void {
    for (let chunk = first; chunk !== undefined; chunk = this.#buffer.next()) this.#processChunk(chunk);
  }

  #processChunk(chunk: Chunk): void {
    const reachedEnd = !this.#runner.prepare(chunk) || this.#runner.run(chunk);
    for (const { output, rejects } of this.#runner.results(chunk, reachedEnd)) {
      if (output.length > 0) this.#emit(output);
      // A copy, because the kernel reuses its memory.
      if (rejects.length > 0) this.#onReject?.(Uint8Array.from(rejects));
    }
    if (this.#buffer.needsSlot(chunk)) this.#buffer.useSlot(this.#slot);
  }
}

/**
 * Checks the options of a caller that may not use TypeScript.
 *
 * @param otherNames options besides those of a stream
 * @throws AtlasError E_USAGE for an unknown option or a value that is not allowed
 */
export function parseEnricherOptions(
  options: EnricherOptions & RequestedOptions,
  otherNames: readonly string[] = [],
): EnrichOptions {
  const names: readonly string[] = [...REQUESTED, 'onReject', ...otherNames];
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw misuse(`there is no option ${JSON.stringify(unknown)}; the options are ${names.join(', ')}`);
  }
  if (options.onReject !== undefined && typeof options.onReject !== 'function') {
    throw misuse('the option onReject must be a function');
  }
  return parseEnrichOptions(options, (name) => `the option ${name}`);
}

function openEnricher(database: Database, options: EnricherOptions, emit: (bytes: Uint8Array) => void): LineEnricher {
  const parsed = parseEnricherOptions(options);
  return new LineEnricher(rangesOfDatabase(database, parsed), parsed, emit, options.onReject);
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
