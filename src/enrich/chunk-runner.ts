/** The loop around the kernel that the enrichers of the library and the line engine share. */
import { AtlasError } from '../errors.js';
import type { UnreadColumns } from '../rangefile/reader.js';
import type { EnrichCounts } from './counts.js';
import { DirectiveSplitter, DirectiveTable } from './formats/directives.js';
import type { JsonDocument } from './formats/document.js';
import { Table } from './formats/table.js';
import {
  type Chunk,
  ChunkBuffer,
  LineSplitter,
  ObjectSplitter,
  type Passage,
  RecordSplitter,
  type Splitter,
} from './input/chunk-buffer.js';
import { LOCATED_BYTES, LOCATED_FLAGS, LOCATED_IS_INVALID, LOCATED_RECORD, OBJECT_MISSING } from './kernel/abi.js';
import { Kernel, Slot } from './kernel/kernel.js';
import { type KernelLayout, setTableShape } from './kernel/layout.js';
import type { EnrichOptions, InvalidPolicy, KernelInput } from './options.js';

/** One part of the result of a chunk. The bytes are in the kernel's memory, and valid until the next part is requested. */
export interface ChunkResult {
  output: Uint8Array;
  /** Records that are not valid in the format. */
  rejects: Uint8Array;
  /** Whether the chunk has no further part. */
  isLast: boolean;
}

export interface ChunkRunnerOptions {
  layout: KernelLayout;
  /** The kernel, see kernel/module.ts. */
  module: WebAssembly.Module;
  options: EnrichOptions;
  /** Longest record in bytes. */
  maxRecordBytes: number;
  /** Updated with each result, except for `bytes`. */
  counts: EnrichCounts;
  /** The class that reads JSON documents. It is loaded for them only, because its library takes a while. */
  documents?: typeof JsonDocument | undefined;
  /** The columns that were not read when the memory was laid out. */
  unread?: UnreadColumns | undefined;
}

const NO_BYTES = new Uint8Array(0);

/** Joins results, whose bytes are copied, as far as they have a number of bytes. Those before an error are yielded first. */
function* joined(results: Iterable<ChunkResult>, bytes: number): Generator<ChunkResult, void, undefined> {
  let outputs: Uint8Array[] = [];
  let rejects: Uint8Array[] = [];
  let length = 0;
  const take = (isLast: boolean): ChunkResult => {
    const result = { output: Buffer.concat(outputs), rejects: Buffer.concat(rejects), isLast };
    outputs = [];
    rejects = [];
    length = 0;
    return result;
  };
  try {
    for (const result of results) {
      if (result.output.length > 0) outputs.push(Uint8Array.from(result.output));
      if (result.rejects.length > 0) rejects.push(Uint8Array.from(result.rejects));
      length += result.output.length + result.rejects.length;
      if (length > bytes) yield take(false);
    }
  } catch (error) {
    yield take(false);
    throw error;
  }
  yield take(true);
}

/** Returns the entry of a record that is not valid among those of located addresses. @param start its address in the memory */
function locatedPassage(start: number): Uint8Array {
  const entry = new DataView(new ArrayBuffer(LOCATED_BYTES));
  entry.setUint32(LOCATED_RECORD, start, true);
  entry.setUint8(LOCATED_FLAGS, LOCATED_IS_INVALID);
  return new Uint8Array(entry.buffer);
}

export class ChunkRunner {
  readonly #kernel: Kernel;
  readonly #layout: KernelLayout;
  readonly #input: KernelInput;
  readonly #maxRecordBytes: number;
  readonly #onInvalid: InvalidPolicy;
  readonly #counts: EnrichCounts;
  readonly #table: Table | DirectiveTable | undefined;
  readonly #document: JsonDocument | undefined;
  readonly #splitter: Splitter;
  /** Whether the results are the places of addresses. */
  readonly #locates: boolean;
  /** Whether the output is addresses. */
  readonly #extracts: boolean;
  /** What is wrong with a record that has another value than an object where results go. */
  readonly #noObject: string;
  /** The name of the input in error messages, and the prefix with it. */
  #name = 'the input';
  #prefix = '';
  /** Lines of the current input in the results so far; for a table, newlines, and only under the policy `fail`. */
  #lines = 0;

  constructor({ layout, module, options, maxRecordBytes, counts, documents, unread }: ChunkRunnerOptions) {
    const { input = { kind: 'jsonl' }, onInvalid } = options;
    this.#kernel = new Kernel(layout, module, 0, unread);
    this.#layout = layout;
    this.#maxRecordBytes = maxRecordBytes;
    this.#onInvalid = onInvalid;
    this.#counts = counts;
    const roots = options.fields.map(({ name }) => JSON.stringify(name)).join(' or ');
    this.#noObject = `has another value than an object at ${roots}, where the results go`;
    this.#input = input;
    this.#locates = options.locates === true;
    this.#extracts = options.extracts !== undefined;
    if (input.kind === 'table') {
      if (input.directives === undefined) {
        this.#table = new Table(input, options, counts, (shape) => setTableShape(layout, input, shape));
        this.#splitter = new RecordSplitter(this.#kernel);
      } else {
        this.#table = new DirectiveTable(input, options);
        this.#splitter = input.directives === 'columns' ? new LineSplitter() : new DirectiveSplitter();
      }
    } else if (input.kind === 'json') {
      this.#document = new documents!(this.#kernel, input.itemsPath, onInvalid);
      this.#splitter = this.#document;
    } else if (input.kind === 'json-seq') {
      this.#splitter = new ObjectSplitter(this.#kernel);
    } else {
      this.#splitter = new LineSplitter();
    }
  }

  /** Whether each line is a record of its own: this thread need not see the lines before the kernel does. */
  get hasIndependentLines(): boolean {
    return this.#table === undefined && this.#splitter instanceof LineSplitter;
  }

  /** The line ending to add to an input that lacks its last one if another input follows. */
  get newline(): string {
    return this.#table?.newline ?? '\n';
  }

  /** Creates the buffer that assembles chunks. `slot` is the first one. */
  createBuffer(slot: Slot): ChunkBuffer {
    const large = new Slot(this.#layout, this.#layout.large);
    return new ChunkBuffer(this.#splitter, slot, large, this.#maxRecordBytes);
  }

  /** Must be called before other threads run the kernel; see {@link Kernel.makeTables6}. */
  makeAllTables(): void {
    this.#kernel.makeTables6();
  }

  /** Forgets the header of a table: the next input has a header of its own. */
  forgetHeader(): void {
    this.#table?.restart();
  }

  /** Must be called before the first chunk of each input is prepared. */
  startReading(name: string): void {
    this.#table?.startInput(name);
  }

  /**
   * Must be called before the first results of each input; restarts the line numbers of error messages.
   *
   * @param name put before the line number, if given
   */
  startResults(name?: string): void {
    if (name !== undefined) this.#name = name;
    this.#prefix = name === undefined ? '' : `${name}: `;
    this.#lines = 0;
    this.#document?.startResults(this.#name);
  }

  /** Returns whether all chunks so far must be processed before another one is prepared. */
  get mustWait(): boolean {
    return this.#table?.isUnsettled === true;
  }

  /**
   * Prepares a chunk for the kernel, in the order of reading. Returns whether there is work for any thread; otherwise all of it is done
   * by `results`.
   *
   * @throws AtlasError as {@link Table.prepare} does
   */
  prepare(chunk: Chunk): boolean {
    this.#table?.prepare(chunk);
    chunk.slot.begin(chunk.length);
    return this.isPlain(chunk);
  }

  /** Returns whether any thread may run the kernel over a chunk: all are records, and nothing after them is changed meanwhile. */
  isPlain({ passages }: Chunk): boolean {
    return passages.length === 0 && this.#input.kind !== 'json-seq';
  }

  /** Runs the kernel once over a prepared chunk. Returns whether it processed all records. */
  run({ slot }: Chunk): boolean {
    return this.#kernel.run(slot.place);
  }

  /**
   * Yields the results of a chunk.
   *
   * @param reachedEnd what the first run returned, if there was one
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, after yielding everything before the invalid record
   */
  *results(chunk: Chunk, reachedEnd: boolean): Generator<ChunkResult, void, undefined> {
    const before = this.#lines;
    if (this.isPlain(chunk)) yield* this.#recordResults(chunk, reachedEnd, before);
    else yield* joined(this.#mixedResults(chunk, before), chunk.slot.place.outputBytes);
    // Records of a table may have several lines. Their number is needed for the error only.
    if (this.#table !== undefined && this.#onInvalid === 'fail') {
      this.#lines = before + this.#kernel.countNewlines(chunk.slot.place, chunk.length);
    }
  }

  /** Yields the results of passages, and of the records between them. */
  *#mixedResults(chunk: Chunk, linesBefore: number): Generator<ChunkResult, void, undefined> {
    const { slot, passages, length } = chunk;
    const { input } = slot;
    for (let index = 0, at = 0; index <= passages.length; index++) {
      const passage = passages[index];
      const end = passage?.from ?? length;
      if (end > at) {
        slot.setRecords(at, end);
        // The kernel writes the end of an item that lacks it.
        const next = input[end]!;
        yield* this.#recordResults(chunk, this.run(chunk), linesBefore);
        if (end < length) input[end] = next;
      }
      if (passage === undefined) return;
      yield this.#passageResult(chunk, passage, linesBefore);
      at = passage.to;
    }
  }

  /** Yields the results of records after the first run. Runs the kernel again while there are some that did not fit into the output. */
  *#recordResults(chunk: Chunk, reachedEnd: boolean, linesBefore: number): Generator<ChunkResult, void, undefined> {
    const { slot } = chunk;
    for (let isLast = reachedEnd; ; isLast = this.run(chunk)) {
      if (this.#table === undefined) this.#lines += slot.lines;
      slot.addCountsTo(this.#counts);
      const { stoppedAtInvalid } = slot;
      const output = this.#locates || this.#extracts ? slot.output : (this.#document?.outputOf(chunk) ?? slot.output);
      yield { output, rejects: slot.rejects, isLast: isLast && stoppedAtInvalid === 0 };
      if (stoppedAtInvalid !== 0) {
        const problem = stoppedAtInvalid === OBJECT_MISSING ? this.#noObject : undefined;
        if (this.#document === undefined) {
          this.#countLines(chunk, slot.processed, linesBefore);
          throw this.#invalid(problem ?? this.#table?.cellsProblem(slot.cells) ?? 'is not a JSON object');
        }
        const { rejects, error } = this.#document.passInvalid(chunk, problem);
        yield { output: NO_BYTES, rejects, isLast: false };
        if (error !== undefined) throw error;
      } else if (isLast) {
        slot.clear();
        return;
      }
      slot.clear();
    }
  }

  /** Returns the result of a passage. Applies the policy for invalid records to a piece of one. */
  #passageResult(chunk: Chunk, passage: Passage, linesBefore: number): ChunkResult {
    const { from, to, kind, shape, problem, output } = passage;
    let bytes: Uint8Array = chunk.slot.input.subarray(from, to);
    if (shape !== undefined) setTableShape(this.#layout, this.#input, shape);
    if (this.#locates) {
      const output = kind === 'first' ? locatedPassage(chunk.slot.place.input + from) : NO_BYTES;
      return { output, rejects: NO_BYTES, isLast: to === chunk.length };
    }
    if (this.#extracts) {
      if (kind === 'first') this.#counts.invalid_line++;
      const addresses = this.#kernel.withoutAddresses(chunk.slot, from, to);
      chunk.slot.addCountsTo(this.#counts);
      return { output: addresses, rejects: NO_BYTES, isLast: to === chunk.length };
    }
    if (kind === 'text' || kind === 'directive') {
      this.#document?.startItems();
      return { output: output ?? bytes, rejects: NO_BYTES, isLast: to === chunk.length };
    }
    if (kind === 'first') {
      if (this.#table === undefined) this.#lines++;
      this.#counts.lines++;
      this.#counts.invalid_line++;
      if (this.#onInvalid === 'fail') {
        this.#countLines(chunk, from, linesBefore);
        throw this.#document?.tooLongError(chunk, passage) ?? this.#invalid(problem!);
      }
    }
    if (this.#layout.redaction !== undefined) {
      // An address could be in two pieces.
      const isPart = kind === 'further' || passage.isWhole !== true;
      if (isPart && this.#onInvalid === 'keep') {
        this.#countLines(chunk, from, linesBefore);
        throw this.#invalid(`${problem}, so that its addresses cannot be hidden`, 'fix it, or choose the policy drop');
      }
      bytes = isPart ? NO_BYTES : this.#kernel.withoutAddresses(chunk.slot, from, to);
      chunk.slot.addCountsTo(this.#counts);
    }
    if (this.#document !== undefined)
      return { ...this.#document.pieceResult(chunk, passage, bytes), isLast: to === chunk.length };
    return { output: this.#onInvalid === 'keep' ? bytes : NO_BYTES, rejects: bytes, isLast: to === chunk.length };
  }

  /** Counts the lines of a table up to an offset in a chunk. */
  #countLines({ slot }: Chunk, offset: number, before: number): void {
    if (this.#table !== undefined) this.#lines = before + this.#kernel.countNewlines(slot.place, offset);
  }

  #invalid(problem: string, advice = 'fix it, or choose the policy keep or drop for such lines'): AtlasError {
    const isTable = this.#table !== undefined;
    const unit = this.#input.kind === 'json-seq' ? 'object' : 'line';
    const where = isTable ? `${this.#name}, line ${this.#lines + 1}:` : `${this.#prefix}${unit} ${this.#lines}`;
    return new AtlasError('E_BAD_INPUT', `${where} ${problem}; ${advice}`);
  }
}
