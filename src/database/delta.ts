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
  let run: ChangedRun | undefined;
  let longestRun: ChangedRun | undefined;
  const largest = new LargestBlocks();
  for (const segment of segments(before, after)) {
    const { first, last, from, to } = segment;
    const hadCountry = isCountryLabel(from);
    const hasCountry = isCountryLabel(to);
    if (!hadCountry && !hasCountry) continue;
    const size = rangeSize(first, last);
    if (hasCountry) totalsOf(to).after += size;
    if (hadCountry) {
      assigned += size;
      const totals = totalsOf(from);
      totals.before += size;
      if (from === to) totals.kept += size;
    }
    if (from === to) {
      run = undefined;
      continue;
    }
    if (!hadCountry) gained += size;
    else if (hasCountry) changed += size;
    else lost += size;
    pairs.add(segment, size);
    run ??= { first: first.slice(), last: last.slice(), changed: 0n };
    run.last.set(last);
    run.changed += size;
    if (run.changed > (longestRun?.changed ?? 0n)) longestRun = run;
    largest.add(segment, size);
  }
  const sums = { family: before.family, assigned, changed, lost, gained };
  return { ...sums, countryTotals, pairs: pairs.sorted(), longestRun, blocks: largest.blocks };
}
