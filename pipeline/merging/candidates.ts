/** Candidate ranges: the layers in which they compete, and their collection for one family. */
import type { Family } from '../../src/address/parse.js';
import { compareAddresses, nextAddress, previousAddress } from '../../src/address/words.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { ANYCAST_LAYER, UNDELEGATED_LAYER } from '../../src/range/vote.js';
import type { FileRecord } from '../../src/rangefile/layout.js';
import type { SpecialRange } from '../config/reference.js';

/**
 * The layers in which candidate ranges compete. Of the ranges that cover an address, one in a higher layer wins.
 *
 * From the lowest:
 *
 * 0. `noCountry`: a source covers the range but names no country. The layer exists only so that the result can be
 *    `unknown` instead of `unallocated`.
 * 1. `embedded`: prefixes whose addresses carry an IPv4 address; the country of that address is the result.
 * 2. to 27. the sources, see {@link sourceLayer}.
 * 28. `anycast`: anycast space, if sources are merged by evidence; see src/range/vote.ts, rule 7.
 * 29. `undelegated`: space that no registry has delegated, if sources are merged by evidence; see src/range/vote.ts, rule 8.
 * 30. `special`: IANA's special-purpose registries.
 * 31. `overrides`: the user's overrides.
 */
export const LAYERS = {
  noCountry: 0,
  embedded: 1,
  anycast: ANYCAST_LAYER,
  undelegated: UNDELEGATED_LAYER,
  special: 30,
  overrides: 31,
} as const;

/**
 * Returns the layer of a source.
 *
 * @param position index in the list of sources, the source with the highest priority first
 * @param sources number of sources
 */
export function sourceLayer(position: number, sources: number): number {
  return LAYERS.embedded + sources - position;
}

/** Returns the address before or after `address`, which must exist. */
function neighbor(step: typeof nextAddress, address: Uint32Array): Uint32Array {
  const result = new Uint32Array(address.length);
  step(address, 0, address.length, result);
  return result;
}

export class CandidateBuilder extends RangeBuilder {
  readonly #embedded: SpecialRange[];

  /**
   * @param capacity number of ranges to make room for
   * @param special has the prefixes whose addresses carry an IPv4 address, which {@link addExceptEmbedded} cuts out of wider ranges
   */
  constructor(family: Family, capacity: number, special: readonly SpecialRange[]) {
    super(family, capacity);
    this.#embedded = special.filter((range) => range.family === family && range.result.kind === 'embedded');
  }

  /**
   * Adds a candidate range, but cuts out of it each embedded prefix that it is not strictly inside. A range strictly
   * inside such a prefix is evidence about its own addresses. One that equals or spans the prefix is not: it says where
   * the prefix is registered, not where the IPv4 addresses inside are.
   *
   * @param index where in the two columns the addresses are
   */
  addExceptEmbedded(first: Uint32Array, last: Uint32Array, index: number, value: number, layer: number): void {
    const { words } = this;
    for (const prefix of this.#embedded) {
      if (compareAddresses(last, index, prefix.first, 0, words) < 0) continue;
      if (compareAddresses(first, index, prefix.last, 0, words) > 0) continue;
      const atFirst = compareAddresses(first, index, prefix.first, 0, words);
      const atLast = compareAddresses(last, index, prefix.last, 0, words);
      const isStrictlyInside = atFirst >= 0 && atLast <= 0 && (atFirst > 0 || atLast < 0);
      if (isStrictlyInside) continue;
      const at = index * words;
      const [start, end] = [first.slice(at, at + words), last.slice(at, at + words)];
      if (atFirst < 0) this.addExceptEmbedded(start, neighbor(previousAddress, prefix.first), 0, value, layer);
      if (atLast > 0) this.addExceptEmbedded(neighbor(nextAddress, prefix.last), end, 0, value, layer);
      return;
    }
    this.add(first, last, index, value, layer);
  }
}

/**
 * Adds the special-purpose ranges to a partition besides the countries: they have no record of a source, and an address with an IPv4
 * address inside has that of this one.
 *
 * @param records of the partition, to which those of embedded addresses are added
 * @param none the record of addresses that no source has
 */
export function addSpecialRanges(
  builders: Record<Family, CandidateBuilder>,
  special: readonly SpecialRange[],
  records: FileRecord[],
  none: number,
): void {
  for (const { family, first, last, result, layer } of special) {
    if (result.kind === 'embedded') {
      const record = records.push({ kind: 'embedded', scheme: result.scheme }) - 1;
      builders[family].add(first, last, 0, record, LAYERS.embedded);
    } else if (layer === 'over') builders[family].addExceptEmbedded(first, last, 0, none, LAYERS.special);
  }
}
