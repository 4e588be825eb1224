/** The loop around the kernel that the streams of the library and the line engine share. */
import { AtlasError } from '../errors.js';
import type { EnrichCounts } from './counts.js';
import type { Table } from './formats/table.js';
import type { Block } from './input/line-buffer.js';
import type { Kernel } from './kernel/kernel.js';
import type { InvalidPolicy } from './options.js';

/** One part of the result of a block. The bytes are in the kernel's memory, and valid until the next part is requested. */
export interface BlockResult {
  output: Uint8Array;
  /** Lines that are not records of the format. */
  rejects: Uint8Array;
  /** Whether the block has no further part. */
  isLast: boolean;
}

export interface BlockRunnerOptions {
  /** The table that the blocks are part of, if they are. */
  table?: Table | undefined;
  onInvalid: InvalidPolicy;
  maxLineBytes: number;
  /** Updated with each result, except for `bytes`. */
  counts: EnrichCounts;
}

const NO_BYTES = new Uint8Array(0);

export class BlockRunner {
  readonly #kernel: Kernel;
  readonly #options: BlockRunnerOptions;
  /** The name of the input in error messages, and the prefix with it. */
  #name = 'the input';
  #prefix = '';
  /** Lines of the current input in the results so far; for a table, newlines, and only under the policy `fail`. */
  #lines = 0;

  constructor(kernel: Kernel, options: BlockRunnerOptions) {
    this.#kernel = kernel;
    this.#options = options;
  }

  /**
   * Restarts the line numbers of error messages. Must be called before the first results of each input but the first.
   *
   * @param name put before the line number, if given
   */
  startInput(name?: string): void {
    if (name !== undefined) this.#name = name;
    this.#prefix = name === undefined ? '' : `${name}: `;
    this.#lines = 0;
  }

  /** Prepares a block for the kernel. Returns whether there is work: a part of a line that is too long has none. */
  prepare({ slot, length, skip, head, part }: Block): boolean {
    if (part !== undefined) return false;
    slot.begin(length, skip, head === undefined);
    return true;
  }

  /** Runs the kernel once over a prepared block. Returns whether it processed all lines. */
  run({ slot }: Block): boolean {
    return this.#kernel.run(slot.place);
  }

  /**
   * Yields the results of a block after its first run. Runs the kernel again while the block has lines that did not fit
   * into the output.
   *
   * @param isDone what the first run returned
   * @throws AtlasError E_BAD_INPUT under the policy `fail`, after yielding everything before the invalid line
   */
  *results(block: Block, isDone: boolean): Generator<BlockResult, void, undefined> {
    if (block.part !== undefined) {
      yield this.#partResult(block);
      return;
    }
    const { slot, head } = block;
    const { counts, table } = this.#options;
    const before = this.#lines;
    if (head !== undefined) yield { output: head, rejects: NO_BYTES, isLast: false };
    for (let isLast = isDone; ; isLast = this.run(block)) {
      this.#lines += slot.lines;
      slot.addCountsTo(counts);
      const { refused } = slot;
      // Records of a table may have several lines. Their number is needed for the error only.
      if (table !== undefined && (refused || (isLast && this.#options.onInvalid === 'fail'))) {
        this.#lines = before + this.#kernel.countBytes(slot.place, refused ? slot.processed : block.length);
      }
      yield { output: slot.output, rejects: slot.rejects, isLast: isLast && !refused };
      if (refused) throw this.#invalidLine(table?.cellsProblem(slot.cells) ?? 'is not a JSON object');
      if (isLast) return;
      slot.clear();
    }
  }

  /** Applies the policy for invalid lines to a part of a line that is too long, or on which a quote is not closed. */
  #partResult({ slot, length, part, problem }: Block): BlockResult {
    const { counts, onInvalid, maxLineBytes, table } = this.#options;
    if (part === 'first') {
      if (table === undefined) this.#lines++;
      counts.lines++;
      counts.invalid_line++;
      if (onInvalid === 'fail') throw this.#invalidLine(problem ?? `is longer than ${maxLineBytes} bytes`);
    }
    const bytes = slot.input.subarray(0, length);
    return { output: onInvalid === 'keep' ? bytes : NO_BYTES, rejects: bytes, isLast: true };
  }

  #invalidLine(problem: string): AtlasError {
    if (this.#options.table !== undefined) {
      return new AtlasError('E_BAD_INPUT', `${this.#name}, line ${this.#lines + 1}: ${problem}`);
    }
    return new AtlasError(
      'E_BAD_INPUT',
      `${this.#prefix}line ${this.#lines} ${problem}; fix it, or choose the policy keep or drop for such lines`,
    );
  }
}
