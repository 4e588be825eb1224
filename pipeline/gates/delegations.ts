/**
 * How many delegations changed between two releases. In IPv6, a few /19s have most of the addresses with a country, so
 * that thousands of networks may change without a visible effect on shares of addresses.
 */
import { addressWords, compareAddresses, copyAddress, nextAddress, previousAddress } from '../../src/address/words.js';
import { isCountryLabel, type RangeList, segments } from '../../src/database/diff.js';
import { type BoundedRanges, RangeBuilder } from '../../src/range/columns.js';
import type { Flows } from './measures.js';

/** Smallest delegation that counts, in IPv6 addresses: a /48, the size of one site (RFC 6177). */
const SMALLEST = 2 ** 80;

/**
 * Returns the number of addresses between two addresses, both included, to a relative error of about 2^-50.
 *
 * @param i index of the first address in its column
 * @param j index of the last address in its column
 */
function approximateSize(first: Uint32Array, i: number, last: Uint32Array, j: number, words: number): number {
  let size = 0;
  for (let k = 0; k < words; k++) size = size * 2 ** 32 + (last[j * words + k]! - first[i * words + k]!);
  return size + 1;
}

/** Returns the delegations in ascending order, without those inside others. */
function sortedDelegations({ family, count, first, last }: BoundedRanges): BoundedRanges {
  const words = addressWords(family);
  const order = Array.from({ length: count }, (_, index) => index).sort(
    (a, b) => compareAddresses(first, a, first, b, words) || compareAddresses(last, b, last, a, words),
  );
  const sorted = new RangeBuilder(family, count);
  let previous = -1;
  for (const index of order) {
    if (previous >= 0 && compareAddresses(first, index, last, previous, words) <= 0) continue;
    sorted.add(first.slice(index * words, (index + 1) * words), last.slice(index * words, (index + 1) * words), 0, 0);
    previous = index;
  }
  return sorted.finish();
}

/**
 * Returns what is counted, in ascending order: the delegations, and outside of them the ranges with a country of the
 * earlier release. So a delegation that is gone counts, too.
 */
function blocksOf({ family, count, first, value, labels }: RangeList, delegations: BoundedRanges): BoundedRanges {
  const words = addressWords(family);
  const blocks = new RangeBuilder(family, count + delegations.count);
  const start = new Uint32Array(words);
  const end = new Uint32Array(words);
  let next = 0;
  for (let i = 0; i < count; i++) {
    copyAddress(first, i, words, start);
    previousAddress(first, (i + 1) % count, words, end);
    const hasCountry = isCountryLabel(labels[value[i]!]!);
    // The part of the range that is not yet in a block begins at `start`, unless there is none.
    let isLeft = next === 0 || compareAddresses(delegations.last, next - 1, end, 0, words) < 0;
    if (isLeft && next > 0 && compareAddresses(delegations.last, next - 1, start, 0, words) >= 0) {
      nextAddress(delegations.last, next - 1, words, start);
    }
    for (; next < delegations.count && compareAddresses(delegations.first, next, end, 0, words) <= 0; next++) {
      if (hasCountry && compareAddresses(delegations.first, next, start, 0, words) > 0) {
        const before = new Uint32Array(words);
        previousAddress(delegations.first, next, words, before);
        blocks.add(start, before, 0, 0);
      }
      blocks.add(delegations.first, delegations.last, next, 0);
      isLeft = compareAddresses(delegations.last, next, end, 0, words) < 0;
      if (isLeft) nextAddress(delegations.last, next, words, start);
    }
    if (hasCountry && isLeft) blocks.add(start, end, 0, 0);
  }
  return blocks.finish();
}

/**
 * Returns blocks in the place of delegations that are not known: the ranges with a country of a release, those in the same
 * /32 as one. A /32 is the smallest allocation to a provider; a database that follows its customers has many ranges in it.
 */
export function providerBlocks({ count, first, value, labels }: RangeList): BoundedRanges {
  const blocks = new RangeBuilder(6, count);
  const start = new Uint32Array(4);
  const end = new Uint32Array(4);
  let isOpen = false;
  for (let i = 0; i < count; i++) {
    if (!isCountryLabel(labels[value[i]!]!)) continue;
    if (isOpen && first[4 * i] !== end[0]) blocks.add(start, end, 0, 0);
    if (!isOpen || first[4 * i] !== end[0]) copyAddress(first, i, 4, start);
    isOpen = true;
    previousAddress(first, (i + 1) % count, 4, end);
  }
  if (isOpen) blocks.add(start, end, 0, 0);
  return blocks.finish();
}

/**
 * Computes what changed by IPv6 delegation. Each counts as one; of a delegation that changed in part, that part of its
 * addresses with a country counts.
 *
 * @param before the IPv6 ranges of the earlier release
 * @param after those of the later release
 * @param delegations the registries' delegations, in any order; undefined if they are not known
 */
export function delegationFlows(before: RangeList, after: RangeList, delegations: BoundedRanges | undefined): Flows {
  const words = addressWords(before.family);
  const blocks = delegations === undefined ? providerBlocks(before) : blocksOf(before, sortedDelegations(delegations));
  const { first, last, count } = blocks;
  const pairs = new Map<string, { from: string; to: string; amount: number }>();
  let total = 0;
  let block = 0;
  let assigned = 0;
  /** What changed in the block, in addresses. */
  let changes: { from: string; to: string; amount: number }[] = [];
  const endBlock = (): void => {
    if (assigned > 0) total++;
    for (const { from, to, amount } of changes) {
      const key = `${from} ${to}`;
      const pair = pairs.get(key) ?? { from, to, amount: 0 };
      pair.amount += amount / assigned;
      pairs.set(key, pair);
    }
    [assigned, changes] = [0, []];
    block++;
  };
  const start = new Uint32Array(words);
  const end = new Uint32Array(words);
  for (const segment of segments(before, after)) {
    for (; block < count; endBlock()) {
      if (compareAddresses(first, block, segment.last, 0, words) > 0) break;
      const isSmall = approximateSize(first, block, last, block, words) < SMALLEST;
      if (!isSmall && isCountryLabel(segment.from)) {
        const isInside = compareAddresses(first, block, segment.first, 0, words) >= 0;
        copyAddress(isInside ? first : segment.first, isInside ? block : 0, words, start);
        const endsBefore = compareAddresses(last, block, segment.last, 0, words) <= 0;
        copyAddress(endsBefore ? last : segment.last, endsBefore ? block : 0, words, end);
        const amount = approximateSize(start, 0, end, 0, words);
        assigned += amount;
        const { from, to } = segment;
        if (from !== to) changes.push({ from, to, amount });
      }
      if (compareAddresses(last, block, segment.last, 0, words) > 0) break; // it continues in the next segment
    }
  }
  if (assigned > 0) endBlock();
  return { total, pairs: [...pairs.values()] };
}
