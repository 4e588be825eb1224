/** What the kernel needs to know of a range, if networks or blocks are asked for: see `ROW_…` in abi.ts. */
import type { Family } from '../../address/parse.js';
import { addressWords, previousAddress } from '../../address/words.js';
import { formatCidr, rangeToCidrs } from '../../range/cidr.js';
import type { RangeColumns } from '../../range/columns.js';
import { combine, Pairs } from '../../range/cut.js';
import { type Cell, cellsOf, RECORD_KINDS, RECORD_WORD, RECORD_WORDS } from '../../rangefile/layout.js';
import { columns4, columns6 } from '../../rangefile/memory.js';
import { LABELS, NETWORKS, type Partition } from '../../rangefile/partitions.js';
import { type NetworkFile, type PartitionFile, rangeColumns } from '../../rangefile/reader.js';
import { type CountryAnswer, openMembers, resultFormat, resultTexts } from '../formats/results.js';
import { type Addable, otherPartitionOf, otherPartitionsOf } from '../members.js';
import type { NetworkCount } from '../query.js';
import { type EnrichRanges, isOverTime, openedLabels } from '../ranges.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';

const NETWORK = RECORD_KINDS.indexOf('network');
const EMBEDDED = RECORD_KINDS.indexOf('embedded');

/** Returns the AS number of each record of a file; 0 for those that are not of a network. */
export function asNumbers(networks: NetworkFile): Uint32Array {
  const { recordWords: words } = networks;
  const numbers = new Uint32Array(words.length / RECORD_WORDS);
  for (let record = 0, at = 0; record < numbers.length; record++, at += RECORD_WORDS) {
    if ((words[at + RECORD_WORD.kind]! & 0xff) === NETWORK) numbers[record] = words[at + RECORD_WORD.asn]!;
  }
  return numbers;
}

/** The CIDR blocks of a family that a query counts. */
interface BlockColumns extends RangeColumns {
  /** Prefix length of each block in bits, and the record of its network. */
  prefix: Uint8Array;
  record: Uint32Array;
}
export type NetworkBlocks = Record<Family, BlockColumns>;

/**
 * Cuts the ranges of networks into CIDR blocks; those without a network stay as they are.
 *
 * @param start the number of the first block; the numbers are the values
 */
function cutIntoBlocks(networks: NetworkFile, family: Family, asns: Uint32Array, start: number): BlockColumns {
  const ranges = rangeColumns(networks, family);
  const words = addressWords(family);
  const firsts: number[] = [];
  const prefixes: number[] = [];
  const records: number[] = [];
  const add = (first: Uint32Array, prefix: number, record: number): void => {
    firsts.push(...first);
    prefixes.push(prefix);
    records.push(record);
  };
  const last = new Uint32Array(words);
  for (let range = 0; range < ranges.count; range++) {
    const record = ranges.value[range]!;
    const first = ranges.first.slice(words * range, words * (range + 1));
    if (range + 1 === ranges.count) last.fill(0xffff_ffff);
    else previousAddress(ranges.first, range + 1, words, last);
    if (asns[record] === 0) add(first, 0, record);
    else rangeToCidrs(family, first, last, (block, prefix) => add(block, prefix, record));
  }
  return {
    family,
    count: records.length,
    first: Uint32Array.from(firsts),
    value: Uint32Array.from(records, (_, block) => start + block),
    prefix: Uint8Array.from(prefixes),
    record: Uint32Array.from(records),
  };
}

function blocksOf(networks: NetworkFile): NetworkBlocks {
  const asns = asNumbers(networks);
  const v4 = cutIntoBlocks(networks, 4, asns, 0);
  return { 4: v4, 6: cutIntoBlocks(networks, 6, asns, v4.count) };
}

/**
 * Returns the networks that were counted.
 *
 * @param counts by record, or by block
 */
export function countedNetworks(
  counts: readonly number[],
  { records }: NetworkFile,
  blocks: NetworkBlocks | undefined,
): NetworkCount[] {
  const networkOf = (number: number): Omit<NetworkCount, 'count'> | undefined => {
    const record = records[number]!;
    return record.kind === 'network' ? { asn: record.asn, as_name: record.name || null } : undefined;
  };
  const blockOf = ({ 4: v4, 6: v6 }: NetworkBlocks, number: number): Omit<NetworkCount, 'count'> | undefined => {
    const { family, value, first, prefix, record } = number < v4.count ? v4 : v6;
    const block = number - value[0]!;
    const words = addressWords(family);
    const network = networkOf(record[block]!);
    const start = first.subarray(words * block, words * (block + 1));
    return network && { network: formatCidr(family, start, prefix[block]!), ...network };
  };
  return counts.flatMap((count, number) => {
    const counted = count === 0 ? undefined : blocks === undefined ? networkOf(number) : blockOf(blocks, number);
    return counted === undefined ? [] : [{ ...counted, count }];
  });
}

/** Numbers answers: equal ones have one number. */
function numbersOf(answers: readonly string[]): Uint32Array {
  const known = new Map<string, number>();
  return Uint32Array.from(answers, (answer) => {
    const number = known.get(answer) ?? known.size;
    known.set(answer, number);
    return number;
  });
}

/** Returns the number of what each record of the countries answers. */
function recordAnswers(
  ranges: EnrichRanges,
  answers: readonly CountryAnswer[],
  add: readonly Addable[],
  hasNetworks: boolean,
): Uint32Array {
  const open = openMembers(add, openedLabels(ranges));
  const asked = add.filter((name) => !open.includes(name));
  // The block of nothing else is that of the record. Beside networks, it only matters whether an IPv4 address inside decides.
  if (asked.length === 0 && hasNetworks)
    return Uint32Array.from(ranges.records, ({ kind }) => Number(kind === 'embedded'));
  const format = resultFormat({ kind: 'jsonl' }, add, '', ',');
  const textOf = (answer: CountryAnswer): string =>
    JSON.stringify(asked.length === 0 ? answer : resultTexts(format, asked, [], answer));
  return numbersOf(
    ranges.records.map((record, index) => (record.kind === 'embedded' ? record.scheme : textOf(answers[index]!))),
  );
}

/** Returns the number of what each record of the networks answers. */
function networkAnswers(networks: NetworkFile, add: readonly Addable[]): Uint32Array {
  if (add.includes('asn')) {
    const { recordWords: words } = networks;
    const isEmbedded = (record: number): boolean => (words[record * RECORD_WORDS]! & 0xff) === EMBEDDED;
    // A number has one record. The last numbers of all are reserved (RFC 7300).
    return asNumbers(networks).map((asn, record) => (isEmbedded(record) ? 0xffff_ffff - record : asn));
  }
  return numbersOf(
    networks.records.map((record) => {
      if (record.kind === 'network') return `"${record.name}`;
      return record.kind === 'embedded' ? record.scheme : '"';
    }),
  );
}

/** Returns the values of a column of rows, by record: null for those without. */
export function columnValues({ records, columns = [] }: PartitionFile, name: Addable): Cell[] {
  const column = columns.indexOf(name);
  return records.map((record) => {
    return record.kind === 'label' ? (cellsOf(record)[column] ?? null) : null;
  });
}

/** Returns the number of what each record of a partition besides the countries answers. */
function otherAnswers(partition: Partition, file: PartitionFile, add: readonly Addable[], labels: readonly string[]) {
  if (partition === NETWORKS) return networkAnswers(file as NetworkFile, add);
  const own = add.filter((name) => otherPartitionOf(name, labels) === partition);
  const values = own.map((name) => columnValues(file, name));
  return numbersOf(
    file.records.map((record, index) =>
      record.kind === 'embedded' ? record.scheme : JSON.stringify(values.map((column) => column[index])),
    ),
  );
}

/**
 * The partitions besides the countries of which something is asked for, as one. The values of its ranges are the records of the one
 * partition, or, of several, numbers of combinations of their records.
 */
export interface OtherRows {
  files: ReadonlyMap<Partition, PartitionFile>;
  columns: PartitionColumns;
  /** The number of records, or of combinations. */
  count: number;
  /** For each partition, its record in each combination; undefined for a single partition. */
  records: ReadonlyMap<Partition, Uint32Array> | undefined;
}

/** Joins partitions, at least one; they are cut where one of them begins another range. */
function joinPartitions(files: OtherRows['files']): OtherRows {
  const [[partition, file], ...more] = [...files] as [[Partition, PartitionFile], ...[Partition, PartitionFile][]];
  if (more.length === 0) return { files, columns: file, count: file.recordCount, records: undefined };
  let joined = { 4: rangeColumns(file, 4), 6: rangeColumns(file, 6) };
  let records = new Map([[partition, Uint32Array.from({ length: file.recordCount }, (_, record) => record)]]);
  for (const [other, otherFile] of more) {
    const pairs = new Pairs();
    const join = (family: Family) => combine(joined[family], rangeColumns(otherFile, family), pairs.numberOf);
    joined = { 4: join(4), 6: join(6) };
    records = new Map([...records].map(([each, of]) => [each, Uint32Array.from(pairs.first, (number) => of[number]!)]));
    records.set(other, Uint32Array.from(pairs.second));
  }
  return { files, columns: columnsOfRanges(joined), count: records.get(partition)!.length, records };
}

/** Returns the number of what each record or combination of records answers. */
function joinedAnswers({ files, count, records }: OtherRows, add: readonly Addable[]): Uint32Array {
  const labels = files.get(LABELS)?.columns ?? [];
  const answers = [...files].map(([partition, file]) => otherAnswers(partition, file, add, labels));
  if (records === undefined) return answers[0]!;
  const columns = [...records.values()];
  return numbersOf(
    Array.from({ length: count }, (_, number) => answers.map((each, i) => each[columns[i]![number]!]).join()),
  );
}

/** What is asked for besides the country of a record. */
export interface AskedRows {
  /** The members asked for. */
  add: readonly Addable[];
  /** What is said of each record of the countries. */
  answers: readonly CountryAnswer[];
  /** Whether a query counts the blocks of networks. */
  countsBlocks: boolean;
}

/** The columns of both families that the kernel makes rows of. */
type PartitionColumns = Pick<EnrichRanges, 'count4' | 'start4' | 'record4' | 'count6' | 'high6' | 'low6' | 'record6'>;

/** A partition of both families, and for each of its records the number of what it answers, if blocks are asked for. */
interface AskedPartition {
  columns: PartitionColumns;
  answers: Uint32Array | undefined;
}

function columnsOfRanges({ 4: v4, 6: v6 }: Record<Family, RangeColumns>): PartitionColumns {
  return { ...columns4(v4), ...columns6(v6) };
}

/** Places the partitions of a family, see `PARTITION_…` in abi.ts. */
function placePartitions(plan: MemoryPlan, partitions: readonly AskedPartition[], family: Family): number[] {
  return partitions.flatMap(({ columns, answers }) => {
    const records = columns[`record${family}`];
    return [
      columns[`count${family}`],
      plan.place(family === 4 ? columns.start4 : columns.high6),
      family === 4 ? 0 : plan.place(columns.low6),
      plan.place(records),
      records.BYTES_PER_ELEMENT,
      answers === undefined ? 0 : plan.place(answers),
      0,
    ];
  });
}

/**
 * Places what the kernel makes rows of.
 *
 * @returns the settings; the most IPv4 and IPv6 ranges that there can be; the partitions besides the countries, if something of them is
 *   asked for; the number of their records, of the combinations of these, or of the blocks of networks, if those are counted.
 *   Undefined if nothing of other partitions and blocks is asked for
 */
export function placeRows(plan: MemoryPlan, file: EnrichRanges, { add, answers, countsBlocks }: AskedRows) {
  const wantsBlock = add.includes('network');
  const asked = otherPartitionsOf(add, openedLabels(file));
  if (!wantsBlock && asked.length === 0) return undefined;
  const opened = isOverTime(file) ? [] : (file.others?.entries() ?? []);
  const files = new Map(opened.filter(([partition]) => asked.includes(partition)));
  const others = files.size === 0 ? undefined : joinPartitions(files);
  const blocks = countsBlocks ? blocksOf(files.get(NETWORKS) as NetworkFile) : undefined;
  const partitions: AskedPartition[] = [
    {
      columns: file,
      answers: wantsBlock ? recordAnswers(file, answers, add, others !== undefined) : undefined,
    },
  ];
  if (others !== undefined) {
    partitions.push({
      columns: blocks === undefined ? others.columns : columnsOfRanges(blocks),
      answers: wantsBlock ? joinedAnswers(others, add) : undefined,
    });
  }
  const most = (family: Family): number => partitions.reduce((sum, { columns }) => sum + columns[`count${family}`], 0);
  const [count4, count6] = [most(4), most(6)];
  const table = plan.place(
    Uint32Array.from(([4, 6] as const).flatMap((family) => placePartitions(plan, partitions, family))),
  );
  return {
    settings: {
      rows4: plan.reserve(abi.ROW_BYTES * count4),
      rows6: plan.reserve(abi.ROW_BYTES * count6),
      partitions4: table,
      partitions6: table + partitions.length * abi.PARTITION_BYTES,
    },
    count4,
    count6,
    numberCount: blocks === undefined ? (others?.count ?? 0) : blocks[4].count + blocks[6].count,
    blocks,
    others,
  };
}
