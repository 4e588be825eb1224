/**
 * The kernel's memory: what lies where. Written once; then any number of threads work in it, each on a slot.
 *
 * ```
 * columns of the release · answers as text · tree of keys · configuration │ thread 0 │ … │ slot 0 │ … │ large slot
 * ```
 *
 * Memory is sized once, for the longest line there may be. What is never touched (most of the large slot and of the stacks)
 * costs address space only.
 */
import { recordResult } from '../../database/binary-engine.js';
import { AtlasError } from '../../errors.js';
import { MAX_ADDRESS_LENGTH, MAX_FIELDS, MAX_JSON_DEPTH } from '../../limits.js';
import type { RangeRecord } from '../../rangefile/layout.js';
import type { RangeFile } from '../../rangefile/reader.js';
import { resultJson } from '../formats/results.js';
import { type EnrichOptions, INVALID_POLICIES } from '../options.js';
import { buildKeyTree } from './keys.js';
import { octetForms } from './octets.js';

/** WebAssembly memory comes in pages of this many bytes. */
const PAGE_BYTES = 65_536;

/** The first address in use; the compiler may place constants below it. */
const FIRST_ADDRESS = 1024;

/** The kernel reads and writes up to a block past the end of an area. */
const SLACK_BYTES = 128;

/** Addresses stay below it: the topmost bit marks breaches, see assembly/separators.ts. */
const MAX_MEMORY_BYTES = 2 ** 31;

/** Separators that the kernel finds before it walks them: some 4 KiB of input at a time, so that all stays in the first cache. */
const INDEX_ENTRIES = 1024;

/** IPv6 ranges to a group, and so the levels of assembly/tables.ts. */
const FAN_OUT = 8;

/**
 * Answers that wait for each other at a time, at most: enough for the look-ups to wait for memory together, and at least
 * those of one line. assembly/pending.ts and assembly/lookup.ts say how many bytes each takes.
 */
const PENDING_ANSWERS = Math.max(64, MAX_FIELDS);

/** 4-byte numbers, in this order, that assembly/config.ts reads. */
const CONFIG_FIELDS = [
  'low4',
  'record4',
  'buckets4',
  'crowded4',
  'levels6',
  'levelCount',
  'count4',
  'count6',
  'low6',
  'record6',
  'outcomes',
  'recordCount',
  'fragments',
  'longestInsert',
  'fieldTargets',
  'fieldCount',
  'nodes',
  'targetCount',
  'longestKey',
  'policy',
  'keepsRejects',
  'maxDepth',
  'octetForms',
  'mostAnswers',
  // Set when the tables have been made of the columns.
  'prepared',
] as const;
type Config = Record<(typeof CONFIG_FIELDS)[number], number>;

/** 4-byte numbers at the head of a slot, in this order; assembly/slot.ts reads and writes them. */
export const SLOT_FIELDS = [
  // In: where input not yet put out begins, the first line, the end of the input. The kernel moves the first two on.
  'copied',
  'next',
  'inputEnd',
  // In and out: where the next byte of output goes. In: where output has to end.
  'output',
  'outputEnd',
  // In and out: where the next refused line goes.
  'rejects',
  // Out: the counts of the last run.
  'lines',
  'found_count',
  'no_country',
  'invalid_address',
  'missing_field',
  'invalid_line',
  // Out: 1 where a line was met that the policy fails on.
  'refused',
] as const;

/** 4-byte numbers, in this order, that say where a thread's working areas lie; assembly/slot.ts reads them. */
const AREA_FIELDS = [
  'found',
  'scratch',
  'stack',
  // Room for the addresses of separators, and how many.
  'index',
  'indexEntries',
  // Room for the values of an address's digits.
  'digits',
  // Room for the lines that wait for their answers, the answers, and what is asked.
  'pending',
  'answers',
  'queries4',
  'queries6',
] as const;
type Areas = Record<(typeof AREA_FIELDS)[number], number>;

/** Where a slot's areas lie, in bytes from the start of the memory. One thread at a time works on a slot. */
export interface SlotPlace {
  /** Its `SLOT_FIELDS`. */
  head: number;
  input: number;
  /** Bytes that the input area takes. */
  inputBytes: number;
  output: number;
  outputBytes: number;
  rejects: number;
}

/** All that a thread needs to work in the memory; can be sent to another one. */
export interface KernelLayout {
  memory: WebAssembly.Memory;
  config: number;
  /** For each thread, its `AREA_FIELDS`. */
  threads: number[];
  slots: SlotPlace[];
  /** The slot for a line that does not fit into another one. */
  large: SlotPlace;
}

export interface LayoutRequest {
  file: RangeFile;
  options: EnrichOptions;
  /** Number of threads that will work in the memory. */
  threadCount: number;
  /** Number of slots, and bytes of input that each takes. */
  slotCount: number;
  blockBytes: number;
  /** Longest line in bytes, without its newline. */
  maxLineBytes: number;
  /** Whether refused lines are collected. */
  keepsRejects: boolean;
}

/** Hands out areas of memory from the bottom up, and remembers what belongs there. */
class Plan {
  #end = FIRST_ADDRESS;
  readonly #contents: { at: number; bytes: Uint8Array }[] = [];

  /** An area of a number of bytes; begins at a multiple of 64, a cache line. */
  reserve(bytes: number): number {
    const at = this.#end;
    this.#end = Math.ceil((at + bytes) / 64) * 64;
    return at;
  }

  /** An area that holds a copy of an array. */
  place(array: Uint8Array | Uint16Array | Uint32Array): number {
    const at = this.reserve(array.byteLength);
    this.#contents.push({ at, bytes: new Uint8Array(array.buffer, array.byteOffset, array.byteLength) });
    return at;
  }

  /** Where the next area will begin. */
  get end(): number {
    return this.#end;
  }

  /**
   * Memory laid out as planned.
   *
   * @param shared whether several threads are to work in it. The collector does not see how large such a memory is, and so
   *   lets those that are done with pile up
   */
  build(shared: boolean): WebAssembly.Memory {
    if (this.#end > MAX_MEMORY_BYTES) {
      const gigabytes = (this.#end / 2 ** 30).toFixed(1);
      throw new AtlasError('E_USAGE', `this would take ${gigabytes} GiB, and 2 is the most; use fewer jobs`);
    }
    const pages = Math.ceil(this.#end / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared });
    const all = new Uint8Array(memory.buffer);
    for (const { at, bytes } of this.#contents) all.set(bytes, at);
    return memory;
  }
}

/** What an address of this record counts as, or by which scheme it holds another: the numbers of assembly/config.ts. */
function outcomeOf(record: RangeRecord): number {
  if (record.kind === 'country') return 0;
  return record.kind === 'none' ? 1 : { '6to4': 2, nat64: 3, teredo: 4 }[record.scheme];
}

/** The members to splice in, `,"name":…`, for each field and record, and for no answer. */
function placeFragments(plan: Plan, records: readonly RangeRecord[], options: EnrichOptions) {
  const answers = [...records.map((record) => resultJson(recordResult(record), options.add)), 'null'];
  const table = new Uint32Array(options.fields.length * answers.length * 2);
  let longestInsert = 0;
  options.fields.forEach(({ name }, field) => {
    const texts = answers.map((answer) => Buffer.from(`,${JSON.stringify(name)}:${answer}`));
    let at = plan.place(Buffer.concat(texts));
    texts.forEach((text, record) => {
      table.set([at, text.length], 2 * (field * answers.length + record));
      at += text.length;
    });
    longestInsert += Math.max(...texts.map((text) => text.length));
  });
  return { fragments: plan.place(table), longestInsert };
}

/** Room for the levels of IPv6 start addresses; the lowest is the column of their first halves. */
function placeLevels(plan: Plan, file: RangeFile) {
  const levels = [plan.place(file.high6)];
  for (let count = file.count6; count > FAN_OUT; ) {
    count = Math.ceil(count / FAN_OUT);
    levels.unshift(plan.reserve(8 * count));
  }
  return { levels6: plan.place(Uint32Array.from(levels)), levelCount: levels.length };
}

/**
 * Lays out memory for an enrichment: copies the release's columns into it. The first kernel to work in it makes the tables.
 *
 * @throws AtlasError E_USAGE where the options ask for more fields, or longer keys, than the kernel takes, or where there are
 *   so many slots that the memory would be too large
 */
export function layOut(request: LayoutRequest): KernelLayout {
  const { file, options, blockBytes, maxLineBytes, keepsRejects } = request;
  const plan = new Plan();
  const tree = buildKeyTree(options.fields, plan.end);
  const config: Config = {
    nodes: plan.place(tree.bytes),
    targetCount: tree.targetCount,
    longestKey: tree.longestKey,
    fieldTargets: plan.place(Uint32Array.from(tree.fieldTargets)),
    fieldCount: options.fields.length,
    ...placeFragments(plan, file.records, options),
    outcomes: plan.place(Uint8Array.from(file.records, outcomeOf)),
    recordCount: file.records.length,
    // Columns as they are; assembly/tables.ts makes of them, in place, what these names say.
    low4: plan.place(file.start4),
    record4: plan.place(file.record4),
    buckets4: plan.place(file.index4),
    crowded4: plan.reserve(8 * file.index4.length),
    ...placeLevels(plan, file),
    count4: file.count4,
    count6: file.count6,
    low6: plan.place(file.low6),
    record6: plan.place(file.record6),
    policy: INVALID_POLICIES.indexOf(options.onInvalid),
    keepsRejects: keepsRejects ? 1 : 0,
    maxDepth: MAX_JSON_DEPTH,
    octetForms: plan.place(octetForms()),
    mostAnswers: PENDING_ANSWERS,
    prepared: 0,
  };
  const configAt = plan.place(Uint32Array.from(CONFIG_FIELDS, (name) => config[name]));

  const threads = Array.from({ length: request.threadCount }, () => {
    const areas: Areas = {
      found: plan.reserve(4 * tree.targetCount),
      scratch: plan.reserve(Math.max(tree.longestKey, MAX_ADDRESS_LENGTH) + SLACK_BYTES),
      stack: plan.reserve(2 * (MAX_JSON_DEPTH + 1)),
      index: plan.reserve(4 * INDEX_ENTRIES + SLACK_BYTES),
      indexEntries: INDEX_ENTRIES,
      digits: plan.reserve(SLACK_BYTES),
      pending: plan.reserve(PENDING_ANSWERS * 20),
      answers: plan.reserve(PENDING_ANSWERS * 4),
      queries4: plan.reserve(PENDING_ANSWERS * 16),
      queries6: plan.reserve(PENDING_ANSWERS * 24),
    };
    return plan.place(Uint32Array.from(AREA_FIELDS, (name) => areas[name]));
  });
  const placeSlot = (inputBytes: number, outputBytes: number): SlotPlace => ({
    head: plan.reserve(4 * SLOT_FIELDS.length),
    input: plan.reserve(inputBytes + SLACK_BYTES),
    inputBytes,
    output: plan.reserve(outputBytes + SLACK_BYTES),
    outputBytes,
    rejects: plan.reserve(keepsRejects ? inputBytes + SLACK_BYTES : 0),
  });
  // Output is full where a block's lines are so short that the answers more than double them; then it comes in parts.
  const slots = Array.from({ length: request.slotCount }, () =>
    placeSlot(blockBytes, 2 * blockBytes + config.longestInsert),
  );
  const largeBytes = maxLineBytes + blockBytes;
  const large = placeSlot(largeBytes, largeBytes + config.longestInsert);
  return { memory: plan.build(request.threadCount > 1), config: configAt, threads, slots, large };
}
