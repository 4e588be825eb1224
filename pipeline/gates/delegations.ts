/**
 * How many delegations changed between two releases. In IPv6, a few /19s have most of the addresses with a country, so
 * that thousands of networks may change without a visible effect on shares of addresses.
 */
import { addressWords, compareAddresses, copyAddress, nextAddress, previousAddress } from '../../src/address/words.js';
import { isCountryLabel, type RangeList, segments } from '../../src/database/diff.js';
import { type BoundedRanges, RangeBuilder } from '../../src/range/columns.js';

/** Changes by delegation; of a delegation that changed in part, that part counts. */
export interface DelegationDelta {
  /** Delegations that had a country somewhere. */
  count: number;
  /** Sum of the shares of each one's addresses with a country that have another country now. */
  changed: number;
  /** Sum of the shares that have none now. */
  lost: number;
}

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
    if (i + 1 === count) end.fill(0xffffffff);
    else previousAddress(first, i + 1, words, end);
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
 * Computes the changes of IPv6 delegations.
 *
 * @param before the IPv6 ranges of the earlier release
 * @param after those of the later release
 * @param delegations the registries' delegations, in any order; undefined if they are not known
 */
export function computeDelegationDelta(
  before: RangeList,
  after: RangeList,
  delegations: BoundedRanges | undefined,
): DelegationDelta {
  const words = addressWords(before.family);
  const none = new RangeBuilder(before.family, 0).finish();
  const { first, last, count } = blocksOf(before, delegations === undefined ? none : sortedDelegations(delegations));
  const total: DelegationDelta = { count: 0, changed: 0, lost: 0 };
  let block = 0;
  let part = { assigned: 0, changed: 0, lost: 0 };
  const endBlock = (): void => {
    if (part.assigned > 0) {
      total.count++;
      total.changed += part.changed / part.assigned;
      total.lost += part.lost / part.assigned;
    }
    part = { assigned: 0, changed: 0, lost: 0 };
    block++;
  };
  const from = new Uint32Array(words);
  const to = new Uint32Array(words);
  for (const segment of segments(before, after)) {
    for (; block < count; endBlock()) {
      if (compareAddresses(first, block, segment.last, 0, words) > 0) break;
      const isSmall = approximateSize(first, block, last, block, words) < SMALLEST;
      if (!isSmall && isCountryLabel(segment.from)) {
        const isInside = compareAddresses(first, block, segment.first, 0, words) >= 0;
        copyAddress(isInside ? first : segment.first, isInside ? block : 0, words, from);
        const endsBefore = compareAddresses(last, block, segment.last, 0, words) <= 0;
        copyAddress(endsBefore ? last : segment.last, endsBefore ? block : 0, words, to);
        const size = approximateSize(from, 0, to, 0, words);
        part.assigned += size;
        if (segment.from !== segment.to) part[isCountryLabel(segment.to) ? 'changed' : 'lost'] += size;
      }
      if (compareAddresses(last, block, segment.last, 0, words) > 0) break; // it continues in the next segment
    }
  }
  if (part.assigned > 0) endBlock();
  return total;
}
