/**
 * The line engine: copies records of any format, and adds the results to each.
 *
 * A reader fills slots of the kernel's memory with chunks of whole lines. The scheduler runs the kernel over them, in worker
 * threads and in this thread. A writer writes the results in the order of the chunks and returns the slots to the reader.
 * The number of slots limits memory and so provides backpressure.
 */
import { recordResult } from '../database/binary-engine.js';
import { ENRICH_CHUNK_BYTES, LINE_CHUNK_BYTES, MAX_LARGE_CHUNK_JOBS } from '../limits.js';
import { ChunkRunner } from './chunk-runner.js';
import type { EnrichCounts } from './counts.js';
import type { JsonDocument } from './formats/document.js';
import { ChunkReader } from './input/chunk-reader.js';
import type { ByteSource } from './input/source.js';
import { countNetworks, countRecords, countValues, Slot } from './kernel/kernel.js';
import { growthOf, layOut } from './kernel/layout.js';
import { MemoryPlan } from './kernel/memory-plan.js';
import { kernelModule } from './kernel/module.js';
import { type EnrichOptions, maxRecordBytes } from './options.js';
import { ChunkWriter } from './output/chunk-writer.js';
import type { ByteSink } from './output/sink.js';
import { type EnrichRanges, isOverTime } from './ranges.js';
import { Scheduler, WAITING_PER_WORKER } from './schedule/scheduler.js';
import { SlotPool } from './schedule/slot-pool.js';
import { WorkerPool } from './schedule/worker-pool.js';

export interface LineRequest {
  /** Read in order, each to its end, then closed. Line numbers start again with each. */
  inputs: Iterable<ByteSource> | AsyncIterable<ByteSource>;
  output: ByteSink;
  /** Receives the lines that are not JSON objects, each with its newline. */
  rejects?: ByteSink | undefined;
  /** Opens the release's range file, in memory from `allocate` if possible. Called once, so one run uses one release. */
  openFile: (allocate: (bytes: number) => Buffer) => EnrichRanges;
  options: EnrichOptions;
  /** Instead of `options`, if they depend on the input. The release is opened meanwhile. */
  ofInput?: Promise<EnrichOptions> | undefined;
  /** Number of threads that run the kernel, including this one. */
  jobs: number;
  /** Bytes in all inputs, before decompression, if known. */
  total?: number | undefined;
  /** Aborting stops reading. Complete lines that were read are still processed and written; then the promise resolves. */
  signal?: AbortSignal | undefined;
  /** Updated as output is written. */
  counts: EnrichCounts;
  /** Called after each chunk that was written. */
  onProgress?: (() => void) | undefined;
  /** Returns the class that reads JSON documents; required for that format. */
  documents?: (() => Promise<typeof JsonDocument>) | undefined;
  /**
   * The memory of an earlier request, which has ended. The garbage collector does not see the size of memory that threads share,
   * so what is not used again piles up.
   */
  memory?: WebAssembly.Memory | undefined;
  /** Sizes of a chunk and of the longest record, in bytes. Tests make them small. */
  chunkBytes?: number | undefined;
  maxLineBytes?: number | undefined;
}

/** Slots for this thread: one being filled, one being processed, one being written. */
const MAIN_THREAD_SLOTS = 3;
/** Slots for each worker: one being processed, those that wait for it, one that waits to be written. */
const SLOTS_PER_WORKER = WAITING_PER_WORKER + 2;

/** If an input has more bytes than this, the workers are started before the first chunk is read. */
const EARLY_START_BYTES = 2_097_152;

/** The growth of records up to which chunks have their usual size, and their size above it, in bytes. */
const MAX_USUAL_GROWTH = 3;
const CIPHER_CHUNK_BYTES = 131_072;

/** What a request leaves behind. */
export interface LineResult {
  /** Whether the output ends with a newline, or is empty. */
  endsWithNewline: boolean;
  /** Can be used for another request. */
  memory: WebAssembly.Memory;
}

async function run(request: LineRequest, workers: WorkerPool | undefined): Promise<LineResult> {
  const { jobs, counts, rejects, signal } = request;
  // The workers start while this thread opens the release.
  const startsEarly = workers !== undefined && (request.total ?? 0) > EARLY_START_BYTES;
  if (startsEarly) workers.start();
  // Memory that is not shared would have the garbage collector run now, which takes time.
  const plan = new MemoryPlan(true, request.memory);
  const file = request.openFile((bytes) => plan.allocate(bytes));
  const options = (await request.ofInput) ?? request.options;
  const documents = options.input?.kind === 'json' ? await request.documents?.() : undefined;
  const maxLineBytes = request.maxLineBytes ?? maxRecordBytes(options);
  const usualBytes = jobs > MAX_LARGE_CHUNK_JOBS ? ENRICH_CHUNK_BYTES : LINE_CHUNK_BYTES;
  // The output of what is encrypted may be far longer.
  const isCiphered = options.inline !== undefined || growthOf(options) > MAX_USUAL_GROWTH;
  const chunkBytes = Math.min(request.chunkBytes ?? (isCiphered ? CIPHER_CHUNK_BYTES : usualBytes), maxLineBytes);
  const layout = layOut({
    plan,
    file,
    options,
    threadCount: jobs,
    slotCount: MAIN_THREAD_SLOTS + SLOTS_PER_WORKER * (jobs - 1),
    chunkBytes,
    maxLineBytes,
    keepsRejects: rejects !== undefined,
  });
  const unread = isOverTime(file) ? undefined : file.unread;
  const slots = layout.slots.map((place) => new Slot(layout, place));
  const pool = new SlotPool<Slot>();
  for (const slot of slots) pool.release(slot);

  const runner = new ChunkRunner({
    layout,
    module: kernelModule(layout),
    options,
    maxRecordBytes: maxLineBytes,
    counts,
    documents,
    unread,
  });
  if (startsEarly) runner.makeAllTables();
  const scheduler = new Scheduler({ runner, slots, pool, workers, queue: workers?.setMemory(layout) });
  const reader = new ChunkReader({
    inputs: request.inputs,
    pool,
    createBuffer: (slot) => runner.createBuffer(slot),
    bytesBefore: counts.bytes,
    onInput: (name) => runner.startReading(name),
    scheduler,
    mayReadElsewhere: workers !== undefined && runner.hasIndependentLines,
  });
  const writer = new ChunkWriter({
    runner,
    output: request.output,
    rejects,
    counts,
    onProgress: request.onProgress,
    scheduler,
  });

  const stop = (): void => reader.stop();
  signal?.addEventListener('abort', stop);
  if (signal?.aborted === true) stop();
  const reading = reader.read().finally(() => scheduler.endReading());
  // Awaited below, after everything read is written. Until then, a failure is not an unhandled rejection.
  reading.catch(() => {});
  let endsWithNewline: boolean;
  try {
    for (let next = await scheduler.next(); next !== undefined; next = await scheduler.next()) await writer.write(next);
    endsWithNewline = await writer.end();
    await scheduler.finishWrites();
  } finally {
    stop();
    signal?.removeEventListener('abort', stop);
    // If writing failed, its error is the one that counts.
    await reading.catch(() => {});
    await reader.close();
    unread?.close();
  }
  await reading;
  counts.bytes = reader.bytesRead;
  if (options.query?.kind === 'summarize') {
    const { summary } = options.query;
    countRecords(layout, file.records.length).forEach((count, record) => {
      summary.add(recordResult(file.records[record]!), count);
    });
    const { label, networks } = options.query;
    if (networks !== undefined)
      networks.counts = countNetworks(layout).sort((a, b) => b.count - a.count || a.asn - b.asn);
    if (label !== undefined) label.counts = countValues(layout, label.name);
  }
  return { endsWithNewline, memory: layout.memory };
}

/**
 * Enriches lines or records. The order of lines is kept for every value of `jobs`.
 *
 * @throws AtlasError E_BAD_INPUT if an input cannot be read or, under the policy `fail`, at the first line that is not a
 *   JSON object; the message names the input and the line, and all lines before it are written. E_USAGE for more jobs than
 *   the memory has room for. The errors of the sinks, such as EPIPE
 */
export async function enrichLines(request: LineRequest): Promise<LineResult> {
  const workers = request.jobs === 1 ? undefined : new WorkerPool(request.jobs - 1);
  try {
    return await run(request, workers);
  } finally {
    await workers?.close();
  }
}
