/**
 * Lays out the kernel's memory: what is where, see README.md. It is written once; then any number of threads work in it, each
 * on its own slot.
 */
import { recordResult } from '../../database/binary-engine.js';
import { DAMAGED_STATE, NO_STATE } from '../../history/over-time.js';
import { MAX_ADDRESS_LENGTH, MAX_JSON_DEPTH, MAX_LENIENT_BYTES, MAX_SEARCHED_BYTES } from '../../limits.js';
import type { RangeRecord } from '../../rangefile/layout.js';
import { NETWORKS } from '../../rangefile/partitions.js';
import type { NetworkFile } from '../../rangefile/reader.js';
import { EACH, hasElements, type PathStep, pathText } from '../field-path.js';
import { hasUnset, openMembers, stylesOf, UNSET } from '../formats/results.js';
import type { Addable } from '../members.js';
import {
  type AddressPick,
  type EnrichOptions,
  type FieldRequest,
  type InvalidPolicy,
  type KernelInput,
  pathsOf,
  wantedPaths,
} from '../options.js';
import { passesOthers, queriedMembers, type RecordQuery, selects } from '../query.js';
import { type EnrichRanges, isOverTime, openedLabels } from '../ranges.js';
import type { Redaction } from '../redaction.js';
import * as abi from './abi.js';
import { countryAnswers, memberDay, placeInserts, placeTexts } from './inserts.js';
import { ipv4Forms } from './ipv4-forms.js';
import { buildKeyTree, type KeyTree, stepsIntoArrays } from './key-tree.js';
import { MemoryPlan } from './memory-plan.js';
import { placeRoles } from './roles.js';
import { asNumbers, columnValues, type NetworkBlocks, type OtherRows, placeRows } from './rows.js';

/** Where a slot's areas are, in bytes from the start of the memory. One thread at a time works on a slot. */
export interface SlotPlace {
  /** The slot header, see `SLOT_…` in abi.ts. */
  header: number;
  input: number;
  /** Bytes that the input area takes. */
  inputBytes: number;
  output: number;
  outputBytes: number;
  rejects: number;
}

/** The settings of the kernel, by the names in assembly/settings.ts. */
export type Settings = Record<string, number | bigint>;

/** Everything that a thread needs to work in the memory; can be sent to another thread. */
export interface KernelLayout {
  memory: WebAssembly.Memory;
  /** The settings of all threads, and those that differ by thread: its working areas. */
  settings: Settings;
  threads: Settings[];
  /** How addresses are hidden, if they are. */
  redaction: Redaction | undefined;
  /** The shape of a table, see `SHAPE_…` in abi.ts, and the target of each field, 4 bytes each. */
  shape: number;
  fieldTargets: number;
  /** Where the first halves of IPv6 start addresses go when they are read; undefined if they are there. */
  unreadHighs: { at: number; bytes: number } | undefined;
  /** For each thread, the number of addresses found for each record, 8 bytes each; undefined without a query. */
  recordCounts: number[] | undefined;
  /** The same for the records of other partitions, or the blocks of networks, that a query counts; undefined if it counts none. */
  networkCounts:
    | { threads: number[]; length: number; blocks: NetworkBlocks | undefined; others: OtherRows }
    | undefined;
  slots: SlotPlace[];
  /** The slot for a record that does not fit into another one. */
  large: SlotPlace;
}

export interface LayoutRequest {
  /** The answers of all days if and only if the options have `atField`. */
  file: EnrichRanges;
  options: EnrichOptions;
  /** Number of threads that will work in the memory. */
  threadCount: number;
  /** Number of slots, and bytes of input that each takes. */
  slotCount: number;
  chunkBytes: number;
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

const PICKS: Record<AddressPick, number> = {
  public: abi.PICK_PUBLIC,
  first: abi.PICK_FIRST,
  last: abi.PICK_LAST,
};

const EMBEDDED_OUTCOMES = { '6to4': abi.OUTCOME_6TO4, nat64: abi.OUTCOME_NAT64, teredo: abi.OUTCOME_TEREDO };

/** Returns the bytes of the longest text of a field in which addresses are searched. */
function longestText({ searchesStrings }: EnrichOptions): number {
  return searchesStrings === true ? MAX_SEARCHED_BYTES : MAX_LENIENT_BYTES;
}

/** Returns the `OUTCOME_…` code of a record. */
function outcomeOf(record: RangeRecord): number {
  if (record.kind === 'country') return abi.OUTCOME_COUNTRY;
  return record.kind === 'none' ? abi.OUTCOME_NO_COUNTRY : EMBEDDED_OUTCOMES[record.scheme];
}

const JSON_LINES: KernelInput = { kind: 'jsonl' };
const NEWLINE = 10;
const SPACE = 32;

/** How the cells of a table are quoted, by its directives. */
const QUOTES = {
  none: abi.QUOTES_RECORD,
  columns: abi.QUOTES_LINE,
  w3c: abi.QUOTES_LINE,
  zeek: abi.QUOTES_NONE,
} as const;

const FORMATS: Record<KernelInput['kind'], number> = {
  jsonl: abi.FORMAT_JSON,
  json: abi.FORMAT_JSON,
  'json-seq': abi.FORMAT_JSON,
  table: abi.FORMAT_TABLE,
  list: abi.FORMAT_LIST,
  combined: abi.FORMAT_COMBINED,
  text: abi.FORMAT_TEXT,
  logfmt: abi.FORMAT_PAIRS,
};

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

/**
 * Reserves the levels of IPv6 start addresses, which the kernel fills.
 *
 * @param lowest address of the lowest level, which has the first halves; @param count number of start addresses
 */
function placeLevels(plan: MemoryPlan, lowest: number, count: number): Settings {
  const levels = [lowest];
  for (let keys = count; keys > abi.LEVEL_FAN_OUT; ) {
    keys = Math.ceil(keys / abi.LEVEL_FAN_OUT);
    levels.unshift(plan.reserve(8 * keys));
  }
  return { levels6: plan.place(Uint32Array.from(levels)), levelCount6: levels.length };
}

/**
 * Places the ranges that the kernel searches in: those of the file, or room for those that it makes together with the rows.
 *
 * @param isUnread whether the IPv6 columns of the file will be read later
 */
function placeRanges(
  plan: MemoryPlan,
  file: EnrichRanges,
  rows: ReturnType<typeof placeRows>,
  isUnread: boolean,
): { settings: Settings; highs: number } {
  const { count4, count6 } = rows ?? file;
  const counts = plan.place(Uint32Array.of(count4, count6));
  const common = { counts, crowded4: plan.reserve(abi.CROWDED_BYTES * file.index4.length), isDirect: 0 };
  // The kernel pads the lowest level, so it needs an area of its own.
  const highs = rows !== undefined || isUnread ? plan.reserve(8 * count6) : plan.copy(file.high6);
  const levels = placeLevels(plan, highs, count6);
  if (rows !== undefined) {
    const start4 = plan.reserve(4 * count4);
    const buckets4 = plan.reserve(4 * file.index4.length);
    const low6 = plan.reserve(8 * count6);
    return { settings: { ...common, ...rows.settings, start4, buckets4, low6, ...levels }, highs };
  }
  const settings = {
    ...common,
    isDirect: Number(!isOverTime(file)),
    start4: plan.place(file.start4),
    record4: plan.place(file.record4),
    buckets4: plan.place(file.index4),
    low6: plan.place(file.low6),
    record6: plan.place(file.record6),
    ...levels,
  };
  return { settings, highs };
}

let decimals: Buffer | undefined;

/** Returns the numbers to 999 in decimal: three bytes for the digits, one for how many there are. */
function decimalTexts(): Buffer {
  const text = (number: number): string => `${number}`.padEnd(3, '\0') + String.fromCharCode(`${number}`.length);
  decimals ??= Buffer.from(Array.from({ length: 1000 }, (_, number) => text(number)).join(''), 'latin1');
  return decimals;
}

/** Returns the members that are looked up: those that are added, or those that a query decides by. */
function askedMembers({ add, query }: EnrichOptions): readonly Addable[] {
  return query === undefined ? add : queriedMembers(query);
}

/** For each record, then for no address, for a missing value, for no answers and for damaged ones: 1 if a query selects it. */
function selectedRecords(query: RecordQuery, records: readonly RangeRecord[], day: string): Uint8Array {
  const isSelected = (record: RangeRecord): boolean =>
    query.kind === 'filter' && selects(query, recordResult(record), memberDay(record, day));
  return Uint8Array.from([...records.map(isSelected), false, false, false, false], Number);
}

/** Places, for each network, kind of network, or combination of both, whether a filter selects it. Returns 0 for other queries. */
function placeSelectedNetworks(plan: MemoryPlan, query: RecordQuery | undefined, others: OtherRows | undefined) {
  if (query?.kind !== 'filter' || others === undefined) return 0;
  const { asns, kinds } = query;
  const selected = [...others.files].map(([partition, file]) =>
    partition === NETWORKS
      ? Uint8Array.from(asNumbers(file as NetworkFile), (asn) => Number(asns?.has(asn)))
      : Uint8Array.from(columnValues(file, 'kind'), (kind) => Number(kinds?.has(String(kind)))),
  );
  if (others.records === undefined) return plan.place(selected[0]!);
  const columns = [...others.records.values()];
  const isSelected = (number: number): boolean => selected.some((of, i) => of[columns[i]![number]!] === 1);
  return plan.place(Uint8Array.from({ length: others.count }, (_, number) => Number(isSelected(number))));
}

/** Places the numbers of the values that are the other places of each field, from the first to the end; returns 0 if there are none. */
function placeOthers(plan: MemoryPlan, { fields, atField }: EnrichOptions): number {
  let end = fields.length + (atField === undefined ? 0 : 1);
  const ranges = fields.flatMap(({ others }) => {
    const first = end;
    end += others.length;
    return [first, end];
  });
  return fields.some(({ others }) => others.length > 0) ? plan.place(Uint32Array.from(ranges)) : 0;
}

/**
 * Returns the tree of the keys of JSON. In the other formats, the fields have no keys, and each is its own target; in access logs,
 * all are the line.
 */
function keyTreeOf(options: EnrichOptions, at: number): KeyTree {
  const { input = JSON_LINES, fields, schema } = options;
  const paths = wantedPaths(options);
  if (FORMATS[input.kind] === abi.FORMAT_JSON) {
    return buildKeyTree(
      paths,
      fields.map(({ resultPath }) => resultPath),
      at,
      schema === undefined,
    );
  }
  return {
    bytes: new Uint8Array(0),
    targetCount: paths.length,
    fieldTargets: paths.map((_, value) => (input.kind === 'combined' ? 0 : value)),
    longestKey: 0,
    keyLengths: 0n,
    comparesAllKeys: false,
  };
}

/** Places what a kernel needs in order to give each line the answers of its own date. */
function placeHistory(plan: MemoryPlan, file: EnrichRanges, { atField }: EnrichOptions): Settings {
  if (!isOverTime(file) || atField === undefined) return {};
  const { timelines, steps, states, firstDay } = file;
  const isKnown = (state: number): boolean => state < DAMAGED_STATE;
  const stateFor = { null: NO_STATE, first: states.find(isKnown), now: states.findLast(isKnown) };
  return {
    timelines: plan.place(timelines),
    steps: plan.place(steps),
    states: plan.place(states),
    firstDay,
    dayCount: states.length,
    missingState: stateFor[atField.missing] ?? NO_STATE,
  };
}

/** Returns the shape of a table before its header is known: no columns, but the delimiter, with which records are found. */
function firstShape(input: KernelInput, fieldCount: number): Uint32Array {
  const shape = new Uint32Array(abi.SHAPE_TARGETS / 4 + fieldCount);
  shape[abi.SHAPE_TAB_STYLE / 4] = abi.NO_TABS;
  if (input.kind === 'table') shape[abi.SHAPE_DELIMITER / 4] = input.delimiter.charCodeAt(0);
  return shape;
}

/** Returns whether a line may have the address of a field, but another value than an object where its results go. */
function mayLackObject({ resultPath, ...field }: FieldRequest): boolean {
  return pathsOf(field).some(
    (path) => resultPath.some((key, depth) => key !== path[depth]) || resultPath.length >= path.length,
  );
}

/** Places everything that the threads share; returns the settings, and the key tree. */
function placeShared(plan: MemoryPlan, { file, options, keepsRejects }: LayoutRequest) {
  const { query, fields } = options;
  const { input = JSON_LINES } = options;
  const isDocument = input.kind === 'json';
  const isSequence = input.kind === 'json-seq';
  // The records of the answers of many days have their own.
  const day = isOverTime(file) ? '' : file.asOf;
  const answers = countryAnswers(file.records, options, day);
  const summary = query?.kind === 'summarize' ? query.networks : undefined;
  const isCounted = query?.kind === 'summarize' && queriedMembers(query).length > 0;
  const rows = placeRows(plan, file, {
    add: askedMembers(options),
    answers,
    countsBlocks: summary?.by === 'network',
  });
  const unread = isOverTime(file) ? undefined : file.unread;
  const isUnread = unread !== undefined && rows === undefined && plan.contains(file.high6);
  if (!isUnread) unread?.read();
  const { settings: ranges, highs } = placeRanges(plan, file, rows, isUnread);
  const inserts = placeInserts(plan, answers, options, rows?.others);
  const tree = keyTreeOf(options, plan.end);
  const settings = {
    keyTree: plan.place(tree.bytes),
    targetCount: tree.targetCount,
    longestKey: tree.longestKey,
    keyLengths: tree.keyLengths,
    comparesAllKeys: Number(tree.comparesAllKeys),
    inserts: inserts.inserts,
    longestInsert: inserts.longestInsert,
    ...ranges,
    outcomes: plan.place(Uint8Array.from(file.records, outcomeOf)),
    recordCount: file.records.length,
    ...placeHistory(plan, file, options),
    dates: plan.place(Buffer.from((file.dates ?? []).join(''))),
    format: FORMATS[input.kind],
    terminator: isDocument || isSequence ? abi.ITEM_END : NEWLINE,
    extraBlank: isDocument || isSequence ? NEWLINE : SPACE,
    isSequence: Number(isSequence),
    delimiter: input.kind === 'table' ? input.delimiter.charCodeAt(0) : 0,
    quotes: input.kind === 'table' ? QUOTES[input.directives ?? 'none'] : 0,
    unset: hasUnset(input) ? UNSET.charCodeAt(0) : abi.NO_COLUMN,
    shape: plan.place(firstShape(input, tree.fieldTargets.length)),
    fieldCount: fields.length,
    batchValues: batchValues(options),
    valueCount: tree.fieldTargets.length,
    fieldTargets: plan.place(Uint32Array.from(tree.fieldTargets)),
    fieldSteps: placeSteps(
      plan,
      wantedPaths(options).map((path) => (input.kind === 'logfmt' ? [pathText(path)] : stepsIntoArrays(path))),
    ),
    hasSteps: Number(wantedPaths(options).some(hasElements)),
    others: placeOthers(plan, options),
    results: inserts.results,
    createsObjects: Number(options.schema !== undefined),
    requiresObjects: Number(options.schema !== undefined && fields.some(mayLackObject)),
    // The host decides on the items of a document that are not objects: some are not even JSON.
    policy: isDocument ? abi.POLICY_FAIL : POLICIES[options.locates ? 'keep' : options.onInvalid],
    locates: Number(options.locates === true),
    keepsRejects: Number(keepsRejects && !isDocument),
    selected: query === undefined ? 0 : plan.place(selectedRecords(query, file.records, day)),
    selectedNetworks: placeSelectedNetworks(plan, query, rows?.others),
    passesOthers: Number(query !== undefined && passesOthers(query)),
    pick: PICKS[options.pick ?? 'public'],
    searchesStrings: Number(options.searchesStrings === true),
    ...placeRoles(plan, options.roles),
    ...placeHiding(plan, options, inserts.longestInsert),
    isLenient: Number(options.lenient === true),
    maxLenientBytes: longestText(options),
    maxAddressLength: MAX_ADDRESS_LENGTH,
    ipv4Forms: plan.place(ipv4Forms()),
    decimals:
      !hasSpans(options) && openMembers(askedMembers(options), openedLabels(file)).length === 0
        ? 0
        : plan.place(decimalTexts()),
    maxDepth: MAX_JSON_DEPTH,
  } satisfies Settings;
  return {
    settings,
    tree,
    unreadHighs: isUnread ? { at: highs, bytes: file.high6.byteLength } : undefined,
    resultCount: inserts.resultCount,
    counted:
      isCounted && rows?.others ? { length: rows.numberCount, blocks: rows.blocks, others: rows.others } : undefined,
  };
}

const HIDES: Record<Redaction['how'], number> = {
  drop: abi.HIDE_DROP,
  truncate: abi.HIDE_TRUNCATE,
  ipcrypt: abi.HIDE_CIPHER,
  'ipcrypt-pfx': abi.HIDE_CIPHER,
};

/** What an address in text is replaced with if it is dropped. */
const DROPPED = '[redacted]';

/** Bytes of output for each of input at most: of `::1` and a separator, another address and its brackets, or `[redacted]`, is made. */
const CIPHER_GROWTH = 11;
const OTHER_GROWTH = 3;

/** Returns the bytes of output that a byte of input takes at most without the results. */
export function growthOf({ redaction, inline, extracts }: EnrichOptions, longestInsert = 0): number {
  if (inline !== undefined) return 1 + Math.ceil(longestInsert / 4);
  if (extracts !== undefined) return OTHER_GROWTH;
  if (redaction === undefined) return 1;
  return HIDES[redaction.how] === abi.HIDE_CIPHER ? CIPHER_GROWTH : OTHER_GROWTH;
}

/** Returns what takes the place of a value that is dropped. */
function emptyValue(input: KernelInput): string {
  if (FORMATS[input.kind] === abi.FORMAT_JSON) return 'null';
  return hasUnset(input) || input.kind === 'combined' ? UNSET : '';
}

/** Returns whether addresses are hidden, get their results in their place, or are extracted. */
function hasSpans({ redaction, inline, extracts }: EnrichOptions): boolean {
  return (redaction ?? inline ?? extracts) !== undefined;
}

/** Returns the values from which on a batch is looked up. */
function batchValues({ redaction }: EnrichOptions): number {
  return redaction?.key === undefined ? abi.BATCH_VALUES : abi.CIPHER_VALUES;
}

function placeHiding(plan: MemoryPlan, options: EnrichOptions, longestInsert: number): Settings {
  const { redaction, inline, extracts, input = JSON_LINES } = options;
  if (inline !== undefined) return { hides: abi.HIDE_INLINE, growth: growthOf(options, longestInsert) };
  if (extracts !== undefined) {
    const { isOfAll, withLine } = extracts;
    const flags = { hidesAll: Number(isOfAll), extractsLines: Number(withLine) };
    return { hides: abi.HIDE_EXTRACT, growth: growthOf(options), ...flags };
  }
  if (redaction === undefined) return {};
  const [cut4, cut6] = redaction.widths;
  const { table } = placeTexts(plan, [emptyValue(input), DROPPED, '0']);
  return {
    hides: HIDES[redaction.how],
    hidesAll: Number(redaction.isOfAll),
    cut4,
    cut6,
    growth: growthOf(options),
    emptyText: table,
    foundText: table + abi.TEXT_BYTES,
    zeroText: table + 2 * abi.TEXT_BYTES,
  };
}

/** Returns the bytes that the addresses in a record take: one for each field, or those of text, of which the shortest is `::1` and a separator. */
function locatedBytes({ locates, fields }: EnrichOptions, bytes: number): number {
  return locates ? abi.LOCATED_BYTES * (fields.length + bytes / 4) : 0;
}

/** Reserves the working areas of a thread. */
function reserveAreas(
  plan: MemoryPlan,
  { targetCount, longestKey, fieldTargets }: KeyTree,
  counts: Settings,
  keepsAddresses: boolean,
  resultCount: number,
  options: EnrichOptions,
): Settings {
  const lines = batchValues(options) + abi.VECTOR_LINES;
  // A batch is full by its fields; a line can have a date and other values besides.
  const values = lines * fieldTargets.length;
  const isHiding = hasSpans(options);
  const inlineSpans = options.inline === undefined ? 0 : abi.INLINE_SPANS;
  const spans = isHiding ? plan.reserve(abi.SPAN_BYTES * abi.SPANS) : 0;
  const valuesAt = plan.reserve(4 * (values + inlineSpans));
  return {
    valueOffsets: plan.reserve(4 * targetCount),
    scratch: plan.reserve(Math.max(longestKey, longestText(options)) + abi.SLACK_BYTES),
    found: plan.reserve(abi.SPAN_BYTES * abi.FOUND),
    labels: plan.reserve(abi.LABEL_BYTES * 2 ** abi.LABEL_BITS),
    // Each level is written before it is read.
    stack: plan.reserveBuffer(2 * (MAX_JSON_DEPTH + 1)),
    lines: plan.reserve(abi.LINE_BYTES * lines),
    values: valuesAt,
    inlineValues: valuesAt + 4 * values,
    candidates: plan.reserve(abi.CANDIDATE_BYTES * abi.CANDIDATES),
    keptOfValues: keepsAddresses ? plan.reserve(abi.KEPT_BYTES * (values + inlineSpans)) : 0,
    keptOfCandidates: keepsAddresses ? plan.reserve(abi.KEPT_BYTES * abi.CANDIDATES) : 0,
    queries4: plan.reserve(abi.QUERY4_BYTES * (values + inlineSpans + abi.CANDIDATES)),
    queries6: plan.reserve(abi.QUERY6_BYTES * (values + inlineSpans + abi.CANDIDATES)),
    ...counts,
    unread: plan.reserve(4),
    lastMembers: plan.reserve(4 * resultCount),
    spans,
    spansLimit: spans + abi.SPAN_BYTES * (inlineSpans || abi.SPANS),
    cipherBytes: isHiding ? plan.reserve(16 * abi.SPANS) : 0,
    template: plan.reserve(abi.TEMPLATE_ENTRIES * abi.TEMPLATE_ENTRY_BYTES),
  };
}

/**
 * Lays out memory for an enrichment and copies the release's columns into it. The kernel of the first thread makes the lookup
 * tables.
 *
 * @throws AtlasError E_USAGE if the slots would make the memory too large
 */
export function layOut(request: LayoutRequest): KernelLayout {
  const { chunkBytes, maxLineBytes, keepsRejects, threadCount, slotCount } = request;
  const plan = request.plan ?? new MemoryPlan(threadCount > 1);
  const { settings, tree, unreadHighs, resultCount, counted } = placeShared(plan, request);
  const { file, options } = request;
  const growth = growthOf(options, settings.longestInsert);
  const recordCounts =
    options.query && Array.from({ length: threadCount }, () => plan.reserve(8 * file.records.length));
  const networkCounts = counted && Array.from({ length: threadCount }, () => plan.reserve(8 * counted.length));
  const keepsAddresses = options.locates === true || openMembers(askedMembers(options), openedLabels(file)).length > 0;
  const threads = Array.from({ length: threadCount }, (_, thread) =>
    reserveAreas(
      plan,
      tree,
      { recordCounts: recordCounts?.[thread] ?? 0, networkCounts: networkCounts?.[thread] ?? 0 },
      keepsAddresses,
      resultCount,
      options,
    ),
  );
  const reserveSlot = (inputBytes: number, outputBytes: number): SlotPlace => ({
    header: plan.reserve(abi.SLOT_BYTES),
    input: plan.reserveBuffer(inputBytes + abi.SLACK_BYTES),
    inputBytes,
    // After room for the comma before the first item.
    output: plan.reserveBuffer(abi.SLACK_BYTES + outputBytes + abi.SLACK_BYTES) + abi.SLACK_BYTES,
    outputBytes,
    // A record of a sequence may get a newline.
    rejects: plan.reserveBuffer(keepsRejects ? (growth + 1) * inputBytes + abi.SLACK_BYTES : 0),
  });
  // The results more than double a chunk of very short lines. Its output then comes in parts.
  const { longestInsert, shape, fieldTargets } = settings;
  const slots = Array.from({ length: slotCount }, () =>
    reserveSlot(chunkBytes, locatedBytes(options, chunkBytes) + (growth + 1) * chunkBytes + longestInsert),
  );
  // At least a byte order mark.
  const largeBytes = Math.max(maxLineBytes + chunkBytes, 3);
  const large = reserveSlot(largeBytes, locatedBytes(options, largeBytes) + growth * largeBytes + longestInsert);
  return {
    memory: plan.build(),
    settings,
    redaction: options.redaction,
    unreadHighs,
    shape,
    fieldTargets,
    threads,
    recordCounts,
    networkCounts: counted && { threads: networkCounts!, ...counted },
    slots,
    large,
  };
}

/** The shape of a table, or of what follows a header in it. */
export interface TableShape {
  /** Number of columns; 0 if they are not known: then no record is valid; infinite if records may differ. */
  columnCount: number;
  /** For each field, its column, counted from 0; -1 if there is none. */
  fieldColumns: readonly number[];
  delimiter: string;
  /** Whether a record with as many tabs as its columns need has tabs between its cells. */
  mayHaveTabs?: boolean;
}

/** Writes the shape of a table. Must be called before the first block with a record is processed, and while none is. */
export function setTableShape(
  { memory, shape, fieldTargets }: KernelLayout,
  input: KernelInput,
  { columnCount, fieldColumns: columns, delimiter, mayHaveTabs = false }: TableShape,
): void {
  const numbers = new Uint32Array(memory.buffer);
  const fieldColumns = columns.map((column) => (column < 0 ? abi.NO_COLUMN : column));
  const targets = [...new Set(fieldColumns)].sort((a, b) => a - b);
  numbers[(shape + abi.SHAPE_COLUMNS) / 4] = Number.isFinite(columnCount) ? columnCount : abi.ANY_COLUMNS;
  numbers[(shape + abi.SHAPE_DELIMITER) / 4] = delimiter.charCodeAt(0);
  numbers[(shape + abi.SHAPE_STYLE) / 4] = stylesOf(input).indexOf(delimiter);
  numbers[(shape + abi.SHAPE_TAB_STYLE) / 4] = mayHaveTabs ? stylesOf(input).indexOf('\t') : abi.NO_TABS;
  numbers[(shape + abi.SHAPE_TARGET_COUNT) / 4] = targets.length;
  numbers.set(targets, (shape + abi.SHAPE_TARGETS) / 4);
  numbers.set(
    fieldColumns.map((column) => targets.indexOf(column)),
    fieldTargets / 4,
  );
}
