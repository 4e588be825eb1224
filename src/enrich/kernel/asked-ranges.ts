/** The ranges of the address space within which everything that was asked for is the same: the blocks of addresses follow from them. */
import type { RangeFile } from '../../rangefile/reader.js';
import { buildIndex } from '../../rangefile/search.js';

/** Ranges in columns, as those of a range file. */
export interface AskedRanges {
  start4: Uint32Array;
  /** For each value of the first 16 bits of an address, the number of ranges that begin below it. */
  index4: Uint32Array;
  high6: Uint32Array;
  low6: Uint32Array;
  /** A `SCHEME_…` code of abi.ts for each IPv6 range. */
  scheme6: Uint32Array;
}

/** Returns the ranges that do not have the answer of the range before them. */
function changes(answers: Uint32Array, records: Uint16Array): Uint32Array {
  return Uint32Array.from(records.keys()).filter((range) => {
    return range === 0 || answers[records[range]!] !== answers[records[range - 1]!];
  });
}

/** Returns the elements of a column of numbers of 64 bits, two words each. */
function pick64(column: Uint32Array, ranges: Uint32Array): Uint32Array {
  const picked = new Uint32Array(2 * ranges.length);
  ranges.forEach((range, index) => {
    picked[2 * index] = column[2 * range]!;
    picked[2 * index + 1] = column[2 * range + 1]!;
  });
  return picked;
}

/**
 * Joins the ranges of a release whose answers are the same.
 *
 * @param answers for each record, a text that says all that was asked for
 * @param schemes for each record, a `SCHEME_…` code of abi.ts
 */
export function joinRanges(file: RangeFile, answers: readonly string[], schemes: readonly number[]): AskedRanges {
  const keys = answers.map((answer, record) => `${schemes[record]} ${answer}`);
  const numbers = new Map([...new Set(keys)].map((key, number) => [key, number]));
  const numberOf = Uint32Array.from(keys, (key) => numbers.get(key)!);
  const ranges4 = changes(numberOf, file.record4);
  const ranges6 = changes(numberOf, file.record6);
  const start4 = ranges4.map((range) => file.start4[range]!);
  return {
    start4,
    index4: buildIndex(start4.length, (range) => start4[range]! >>> 16),
    high6: pick64(file.high6, ranges6),
    low6: pick64(file.low6, ranges6),
    scheme6: ranges6.map((range) => schemes[file.record6[range]!]!),
  };
}
