/** How far two releases are apart, measured in one walk over both: what the gates judge by. */

import type { Family } from '../../src/address/parse.js';
import { rangeSize } from '../../src/address/words.js';
import {
  type ChangedBlock,
  isCountryLabel,
  LargestBlocks,
  type PairTotal,
  PairTotals,
  type RangeList,
  type Segment,
  segments,
} from '../../src/database/diff.js';

/** A stretch of addresses. */
export interface Stretch {
  first: Uint32Array;
  last: Uint32Array;
  /** Addresses in it that changed; between them may lie some that have no country in either release. */
  changed: bigint;
}

/** What one country had before, and what of it stayed, in addresses. */
interface Holding {
  before: bigint;
  kept: bigint;
}

/** What moved in one family. An address counts where it has a country in at least one of the two releases. */
export interface Movement {
  family: Family;
  /** Addresses with a country before. */
  assigned: bigint;
  /** Of those: now with another country; now with none. */
  changed: bigint;
  lost: bigint;
  /** Addresses with a country now, and none before. */
  gained: bigint;
  /** By code. */
  holdings: ReadonlyMap<string, Holding>;
  /** Codes of the countries that there are now. */
  countriesNow: ReadonlySet<string>;
  /** What differs, by pair of answers, the one of most addresses first. */
  pairs: readonly PairTotal[];
  /** The stretch without a single address that kept its country, longest by what changed in it. */
  longest: Stretch | undefined;
  /** The largest blocks that changed, at most BLOCKS_SHOWN. */
  blocks: readonly ChangedBlock[];
}

/** Finds the longest stretch: it goes on until an address keeps its country. */
class StretchFinder {
  longest: Stretch | undefined;
  #open: Stretch | undefined;

  change({ first, last }: Segment, size: bigint): void {
    if (this.#open === undefined) this.#open = { first: first.slice(), last: last.slice(), changed: size };
    else {
      this.#open.last.set(last);
      this.#open.changed += size;
    }
    if (this.#open.changed > (this.longest?.changed ?? 0n)) this.longest = this.#open;
  }

  stay(): void {
    this.#open = undefined;
  }
}

/**
 * Measures what moved between two releases in one family.
 *
 * @param before a family of the earlier release
 * @param after the same family of the later one
 */
export function measure(before: RangeList, after: RangeList): Movement {
  let assigned = 0n;
  let changed = 0n;
  let lost = 0n;
  let gained = 0n;
  const holdings = new Map<string, Holding>();
  const countriesNow = new Set<string>();
  const pairs = new PairTotals();
  const stretches = new StretchFinder();
  const largest = new LargestBlocks();
  for (const segment of segments(before, after)) {
    const { from, to } = segment;
    const had = isCountryLabel(from);
    const has = isCountryLabel(to);
    if (!had && !has) continue;
    if (has) countriesNow.add(to);
    const size = rangeSize(segment.first, segment.last);
    if (had) {
      assigned += size;
      const holding = holdings.get(from) ?? { before: 0n, kept: 0n };
      holdings.set(from, holding);
      holding.before += size;
      if (from === to) holding.kept += size;
    }
    if (from === to) {
      stretches.stay();
      continue;
    }
    if (!had) gained += size;
    else if (has) changed += size;
    else lost += size;
    pairs.add(segment, size);
    stretches.change(segment, size);
    largest.add(segment, size);
  }
  return {
    ...{ family: before.family, assigned, changed, lost, gained, holdings, countriesNow },
    pairs: pairs.sorted(),
    longest: stretches.longest,
    blocks: largest.blocks,
  };
}
