/** Explains who announces an address: the range of the release, and the rows of the sources that cover it. */
import { formatAddress } from '../../src/address/format.js';
import { previousAddress } from '../../src/address/words.js';
import type { Manifest } from '../../src/database/release.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import { firstIPv6, type NetworkFile, type PartitionFile } from '../../src/rangefile/reader.js';
import { findIPv4, findIPv6 } from '../../src/rangefile/search.js';
import {
  type CoveringRow,
  type CoveringRows,
  type ShownRow,
  shownRow,
  sortRows,
  type Target,
  whyAfter,
} from './covering-rows.js';

/** A row that covers the address. A name here is a key of `ipatlas explain --json`. */
export interface NetworkRow extends ShownRow {
  asn: number;
  outcome: 'won' | 'lost';
  /** Why it lost; null if it did not. */
  why: string | null;
}

/** A name here is a key of `ipatlas explain --json`. */
export interface ExplainedNetwork {
  /** The address, or the IPv4 address inside it if that one decides. */
  address: string;
  /** Null if no network announces it. */
  asn: number | null;
  as_name: string | null;
  /** The range of the release. */
  first: string;
  last: string;
  /** The winner first. */
  rows: NetworkRow[];
}

/** Returns the range of a partition that has an address, and the number of its record. */
function rangeAt(file: PartitionFile, { family, words }: Target) {
  const [index, count, records] =
    family === 4
      ? [findIPv4(file, words[0]! | 0), file.count4, file.record4]
      : [findIPv6(file, words), file.count6, file.record6];
  const firstOf = (range: number): Uint32Array => {
    const first = family === 4 ? file.start4.slice(range, range + 1) : new Uint32Array(4);
    if (family === 6) firstIPv6(file, range, first);
    return first;
  };
  const last = firstOf((index + 1) % count);
  previousAddress(last, 0, words.length, last);
  return { first: firstOf(index), last, record: records[index]! };
}

/** Why a row lost against the one that won; undefined for that one. */
function whyLost(row: CoveringRow, winner: CoveringRow | undefined): string | null {
  if (row === winner) return null;
  if (winner === undefined) return 'special-purpose ranges have no network';
  if (row.source !== winner.source) return `${winner.source} comes before ${row.source} in sources.json`;
  return whyAfter(row, winner);
}

/**
 * Explains the network of an address.
 *
 * @param networks of the release; undefined if it has none
 * @param target the address, or the IPv4 address inside it if that one decides
 */
export function explainNetwork(
  networks: NetworkFile | undefined,
  target: Target,
  { rows }: CoveringRows,
  { inputs }: Manifest,
): ExplainedNetwork | null {
  if (networks === undefined) return null;
  const { first, last, record: index } = rangeAt(networks, target);
  const record = networks.recordAt(index);
  const position = ({ source }: CoveringRow): number => inputs.findIndex(({ id }) => id === source);
  const covering = sortRows(rows.get(NETWORKS)!.get(target)!, position);
  const winner = record.kind === 'network' ? covering[0] : undefined;
  const text = (words: Uint32Array): string => formatAddress(target.family, words);
  return {
    address: text(target.words),
    asn: record.kind === 'network' ? record.asn : null,
    as_name: record.kind === 'network' && record.name !== '' ? record.name : null,
    first: text(first),
    last: text(last),
    rows: covering.map((row) => ({
      ...shownRow(row),
      asn: Number(row.label.slice(2)),
      outcome: row === winner ? 'won' : 'lost',
      why: whyLost(row, winner),
    })),
  };
}
