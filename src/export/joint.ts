/** Countries and networks as one partition, for exports of both, and what other partitions add to their ranges. */
import type { Family } from '../address/parse.js';
import { combine, Pairs } from '../range/cut.js';
import { cellsOf, type RangeRecord } from '../rangefile/layout.js';
import { partitionInMemory } from '../rangefile/memory.js';
import {
  type NetworkFile,
  type PartitionFile,
  type RangeFile,
  type RowFile,
  rangeColumns,
} from '../rangefile/reader.js';
import type { JointRecord, RowColumns } from './ranges.js';

/** The record of addresses with neither a country nor a network. */
const NEITHER: RangeRecord = { kind: 'none', reason: '' };

function joinedRecord(country: RangeRecord, operator: JointRecord | undefined): JointRecord {
  if (country.kind === 'none') return operator ?? NEITHER;
  return country.kind === 'country' && operator?.kind === 'network' ? { ...country, network: operator } : country;
}

/** Returns a partition whose ranges have the country and the network of their addresses. */
export function joinFiles(file: RangeFile, networks: NetworkFile): PartitionFile<JointRecord> {
  const pairs = new Pairs();
  // What a file does not show makes no difference: the reason why there is no country or network. No record has the number after the last.
  const own = file.records.map(({ kind }, record) => (kind === 'none' ? file.recordCount : record));
  const others = networks.records.map(({ kind }, record) => (kind === 'network' ? record : networks.recordCount));
  const numberOf = (country: number, network: number): number =>
    pairs.numberOf(own[country]!, file.records[country]!.kind === 'embedded' ? networks.recordCount : others[network]!);
  const columns = (family: Family) => combine(rangeColumns(file, family), rangeColumns(networks, family), numberOf);
  const [v4, v6] = [columns(4), columns(6)];
  const records = pairs.first.map((country, pair) =>
    joinedRecord(file.records[country] ?? NEITHER, networks.records[pairs.second[pair]!]),
  );
  return partitionInMemory({ asOf: file.asOf, v4, v6, records }, file.path);
}

/**
 * Cuts the ranges of a partition that is exported where the values of rows change. Ranges that are not exported stay as they are.
 *
 * @param flags the columns whose values are true or false
 */
export function joinRows(
  file: PartitionFile,
  rows: RowFile,
  flags: readonly string[] = [],
): { file: PartitionFile; rows: RowColumns } {
  const pairs = new Pairs();
  const isShown = file.records.map(({ kind }) => kind === 'country' || kind === 'network');
  const numberOf = (record: number, row: number) => pairs.numberOf(record, isShown[record] === true ? row : 0);
  const columns = (family: Family) => combine(rangeColumns(file, family), rangeColumns(rows, family), numberOf);
  const [v4, v6] = [columns(4), columns(6)];
  const records = pairs.first.map((record) => file.records[record]!);
  const values = pairs.second.map((number) => {
    const row = rows.records[number]!;
    return row.kind === 'label' ? cellsOf(row) : rows.columns.map(() => null);
  });
  return {
    file: partitionInMemory({ asOf: file.asOf, v4, v6, records }, file.path),
    rows: { names: rows.columns, flags, values },
  };
}
