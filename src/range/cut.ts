/** Partitions of the address space that are seen as one: neighbors with the same answer joined, or all cut where one of them changes. */
import { addressWords, compareAddresses } from '../address/words.js';
import type { RangeColumns } from './columns.js';

/**
 * Joins neighbors whose values have the same answer.
 *
 * @param answers the number of the answer of each value
 * @returns ranges with the answers as values
 */
export function joinRanges({ family, count, first, value }: RangeColumns, answers: Uint32Array): RangeColumns {
  const words = addressWords(family);
  const firsts = new Uint32Array(first.length);
  const joined = new Uint32Array(count);
  let length = 0;
  for (let range = 0; range < count; range++) {
    const answer = answers[value[range]!]!;
    if (length > 0 && joined[length - 1] === answer) continue;
    for (let k = 0; k < words; k++) firsts[words * length + k] = first[words * range + k]!;
    joined[length++] = answer;
  }
  return { family, count: length, first: firsts.slice(0, words * length), value: joined.slice(0, length) };
}

/** Ranges within which none of several partitions changes, with the value of each of them. */
export interface CutRanges extends Pick<RangeColumns, 'family' | 'count' | 'first'> {
  values: RangeColumns['value'][];
}

/** Returns the elements of a column at some places. */
function pick(column: RangeColumns['value'], places: Uint32Array): Uint32Array {
  const picked = new Uint32Array(places.length);
  for (let i = 0; i < places.length; i++) picked[i] = column[places[i]!]!;
  return picked;
}

/** Cuts partitions of a family where one of them begins another range. */
export function cutRanges([partition, ...others]: readonly [RangeColumns, ...RangeColumns[]]): CutRanges {
  const { value, ...whole } = partition;
  return others.reduce(cutInTwo, { ...whole, values: [value] });
}

function cutInTwo({ family, count: countA, first: a, values }: CutRanges, other: RangeColumns): CutRanges {
  const { count: countB, first: b } = other;
  const words = addressWords(family);
  const first = new Uint32Array(a.length + b.length);
  // The ranges of both that each range of the result is in.
  const rangeA = new Uint32Array(countA + countB);
  const rangeB = new Uint32Array(countA + countB);
  let count = 0;
  for (let i = 0, k = 0; i < countA || k < countB; count++) {
    const order = i === countA ? 1 : k === countB ? -1 : compareAddresses(a, i, b, k, words);
    const from = order <= 0 ? a : b;
    const at = words * (order <= 0 ? i : k);
    for (let word = 0; word < words; word++) first[words * count + word] = from[at + word]!;
    if (order <= 0) i++;
    if (order >= 0) k++;
    rangeA[count] = i - 1;
    rangeB[count] = k - 1;
  }
  const [placesA, placesB] = [rangeA.subarray(0, count), rangeB.subarray(0, count)];
  return {
    family,
    count,
    first: first.subarray(0, words * count),
    values: [...values.map((column) => pick(column, placesA)), pick(other.value, placesB)],
  };
}
