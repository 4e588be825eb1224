/** The ranges of the address space within which everything that was asked for is the same: the blocks of addresses follow from them. */
import { previousAddress } from '../../address/words.js';
import { formatCidr, rangeToCidrs } from '../../range/cidr.js';
import { firstIPv6, type PartitionFile } from '../../rangefile/reader.js';
import { buildIndex, type SearchColumns } from '../../rangefile/search.js';

/** The columns of a partition. */
export type PartitionColumns = Pick<
  PartitionFile,
  'count4' | 'start4' | 'record4' | 'count6' | 'high6' | 'low6' | 'record6'
>;

/** A partition, with a number for what was asked for of each record, and a `SCHEME_…` code of abi.ts. */
export interface AskedPartition {
  file: PartitionColumns;
  answers: Uint32Array;
  schemes: Uint8Array;
}

/** Ranges in columns, as those of a range file. */
export interface AskedRanges extends Pick<SearchColumns, 'high6' | 'low6'> {
  start4: Uint32Array;
  /** For each value of the first 16 bits of an address, the number of ranges that begin below it. */
  index4: Uint32Array;
  /** The answer of the second partition for each range. */
  answer4: Uint32Array;
  answer6: Uint32Array;
  /** For each IPv6 range, the scheme of either partition. */
  scheme6: Uint32Array;
}

/** A family of a partition, reduced to the ranges that differ from the one before. */
interface Changes {
  /** The ranges, by their index in the file, and for each its answer, with its scheme in the last two bits. */
  ranges: Uint32Array;
  answers: Uint32Array;
}

const SCHEME_BITS = 2;
const SCHEMES = 3;

function changesOf({ file, answers, schemes }: AskedPartition, family: 4 | 6): Changes {
  const records = family === 4 ? file.record4 : file.record6;
  const ranges = new Uint32Array(records.length);
  const kept = new Uint32Array(records.length);
  let count = 0;
  for (let range = 0; range < records.length; range++) {
    const record = records[range]!;
    const answer = (answers[record]! << SCHEME_BITS) | schemes[record]!;
    if (count > 0 && kept[count - 1] === answer) continue;
    ranges[count] = range;
    kept[count++] = answer;
  }
  return { ranges: ranges.subarray(0, count), answers: kept.subarray(0, count) };
}

/** Compares the starts of two IPv6 ranges. */
function compare6(a: PartitionColumns, i: number, b: PartitionColumns, k: number): number {
  return (
    a.high6[2 * i + 1]! - b.high6[2 * k + 1]! ||
    a.high6[2 * i]! - b.high6[2 * k]! ||
    a.low6[2 * i + 1]! - b.low6[2 * k + 1]! ||
    a.low6[2 * i]! - b.low6[2 * k]!
  );
}

/** Where two partitions of a family change: for each range, the range of either that begins with it, and both answers. */
interface Cuts {
  count: number;
  /** A range of the first partition, or that of the second plus `SECOND`. */
  ranges: Uint32Array;
  first: Uint32Array;
  second: Uint32Array;
}

/** Marks a range of the second partition. */
const SECOND = 0x8000_0000;

/** Cuts two partitions of a family at the starts of both. */
function cut(first: Changes, second: Changes | undefined, compare: (i: number, k: number) => number): Cuts {
  const { length: endFirst } = first.ranges;
  const endSecond = second?.ranges.length ?? 0;
  const ranges = new Uint32Array(endFirst + endSecond);
  const answers = [new Uint32Array(ranges.length), new Uint32Array(ranges.length)] as const;
  let count = 0;
  for (let i = 0, k = 0; i < endFirst || k < endSecond; count++) {
    const order = i === endFirst ? 1 : k === endSecond ? -1 : compare(first.ranges[i]!, second!.ranges[k]!);
    ranges[count] = order <= 0 ? first.ranges[i]! : second!.ranges[k]! + SECOND;
    if (order <= 0) i++;
    if (order >= 0) k++;
    answers[0][count] = first.answers[i - 1]!;
    if (second !== undefined) answers[1][count] = second.answers[k - 1]!;
  }
  return { count, ranges, first: answers[0], second: answers[1] };
}

/**
 * Returns the ranges within which neither of two partitions of the address space changes its answer.
 *
 * @param first of the countries; @param second of the networks, if they are asked for
 */
export function askedRanges(first: AskedPartition, second: AskedPartition | undefined): AskedRanges {
  const [a, b] = [first.file, second?.file ?? first.file];
  const cuts4 = cut(changesOf(first, 4), second && changesOf(second, 4), (i, k) => a.start4[i]! - b.start4[k]!);
  const start4 = new Uint32Array(cuts4.count);
  const answer4 = new Uint32Array(cuts4.count);
  for (let i = 0; i < cuts4.count; i++) {
    const range = cuts4.ranges[i]!;
    start4[i] = range < SECOND ? a.start4[range]! : b.start4[range - SECOND]!;
    answer4[i] = cuts4.second[i]! >>> SCHEME_BITS;
  }
  const cuts6 = cut(changesOf(first, 6), second && changesOf(second, 6), (i, k) => compare6(a, i, b, k));
  const high6 = new Uint32Array(2 * cuts6.count);
  const low6 = new Uint32Array(2 * cuts6.count);
  const answer6 = new Uint32Array(cuts6.count);
  const scheme6 = new Uint32Array(cuts6.count);
  for (let i = 0; i < cuts6.count; i++) {
    const { high6: high, low6: low } = cuts6.ranges[i]! < SECOND ? a : b;
    const range = cuts6.ranges[i]! % SECOND;
    high6[2 * i] = high[2 * range]!;
    high6[2 * i + 1] = high[2 * range + 1]!;
    low6[2 * i] = low[2 * range]!;
    low6[2 * i + 1] = low[2 * range + 1]!;
    scheme6[i] = cuts6.first[i]! & SCHEMES || cuts6.second[i]! & SCHEMES;
    answer6[i] = cuts6.second[i]! >>> SCHEME_BITS;
  }
  const index4 = buildIndex(cuts4.count, start4);
  return { start4, index4, answer4, high6, low6, answer6, scheme6 };
}

/** A block of an {@link AskedRanges}, and the answer of its range. */
export interface AskedBlock {
  network: string;
  answer: number;
}

/** Cuts ranges into CIDR blocks; the answer of each is its index among `blocks`. Blocks without an answer that is wanted have none. */
export function blocksOf(
  ranges: AskedRanges,
  isWanted: (answer: number) => boolean,
): AskedRanges & { blocks: AskedBlock[] } {
  // The first one is for all others.
  const blocks: AskedBlock[] = [{ network: '', answer: -1 }];
  const columns = {
    4: { first: [] as number[], answer: [] as number[] },
    6: { first: [] as number[], answer: [] as number[] },
  };
  const scheme6: number[] = [];
  for (const family of [4, 6] as const) {
    const words = family === 4 ? 1 : 4;
    const answers = family === 4 ? ranges.answer4 : ranges.answer6;
    const first = new Uint32Array(words);
    const last = new Uint32Array(words);
    const firstOf = (range: number, into: Uint32Array): void => {
      if (family === 4) into[0] = ranges.start4[range]!;
      else firstIPv6(ranges as unknown as SearchColumns, range, into);
    };
    for (let range = 0; range < answers.length; range++) {
      const answer = answers[range]!;
      firstOf(range, first);
      if (range + 1 === answers.length) last.fill(0xffff_ffff);
      else {
        firstOf(range + 1, last);
        previousAddress(last, 0, words, last);
      }
      const add = (start: Uint32Array, index: number): void => {
        columns[family].first.push(...start);
        columns[family].answer.push(index);
        if (family === 6) scheme6.push(ranges.scheme6[range]!);
      };
      if (!isWanted(answer)) add(first, 0);
      else {
        rangeToCidrs(family, first, last, (start, prefix) => {
          add(start, blocks.push({ network: formatCidr(family, start, prefix), answer }) - 1);
        });
      }
    }
  }
  const start4 = Uint32Array.from(columns[4].first);
  const words6 = columns[6].first;
  const halves = (at: number): Uint32Array =>
    Uint32Array.from({ length: words6.length / 2 }, (_, i) => words6[4 * (i >> 1) + at + 1 - (i & 1)]!);
  return {
    start4,
    index4: buildIndex(start4.length, start4),
    answer4: Uint32Array.from(columns[4].answer),
    high6: halves(0),
    low6: halves(2),
    answer6: Uint32Array.from(columns[6].answer),
    scheme6: Uint32Array.from(scheme6),
    blocks,
  };
}

/** Numbers texts: equal ones have one number. */
export function numbersOf(texts: readonly string[]): Uint32Array {
  const known = new Map<string, number>();
  return Uint32Array.from(texts, (text) => {
    const number = known.get(text) ?? known.size;
    known.set(text, number);
    return number;
  });
}
