/** The records and ranges of a partition in the compact form, see FORMAT.md. Nothing here needs Node. */
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import type { FileRecord } from '../rangefile/layout.js';
import type { Partition, PartitionContent, PartitionFile } from '../rangefile/partitions.js';
import type { Container } from './container.js';
import { type DecodedPartition, decodePartition, encodePartition } from './partition.js';

type RecordOf<File> = File extends PartitionFile<infer Rec> ? Rec : never;

/** Writes a record as a line. */
function lineOf(record: FileRecord): string {
  switch (record.kind) {
    case 'country':
      return `country\t${record.code}\t${record.isEu ? 'eu' : '-'}\t${record.name}`;
    case 'none':
      return `none\t${record.reason}`;
    case 'embedded':
      return `embedded\t${record.scheme}`;
    case 'network':
      return `${record.asn}\t${record.name}`;
    case 'label':
      return `row\t${record.row}`;
  }
}

/** Parses a line. Returns undefined if it is not a record. */
function parseLine(line: string): FileRecord | undefined {
  const [first = '', text = '', ...more] = line.split('\t');
  if (first === 'country') {
    const [membership, name, ...rest] = more;
    if (!/^[A-Z]{2}$/.test(text) || !/^(eu|-)$/.test(membership ?? '') || name === undefined || rest.length > 0)
      return undefined;
    return { kind: 'country', code: text, name, isEu: membership === 'eu' };
  }
  if (more.length > 0 || !line.includes('\t')) return undefined;
  if (/^[1-9]\d{0,9}$/.test(first) && Number(first) < 2 ** 32)
    return { kind: 'network', asn: Number(first), name: text };
  if (text === '') return undefined;
  if (first === 'none') return { kind: 'none', reason: text };
  if (first === 'row') return { kind: 'label', row: text };
  const isScheme = first === 'embedded' && EMBEDDED_SCHEMES.includes(text as EmbeddedScheme);
  return isScheme ? { kind: 'embedded', scheme: text as EmbeddedScheme } : undefined;
}

/** Encodes records as the section of a partition. */
export function encodeRecords(records: readonly FileRecord[]): Uint8Array {
  return new TextEncoder().encode(records.map((record) => `${lineOf(record)}\n`).join(''));
}

/**
 * Decodes the records of a partition, by record number.
 *
 * @throws AtlasError E_DAMAGED if they are not as FORMAT.md says
 */
export function decodeRecords<File extends PartitionFile>(
  container: Container,
  { section, kinds }: Partition<File>,
): RecordOf<File>[] {
  const lines = decodeText(container, section).split('\n');
  if (lines.pop() !== '') throw container.damaged(`the last record of section ${section} is not complete`);
  return lines.map((line, index) => {
    const record = parseLine(line);
    if (record !== undefined && kinds.includes(record.kind)) return record as RecordOf<File>;
    throw container.damaged(`record ${index} of section ${section} is not valid`);
  });
}

/**
 * Decodes a section of text.
 *
 * @throws AtlasError E_DAMAGED if it is not UTF-8
 */
export function decodeText(container: Container, section: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(container.section(section));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw container.damaged(`section ${section} is not UTF-8`);
  }
}

/** Returns the sections of a partition, in file order, for `writeContainer`. */
export function partitionSections(
  { section, list }: Partition,
  { records, v4, v6 }: PartitionContent,
): Map<string, Uint8Array> {
  return new Map([
    [section, encodeRecords(records)],
    [`${section}4`, encodePartition(v4, list)],
    [`${section}6`, encodePartition(v6, list)],
  ]);
}

/**
 * Decodes the ranges of one family.
 *
 * @param recordCount number of records
 * @param name of the compact form, for messages
 * @param isForSearch as for {@link decodePartition}
 */
export function decodeRanges(
  container: Container,
  { section, recordBytes }: Partition,
  family: Family,
  recordCount: number,
  name: string,
  isForSearch = false,
): DecodedPartition<Uint16Array | Uint32Array> {
  const column = (count: number) => (recordBytes === 2 ? new Uint16Array(count) : new Uint32Array(count));
  return decodePartition(container.section(`${section}${family}`), family, recordCount, name, column, isForSearch);
}
