/** Countries and networks as one partition, for exports of both. */
import type { Family } from '../address/parse.js';
import type { RangeColumns } from '../range/columns.js';
import { cutRanges, joinRanges } from '../range/cut.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { partitionInMemory } from '../rangefile/memory.js';
import { type NetworkFile, type PartitionFile, type RangeFile, rangeColumns } from '../rangefile/reader.js';
import type { JointRecord } from './ranges.js';

/** The record of addresses with neither a country nor a network. */
const NEITHER: RangeRecord = { kind: 'none', reason: '' };

/** Numbers the pairs of a record of the countries and one of the networks; equal ones have one number. */
class Pairs {
  readonly records: JointRecord[] = [];
  readonly #file: RangeFile;
  readonly #networks: NetworkFile;
  readonly #numbers = new Map<number, number>();

  constructor(file: RangeFile, networks: NetworkFile) {
    this.#file = file;
    this.#networks = networks;
  }

  /** Cuts a family of both where either changes; the values are numbers of pairs. */
  columns(family: Family): RangeColumns {
    const { count, first, values } = cutRanges([
      rangeColumns(this.#file, family),
      rangeColumns(this.#networks, family),
    ]);
    const [records, networks] = values as [Uint16Array, Uint32Array];
    const value = Uint32Array.from({ length: count }, (_, range) => this.#numberOf(records[range]!, networks[range]!));
    return joinRanges({ family, count, first, value }, Uint32Array.from(this.records.keys()));
  }

  #numberOf(record: number, network: number): number {
    const country = this.#file.records[record]!;
    const operator = this.#networks.records[network]!;
    // What a file does not show makes no difference: the reason why there is no country or network.
    const own = country.kind === 'none' ? 0 : record + 1;
    const other = operator.kind === 'network' && country.kind !== 'embedded' ? network + 1 : 0;
    const key = own * 2 ** 32 + other;
    const known =
      this.#numbers.get(key) ?? this.records.push(joinedRecord(country, other > 0 ? operator : undefined)) - 1;
    this.#numbers.set(key, known);
    return known;
  }
}

function joinedRecord(country: RangeRecord, operator: JointRecord | undefined): JointRecord {
  if (country.kind === 'none') return operator ?? NEITHER;
  return country.kind === 'country' && operator?.kind === 'network' ? { ...country, network: operator } : country;
}

/** Returns a partition whose ranges have the country and the network of their addresses. */
export function joinFiles(file: RangeFile, networks: NetworkFile): PartitionFile<JointRecord> {
  const pairs = new Pairs(file, networks);
  const [v4, v6] = [pairs.columns(4), pairs.columns(6)];
  return partitionInMemory({ asOf: file.asOf, v4, v6, records: pairs.records }, file.path);
}
