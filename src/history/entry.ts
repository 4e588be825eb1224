/** An entry of the archive: what one publication changed, as a file. FORMAT.md is the specification. */
import type { Family } from '../address/parse.js';
import { compareAddresses } from '../address/words.js';
import { Container, damaged, writeContainer } from '../compact/container.js';
import { decodeAbout } from '../compact/countries.js';
import { decodePartition, encodePartition } from '../compact/partition.js';
import { decodeRecords, encodeRecords } from '../compact/records.js';
import { compressCompact, unpackCompact } from '../database/compact.js';
import type { FileRecord, RangeRecord } from '../rangefile/layout.js';
import type { Partition } from '../rangefile/partitions.js';
import type { PartitionFile } from '../rangefile/reader.js';

/** A partition that the history keeps. */
export type Archived<Rec extends FileRecord> = Partition<PartitionFile<Rec>>;

/** How an entry came about: by a publication, or by an import of a table. */
export type Origin = 'own' | 'imported';

import type { Values } from './changes.js';

/**
 * What an entry has: the whole partition (`base`), the changes since the entry before (`changes`), or nothing, because the release
 * was published without history (`gap`).
 */
export const ENTRY_KINDS = ['base', 'changes', 'gap'] as const;
export type EntryKind = (typeof ENTRY_KINDS)[number];

/** What the name of an entry says. */
export interface EntryName {
  /** Time of publication in milliseconds since 1970; for an import, the start of its day in UTC. */
  time: number;
  /** Time of the entry before, or undefined for the first one. */
  since: number | undefined;
  origin: Origin;
  kind: EntryKind;
}

/** What an entry says about its publication. */
export interface EntryAbout {
  /** Id of the release; the name of the file for an import. */
  release: string;
  event: 'build' | 'pull' | 'rollback' | 'import';
  /** Whether it was published although gates refused it. */
  forced?: boolean;
  /** Date of the data, `YYYY-MM-DD`; missing if nothing tells it. */
  data_date?: string;
  /** One more than that of the publication before, unless that cannot be read: it is then larger. Imports have none. */
  number?: number;
}

/** The answers of a release: the records, and a partition for each family whose values are record numbers plus one. */
export interface Answers<Rec extends FileRecord = RangeRecord> {
  records: readonly Rec[];
  v4: Values;
  v6: Values;
}

const NAME = /^(\d{8}T\d{9}Z)_(\d{8}T\d{9}Z|first)_(own|imported)_(base|changes|gap)\.ipc$/;

/** Writes a time as `20261123T071530123Z`, which sorts like the time. */
function timeText(time: number): string {
  return new Date(time).toISOString().replace(/[-:.]/g, '');
}

/** Reads what {@link timeText} wrote. Returns NaN for a day or time that does not exist. */
function parseTime(text: string): number {
  const iso = text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z$/, '$1-$2-$3T$4:$5:$6.$7Z');
  const time = Date.parse(iso);
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? Number.NaN : time;
}

/** Returns the file name of an entry. */
export function entryFileName({ time, since, origin, kind }: EntryName): string {
  return `${timeText(time)}_${since === undefined ? 'first' : timeText(since)}_${origin}_${kind}.ipc`;
}

/** Parses a file name. Returns undefined if it is not that of an entry. */
export function parseEntryName(file: string): EntryName | undefined {
  const match = NAME.exec(file);
  if (match === null) return undefined;
  const time = parseTime(match[1]!);
  const since = match[2] === 'first' ? undefined : parseTime(match[2]!);
  if (Number.isNaN(time) || Number.isNaN(since)) return undefined;
  return { time, since, origin: match[3] as Origin, kind: match[4] as EntryKind };
}

/** What an entry file has besides its name. */
export interface EntryContent<Rec extends FileRecord> {
  about: EntryAbout;
  /** Records that are new: all of a base; of changes, those that no entry since the base has. */
  records: readonly Rec[];
  /** The answers of a base or what changed; undefined for a gap. */
  v4: Values | undefined;
  v6: Values | undefined;
}

/** Encodes an entry file. */
export function encodeEntry<Rec extends FileRecord>(
  { section, list }: Archived<Rec>,
  name: EntryName,
  { about, records, v4, v6 }: EntryContent<Rec>,
): Uint8Array {
  const text = JSON.stringify({ ...about, name: entryFileName(name) });
  const head = new Map<string, Uint8Array>([['about', new TextEncoder().encode(text)]]);
  if (v4 !== undefined) head.set(section, encodeRecords(records));
  // The first build does not wait three seconds for the best compression, which saves a fourteenth of a base.
  const method = name.since === undefined ? 'brotli-fast' : 'brotli';
  const pack = (bytes: Uint8Array): Buffer => compressCompact(bytes, method);
  const sections = new Map([['entry', pack(writeContainer(head))]]);
  for (const layer of [v4, v6]) {
    if (layer !== undefined) sections.set(`${section}${layer.family}`, pack(encodePartition(layer, list)));
  }
  return writeContainer(sections);
}

function isAbout(value: unknown): value is EntryAbout & { name: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { name, release, event, forced, data_date, number } = value as Record<string, unknown>;
  return (
    typeof name === 'string' &&
    typeof release === 'string' &&
    ['build', 'pull', 'rollback', 'import'].includes(event as string) &&
    (forced === undefined || typeof forced === 'boolean') &&
    (data_date === undefined || typeof data_date === 'string') &&
    (number === undefined || Number.isSafeInteger(number))
  );
}

/** An entry file whose container was opened. Its ranges are read on demand. */
export class EntryFile<Rec extends FileRecord = FileRecord> {
  readonly name: EntryName;
  readonly about: EntryAbout;
  readonly #partition: Archived<Rec>;
  readonly #path: string;
  readonly #container: Container;
  /** What it says about its publication, and its records. */
  readonly #head: Container;

  /**
   * @param path of the file, for messages
   * @param expected the name of the file; undefined if it has another name until it counts
   * @throws AtlasError E_DAMAGED if the content is not an entry, or that of another name
   */
  constructor(partition: Archived<Rec>, bytes: Uint8Array, path: string, expected?: string) {
    this.#partition = partition;
    this.#path = path;
    this.#container = new Container(bytes, path);
    this.#head = new Container(this.#unpacked('entry'), path);
    const about = decodeAbout(this.#head);
    const name = isAbout(about) ? parseEntryName(about.name) : undefined;
    if (!isAbout(about) || name === undefined) throw damaged(path, 'it does not describe a publication');
    if (expected !== undefined && expected !== about.name) {
      throw damaged(path, `it is the entry ${about.name}`);
    }
    this.name = name;
    this.about = about;
  }

  /**
   * Returns the records that the entry adds.
   *
   * @throws AtlasError E_DAMAGED
   */
  records(): Rec[] {
    return decodeRecords(this.#head, this.#partition) as Rec[];
  }

  /**
   * Checks all checksums.
   *
   * @throws AtlasError E_DAMAGED
   */
  check(): void {
    for (const section of this.#container.names) this.#container.section(section);
  }

  /**
   * Returns the ranges of one family: answers of a base, or changes.
   *
   * @param recordCount number of records of the base and of all entries since, this one included
   * @throws AtlasError E_DAMAGED
   */
  layer(family: Family, recordCount: number): Values {
    const newValues = (count: number): Uint32Array => new Uint32Array(count);
    const ranges = this.#unpacked(`${this.#partition.section}${family}`);
    return decodePartition(ranges, family, recordCount + 1, this.#path, newValues);
  }

  #unpacked(section: string): Uint8Array {
    return unpackCompact(this.#container.section(section), this.#path);
  }

  /** Returns the value of the range that has an address. */
  valueAt(family: Family, recordCount: number, address: Uint32Array): number {
    const { first, count, value } = this.layer(family, recordCount);
    let low = 0;
    for (let high = count; high - low > 1; ) {
      const middle = (low + high) >>> 1;
      if (compareAddresses(first, middle, address, 0, address.length) <= 0) low = middle;
      else high = middle;
    }
    return value[low]!;
  }
}
