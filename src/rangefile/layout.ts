/** The constants of FORMAT.md, for the writer, the reader and the verifier. */
import type { EmbeddedScheme } from '../address/embedded.js';

/** `\x89IPR\r\n\x1a\n`. */
export const MAGIC = Uint8Array.of(0x89, 0x49, 0x50, 0x52, 0x0d, 0x0a, 0x1a, 0x0a);
export const MAJOR_VERSION = 1;
export const MINOR_VERSION = 0;
/** Minor version of files with a confidence. */
export const CONFIDENCE_VERSION = 1;

/** Header size in bytes, and the offsets of its fields. */
export const HEADER_BYTES = 80;
export const HEADER = { major: 8, minor: 10, sections: 12, fileSize: 16, asOf: 24, crc32: 28, sha256: 32 } as const;

/** Size of an entry of the section table in bytes, and the offsets of its fields. */
export const ENTRY_BYTES = 24;
export const ENTRY = { tag: 0, elementBytes: 4, offset: 8, length: 16 } as const;

/** Sections begin at multiples of this number of bytes, as typed arrays and 128-bit loads require. */
export const ALIGNMENT = 16;

/** The sections in file order, with the size of an element in bytes. In a file of networks, `4REC` and `6REC` have four. */
export const SECTIONS = {
  '4STA': 4,
  '4REC': 2,
  '4IDX': 4,
  '6HIG': 8,
  '6LOW': 8,
  '6REC': 2,
  '6IDX': 4,
  RECO: 16,
  TEXT: 1,
} as const;
export type SectionTag = keyof typeof SECTIONS;
export const SECTION_TAGS = Object.keys(SECTIONS) as SectionTag[];

/** The sections that files of sources merged by evidence have after all others. */
export const CONFIDENCE_SECTIONS = { '4CON': 1, '6CON': 1 } as const;
export type ConfidenceTag = keyof typeof CONFIDENCE_SECTIONS;
export const CONFIDENCE_TAGS = Object.keys(CONFIDENCE_SECTIONS) as ConfidenceTag[];
/** Highest confidence, in percent. */
export const MAX_CONFIDENCE = 100;

/** Entries of an index: one for each value of the top 16 bits, and one for the total. */
export const INDEX_ENTRIES = 65_537;

/** Most records in a file of countries: record numbers have 16 bits. */
export const MAX_RECORDS = 65_536;

/** Size of a record in bytes, and the offsets of its fields. */
export const RECORD_BYTES = 16;
export const RECORD = { kind: 0, flags: 1, code: 2, textOffset: 4, textLength: 8, asn: 12 } as const;
export const RECORD_KINDS = ['none', 'country', 'embedded', 'network', 'label'] as const;
/** The same by 32-bit words: the low byte of the first one is the kind, as its place in {@link RECORD_KINDS}. */
export const RECORD_WORD = { kind: 0, textOffset: 1, textLength: 2, asn: 3 } as const;
export const RECORD_WORDS = RECORD_BYTES / 4;
export const FLAG_EU = 1;

/**
 * A record: a country, a reason why there is none, or a scheme whose embedded IPv4 address decides. `day` is in the answers of
 * many days only: one on which the memberships of the country are those of the record, `YYYY-MM-DD`.
 */
export type RangeRecord = (
  | { kind: 'none'; reason: string }
  | { kind: 'country'; code: string; name: string; isEu: boolean; day?: string }
  | { kind: 'embedded'; scheme: EmbeddedScheme }
) & {
  /** Only in the view of confidence.ts: in percent, or null without a country. */
  confidence?: number | null;
};

/** A record of a file of networks: one for each AS number. */
export type NetworkRecord =
  | { kind: 'none'; reason: string }
  | { kind: 'embedded'; scheme: EmbeddedScheme }
  /** `name` is that of the network; empty if no source has one. */
  | { kind: 'network'; asn: number; name: string };

/** A value of a row. */
export type Cell = string | boolean | null;

/** A record of a file of rows, such as labels: one for each different row of values. */
export type LabelRecord =
  | { kind: 'none'; reason: string }
  | { kind: 'embedded'; scheme: EmbeddedScheme }
  /** `row` has the value of each column as JSON. */
  | { kind: 'label'; row: string };

export type FileRecord = RangeRecord | NetworkRecord | LabelRecord;

/** Reason of a record of addresses that no network announces, as far as the sources tell. */
export const UNANNOUNCED = 'unannounced';
/** Reason of a record of addresses of which all values are null. */
export const UNLABELED = 'unlabeled';

/** Returns the values of a row, in the order of the columns. */
export function cellsOf({ row }: LabelRecord & { kind: 'label' }): Cell[] {
  return JSON.parse(row) as Cell[];
}

/** Returns what identifies a record over time: all of it but the membership of the Union, which is computed for the day that is asked for. */
export function recordIdentity(record: FileRecord): string {
  return JSON.stringify(record.kind === 'country' ? [record.code, record.name] : record);
}

/** Returns a key that identifies a record and sorts records in file order: by kind, then by code, text, AS number or row. */
export function recordKey(record: FileRecord): string {
  switch (record.kind) {
    case 'none':
      return `0 ${record.reason}`;
    case 'country':
      return `1 ${record.code}`;
    case 'embedded':
      return `2 ${record.scheme}`;
    case 'network':
      return `3 ${String(record.asn).padStart(10, '0')}`;
    case 'label':
      return `4 ${record.row}`;
  }
}

/** Encodes `2026-11-21` as 20261121. */
export function encodeDate(date: string): number {
  return Number(date.replaceAll('-', ''));
}

/** Decodes 20261121 as `2026-11-21`. */
export function decodeDate(value: number): string {
  const digits = String(value).padStart(8, '0');
  return `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}`;
}

/** Rounds an offset up to a multiple of the alignment. */
export function align(offset: number): number {
  return Math.ceil(offset / ALIGNMENT) * ALIGNMENT;
}

/** Returns the members of a file for records in memory. */
export function recordMembers<Rec extends FileRecord>(
  records: readonly Rec[],
): { records: readonly Rec[]; recordCount: number; recordAt(index: number): Rec } {
  return { records, recordCount: records.length, recordAt: (index) => records[index]! };
}
