/**
 * The partitions that a release can have: the whole address space, cut into ranges, each with a record. Everything that a part of the
 * program needs to know of one of them is in its entry; the parts iterate the table.
 */
import type { RangeColumns } from '../range/columns.js';
import { type FileRecord, type LabelRecord, MAX_RECORDS, type NetworkRecord, type RangeRecord } from './layout.js';
import type { SearchColumns } from './search.js';

/** The ranges and the records of a partition, before it is a file. */
export interface PartitionContent<Rec extends FileRecord = FileRecord> {
  /** IPv4 ranges; `value` is an index into `records`, as in `v6`. */
  v4: RangeColumns;
  v6: RangeColumns;
  records: readonly Rec[];
}

/** A file of ranges in memory: typed arrays over its bytes. Columns are named after the sections of FORMAT.md. */
export interface PartitionFile<Rec extends FileRecord = FileRecord> extends SearchColumns {
  path: string;
  bytes: Uint8Array;
  /** Offset of the first section; the SHA-256 covers everything from here. */
  headEnd: number;
  /** Date of the EU membership, `YYYY-MM-DD`. */
  asOf: string;
  /** All records. In a file of networks or labels, which has many, they are decoded when this is first read. */
  readonly records: readonly Rec[];
  readonly recordCount: number;
  /** Returns one record; it decodes this one alone if the others were not needed yet. */
  recordAt(index: number): Rec;
  /** Number of IPv4 ranges. */
  count4: number;
  start4: Uint32Array;
  record4: Uint16Array | Uint32Array;
  /** Number of IPv6 ranges. */
  count6: number;
  record6: Uint16Array | Uint32Array;
  /** The names of the columns, if the records are rows of values; they are in the manifest. */
  columns?: readonly string[] | undefined;
}

/** A range file: the countries. */
export interface RangeFile extends PartitionFile<RangeRecord> {
  record4: Uint16Array;
  record6: Uint16Array;
  /** Confidence of each range, in percent; undefined if the sources were merged by priority. */
  confidence4: Uint8Array | undefined;
  confidence6: Uint8Array | undefined;
  /** The columns that have not been read, if the file was opened in parts. */
  unread?: UnreadColumns | undefined;
}

/** The IPv6 columns of a file that was opened in parts, and its confidence. */
export interface UnreadColumns {
  /**
   * Reads the columns, once.
   *
   * @param high6 receives the first halves of the IPv6 start addresses, in place of the memory of the file
   * @throws AtlasError E_DAMAGED if the file has become shorter, E_NO_DATABASE if it cannot be read
   */
  read(high6?: Uint8Array): void;
  /** Must be called if they are not read. */
  close(): void;
}

/** A file of networks. */
export interface NetworkFile extends PartitionFile<NetworkRecord> {
  /** The records as the file has them, four words each: see `RECORD_WORD` in layout.ts. */
  recordWords: Uint32Array;
  /** The texts of the records. */
  text: Uint8Array;
  record4: Uint32Array;
  record6: Uint32Array;
}

/** A file of rows of values, such as labels, with the names of their columns. */
export interface RowFile extends PartitionFile<LabelRecord> {
  record4: Uint32Array;
  record6: Uint32Array;
  columns: readonly string[];
}

/** What a manifest says of the columns of partitions whose records are rows of values. */
interface ColumnNames {
  labels?: { columns: readonly string[] } | undefined;
}

/** An entry of the table; `File` is what opening it returns. */
export interface Partition<File extends PartitionFile = PartitionFile> {
  /** Its name in flags and messages. */
  name: string;
  /** Its file in a release. */
  file: string;
  /** Size of a record number in the file in bytes, the most records, and their kinds. */
  recordBytes: 2 | 4;
  maxRecords: number;
  kinds: readonly FileRecord['kind'][];
  /** The names of the columns, if its records are rows of values. */
  columns?: (manifest: ColumnNames) => readonly string[];
  /** The members of results that it answers, besides columns whose names only the manifest has. */
  members: readonly string[];
  /** The columns whose values are true, false or null; those of the others are text or null. */
  flags?: readonly string[];
  /** Its tables in the mirror end in this name, and this column says what a range is about. */
  table: string;
  subject: string;
  /** Its sections in the compact form begin with this name; how they number records. */
  section: string;
  list: 'fixed' | 'recent';
  /** The folder of its history in a data directory; undefined if it is not archived. */
  history: string | undefined;
  /** Whether it leaves the machine only if the operator says so. */
  isPrivate: boolean;
  /** What `diff` compares, and what a release without it lacks. */
  comparison: string;
  absence: string;
  /** Only a type: no entry has a value. */
  readonly opened?: File;
}

/** The countries, which every release has. */
export const COUNTRIES: Partition<RangeFile> = {
  name: 'countries',
  file: 'ranges.ipr',
  recordBytes: 2,
  maxRecords: MAX_RECORDS,
  kinds: ['none', 'country', 'embedded'],
  members: ['country', 'country_code', 'is_eu', 'is_eea', 'continent', 'reason', 'confidence'],
  table: 'range',
  subject: 'country_code',
  section: 'country',
  list: 'fixed',
  history: 'history',
  isPrivate: false,
  comparison: 'the countries',
  absence: 'has no countries',
};

/** Returns an entry besides the countries, with what they have in common. @param table the name of its tables and sections */
function other<File extends PartitionFile>(
  name: string,
  table: string,
  entry: Pick<Partition<File>, 'kinds' | 'members' | 'subject' | 'comparison' | 'absence'> & Partial<Partition<File>>,
): Partition<File> {
  return {
    ...{ name, file: `${name}.ipr`, recordBytes: 4, maxRecords: 2 ** 32 },
    ...{ table, section: table, list: 'recent', history: `history/${name}`, isPrivate: false },
    ...entry,
  };
}

/** Who announces the addresses. */
export const NETWORKS: Partition<NetworkFile> = other('networks', 'network', {
  kinds: ['none', 'embedded', 'network'],
  members: ['asn', 'as_name'],
  subject: 'asn',
  comparison: 'who announces the addresses, by AS number',
  absence: 'has no networks: none of its sources says who announces the addresses; build it with a source of networks',
});

/** The values of the member `kind`; null is a value that is not known. */
export const KIND_VALUES: readonly string[] = ['cloud', 'relay', 'tor', 'none'];

/** The members of the kind of network, see {@link KINDS}. */
const KIND_COLUMNS = ['anycast', 'kind', 'operator'];

/** What kind of network the addresses are of: whether they are anycast, and whose list of clouds, relays or Tor has them. */
export const KINDS: Partition<RowFile> = other('kinds', 'kind', {
  kinds: ['none', 'embedded', 'label'],
  columns: () => KIND_COLUMNS,
  members: KIND_COLUMNS,
  flags: ['anycast'],
  subject: 'number',
  comparison: 'the kinds of networks, as JSON by name',
  absence: 'does not say the kinds of networks; build it again with lists of them among its sources',
});

/** The user's own columns. */
export const LABELS: Partition<RowFile> = other('labels', 'label', {
  kinds: ['none', 'embedded', 'label'],
  columns: ({ labels }) => labels?.columns ?? [],
  members: [],
  subject: 'label',
  history: undefined,
  isPrivate: true,
  comparison: 'the labels, as JSON by name',
  absence: 'has no labels; leave out --labels',
});

/** The table. The countries come first: they say for all others whether an IPv4 address inside decides. */
export const PARTITIONS: Partition[] = [COUNTRIES, NETWORKS, KINDS, LABELS];

/** Returns the partitions besides the countries. */
export function otherPartitions(): Partition[] {
  return PARTITIONS.filter((partition) => partition !== COUNTRIES);
}

/** Returns the partitions that the history keeps, with their folders. */
export function archivedPartitions(): Partition[] {
  return PARTITIONS.filter(({ history }) => history !== undefined);
}

/** Opened partitions of a release, the countries apart. */
export class OpenPartitions {
  readonly #files = new Map<Partition, PartitionFile>();

  set(partition: Partition, file: PartitionFile | undefined): this {
    if (file !== undefined) this.#files.set(partition, file);
    return this;
  }

  /** Returns a partition; undefined if the release has none, or it was not opened. */
  get<File extends PartitionFile>(partition: Partition<File>): File | undefined {
    return this.#files.get(partition) as File | undefined;
  }

  /** Returns the partitions in the order of the table. */
  entries(): [Partition, PartitionFile][] {
    return otherPartitions().flatMap((partition) => {
      const file = this.#files.get(partition);
      return file === undefined ? [] : [[partition, file] as [Partition, PartitionFile]];
    });
  }
}
