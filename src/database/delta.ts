/**
 * The figures that gates check and reports show: how many addresses and which countries differ between two releases. Computed
 * in one walk over the segments of diff.ts.
 */
import type { Family } from '../address/parse.js';
import { rangeSize } from '../address/words.js';
import {
  type ChangedBlock,
  isCountryLabel,
  LargestBlocks,
  type PairTotal,
  PairTotals,
  type RangeList,
  type Segment,
  segments,
} from './diff.js';

/** A run of addresses in which no address kept its country. */
export interface ChangedRun {
  first: Uint32Array;
  last: Uint32Array;
  /** Number of changed addresses in it; addresses without a country in both releases are not counted. */
  changed: bigint;
}

/** Addresses that one country had before and has now, and how many of them are the same. */
export interface CountryTotals {
  before: bigint;
  after: bigint;
  kept: bigint;
}

/** The changes in one family. An address counts if it has a country in at least one of the two releases. */
export interface Delta {
  family: Family;
  /** Addresses with a country before. */
  assigned: bigint;
  /** Addresses whose country is another one now. */
  changed: bigint;
  /** Addresses that have no country now. */
  lost: bigint;
  /** Addresses that have a country now and had none. */
  gained: bigint;
  /** By code, of each country that has addresses in at least one of the two releases. */
  countryTotals: ReadonlyMap<string, CountryTotals>;
  /** Changed addresses by pair of old and new record, the pair with the most addresses first. */
  pairs: readonly PairTotal[];
  /** The run with the most changed addresses; undefined if nothing changed. */
  longestRun: ChangedRun | undefined;
  /** The largest CIDR blocks that changed, at most BLOCKS_SHOWN. */
  blocks: readonly ChangedBlock[];
}

/** Finds the longest changed run. A run ends at an address that kept its country. */
class LongestRunFinder {
  longest: ChangedRun | undefined;
  #open: ChangedRun | undefined;

  addChanged({ first, last }: Segment, size: bigint): void {
    if (this.#open === undefined) this.#open = { first: first.slice(), last: last.slice(), changed: size };
    else {
      this.#open.last.set(last);
      this.#open.changed += size;
    }
    if (this.#open.changed > (this.longest?.changed ?? 0n)) this.longest = this.#open;
  }

  endRun(): void {
    this.#open = undefined;
  }
}

/**
 * Computes the changes between two releases in one family.
 *
 * @param before the ranges of the earlier release
 * @param after the ranges of the later release, same family
 */
export function computeDelta(before: RangeList, after: RangeList): Delta {
  let assigned = 0n;
  let changed = 0n;
  let lost = 0n;
  let gained = 0n;
  const countryTotals = new Map<string, CountryTotals>();
  const totalsOf = (code: string): CountryTotals => {
    const totals = countryTotals.get(code) ?? { before: 0n, after: 0n, kept: 0n };
    countryTotals.set(code, totals);
    return totals;
  };
  const pairs = new PairTotals();
  const runs = new LongestRunFinder();
  const largest = new LargestBlocks();
  for (const segment of segments(before, after)) {
    const { from, to } = segment;
    const hadCountry = isCountryLabel(from);
    const hasCountry = isCountryLabel(to);
    if (!hadCountry && !hasCountry) continue;
    const size = rangeSize(segment.first, segment.last);
    if (hasCountry) totalsOf(to).after += size;
    if (hadCountry) {
      assigned += size;
      const totals = totalsOf(from);
      totals.before += size;
      if (from === to) totals.kept += size;
    }
    if (from === to) {
      runs.endRun();
      continue;
    }
    if (!hadCountry) gained += size;
    else if (hasCountry) changed += size;
    else lost += size;
    pairs.add(segment, size);
    runs.addChanged(segment, size);
    largest.add(segment, size);
  }
  return {
    family: before.family,
    assigned,
    changed,
    lost,
    gained,
    countryTotals,
    pairs: pairs.sorted(),
    longestRun: runs.longest,
    blocks: largest.blocks,
  };
}
