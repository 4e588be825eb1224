/** The ranges of the address space within which everything that was asked for is the same: the blocks of addresses follow from them. */
import type { PartitionFile } from '../../rangefile/reader.js';
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

/**
 * Cuts two partitions of a family at the starts of both.
 *
 * @param visit receives each range: the one of the partition that begins with it, and what both partitions answer
 */
function cut(
  first: Changes,
  second: Changes | undefined,
  compare: (i: number, k: number) => number,
  visit: (ofFirst: boolean, range: number, answer: number, other: number) => void,
): void {
  const endFirst = first.ranges.length;
  const endSecond = second?.ranges.length ?? 0;
  for (let i = 0, k = 0; i < endFirst || k < endSecond; ) {
    const order = i === endFirst ? 1 : k === endSecond ? -1 : compare(first.ranges[i]!, second!.ranges[k]!);
    const range = order <= 0 ? first.ranges[i]! : second!.ranges[k]!;
    if (order <= 0) i++;
    if (order >= 0) k++;
    visit(order <= 0, range, first.answers[i - 1]!, second === undefined ? 0 : second.answers[k - 1]!);
  }
}

/**
 * Returns the ranges within which neither of two partitions of the address space changes its answer.
 *
 * @param first of the countries; @param second of the networks, if they are asked for
 */
export function askedRanges(first: AskedPartition, second: AskedPartition | undefined): AskedRanges {
  const [a, b] = [first.file, second?.file ?? first.file];
  const most = (family: 4 | 6) =>
    family === 4 ? a.count4 + (second?.file.count4 ?? 0) : a.count6 + (second?.file.count6 ?? 0);
  const start4 = new Uint32Array(most(4));
  const answer4 = new Uint32Array(most(4));
  let count4 = 0;
  cut(
    changesOf(first, 4),
    second && changesOf(second, 4),
    (i, k) => a.start4[i]! - b.start4[k]!,
    (ofFirst, range, _, other) => {
      start4[count4] = (ofFirst ? a : b).start4[range]!;
      answer4[count4++] = other >>> SCHEME_BITS;
    },
  );
  const high6 = new Uint32Array(2 * most(6));
  const low6 = new Uint32Array(2 * most(6));
  const answer6 = new Uint32Array(most(6));
  const scheme6 = new Uint32Array(most(6));
  let count6 = 0;
  cut(
    changesOf(first, 6),
    second && changesOf(second, 6),
    (i, k) => compare6(a, i, b, k),
    (ofFirst, range, answer, other) => {
      const { high6: high, low6: low } = ofFirst ? a : b;
      for (let word = 0; word < 2; word++) {
        high6[2 * count6 + word] = high[2 * range + word]!;
        low6[2 * count6 + word] = low[2 * range + word]!;
      }
      scheme6[count6] = answer & SCHEMES || other & SCHEMES;
      answer6[count6++] = other >>> SCHEME_BITS;
    },
  );
  return {
    start4: start4.slice(0, count4),
    index4: buildIndex(count4, (range) => start4[range]! >>> 16),
    answer4: answer4.slice(0, count4),
    high6: high6.slice(0, 2 * count6),
    low6: low6.slice(0, 2 * count6),
    answer6: answer6.slice(0, count6),
    scheme6: scheme6.slice(0, count6),
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
