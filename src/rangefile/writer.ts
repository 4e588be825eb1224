/** Writes the range file; FORMAT.md is its specification. */

import { crypto } from '../builtins.js';
import { crc32 } from '../crc32.js';
import type { RangeColumns } from '../range/columns.js';
import {
  align,
  CONFIDENCE_SECTIONS,
  CONFIDENCE_TAGS,
  CONFIDENCE_VERSION,
  type ConfidenceTag,
  ENTRY,
  ENTRY_BYTES,
  encodeDate,
  type FileRecord,
  FLAG_EU,
  HEADER,
  HEADER_BYTES,
  MAGIC,
  MAJOR_VERSION,
  MAX_CONFIDENCE,
  MINOR_VERSION,
  RECORD,
  RECORD_BYTES,
  RECORD_KINDS,
  recordKey,
  SECTION_TAGS,
  SECTIONS,
  type SectionTag,
} from './layout.js';
import { type RangeFileContent, splitIPv6 } from './memory.js';
import { COUNTRIES, type Partition } from './partitions.js';
import { buildIndex } from './search.js';

/** Returns a column of confidence as a section: empty if every range has the highest, as when the sources never differ. */
function withoutFull(column: Uint8Array): Uint8Array {
  return column.every((percent) => percent === MAX_CONFIDENCE) ? new Uint8Array(0) : column;
}

/**
 * Returns the records that ranges use, in file order, and the columns renumbered to them. The record numbers of a build depend
 * on the order of the rows of its sources; those of a file must not.
 */
function canonicalRecords(
  { v4, v6, records }: RangeFileContent<FileRecord>,
  { maxRecords, recordBytes }: Partition,
): { records: FileRecord[]; v4: Uint16Array | Uint32Array; v6: Uint16Array | Uint32Array } {
  const isUsed = new Uint8Array(records.length);
  for (const { value } of [v4, v6]) for (const id of value) isUsed[id] = 1;
  const used = records.flatMap((record, id) => (isUsed[id] === 1 ? [{ key: recordKey(record), id }] : []));
  used.sort((a, b) => (a.key < b.key ? -1 : 1));
  if (used.length > maxRecords) throw new RangeError(`${used.length} records; the format holds ${maxRecords}`);
  const renumbered = new Uint32Array(records.length);
  used.forEach(({ id }, index) => {
    renumbered[id] = index;
  });
  const column = ({ count, value }: RangeColumns): Uint16Array | Uint32Array => {
    const ids = recordBytes === 2 ? new Uint16Array(count) : new Uint32Array(count);
    for (let i = 0; i < count; i++) ids[i] = renumbered[value[i]!]!;
    return ids;
  };
  return { records: used.map(({ id }) => records[id]!), v4: column(v4), v6: column(v6) };
}

/** Encodes the sections `RECO` and `TEXT`. */
function encodeRecords(records: readonly FileRecord[]): { table: Uint8Array; text: Uint8Array } {
  const table = new DataView(new ArrayBuffer(records.length * RECORD_BYTES));
  const texts: Buffer[] = [];
  let textBytes = 0;
  records.forEach((record, index) => {
    const at = index * RECORD_BYTES;
    table.setUint8(at + RECORD.kind, RECORD_KINDS.indexOf(record.kind));
    let text: string;
    if (record.kind === 'country') {
      table.setUint8(at + RECORD.flags, record.isEu ? FLAG_EU : 0);
      table.setUint8(at + RECORD.code, record.code.charCodeAt(0));
      table.setUint8(at + RECORD.code + 1, record.code.charCodeAt(1));
      text = record.name;
    } else if (record.kind === 'network') {
      table.setUint32(at + RECORD.asn, record.asn, true);
      text = record.name;
    } else if (record.kind === 'label') text = record.row;
    else {
      text = record.kind === 'none' ? record.reason : record.scheme;
    }
    const bytes = Buffer.from(text, 'utf8');
    table.setUint32(at + RECORD.textOffset, textBytes, true);
    table.setUint32(at + RECORD.textLength, bytes.length, true);
    texts.push(bytes);
    textBytes += bytes.length;
  });
  return { table: new Uint8Array(table.buffer), text: Buffer.concat(texts) };
}

/** Returns the bytes of a typed array as they are in memory: this code runs on little-endian machines only. */
function bytesOf(array: Uint16Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Encodes a range file of countries; see {@link encodeFile}. */
export function encodeRangeFile(content: RangeFileContent): Buffer {
  return encodeFile(COUNTRIES, content);
}

/**
 * Encodes the range file of a partition.
 *
 * @param content the ranges of both families, and their records
 * @returns the bytes of the file; the same for the same content in any order of `records`
 */
export function encodeFile(partition: Partition, content: RangeFileContent<FileRecord>): Buffer {
  const { records, v4, v6 } = canonicalRecords(content, partition);
  const { high, low } = splitIPv6(content.v6.count, content.v6.first);
  const { table, text } = encodeRecords(records);
  const { confidence } = content;
  const sections: Record<SectionTag, Uint8Array> & Partial<Record<ConfidenceTag, Uint8Array>> = {
    '4STA': bytesOf(content.v4.first),
    '4REC': bytesOf(v4),
    '4IDX': bytesOf(buildIndex(content.v4.count, content.v4.first)),
    '6HIG': bytesOf(high),
    '6LOW': bytesOf(low),
    '6REC': bytesOf(v6),
    '6IDX': bytesOf(buildIndex(content.v6.count, content.v6.first, 4)),
    RECO: table,
    TEXT: text,
    ...(confidence && { '4CON': withoutFull(confidence.v4), '6CON': withoutFull(confidence.v6) }),
  };
  const tags = confidence === undefined ? SECTION_TAGS : [...SECTION_TAGS, ...CONFIDENCE_TAGS];

  const headEnd = HEADER_BYTES + tags.length * ENTRY_BYTES;
  let fileSize = headEnd;
  const offsets = tags.map((tag) => {
    const offset = align(fileSize);
    fileSize = offset + sections[tag]!.byteLength;
    return offset;
  });

  const { recordBytes } = partition;
  const elementBytes = { ...SECTIONS, ...CONFIDENCE_SECTIONS, '4REC': recordBytes, '6REC': recordBytes };
  const file = Buffer.alloc(fileSize);
  file.set(MAGIC, 0);
  file.writeUInt16LE(MAJOR_VERSION, HEADER.major);
  file.writeUInt16LE(confidence === undefined ? MINOR_VERSION : CONFIDENCE_VERSION, HEADER.minor);
  file.writeUInt32LE(tags.length, HEADER.sections);
  file.writeBigUInt64LE(BigInt(fileSize), HEADER.fileSize);
  file.writeUInt32LE(encodeDate(content.asOf), HEADER.asOf);
  tags.forEach((tag, index) => {
    const section = sections[tag]!;
    const entry = HEADER_BYTES + index * ENTRY_BYTES;
    file.write(tag, entry + ENTRY.tag, 'latin1');
    file.writeUInt32LE(elementBytes[tag], entry + ENTRY.elementBytes);
    file.writeBigUInt64LE(BigInt(offsets[index]!), entry + ENTRY.offset);
    file.writeBigUInt64LE(BigInt(section.byteLength), entry + ENTRY.length);
    file.set(section, offsets[index]!);
  });
  file.set(crypto().createHash('sha256').update(file.subarray(headEnd)).digest(), HEADER.sha256);
  file.writeUInt32LE(crc32(file.subarray(0, headEnd)), HEADER.crc32);
  return file;
}
