/** What the configuration says about sources that are merged by evidence. */
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareAddresses, copyAddress, nextAddress, previousAddress } from '../../src/address/words.js';
import { parseBlock } from '../../src/range/cidr.js';
import { type BoundedRanges, RangeBuilder } from '../../src/range/columns.js';
import type { SourceKind, Voter } from '../../src/range/vote.js';
import { LAYERS, sourceLayer } from './candidates.js';

/** How the rows of several sources become one list of ranges. */
const MERGE_STRATEGIES = ['priority', 'evidence'] as const;
export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];

/** How a source takes part in merging by evidence. */
export interface SourceEvidence {
  /** Name of its origin; the sources of one lineage have one vote. */
  lineage: string;
  kind: SourceKind;
  /** CIDR blocks of the owner. If there are any, or AS numbers, rows outside the owner's space are not used. */
  space: readonly string[];
  /** AS numbers of the owner: the space that is delegated to their holders or announced by them is the owner's. */
  asns: readonly number[];
  /** Whether its publisher interpolates between the networks that it measured. */
  interpolates: boolean;
}

/** A range that belongs to the network with an AS number. */
export interface OwnedRange {
  asn: number;
  family: Family;
  /** `addressWords(family)` words, as `last`. */
  first: Uint32Array;
  last: Uint32Array;
}

/** Returns the voters for sources in the order in which they are listed, and at the end that of anycast space. */
export function votersOf(sources: readonly SourceEvidence[]): Voter[] {
  const voters = sources.map(({ lineage, kind, interpolates }, position): Voter => {
    return { layer: sourceLayer(position, sources.length), lineage, kind, interpolates };
  });
  // Anycast space has a layer of its own, whichever source says it.
  return [...voters, { layer: LAYERS.anycast, lineage: '', kind: 'anycast' }];
}

/** The space in which the rows of a source count. */
export class OwnerSpace {
  /** Sorted ranges without overlaps; undefined if all rows count. */
  readonly #ranges: Record<Family, BoundedRanges> | undefined;

  private constructor(ranges: Record<Family, BoundedRanges> | undefined) {
    this.#ranges = ranges;
  }

  /**
   * Returns the space of a source's owner: its CIDR blocks, and what belongs to its networks.
   *
   * @param evidence of the source; its CIDR blocks are already checked
   * @param owned ranges of any networks
   */
  static of({ space, asns }: Pick<SourceEvidence, 'space' | 'asns'>, owned: readonly OwnedRange[]): OwnerSpace {
    if (space.length === 0 && asns.length === 0) return new OwnerSpace(undefined);
    const blocks = space.map((text) => parseBlock(text)!);
    return OwnerSpace.ofRanges([...blocks, ...owned.filter(({ asn }) => asns.includes(asn))]);
  }

  /** Returns the space of ranges, in any order. */
  static ofRanges(ranges: readonly Pick<OwnedRange, 'family' | 'first' | 'last'>[]): OwnerSpace {
    const builders = { 4: new RangeBuilder(4, 0), 6: new RangeBuilder(6, 0) };
    for (const { family, first, last } of ranges) builders[family].add(first, last, 0, 0);
    return new OwnerSpace({ 4: unionOf(builders[4].finish()), 6: unionOf(builders[6].finish()) });
  }

  /** Whether no row can be inside. */
  get isEmpty(): boolean {
    return this.#ranges !== undefined && this.#ranges[4].count + this.#ranges[6].count === 0;
  }

  /** Returns whether a range is inside; one that is wider than the space around it is not. */
  contains(family: Family, first: Uint32Array, last: Uint32Array, index: number): boolean {
    if (this.#ranges === undefined) return true;
    const ranges = this.#ranges[family];
    const words = addressWords(family);
    // The last range that does not begin after the row.
    let low = -1;
    let high = ranges.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (compareAddresses(ranges.first, middle, first, index, words) <= 0) low = middle;
      else high = middle - 1;
    }
    return low >= 0 && compareAddresses(last, index, ranges.last, low, words) <= 0;
  }
}

/**
 * Returns the space that no registry has delegated.
 *
 * @param delegations rows of registries, of one family, with or without a country
 * @returns ranges in ascending order; none if no registry has a row, because then nothing is known
 */
export function undelegatedSpace(delegations: readonly BoundedRanges[], family: Family): BoundedRanges {
  const words = addressWords(family);
  const all = new RangeBuilder(family, 0);
  for (const { first, last, count } of delegations) for (let i = 0; i < count; i++) all.add(first, last, i, 0);
  const gaps = new RangeBuilder(family, 0);
  if (all.count === 0) return gaps.finish();
  const union = unionOf(all.finish());
  const start = new Uint32Array(words);
  const end = new Uint32Array(words);
  let isSpaceLeft = true;
  for (let i = 0; i < union.count; i++) {
    if (compareAddresses(start, 0, union.first, i, words) < 0) {
      previousAddress(union.first, i, words, end);
      gaps.add(start, end, 0, 0);
    }
    isSpaceLeft = nextAddress(union.last, i, words, start);
  }
  if (isSpaceLeft) gaps.add(start, end.fill(0xffffffff), 0, 0);
  return gaps.finish();
}

/** Returns the union of ranges as sorted ranges; neighbors become one. */
function unionOf(ranges: BoundedRanges): BoundedRanges {
  const { family, count, first, last } = ranges;
  const words = addressWords(family);
  const order = Array.from({ length: count }, (_, index) => index);
  order.sort((a, b) => compareAddresses(first, a, first, b, words));
  const union = new RangeBuilder(family, 0);
  const start = new Uint32Array(words);
  const end = new Uint32Array(words);
  const next = new Uint32Array(words);
  let isOpen = false;
  for (const index of order) {
    const continues =
      isOpen && (!nextAddress(end, 0, words, next) || compareAddresses(first, index, next, 0, words) <= 0);
    if (!continues) {
      if (isOpen) union.add(start, end, 0, 0);
      copyAddress(first, index, words, start);
      copyAddress(last, index, words, end);
      isOpen = true;
    } else if (compareAddresses(last, index, end, 0, words) > 0) copyAddress(last, index, words, end);
  }
  if (isOpen) union.add(start, end, 0, 0);
  return union.finish();
}
