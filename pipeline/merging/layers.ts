import { UNDELEGATED_LAYER } from '../../src/range/vote.js';

/**
 * The layers in which candidate ranges compete. Of the ranges that cover an address, one in a higher layer wins.
 *
 * From the lowest:
 *
 * 0. `noCountry`: a source covers the range but names no country. The layer exists only so that the result can be
 *    `unknown` instead of `unallocated`.
 * 1. `embedded`: prefixes whose addresses carry an IPv4 address; the country of that address is the result.
 * 2. to 29. the sources, see {@link sourceLayer}.
 * 29. `undelegated`: space that no registry has delegated, if sources are merged by evidence; see src/range/vote.ts, rule 6.
 * 30. `special`: IANA's special-purpose registries.
 * 31. `overrides`: the user's overrides.
 */
export const LAYERS = {
  noCountry: 0,
  embedded: 1,
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
