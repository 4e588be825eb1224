/** What the kernel needs to know of a range, if networks or blocks are asked for: see `ROW_…` in abi.ts. */
import type { Family } from '../../address/parse.js';
import { addressWords, previousAddress } from '../../address/words.js';
import { formatCidr, rangeToCidrs } from '../../range/cidr.js';
import type { RangeColumns } from '../../range/columns.js';
import { type CutRanges, cutRanges } from '../../range/cut.js';
import { RECORD_KINDS, RECORD_WORD, RECORD_WORDS } from '../../rangefile/layout.js';
import { splitIPv6 } from '../../rangefile/memory.js';
import { type NetworkFile, rangeColumns } from '../../rangefile/reader.js';
import { buildIndex } from '../../rangefile/search.js';
import { type CountryAnswer, openMembers, resultFormat, resultTexts } from '../formats/results.js';
import { type Addable, NETWORK_MEMBERS } from '../members.js';
import type { NetworkCount } from '../query.js';
import { type EnrichRanges, isOverTime } from '../ranges.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';

const NETWORK = RECORD_KINDS.indexOf('network');
const EMBEDDED = RECORD_KINDS.indexOf('embedded');

/** Returns the number of records; 0 without a file. */
function recordCount(networks: NetworkFile | undefined): number {
  return networks === undefined ? 0 : networks.recordWords.length / RECORD_WORDS;
}

/** Returns the AS number of each record of a file; 0 for those that are not of a network. */
export function asNumbers(networks: NetworkFile): Uint32Array {
  const { recordWords: words } = networks;
  const numbers = new Uint32Array(recordCount(networks));
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
  { records }: EnrichRanges,
  answers: readonly CountryAnswer[],
  add: readonly Addable[],
  hasNetworks: boolean,
): Uint32Array {
  const open = openMembers(add);
  const asked = add.filter((name) => !open.includes(name));
  // The block of nothing else is that of the record.
  if (asked.length === 0 && hasNetworks) return new Uint32Array(records.length);
  const format = resultFormat({ kind: 'jsonl' }, add, '', ',');
  const textOf = (answer: CountryAnswer): string =>
    JSON.stringify(asked.length === 0 ? answer : resultTexts(format, asked, answer));
  return numbersOf(
    records.map((record, index) => (record.kind === 'embedded' ? record.scheme : textOf(answers[index]!))),
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

/** What is asked for besides the country of a record. */
export interface AskedRows {
  /** The members asked for. */
  add: readonly Addable[];
  /** What is said of each record of the countries. */
  answers: readonly CountryAnswer[];
  /** Whether a query counts the blocks of networks. */
  countsBlocks: boolean;
}

/** The columns that the kernel searches in. */
type Columns = Pick<EnrichRanges, 'count4' | 'start4' | 'record4' | 'index4' | 'count6' | 'high6' | 'low6' | 'record6'>;

/**
 * Places what rows are made of; the kernel makes them.
 *
 * @returns the settings; the ranges to search in, cut where the country or the network changes; the number of networks, or of
 *   their blocks if those are counted
 */
export function placeRows(
  plan: MemoryPlan,
  file: EnrichRanges,
  { add, answers, countsBlocks }: AskedRows,
): {
  settings: Record<string, number>;
  columns: Columns;
  networkCount: number;
  blocks?: NetworkBlocks | undefined;
} {
  const wantsBlock = add.includes('network');
  const wantsNetwork = add.some((name) => NETWORK_MEMBERS.includes(name));
  if (!wantsBlock && !wantsNetwork) {
    return { settings: { isDirect: Number(!isOverTime(file)) }, columns: file, networkCount: 0 };
  }
  const networks = wantsNetwork && !isOverTime(file) ? file.networks : undefined;
  const blocks = countsBlocks && networks !== undefined ? blocksOf(networks) : undefined;
  const cut = (family: Family): CutRanges => {
    const own = rangeColumns(file, family);
    if (networks === undefined) return cutRanges([own]);
    return cutRanges([own, blocks?.[family] ?? rangeColumns(networks, family)]);
  };
  const [v4, v6] = [cut(4), cut(6)];
  const { high, low } = splitIPv6(v6.count, v6.first);
  const [[record4, network4], [record6, network6]] = [v4.values, v6.values];
  return {
    settings: {
      isDirect: 0,
      rows4: plan.reserve(abi.ROW_BYTES * v4.count),
      rows6: plan.reserve(abi.ROW_BYTES * v6.count),
      network4: network4 === undefined ? 0 : plan.place(network4),
      network6: network6 === undefined ? 0 : plan.place(network6),
      recordAnswers: wantsBlock ? plan.place(recordAnswers(file, answers, add, networks !== undefined)) : 0,
      networkAnswers: wantsBlock && networks !== undefined ? plan.place(networkAnswers(networks, add)) : 0,
    },
    columns: {
      count4: v4.count,
      start4: v4.first,
      record4: Uint32Array.from(record4!),
      index4: buildIndex(v4.count, v4.first),
      count6: v6.count,
      high6: high,
      low6: low,
      record6: Uint32Array.from(record6!),
    },
    networkCount: blocks === undefined ? recordCount(networks) : blocks[4].count + blocks[6].count,
    blocks,
  };
}
