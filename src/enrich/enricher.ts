/** Enrichment as a stream to build into other programs: bytes of JSON lines in, the same with the answers spliced in out. */
import { join } from 'node:path';
import { Transform, type TransformCallback } from 'node:stream';
import { TransformStream } from 'node:stream/web';
import type { Database } from '../database/database.js';
import { RANGE_FILE } from '../database/release.js';
import { AtlasError } from '../errors.js';
import { ENRICH_BLOCK_BYTES, MAX_LINE_BYTES } from '../limits.js';
import { openRangeFile, type RangeFile } from '../rangefile/reader.js';
import { type EnrichCounts, emptyCounts } from './counts.js';
import { type Block, LineBuffer } from './input/line-buffer.js';
import { Kernel, Slot } from './kernel/kernel.js';
import { layOut } from './kernel/layout.js';
import { type Addable, type EnrichOptions, type InvalidPolicy, parseAdd, parseFields } from './options.js';

export interface EnricherOptions {
  /** Where the address is: `ip`, `client.ip`, or `client.ip=name` to say where the answer goes. Default `ip`. */
  field?: string | readonly string[];
  /** What the answer holds, in this order; default `country`, `country_code`, `is_eu`. */
  add?: readonly Addable[];
  /** What happens to a line that is no JSON object; default `keep`: passed on byte for byte. */
  onInvalid?: InvalidPolicy;
  /** Called with such lines, whole ones with their newlines; one that is too long comes in parts. */
  onReject?: (lines: Uint8Array) => void;
}

/** What has been done so far; `bytes` is what came in. */
interface Counting {
  readonly counts: Readonly<EnrichCounts>;
}
/** A Node stream that enriches, with what it counted. */
export type Enricher = Transform & Counting;
/** A web stream that enriches, with what it counted. */
export type EnricherStream = TransformStream<Uint8Array, Uint8Array> & Counting;

/** For tests, which make blocks and lines small. */
export interface EnricherSizes {
  blockBytes?: number;
  maxLineBytes?: number;
}

/** Enriches chunk by chunk, at once and in this thread. */
export class LineEnricher {
  readonly counts = emptyCounts();
  readonly #options: EnrichOptions;
  readonly #maxLineBytes: number;
  readonly #kernel: Kernel;
  readonly #slot: Slot;
  readonly #buffer: LineBuffer;
  readonly #emit: (bytes: Uint8Array) => void;
  readonly #onReject: ((lines: Uint8Array) => void) | undefined;

  /** @param emit receives output, in memory that is its own */
  constructor(
    file: RangeFile,
    options: EnrichOptions,
    emit: (bytes: Uint8Array) => void,
    onReject?: (lines: Uint8Array) => void,
    sizes: EnricherSizes = {},
  ) {
    this.#options = options;
    this.#maxLineBytes = sizes.maxLineBytes ?? MAX_LINE_BYTES;
    const layout = layOut({
      file,
      options,
      threadCount: 1,
      slotCount: 1,
      blockBytes: Math.min(sizes.blockBytes ?? ENRICH_BLOCK_BYTES, this.#maxLineBytes),
      maxLineBytes: this.#maxLineBytes,
      keepsRejects: onReject !== undefined,
    });
    this.#kernel = new Kernel(layout);
    this.#slot = new Slot(layout, layout.slots[0]!);
    this.#buffer = new LineBuffer(this.#slot, new Slot(layout, layout.large), this.#maxLineBytes);
    this.#emit = emit;
    this.#onReject = onReject;
  }

  /**
   * Takes the next bytes. Lines that they complete are put out at once.
   *
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, at a line that is no JSON object
   */
  write(chunk: Uint8Array): void {
    this.counts.bytes += chunk.length;
    for (let from = 0; from < chunk.length; ) {
      const space = this.#buffer.space;
      const bytes = Math.min(space.length, chunk.length - from);
      space.set(chunk.subarray(from, from + bytes));
      from += bytes;
      this.#handle(this.#buffer.added(bytes));
    }
  }

  /** Puts out a last line that lacks its newline. Throws as `write` does. */
  end(): void {
    this.#handle(this.#buffer.ended());
  }

  #handle(block: Block | undefined): void {
    if (block === undefined) return;
    if (block.part === undefined) this.#handleLines(block);
    else this.#handlePart(block);
    if (block.slot === this.#slot) this.#buffer.takeUp(this.#slot);
  }

  #handleLines({ slot, length, skip }: Block): void {
    slot.begin(length, skip);
    for (;;) {
      const done = this.#kernel.run(slot.place);
      slot.addCountsTo(this.counts);
      this.#put(slot.output, slot.rejects);
      if (slot.refused) throw this.#invalidLine('is not a JSON object');
      if (done) return;
      slot.clear();
    }
  }

  #handlePart({ slot, length, part }: Block): void {
    if (part === 'first') {
      this.counts.lines++;
      this.counts.invalid_line++;
      if (this.#options.onInvalid === 'fail') throw this.#invalidLine(`is longer than ${this.#maxLineBytes} bytes`);
    }
    const bytes = slot.input.subarray(0, length);
    this.#put(this.#options.onInvalid === 'keep' ? bytes : bytes.subarray(0, 0), bytes);
  }

  /** Hands on what lies in the kernel's memory, as copies. */
  #put(output: Uint8Array, rejects: Uint8Array): void {
    if (output.length > 0) this.#emit(Uint8Array.from(output));
    if (rejects.length > 0) this.#onReject?.(Uint8Array.from(rejects));
  }

  #invalidLine(what: string): AtlasError {
    return new AtlasError(
      'E_BAD_INPUT',
      `line ${this.counts.lines} ${what}; mend it, or choose the policy keep or drop for such lines`,
    );
  }
}

function openEnricher(database: Database, options: EnricherOptions, emit: (bytes: Uint8Array) => void): LineEnricher {
  const { field, add, onInvalid = 'keep', onReject } = options;
  const fields = parseFields(typeof field === 'string' ? [field] : (field ?? []));
  const file = openRangeFile(join(database.dir, RANGE_FILE));
  return new LineEnricher(file, { fields, add: parseAdd(add?.join(',')), onInvalid }, emit, onReject);
}

/**
 * A Node stream that enriches JSON lines, for pipelines: `input.pipe(createEnricher(database)).pipe(output)`. Bytes go in
 * and come out, in chunks of any size.
 *
 * @param database open; its release is read once more, so that closing it does not matter
 * @throws AtlasError E_USAGE for options that are not understood; E_NO_DATABASE, E_DAMAGED where the release has gone. The
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
  const enricher = openEnricher(database, options, (bytes) => stream.push(bytes));
  return Object.assign(stream, { counts: enricher.counts });
}

/**
 * As {@link createEnricher}, as a web stream: `body.pipeThrough(createEnricherStream(database))`.
 *
 * @throws as createEnricher does. The stream fails with a TypeError where a chunk is no Uint8Array
 */
export function createEnricherStream(database: Database, options: EnricherOptions = {}): EnricherStream {
  let enqueue: (bytes: Uint8Array) => void = () => {};
  const enricher = openEnricher(database, options, (bytes) => enqueue(bytes));
  const stream = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) => {
      enqueue = (bytes) => controller.enqueue(bytes);
    },
    transform: (chunk) => {
      // What comes here need not be what the types say: bodies and files of other libraries.
      if (Object.prototype.toString.call(chunk) !== '[object Uint8Array]')
        throw new TypeError('a chunk is no Uint8Array');
      enricher.write(chunk);
    },
    flush: () => enricher.end(),
  });
  return Object.assign(stream, { counts: enricher.counts });
}
