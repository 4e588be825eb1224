/** Merges the networks of sources into one list of ranges for each family, with the algebra of the countries. */
import type { Family } from '../../src/address/parse.js';
import { mergeRanges } from '../../src/range/merge.js';
import { type NetworkRecord, UNANNOUNCED } from '../../src/rangefile/layout.js';
import type { PartitionContent } from '../../src/rangefile/partitions.js';
import type { Reference } from '../config/reference.js';
import type { IngestedNetworks } from '../stage.js';
import { addSpecialRanges, CandidateBuilder, sourceLayer } from './candidates.js';

/** Number of the record of addresses without a network. */
const NONE = 0;

/**
 * Merges the networks of sources: of the ranges that cover an address, that of the first source wins, and within a source the
 * narrowest. Special-purpose ranges have no network, and an address with an IPv4 address inside has that one's network.
 *
 * @param sources the source with the highest priority first. The first name that one of them has for an AS number counts
 */
export function mergeNetworks(
  sources: readonly IngestedNetworks[],
  { special }: Pick<Reference, 'special'>,
): PartitionContent<NetworkRecord> {
  const records: NetworkRecord[] = [{ kind: 'none', reason: UNANNOUNCED }];
  const builder = (family: Family): CandidateBuilder => {
    const capacity = sources.reduce((sum, source) => sum + source[`v${family}`].count, special.length);
    return new CandidateBuilder(family, capacity, special);
  };
  const builders = { 4: builder(4), 6: builder(6) };
  const recordOf = new Map<number, number>();
  for (const [position, { v4, v6, asns, names }] of sources.entries()) {
    const values = asns.map((asn, index) => {
      const name = names[index]!;
      const known = recordOf.get(asn);
      if (known === undefined) {
        recordOf.set(asn, records.length);
        return records.push({ kind: 'network', asn, name }) - 1;
      }
      const record = records[known] as NetworkRecord & { kind: 'network' };
      if (record.name === '') record.name = name;
      return known;
    });
    const layer = sourceLayer(position, sources.length);
    for (const { family, count, first, last, value } of [v4, v6]) {
      for (let i = 0; i < count; i++) builders[family].addExceptEmbedded(first, last, i, values[value[i]!]!, layer);
    }
  }
  addSpecialRanges(builders, special, records, NONE);
  return { v4: mergeRanges(builders[4].finish()), v6: mergeRanges(builders[6].finish()), records };
}
