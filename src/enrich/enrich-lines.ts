/**
 * The line engine: JSON lines in, the same lines with the answers spliced in out.
 *
 * Two functions run side by side. One reads inputs into slots, block by block; the other takes the blocks in the same order
 * and writes out what the kernel made of each. Slots go round between the two, and there are only so many: that bounds
 * memory and is the backpressure. With several jobs, worker threads run the kernel over blocks ahead; this thread does as
 * well, whenever more wait than they take.
 */
import { AtlasError } from '../errors.js';
import { ENRICH_BLOCK_BYTES, MAX_LINE_BYTES } from '../limits.js';
import type { RangeFile } from '../rangefile/reader.js';
import type { EnrichCounts } from './counts.js';
import { type Block, LineBuffer } from './input/line-buffer.js';
import type { ByteSource } from './input/source.js';
import { Kernel, Slot } from './kernel/kernel.js';
import { layOut } from './kernel/layout.js';
import type { EnrichOptions } from './options.js';
import type { ByteSink } from './output/sink.js';
import { Channel } from './schedule/slot-pool.js';
import { type Board, WorkerPool } from './schedule/work-queue.js';

export interface LineRequest {
  /** Read in order, each to its end, then closed. Line numbers begin anew with each. */
  inputs: Iterable<ByteSource> | AsyncIterable<ByteSource>;
  output: ByteSink;
  /** Receives the lines that are no JSON objects, each with its newline. */
  rejects?: ByteSink | undefined;
  /** Opens the release's ranges; called once, since one run keeps to one release. */
  openFile: () => RangeFile;
  options: EnrichOptions;
  /** Threads that work, this one among them. */
  jobs: number;
  /** Bytes that are to come, where that is known. */
  total?: number | undefined;
  /** Aborting stops reading; what is in flight is finished and written, whole lines only. The promise then resolves. */
  signal?: AbortSignal | undefined;
  /** Added to as output is written, so that it says at any time what has been done. */
  counts: EnrichCounts;
  /** Called after each block that was written. */
  onProgress?: (() => void) | undefined;
  /** Bytes of a block and of the longest line; tests make them small. */
  blockBytes?: number | undefined;
  maxLineBytes?: number | undefined;
}

/** Slots for this thread: one that is being filled, one worked on, one written. */
const SLOTS_ALONE = 3;
/** Blocks that are left to each worker to take next, so that it has work while this thread is busy with a block. */
const WAITING_PER_WORKER = 2;
/** Slots for each worker: one that it works on, those that wait for it, one that waits to be written. */
const SLOTS_PER_WORKER = WAITING_PER_WORKER + 2;

/** Blocks from which on an input is long enough for workers to be started before the first one is there. */
const EARLY_START_BLOCKS = 8;

const NEWLINE = 10;

/** A block on its way. */
interface Item {
  block: Block;
  /** The input that it comes from: its number and name. */
  input: number;
  name: string;
  /** Bytes taken from all inputs when it was complete. */
  taken: number;
  /** The kernel's run over it: to be done in this thread; on the board, for any thread to do; over. */
  run: 'here' | 'anywhere' | 'over';
  /** Whether the run dealt with all lines. */
  done: boolean;
  /** Called when it has been written. */
  release: () => void;
}

/** Writes lines of several inputs: where one ends without a newline and more follows, it gets one. */
class LineWriter {
  readonly #sink: ByteSink;
  #input = 0;
  #endsOpen = false;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  async write(bytes: Uint8Array, input: number): Promise<void> {
    if (bytes.length === 0) return;
    if (this.#endsOpen && input !== this.#input) await this.#sink.write(Uint8Array.of(NEWLINE));
    this.#input = input;
    this.#endsOpen = bytes[bytes.length - 1] !== NEWLINE;
    await this.#sink.write(bytes);
  }
}

class LineRun {
  readonly #request: LineRequest;
  readonly #maxLineBytes: number;
  readonly #slots: Slot[];
  readonly #large: Slot;
  readonly #kernel: Kernel;
  readonly #workers: WorkerPool | undefined;
  readonly #board: Board | undefined;
  readonly #output: LineWriter;
  readonly #rejects: LineWriter | undefined;

  readonly #free = new Channel<Slot>();
  /** Blocks in order, and whether more may come; `#ring` wakes the writer when anything about them changes. */
  readonly #items: Item[] = [];
  #allRead = false;
  #ring: () => void = () => {};
  #itemCount = 0;
  /** Bytes taken from the inputs that were read to their end. */
  #takenBefore = 0;
  /** Set when reading is to stop; `#wake` then ends what the reader waits for. */
  #stopped = false;
  #wake: (() => void) | undefined;
  /** The write that is going on; and what one failed with, which nothing else might wait for. */
  #writing: Promise<void> = Promise.resolve();
  #failure: { error: unknown } | undefined;
  /** The input whose lines are being written, and the lines of it that have been. */
  #input = 0;
  #lines = 0;

  constructor(request: LineRequest, workers: WorkerPool | undefined) {
    const { options, jobs, rejects } = request;
    this.#request = request;
    this.#maxLineBytes = request.maxLineBytes ?? MAX_LINE_BYTES;
    const blockBytes = Math.min(request.blockBytes ?? ENRICH_BLOCK_BYTES, this.#maxLineBytes);
    this.#workers = workers;
    // They start while this thread opens the release; a short input needs none.
    if ((request.total ?? 0) > EARLY_START_BLOCKS * blockBytes) workers?.start();
    const layout = layOut({
      file: request.openFile(),
      options,
      threadCount: jobs,
      slotCount: SLOTS_ALONE + SLOTS_PER_WORKER * (jobs - 1),
      blockBytes,
      maxLineBytes: this.#maxLineBytes,
      keepsRejects: rejects !== undefined,
    });
    this.#slots = layout.slots.map((place) => new Slot(layout, place));
    this.#large = new Slot(layout, layout.large);
    this.#kernel = new Kernel(layout);
    this.#board = workers?.workIn(layout);
    if (workers !== undefined) workers.onNews = () => this.#ring();
    this.#output = new LineWriter(request.output);
    this.#rejects = rejects === undefined ? undefined : new LineWriter(rejects);
    for (const slot of this.#slots) this.#free.put(slot);
  }

  async run(): Promise<void> {
    const { signal } = this.#request;
    const stop = (): void => this.#stop();
    signal?.addEventListener('abort', stop);
    if (signal?.aborted === true) stop();
    const reading = this.#read().finally(() => {
      this.#allRead = true;
      this.#ring();
    });
    // It is awaited below, when all that was read is written; should it fail before, that is no unhandled rejection.
    reading.catch(() => {});
    try {
      await this.#writeItems();
    } finally {
      this.#stop();
      signal?.removeEventListener('abort', stop);
      // Where writing failed, that counts, and not what reading comes to.
      await reading.catch(() => {});
    }
    await reading;
    this.#request.counts.bytes = this.#takenBefore;
  }

  #stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /** Waits for a promise, or until reading is to stop: then undefined. */
  #unlessStopped<T>(promise: Promise<T>): Promise<T | undefined> {
    if (this.#stopped) {
      promise.catch(() => {});
      return Promise.resolve(undefined);
    }
    // Not a race with one long-lived promise: that would hold on to a reaction for each block ever read.
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(undefined);
      promise.then(resolve, reject);
    });
  }

  async #read(): Promise<void> {
    const slot = await this.#free.take();
    const buffer = new LineBuffer(slot!, this.#large, this.#maxLineBytes);
    let input = 0;
    for await (const source of this.#request.inputs) {
      try {
        input++;
        if (!this.#stopped) await this.#readInput(source, input, buffer);
      } finally {
        await source.close();
        this.#takenBefore += source.taken;
      }
      if (this.#stopped) return;
    }
  }

  async #readInput(source: ByteSource, input: number, buffer: LineBuffer): Promise<void> {
    for (;;) {
      const bytes = await this.#unlessStopped(source.read(buffer.space));
      if (bytes === undefined) return;
      const block = bytes === 0 ? buffer.ended() : buffer.added(bytes);
      if (block !== undefined) {
        const written = this.#dispatch(block, source, input);
        if (block.slot === this.#large) await this.#unlessStopped(written);
        else {
          const slot = await this.#unlessStopped(this.#free.take());
          if (slot === undefined) return;
          buffer.takeUp(slot);
        }
      }
      if (bytes === 0) return;
    }
  }

  /** Sends a block on its way; resolves when it has been written. */
  #dispatch(block: Block, source: ByteSource, input: number): Promise<void> {
    const number = this.#slots.indexOf(block.slot);
    if (block.part === undefined) block.slot.begin(block.length, block.skip);
    return new Promise((resolve) => {
      const release = (): void => {
        if (number >= 0) this.#free.put(block.slot);
        resolve();
      };
      const taken = this.#takenBefore + source.taken;
      // A part of a line that is too long is not worked on.
      const run = block.part !== undefined ? 'over' : this.#board === undefined || number < 0 ? 'here' : 'anywhere';
      this.#items.push({ block, input, name: source.name, taken, run, done: true, release });
      if (run === 'anywhere') this.#board!.post(number);
      // A short input needs no workers.
      if (++this.#itemCount === 2) this.#workers?.start();
      this.#ring();
    });
  }

  /** Whether the kernel's run over a block is over. */
  #isOver(item: Item): boolean {
    if (item.run !== 'anywhere') return item.run === 'over';
    const done = this.#board!.outcome(this.#slots.indexOf(item.block.slot));
    if (done === undefined) return false;
    item.done = done;
    item.run = 'over';
    return true;
  }

  /**
   * The block to run the kernel over in this thread, if any. Blocks are left to the workers while no more wait than workers
   * take, as long as there is something to read meanwhile.
   */
  #ownBlock(): Item | undefined {
    const waiting = this.#items.filter(
      ({ run, block }) =>
        run === 'here' || (run === 'anywhere' && this.#board!.isWaiting(this.#slots.indexOf(block.slot))),
    );
    const isSpare =
      waiting.length > WAITING_PER_WORKER * (this.#workers?.ready ?? 0) || this.#allRead || this.#free.isEmpty;
    return isSpare ? waiting[0] : waiting.find(({ run }) => run === 'here');
  }

  #runHere(item: Item): void {
    if (item.run === 'anywhere' && !this.#board!.claim(this.#slots.indexOf(item.block.slot))) return;
    item.done = this.#kernel.run(item.block.slot.place);
    item.run = 'over';
  }

  /** Waits until something about the blocks changes. */
  #news(first: Item | undefined): Promise<void> {
    return new Promise((resolve) => {
      this.#ring = resolve;
      this.#board?.sleep();
      if (this.#failure !== undefined || (first !== undefined && this.#isOver(first))) resolve();
    });
  }

  /** Takes up the write that is going on, whose failure is then noticed whatever else is waited for. */
  #setWriting(writing: Promise<void>): void {
    this.#writing = writing;
    writing.catch((error: unknown) => {
      this.#failure ??= { error };
      this.#ring();
    });
  }

  /** Writes blocks in order; runs the kernel over those that no worker takes. */
  async #writeItems(): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      const first = this.#items[0];
      if (first !== undefined && this.#isOver(first)) {
        this.#items.shift();
        await this.#writeItem(first);
        continue;
      }
      this.#workers?.check();
      const own = this.#ownBlock();
      if (own !== undefined) {
        this.#runHere(own);
        // Lets the reader go on.
        await undefined;
      } else if (first === undefined && this.#allRead) {
        return this.#writing;
      } else {
        await this.#news(first);
      }
    }
  }

  async #writeItem(item: Item): Promise<void> {
    if (item.input !== this.#input) this.#lines = 0;
    this.#input = item.input;
    if (item.block.part === undefined) await this.#writeLines(item);
    else await this.#writePart(item);
  }

  async #writeLines(item: Item): Promise<void> {
    const { slot } = item.block;
    for (;;) {
      // One write goes on while the kernel works on what comes next.
      await this.#writing;
      this.#lines += slot.lines;
      slot.addCountsTo(this.#request.counts);
      this.#setWriting(this.#put(item, slot.output, slot.rejects));
      if (slot.refused) {
        await this.#writing;
        throw this.#invalidLine(item, 'is not a JSON object');
      }
      if (item.done) break;
      await this.#writing;
      slot.clear();
      item.done = this.#kernel.run(slot.place);
    }
    this.#setWriting(this.#writing.then(() => this.#written(item)));
  }

  /** Deals with a part of a line that is too long: by the policy for lines that are no JSON objects. */
  async #writePart(item: Item): Promise<void> {
    const { block } = item;
    const { counts, options } = this.#request;
    await this.#writing;
    if (block.part === 'first') {
      this.#lines++;
      counts.lines++;
      counts.invalid_line++;
      if (options.onInvalid === 'fail') throw this.#invalidLine(item, `is longer than ${this.#maxLineBytes} bytes`);
    }
    const bytes = block.slot.input.subarray(0, block.length);
    await this.#put(item, options.onInvalid === 'keep' ? bytes : new Uint8Array(0), bytes);
    this.#written(item);
  }

  async #put(item: Item, output: Uint8Array, rejects: Uint8Array): Promise<void> {
    await this.#output.write(output, item.input);
    await this.#rejects?.write(rejects, item.input);
  }

  #written(item: Item): void {
    this.#request.counts.bytes = item.taken;
    this.#request.onProgress?.();
    item.release();
  }

  #invalidLine(item: Item, what: string): AtlasError {
    return new AtlasError(
      'E_BAD_INPUT',
      `${item.name}: line ${this.#lines} ${what}; mend it, or choose the policy keep or drop for such lines`,
    );
  }
}

/**
 * Enriches JSON lines. Order is kept whatever `jobs` is.
 *
 * @throws AtlasError E_BAD_INPUT where an input cannot be read or, under the policy `fail`, at the first line that is no
 *   JSON object, naming input and line; all lines before it have been written. E_USAGE where more fields, or longer keys,
 *   are asked for than the kernel takes. Whatever a sink throws (such as EPIPE)
 */
export async function enrichLines(request: LineRequest): Promise<void> {
  const workers = request.jobs === 1 ? undefined : new WorkerPool(request.jobs - 1);
  try {
    await new LineRun(request, workers).run();
  } finally {
    await workers?.close();
  }
}
