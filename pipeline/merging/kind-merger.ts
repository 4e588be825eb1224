/** Merges the lists that say what kind of network addresses are of into one list of ranges for each family. */
import type { Family } from '../../src/address/parse.js';
import type { ManifestInput, MissingList, NetworkList } from '../../src/database/release.js';
import type { BoundedRanges, RangeColumns } from '../../src/range/columns.js';
import { mergeRows } from '../../src/range/merge.js';
import { type Cell, type LabelRecord, UNLABELED } from '../../src/rangefile/layout.js';
import type { PartitionContent } from '../../src/rangefile/partitions.js';
import type { Reference } from '../config/reference.js';
import type { IngestedSource } from '../stage.js';
import { addSpecialRanges, CandidateBuilder, LAYERS } from './candidates.js';
import { anycastOf } from './range-merger.js';

/** The kinds of networks that lists tell; of several, the last one counts. */
export const NETWORK_KINDS = ['cloud', 'relay', 'tor'] as const;

/** The layers of the sweep: anycast space, and one for each kind. */
const ANYCAST = LAYERS.embedded + 1;
const KIND_LAYERS = NETWORK_KINDS.map((_kind, index) => ANYCAST + 1 + index);

/** The lists of a build. */
export interface KindLists {
  /** For each source, what its rows say of their addresses, if they are such a list. */
  networks: readonly (NetworkList | undefined)[];
  /** What is said of addresses that no list has; null if a list is missing that could have them. */
  unlisted: readonly [anycast: false | null, kind: 'none' | null];
}

export interface KindInput {
  sources: readonly IngestedSource[];
  lists: KindLists;
  reference: Pick<Reference, 'special' | 'anycast'>;
}

/** Returns the lists of a build. @param missing those that are configured, but are not among its inputs */
export function kindLists(
  inputs: readonly Pick<ManifestInput, 'kind' | 'network'>[],
  missing: readonly MissingList[],
): KindLists {
  const networks = inputs.map(({ network }) => network);
  const knowsAnycast = inputs.some(({ kind }) => kind === 'anycast');
  const isComplete = missing.length === 0 && networks.some((network) => network !== undefined);
  return { networks, unlisted: [knowsAnycast ? false : null, isComplete ? 'none' : null] };
}

/** Numbers rows of values; the first is that of addresses of which nothing is listed. */
class KindRecords {
  readonly records: LabelRecord[] = [];
  readonly #byRow = new Map<string, number>();

  indexOf(...row: [anycast: boolean | null, kind: string | null, operator: string | null]): number {
    const text = JSON.stringify(row satisfies Cell[]);
    const known = this.#byRow.get(text);
    if (known !== undefined) return known;
    this.#byRow.set(text, this.records.length);
    const isUnknown = row.every((cell) => cell === null);
    return this.records.push(isUnknown ? { kind: 'none', reason: UNLABELED } : { kind: 'label', row: text }) - 1;
  }
}

/** Returns the prefixes of a list. */
export function prefixesOf({ listed, v4, v6 }: IngestedSource): BoundedRanges[] {
  return listed === undefined ? [v4, v6] : [listed.v4, listed.v6];
}

/**
 * Merges the lists. Special-purpose ranges are in none of them, and an address with an IPv4 address inside is what that one is. Within a
 * kind, the narrowest prefix says whose it is; of equal ones, that of the later source.
 */
export function mergeKinds({ sources, lists, reference }: KindInput): PartitionContent<LabelRecord> {
  const { networks, unlisted } = lists;
  const table = new KindRecords();
  const none = table.indexOf(...unlisted, null);
  const { special } = reference;
  const builders = { 4: new CandidateBuilder(4, 0, special), 6: new CandidateBuilder(6, 0, special) };
  const add = ({ family, count, first, last }: Omit<BoundedRanges, 'value'>, layer: number, value: number): void => {
    for (let i = 0; i < count; i++) builders[family].addExceptEmbedded(first, last, i, value, layer);
  };
  for (const block of reference.anycast) add({ ...block, count: 1 }, ANYCAST, 0);
  for (const [position, source] of sources.entries()) {
    for (const ranges of anycastOf(source)) add(ranges, ANYCAST, 0);
    const network = networks[position];
    if (network === undefined) continue;
    for (const ranges of prefixesOf(source)) add(ranges, KIND_LAYERS[NETWORK_KINDS.indexOf(network.kind)]!, position);
  }
  addSpecialRanges(builders, special, table.records, none);
  /** The record of each answer. */
  const known: Record<number, number> = {};
  const merge = (family: Family): RangeColumns => {
    const candidates = builders[family].finish();
    return mergeRows(candidates, [ANYCAST, ...KIND_LAYERS], ({ rows, other }) => {
      if (other >= 0) return candidates.value[other]!;
      let position = -1;
      for (let layer = rows.length - 1; layer > 0 && position < 0; layer--) {
        if (rows[layer]! >= 0) position = candidates.value[rows[layer]!]!;
      }
      const isAnycast = rows[0]! >= 0;
      const { kind = unlisted[1], operator = null } = networks[position] ?? {};
      // There are hundreds of thousands of ranges, and few answers.
      const answer = 2 * position + Number(isAnycast);
      known[answer] ??= table.indexOf(isAnycast || unlisted[0], kind, operator);
      return known[answer];
    });
  };
  return { v4: merge(4), v6: merge(6), records: table.records };
}
