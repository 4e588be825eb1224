/**
 * Lays out the kernel's memory: what is where, see README.md. It is written once; then any number of threads work in it, each
 * on its own slot.
 */
import { recordResult } from '../../database/binary-engine.js';
import type { CountryResult } from '../../database/engine.js';
import { MAX_ADDRESS_LENGTH, MAX_JSON_DEPTH, MAX_LENIENT_BYTES, MAX_PATH_KEYS } from '../../limits.js';
import type { RangeRecord } from '../../rangefile/layout.js';
import type { RangeFile } from '../../rangefile/reader.js';
import { EACH, hasElements, type PathStep } from '../field-path.js';
import { resultCells, resultFields, resultJson } from '../formats/results.js';
import type { EnrichOptions, FieldRequest, InvalidPolicy, KernelInput } from '../options.js';
import { passesOthers, type RecordQuery, selects } from '../query.js';
import * as abi from './abi.js';
import { ipv4Forms } from './ipv4-forms.js';
import { buildKeyTree, type KeyTree, stepsIntoArrays } from './key-tree.js';
import { MemoryPlan } from './memory-plan.js';

/** Where a slot's areas are, in bytes from the start of the memory. One thread at a time works on a slot. */
export interface SlotPlace {
  /** Its header, see `SLOT_…` in abi.ts. */
  head: number;
  input: number;
  /** Bytes that the input area takes. */
  inputBytes: number;
  output: number;
  outputBytes: number;
  rejects: number;
}

/** Everything that a thread needs to work in the memory; can be sent to another thread. */
export interface KernelLayout {
  memory: WebAssembly.Memory;
  config: number;
  /** The shape of a table, see `SHAPE_…` in abi.ts, and the target of each field, 4 bytes each. */
  shape: number;
  fieldTargets: number;
  /** For each thread, the number of addresses found for each record, 8 bytes each; undefined without a query. */
  recordCounts: number[] | undefined;
  /** Number of records of the release. */
  recordCount: number;
  /** For each thread, the table of its working areas, see `AREAS_…` in abi.ts. */
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
  /** Whether invalid lines are collected. */
  keepsRejects: boolean;
  /** The plan whose memory the file was read into, if it was; the columns of the file must not be used afterwards. */
  plan?: MemoryPlan | undefined;
}

const POLICIES: Record<InvalidPolicy, number> = {
  keep: abi.POLICY_KEEP,
  drop: abi.POLICY_DROP,
  fail: abi.POLICY_FAIL,
};

const EMBEDDED_OUTCOMES = { '6to4': abi.OUTCOME_6TO4, nat64: abi.OUTCOME_NAT64, teredo: abi.OUTCOME_TEREDO };

/** Returns the `OUTCOME_…` code of a record. */
function outcomeOf(record: RangeRecord): number {
  if (record.kind === 'country') return abi.OUTCOME_COUNTRY;
  return record.kind === 'none' ? abi.OUTCOME_NO_COUNTRY : EMBEDDED_OUTCOMES[record.scheme];
}

const JSON_LINES: KernelInput = { kind: 'jsonl' };

const FORMATS: Record<KernelInput['kind'], number> = {
  jsonl: abi.FORMAT_JSON_LINES,
  table: abi.FORMAT_TABLE,
  list: abi.FORMAT_LIST,
  combined: abi.FORMAT_COMBINED,
  text: abi.FORMAT_TEXT,
  items: abi.FORMAT_JSON_ITEMS,
};

/** Returns a function that makes the text to insert for a result. */
function fragmentMaker({ input = JSON_LINES, add }: EnrichOptions) {
  return (result: CountryResult | undefined, { target }: FieldRequest): string => {
    switch (input.kind) {
      case 'jsonl':
      case 'items':
        return `,${JSON.stringify(target.at(-1))}:${result === undefined ? 'null' : resultJson(result, add)}`;
      case 'combined':
        return resultFields(result, add);
      case 'table':
        return resultCells(result, add, input.delimiter);
      default:
        return resultCells(result, add, '\t');
    }
  };
}

/** Places the texts to insert for each field: one for each record, then one for no result. */
function placeFragments(plan: MemoryPlan, records: readonly RangeRecord[], options: EnrichOptions) {
  const results = [...records.map(recordResult), undefined];
  const makeFragment = fragmentMaker(options);
  const table = new Uint32Array((options.fields.length * results.length * abi.FRAGMENT_BYTES) / 4);
  let longestInsert = 0;
  options.fields.forEach((field, index) => {
    const texts = results.map((result) => Buffer.from(makeFragment(result, field)));
    let at = plan.place(Buffer.concat(texts));
    texts.forEach((text, record) => {
      table.set([at, text.length], ((index * results.length + record) * abi.FRAGMENT_BYTES) / 4);
      at += text.length;
    });
    longestInsert += Math.max(...texts.map((text) => text.length));
  });
  return { fragments: plan.place(table), longestInsert };
}

/** Places a list of steps for each field; returns the address of the table of lists. */
function placeSteps(plan: MemoryPlan, lists: readonly (readonly PathStep[])[]): number {
  const table = lists.flatMap((steps) => {
    const encoded = steps.flatMap((step) => {
      if (step === EACH) return [abi.STEP_IS_EACH, 0, 0];
      if (typeof step === 'number') return [abi.STEP_IS_INDEX, step, 0];
      const key = Buffer.from(step);
      return [abi.STEP_IS_KEY, plan.place(key), key.length];
    });
    return [plan.place(Uint32Array.from(encoded)), steps.length];
  });
  return plan.place(Uint32Array.from(table));
}

/** Places the levels of IPv6 start addresses. The lowest is the column of their first halves; the kernel fills the others. */
function placeLevels(plan: MemoryPlan, file: RangeFile) {
  // The kernel pads this level, so it needs an area of its own.
  const levels = [plan.copy(file.high6)];
  for (let count = file.count6; count > abi.LEVEL_FAN_OUT; ) {
    count = Math.ceil(count / abi.LEVEL_FAN_OUT);
    levels.unshift(plan.reserve(8 * count));
  }
  return { levels: plan.place(Uint32Array.from(levels)), levelCount: levels.length };
}

/** For each record, then for no address and for a missing value: 1 if a query selects it. */
function selectedRecords(query: RecordQuery, records: readonly RangeRecord[]): Uint8Array {
  const isSelected = (record: RangeRecord): boolean => query.kind === 'filter' && selects(query, recordResult(record));
  return Uint8Array.from([...records.map(isSelected), false, false], Number);
}

/** Returns the tree of the keys of JSON lines. In the other formats, the fields have no keys, and each is its own target. */
function keyTreeOf({ input = JSON_LINES, fields }: EnrichOptions, at: number): KeyTree {
  if (input.kind === 'jsonl' || input.kind === 'items') return buildKeyTree(fields, at);
  return {
    bytes: new Uint8Array(0),
    targetCount: fields.length,
    fieldTargets: fields.map((_, field) => field),
    longestKey: 0,
    keyLengths: 0n,
    comparesAllKeys: false,
    triesFlatPath: false,
  };
}

/** Places the configuration and everything that it refers to; returns its address and the numbers that other areas need. */
function placeConfig(plan: MemoryPlan, { file, options, keepsRejects }: LayoutRequest) {
  const { query } = options;
  const { input = JSON_LINES } = options;
  const tree = keyTreeOf(options, plan.end);
  const keyTree = plan.place(tree.bytes);
  const { fragments, longestInsert } = placeFragments(plan, file.records, options);
  const { levels, levelCount } = placeLevels(plan, file);
  const fieldTargets = plan.place(Uint32Array.from(tree.fieldTargets));
  const shape = plan.reserve(abi.SHAPE_TARGETS + 4 * options.fields.length);
  const config = plan.placeTable(abi.CONFIG_BYTES, [
    [abi.CONFIG_START4, plan.place(file.start4)],
    [abi.CONFIG_RECORD4, plan.place(file.record4)],
    [abi.CONFIG_BUCKETS4, plan.place(file.index4)],
    [abi.CONFIG_CROWDED4, plan.reserve(abi.CROWDED_BYTES * file.index4.length)],
    [abi.CONFIG_COUNT4, file.count4],
    [abi.CONFIG_LEVELS6, levels],
    [abi.CONFIG_LEVEL_COUNT6, levelCount],
    [abi.CONFIG_LOW6, plan.place(file.low6)],
    [abi.CONFIG_RECORD6, plan.place(file.record6)],
    [abi.CONFIG_COUNT6, file.count6],
    [abi.CONFIG_OUTCOMES, plan.place(Uint8Array.from(file.records, outcomeOf))],
    [abi.CONFIG_RECORD_COUNT, file.records.length],
    [abi.CONFIG_FRAGMENTS, fragments],
    [abi.CONFIG_LONGEST_INSERT, longestInsert],
    [abi.CONFIG_FIELD_TARGETS, fieldTargets],
    [abi.CONFIG_FIELD_COUNT, options.fields.length],
    [abi.CONFIG_KEY_TREE, keyTree],
    [abi.CONFIG_TARGET_COUNT, tree.targetCount],
    [abi.CONFIG_LONGEST_KEY, tree.longestKey],
    [abi.CONFIG_KEY_LENGTHS, Number(tree.keyLengths & 0xffff_ffffn)],
    [abi.CONFIG_KEY_LENGTHS + 4, Number(tree.keyLengths >> 32n)],
    [abi.CONFIG_COMPARES_ALL_KEYS, tree.comparesAllKeys ? 1 : 0],
    [abi.CONFIG_TRIES_FLAT_PATH, tree.triesFlatPath ? 1 : 0],
    [
      abi.CONFIG_FIELD_STEPS,
      placeSteps(
        plan,
        options.fields.map(({ path }) => stepsIntoArrays(path)),
      ),
    ],
    [abi.CONFIG_HAS_STEPS, options.fields.some(({ path }) => hasElements(path)) ? 1 : 0],
    [
      abi.CONFIG_FIELD_RESULT_KEYS,
      placeSteps(
        plan,
        options.fields.map(({ target }) => target),
      ),
    ],
    [abi.CONFIG_HAS_INNER_RESULTS, options.fields.some(({ target }) => target.length > 1) ? 1 : 0],
    [abi.CONFIG_LENIENT, options.lenient === true ? 1 : 0],
    [abi.CONFIG_MAX_LENIENT_BYTES, MAX_LENIENT_BYTES],
    [abi.CONFIG_POLICY, POLICIES[options.onInvalid]],
    [abi.CONFIG_KEEPS_REJECTS, keepsRejects ? 1 : 0],
    [abi.CONFIG_IPV4_FORMS, plan.place(ipv4Forms())],
    [abi.CONFIG_MAX_DEPTH, MAX_JSON_DEPTH],
    [abi.CONFIG_SELECTED, query === undefined ? 0 : plan.place(selectedRecords(query, file.records))],
    [abi.CONFIG_PASSES_OTHERS, query !== undefined && passesOthers(query) ? 1 : 0],
    [abi.CONFIG_MAX_ADDRESS_LENGTH, MAX_ADDRESS_LENGTH],
    [abi.CONFIG_FORMAT, FORMATS[input.kind]],
    [abi.CONFIG_DELIMITER, input.kind === 'table' ? input.delimiter.charCodeAt(0) : 0],
    [abi.CONFIG_SHAPE, shape],
  ]);
  return { config, tree, longestInsert, shape, fieldTargets };
}

/** Reserves the working areas of a thread; returns the address of their table. */
function reserveAreas(
  plan: MemoryPlan,
  { targetCount, longestKey, fieldTargets }: KeyTree,
  recordCounts: number,
): number {
  const lines = abi.BATCH_VALUES + abi.BLOCK_LINES;
  const values = abi.BATCH_VALUES + abi.BLOCK_LINES * fieldTargets.length;
  return plan.placeTable(abi.AREAS_BYTES, [
    [abi.AREAS_VALUE_OFFSETS, plan.reserve(4 * targetCount)],
    [abi.AREAS_SCRATCH, plan.reserve(Math.max(longestKey, MAX_LENIENT_BYTES) + abi.SLACK_BYTES)],
    [abi.AREAS_STACK, plan.reserve(2 * (MAX_JSON_DEPTH + 1))],
    [abi.AREAS_DIGITS, plan.reserve(abi.SLACK_BYTES)],
    [abi.AREAS_LINES, plan.reserve(abi.LINE_BYTES * lines)],
    [abi.AREAS_VALUES, plan.reserve(4 * values)],
    [abi.AREAS_RECORD_COUNTS, recordCounts],
    [abi.AREAS_QUERIES4, plan.reserve(abi.QUERY4_BYTES * values)],
    [abi.AREAS_QUERIES6, plan.reserve(abi.QUERY6_BYTES * values)],
    [abi.AREAS_LAST_MEMBERS, plan.reserve(4 * fieldTargets.length * MAX_PATH_KEYS)],
    [abi.AREAS_SINGLE, plan.reserve(4)],
    [abi.AREAS_EVENTS, plan.reserve(4 * abi.FLAT_CHUNK_BYTES + abi.SLACK_BYTES)],
    [abi.AREAS_TEMPLATE, plan.reserve(abi.TEMPLATE_ENTRIES * abi.TEMPLATE_ENTRY_BYTES)],
  ]);
}

/**
 * Lays out memory for an enrichment and copies the release's columns into it. The first kernel to work in it makes the lookup
 * tables.
 *
 * @throws AtlasError E_USAGE if the slots would make the memory too large
 */
export function layOut(request: LayoutRequest): KernelLayout {
  const { blockBytes, maxLineBytes, keepsRejects, threadCount, slotCount } = request;
  const plan = request.plan ?? new MemoryPlan(threadCount > 1);
  const { config, tree, longestInsert, shape, fieldTargets } = placeConfig(plan, request);
  const { file, options } = request;
  const recordCounts =
    options.query && Array.from({ length: threadCount }, () => plan.reserve(8 * file.records.length));
  const threads = Array.from({ length: threadCount }, (_, thread) =>
    reserveAreas(plan, tree, recordCounts?.[thread] ?? 0),
  );
  const reserveSlot = (inputBytes: number, outputBytes: number): SlotPlace => ({
    head: plan.reserve(abi.SLOT_BYTES),
    input: plan.reserve(inputBytes + abi.SLACK_BYTES),
    inputBytes,
    output: plan.reserve(outputBytes + abi.SLACK_BYTES),
    outputBytes,
    rejects: plan.reserve(keepsRejects ? inputBytes + abi.SLACK_BYTES : 0),
  });
  // The results more than double a block of very short lines. Its output then comes in parts.
  const slots = Array.from({ length: slotCount }, () => reserveSlot(blockBytes, 2 * blockBytes + longestInsert));
  const largeBytes = maxLineBytes + blockBytes;
  const large = reserveSlot(largeBytes, largeBytes + longestInsert);
  return {
    memory: plan.build(),
    config,
    shape,
    fieldTargets,
    threads,
    recordCounts,
    recordCount: file.records.length,
    slots,
    large,
  };
}

/**
 * Writes the shape of a table. Must be called before the first block with a record is processed.
 *
 * @param columnCount number of columns
 * @param fieldColumns for each field, its column, counted from 0
 */
export function setTableShape(
  { memory, shape, fieldTargets }: KernelLayout,
  columnCount: number,
  fieldColumns: readonly number[],
): void {
  const numbers = new Uint32Array(memory.buffer);
  const targets = [...new Set(fieldColumns)].sort((a, b) => a - b);
  numbers[(shape + abi.SHAPE_COLUMNS) / 4] = columnCount;
  numbers[(shape + abi.SHAPE_TARGET_COUNT) / 4] = targets.length;
  numbers.set(targets, (shape + abi.SHAPE_TARGETS) / 4);
  numbers.set(
    fieldColumns.map((column) => targets.indexOf(column)),
    fieldTargets / 4,
  );
}
