/** What the configuration says about sources that are merged by evidence. */
import type { Family } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { parseCidr } from '../../src/range/cidr.js';
import type { SourceKind, Voter } from '../../src/range/vote.js';
import { sourceLayer } from './layers.js';

/** How the rows of several sources become one list of ranges. */
export const MERGE_STRATEGIES = ['priority', 'evidence'] as const;
export type MergeStrategy = (typeof MERGE_STRATEGIES)[number];

/** How a source takes part in merging by evidence. */
export interface SourceEvidence {
  /** Name of its origin; the sources of one lineage have one vote. */
  lineage: string;
  kind: SourceKind;
  /** CIDR blocks of the owner; rows that are not inside one of them are not used. Empty if all rows are used. */
  space: readonly string[];
}

/** Returns the voters for sources in the order in which they are listed. */
export function votersOf(sources: readonly SourceEvidence[]): Voter[] {
  return sources.map(({ lineage, kind }, position) => ({
    layer: sourceLayer(position, sources.length),
    lineage,
    kind,
  }));
}

/** Space of a source's owner. */
export class OwnerSpace {
  readonly #blocks: Record<Family, { first: Uint32Array; last: Uint32Array }[]> = { 4: [], 6: [] };

  /** @param space CIDR blocks, already checked; no block is all space */
  constructor(space: readonly string[]) {
    for (const text of space) {
      const first = new Uint32Array(4);
      const last = new Uint32Array(4);
      const { family } = parseCidr(text, first, last)!;
      this.#blocks[family].push({ first, last });
    }
  }

  /** Returns whether a range is inside one of the blocks. */
  contains(family: Family, first: Uint32Array, last: Uint32Array, index: number): boolean {
    const blocks = this.#blocks[family];
    if (this.#blocks[4].length + this.#blocks[6].length === 0) return true;
    const words = addressWords(family);
    return blocks.some(
      (block) =>
        compareAddresses(block.first, 0, first, index, words) <= 0 &&
        compareAddresses(last, index, block.last, 0, words) <= 0,
    );
  }
}
