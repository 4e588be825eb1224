/** Reads the range file. Opening it checks the structure, so that every later access is in bounds. See FORMAT.md. */
import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import { crc32 } from '../crc32.js';
import { AtlasError, damagedRelease, orThrow, REBUILD } from '../errors.js';
import type { RangeColumns } from '../range/columns.js';
import {
  ALIGNMENT,
  CONFIDENCE_SECTIONS,
  type ConfidenceTag,
  decodeDate,
  ENTRY,
  ENTRY_BYTES,
  type FileRecord,
  FLAG_EU,
  HEADER,
  HEADER_BYTES,
  INDEX_ENTRIES,
  MAGIC,
  MAJOR_VERSION,
  MAX_CONFIDENCE,
  RECORD,
  RECORD_BYTES,
  RECORD_KINDS,
  recordMembers,
  SECTION_TAGS,
  SECTIONS,
  type SectionTag,
} from './layout.js';
import { COUNTRIES, type Partition, type PartitionContent, type PartitionFile, type RangeFile } from './partitions.js';
import type { SearchColumns } from './search.js';

export type { NetworkFile, PartitionFile, RangeFile, RowFile, UnreadColumns } from './partitions.js';

/** Writes the first address of IPv6 range `index` as four words, most significant first. */
export function firstIPv6({ high6, low6 }: SearchColumns, index: number, target: Uint32Array): void {
  target[0] = high6[2 * index + 1]!;
  target[1] = high6[2 * index]!;
  target[2] = low6[2 * index + 1]!;
  target[3] = low6[2 * index]!;
}

/**
 * Returns one family of the file as range columns; `value` is the record number. IPv4 shares the memory of the file; IPv6 is
 * a copy.
 */
export function rangeColumns(
  file: Pick<PartitionFile, 'count4' | 'start4' | 'record4' | 'count6' | 'high6' | 'low6' | 'record6'>,
  family: Family,
): RangeColumns {
  if (family === 4) return { family, count: file.count4, first: file.start4, value: file.record4 };
  const { high6, low6, count6 } = file;
  const first = new Uint32Array(4 * count6);
  for (let i = 0; i < 2 * count6; i += 2) {
    first[2 * i] = high6[i + 1]!;
    first[2 * i + 1] = high6[i]!;
    first[2 * i + 2] = low6[i + 1]!;
    first[2 * i + 3] = low6[i]!;
  }
  return { family, count: count6, first, value: file.record6 };
}

/** Returns the ranges and records of a file, as {@link rangeColumns} does. */
export function contentOf<Rec extends FileRecord>(file: PartitionFile<Rec>): PartitionContent<Rec> {
  return { records: file.records, v4: rangeColumns(file, 4), v6: rangeColumns(file, 6) };
}

/** Offset and length of each section in bytes. */
interface SectionPlace {
  offset: number;
  length: number;
}
export type SectionTable = Record<SectionTag, SectionPlace> & Partial<Record<ConfidenceTag, SectionPlace>>;

const damaged = (path: string, what: string): AtlasError => damagedRelease(`${path}: ${what}`);

function readSectionTable(
  path: string,
  bytes: Buffer,
  sections: number,
  headEnd: number,
  recordBytes: number,
): SectionTable {
  const elements = { ...SECTIONS, ...CONFIDENCE_SECTIONS, '4REC': recordBytes, '6REC': recordBytes };
  const table: Partial<SectionTable> = {};
  for (let i = 0; i < sections; i++) {
    const entry = HEADER_BYTES + i * ENTRY_BYTES;
    const tag = bytes.toString('latin1', entry + ENTRY.tag, entry + ENTRY.tag + 4) as SectionTag | ConfidenceTag;
    const offset = Number(bytes.readBigUInt64LE(entry + ENTRY.offset));
    const length = Number(bytes.readBigUInt64LE(entry + ENTRY.length));
    if (offset % ALIGNMENT !== 0 || offset < headEnd || offset + length > bytes.length) {
      throw damaged(path, `section ${tag} (offset ${offset}, ${length} bytes) is not inside the file`);
    }
    const elementBytes: number | undefined = elements[tag];
    if (elementBytes === undefined) continue; // of a newer minor version
    if (bytes.readUInt32LE(entry + ENTRY.elementBytes) !== elementBytes || length % elementBytes !== 0) {
      throw damaged(path, `section ${tag} does not consist of elements of ${elementBytes} bytes`);
    }
    table[tag] = { offset, length };
  }
  for (const tag of SECTION_TAGS) if (table[tag] === undefined) throw damaged(path, `section ${tag} is missing`);
  return table as SectionTable;
}

/** Checks magic number, version, size and, unless it was checked before, CRC-32; returns the number of sections and their offset. */
function checkHeader(path: string, bytes: Buffer, wasChecked: boolean): { sections: number; headEnd: number } {
  if (bytes.length < HEADER_BYTES) throw damaged(path, `${bytes.length} bytes are not enough for a range file`);
  if (!MAGIC.every((byte, index) => bytes[index] === byte)) throw damaged(path, 'not a range file (no magic number)');
  const major = bytes.readUInt16LE(HEADER.major);
  if (major !== MAJOR_VERSION) {
    throw damaged(path, `format version ${major}, but this ipatlas reads version ${MAJOR_VERSION}`);
  }
  const fileSize = Number(bytes.readBigUInt64LE(HEADER.fileSize));
  if (fileSize !== bytes.length) throw damaged(path, `${bytes.length} bytes long, but its header says ${fileSize}`);
  const sections = bytes.readUInt32LE(HEADER.sections);
  const headEnd = HEADER_BYTES + sections * ENTRY_BYTES;
  if (headEnd > bytes.length) throw damaged(path, `a table of ${sections} sections does not fit`);
  if (wasChecked) return { sections, headEnd };
  const head = Buffer.from(bytes.subarray(0, headEnd));
  head.writeUInt32LE(0, HEADER.crc32);
  // The CRC-32 covers the header with these four bytes zero.
  if (crc32(head) !== bytes.readUInt32LE(HEADER.crc32)) throw damaged(path, 'the checksum of its header is wrong');
  return { sections, headEnd };
}

/** Returns where the sections of a range file are that was checked before. `bytes` must have at least its table of sections. */
export function sectionsOf(path: string, bytes: Buffer): SectionTable {
  const { sections, headEnd } = checkHeader(path, bytes, true);
  return readSectionTable(path, bytes, sections, headEnd, COUNTRIES.recordBytes);
}

function decodeRecord(
  path: string,
  table: DataView,
  index: number,
  text: Buffer,
  kinds: readonly FileRecord['kind'][],
): FileRecord {
  const at = index * RECORD_BYTES;
  const offset = table.getUint32(at + RECORD.textOffset, true);
  const length = table.getUint32(at + RECORD.textLength, true);
  if (offset + length > text.length) throw damaged(path, `the text of record ${index} is outside its section`);
  const label = text.toString('utf8', offset, offset + length);
  const kind = RECORD_KINDS[table.getUint8(at + RECORD.kind)];
  if (kind === undefined || !kinds.includes(kind)) throw damaged(path, `record ${index} is of an unknown kind`);
  switch (kind) {
    case 'none':
      return { kind, reason: label };
    case 'country': {
      const code = String.fromCharCode(table.getUint8(at + RECORD.code), table.getUint8(at + RECORD.code + 1));
      return { kind, code, name: label, isEu: (table.getUint8(at + RECORD.flags) & FLAG_EU) !== 0 };
    }
    case 'embedded':
      if (!EMBEDDED_SCHEMES.includes(label as EmbeddedScheme)) {
        throw damaged(path, `record ${index} names the unknown scheme ${JSON.stringify(label)}`);
      }
      return { kind, scheme: label as EmbeddedScheme };
    case 'network':
      return { kind, asn: table.getUint32(at + RECORD.asn, true), name: label };
    case 'label':
      return { kind, row: label };
  }
}

/** Returns the greatest number in a column. */
function greatest(column: Uint16Array | Uint32Array): number {
  let most = 0;
  for (let i = 0; i < column.length; i++) if (column[i]! > most) most = column[i]!;
  return most;
}

/** Checks an index: the number of ranges below each bucket never decreases, and the last entry is the number of ranges. */
function checkIndex(path: string, index: Uint32Array, count: number): void {
  // The first range begins at address zero, in the first bucket.
  let sound = index[0] === 0 && index[1]! > 0 && index[index.length - 1] === count;
  for (let i = 1; i < index.length; i++) if (index[i]! < index[i - 1]!) sound = false;
  if (!sound) throw damaged(path, 'an index points outside its column');
}

/**
 * Checks that every search stays inside the columns and the records, even in a damaged file. Checking the order of the ranges
 * would take too long here; the verifier does it.
 */
function checkColumns(file: PartitionFile): void {
  const { path } = file;
  if (Math.max(greatest(file.record4), greatest(file.record6)) >= file.records.length) {
    throw damaged(path, 'a range names a record that does not exist');
  }
  for (const [family, start] of [
    [4, [file.start4[0]]],
    [6, [file.high6[0], file.high6[1], file.low6[0], file.low6[1]]],
  ] as const) {
    if (start.some((word) => word !== 0)) throw damaged(path, `the first IPv${family} range does not begin at zero`);
  }
  checkIndex(path, file.index4, file.count4);
  checkIndex(path, file.index6, file.count6);
}

/** Decodes a range file of countries; see {@link decodeFile}. */
export function decodeRangeFile(bytes: Buffer, path: string, wasChecked = false): RangeFile {
  return decodeFile(COUNTRIES, bytes, path, wasChecked);
}

/**
 * The records of a file of networks or labels, which has many: decoded when they are first needed. A class, because V8 keeps
 * the members of an object that has a getter of its own in a hash table, where each search would look them up.
 */
class LazyRecords {
  readonly recordCount: number;
  readonly #decode: (index: number) => FileRecord;
  #records: FileRecord[] | undefined;

  constructor(recordCount: number, decode: (index: number) => FileRecord) {
    this.recordCount = recordCount;
    this.#decode = decode;
  }

  get records(): readonly FileRecord[] {
    this.#records ??= Array.from({ length: this.recordCount }, (_, index) => this.#decode(index));
    return this.#records;
  }

  recordAt(index: number): FileRecord {
    return this.#records?.[index] ?? this.#decode(index);
  }
}

/**
 * Decodes the range file of a partition.
 *
 * @param bytes the whole file
 * @param path of the file, for messages
 * @param wasChecked whether these very bytes were checked before. Then the checksum of the header and the columns are not
 *   checked again, which takes longer than all the rest
 * @param columns the names of the columns, if the records are rows of values
 * @returns the file; its arrays share memory with `bytes` if that is aligned
 * @throws AtlasError E_DAMAGED if the structure is not that of FORMAT.md or the version is unknown
 */
export function decodeFile<File extends PartitionFile>(
  partition: Partition<File>,
  bytes: Buffer,
  path: string,
  wasChecked = false,
  columns?: readonly string[],
): File {
  const { recordBytes, maxRecords, kinds } = partition;
  if (endianness() !== 'LE') throw new AtlasError('E_FAULT', 'range files can be read on little-endian machines only');
  const { sections, headEnd } = checkHeader(path, bytes, wasChecked);
  const table = readSectionTable(path, bytes, sections, headEnd, recordBytes);
  // Typed arrays need an aligned offset, which a buffer from Node's pool may not have.
  const whole = bytes.byteOffset % ALIGNMENT === 0 ? bytes : new Uint8Array(bytes);
  const u16 = (tag: SectionTag): Uint16Array =>
    new Uint16Array(whole.buffer, whole.byteOffset + table[tag].offset, table[tag].length / 2);
  const columnOfRecords = (tag: SectionTag): Uint16Array | Uint32Array => (recordBytes === 2 ? u16(tag) : u32(tag));
  const u32 = (tag: SectionTag): Uint32Array =>
    new Uint32Array(whole.buffer, whole.byteOffset + table[tag].offset, table[tag].length / 4);

  const count4 = table['4STA'].length / SECTIONS['4STA'];
  const count6 = table['6HIG'].length / SECTIONS['6HIG'];
  const recordCount = table.RECO.length / RECORD_BYTES;
  const lengthsAgree =
    table['4REC'].length === count4 * recordBytes &&
    table['6LOW'].length === count6 * SECTIONS['6LOW'] &&
    table['6REC'].length === count6 * recordBytes &&
    table['4IDX'].length === INDEX_ENTRIES * SECTIONS['4IDX'] &&
    table['6IDX'].length === INDEX_ENTRIES * SECTIONS['6IDX'];
  function confidenceColumn(tag: ConfidenceTag, count: number): Uint8Array | undefined {
    const section = table[tag];
    if (section === undefined) return undefined;
    if (section.length === 0) return new Uint8Array(count).fill(MAX_CONFIDENCE);
    return new Uint8Array(whole.buffer, whole.byteOffset + section.offset, section.length);
  }
  const confidence = [confidenceColumn('4CON', count4), confidenceColumn('6CON', count6)] as const;
  const hasConfidence = confidence.some((column) => column !== undefined);
  if (hasConfidence && (confidence[0]?.length !== count4 || confidence[1]?.length !== count6)) {
    throw damaged(path, 'its columns of confidence are not those of its ranges');
  }
  if (!lengthsAgree || count4 === 0 || count6 === 0) throw damaged(path, 'its columns are not of equal length');
  if (recordCount === 0 || recordCount > maxRecords) throw damaged(path, `${recordCount} records`);

  const recordTable = new DataView(whole.buffer, whole.byteOffset + table.RECO.offset, table.RECO.length);
  const text = bytes.subarray(table.TEXT.offset, table.TEXT.offset + table.TEXT.length);
  const members = {
    path,
    bytes: whole,
    headEnd,
    asOf: decodeDate(bytes.readUInt32LE(HEADER.asOf)),
    recordWords: u32('RECO'),
    text,
    count4,
    start4: u32('4STA'),
    start4Low: u16('4STA'),
    record4: columnOfRecords('4REC'),
    index4: u32('4IDX'),
    count6,
    high6: u32('6HIG'),
    low6: u32('6LOW'),
    record6: columnOfRecords('6REC'),
    index6: u32('6IDX'),
    confidence4: confidence[0],
    confidence6: confidence[1],
    divisions6: undefined,
  };
  const lazy = new LazyRecords(recordCount, (index) => decodeRecord(path, recordTable, index, text, kinds));
  const isOfCountries = kinds.includes('country');
  const file: PartitionFile = isOfCountries
    ? { ...members, ...recordMembers(lazy.records) }
    : Object.assign(lazy, members, columns && { columns });
  if (!wasChecked) checkColumns(file);
  return file as File;
}

/** Opens a range file of countries; see {@link openFile}. */
export function openRangeFile(path: string): RangeFile {
  return openFile(COUNTRIES, path);
}

/**
 * Opens the range file of a partition without checking its hash; `openReleaseRanges` also does that.
 *
 * @param path of the file; all of it is read into memory (about 12 MB)
 * @param columns as for {@link decodeFile}
 * @throws AtlasError E_NO_DATABASE if it cannot be read, E_DAMAGED if it is not a valid range file
 */
export function openFile<File extends PartitionFile>(
  partition: Partition<File>,
  path: string,
  columns?: readonly string[],
): File {
  const bytes = orThrow(() => readFileSync(path), 'E_NO_DATABASE', `${path} cannot be read`, REBUILD);
  return decodeFile(partition, bytes, path, false, columns);
}
