/** Finds the record of an address in a partition, and the block of addresses around it with the same answer. */
import { EMBEDDED_LAYOUT, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import { previousAddress } from '../address/words.js';
import { joinRanges } from '../range/cut.js';
import type { FileRecord } from '../rangefile/layout.js';
import { partitionInMemory } from '../rangefile/memory.js';
import { firstIPv6, type PartitionFile, rangeColumns } from '../rangefile/reader.js';
import { findIPv4, findIPv6 } from '../rangefile/search.js';

/** Instead of the length of a prefix: no prefix has the addresses around (Teredo inverts the IPv4 address inside). */
export const NO_PREFIX = -1;

/** Returns how many bits two addresses have in common from the most significant one. */
function commonBits(a: Uint32Array, b: Uint32Array): number {
  for (let k = 0; k < 4; k++) {
    const different = a[k]! ^ b[k]!;
    if (different !== 0) return 32 * k + Math.clz32(different);
  }
  return 128;
}

/**
 * Finds addresses in a partition. The result of a find is in the members, so that none is made for each address.
 *
 * Neighbors of the partition have different records, so the largest block around an address with the same record is the largest
 * one inside its range.
 */
export class PartitionFinder<Rec extends FileRecord = FileRecord> {
  readonly file: PartitionFile<Rec>;
  /** Number of the record; that of the IPv4 address inside, if that one decides. */
  record = 0;
  /** Of the last IPv6 address: how it embeds the IPv4 address that decides; null if it does not. */
  scheme: EmbeddedScheme | null = null;
  /** Length in bits of the prefix of the largest block with the same record, or {@link NO_PREFIX}. Only if it is wanted. */
  prefix = 0;
  readonly #wantsPrefix: boolean;
  /** By record number: the scheme of records with an embedded IPv4 address. */
  readonly #schemes: (EmbeddedScheme | undefined)[] = [];
  readonly #start = new Uint32Array(4);

  constructor(file: PartitionFile<Rec>, wantsPrefix: boolean) {
    this.file = file;
    this.#wantsPrefix = wantsPrefix;
    // They come before all networks and labels, which are not decoded for this.
    for (let index = 0; index < file.recordCount; index++) {
      const record: FileRecord = file.recordAt(index);
      if (record.kind === 'network' || record.kind === 'label') break;
      this.#schemes.push(record.kind === 'embedded' ? record.scheme : undefined);
    }
  }

  /** @param address as a 32-bit integer, signed or unsigned */
  findIPv4(address: number): void {
    const { file } = this;
    const range = findIPv4(file, address);
    this.record = file.record4[range]!;
    if (!this.#wantsPrefix) return;
    // The block must not reach the address before the range, nor the one after it.
    const below = range === 0 ? -1 : Math.clz32(address ^ (file.start4[range]! - 1));
    const above = range + 1 === file.count4 ? -1 : Math.clz32(address ^ file.start4[range + 1]!);
    this.prefix = Math.max(below, above) + 1;
  }

  /**
   * @param words the address, four 32-bit words, most significant first; not IPv4-mapped
   * @param scheme how it embeds the IPv4 address that decides, or null; without it, this partition says so
   */
  findIPv6(words: Uint32Array, scheme?: EmbeddedScheme | null): void {
    const { file } = this;
    const range = findIPv6(file, words);
    this.record = file.record6[range]!;
    const own = this.#wantsPrefix ? this.#prefixIPv6(words, range) : 0;
    this.prefix = own;
    this.scheme = scheme === undefined ? (this.#schemes[this.record] ?? null) : scheme;
    if (this.scheme === null) return;
    this.findIPv4(embeddedIPv4(this.scheme, words) | 0);
    if (!this.#wantsPrefix) return;
    const { offset, inverted } = EMBEDDED_LAYOUT[this.scheme];
    this.prefix = inverted ? NO_PREFIX : Math.max(own, offset + this.prefix);
  }

  #prefixIPv6(words: Uint32Array, range: number): number {
    const { file } = this;
    const start = this.#start;
    let bits = -1;
    if (range > 0) {
      firstIPv6(file, range, start);
      previousAddress(start, 0, 4, start);
      bits = commonBits(words, start);
    }
    if (range + 1 < file.count6) {
      firstIPv6(file, range + 1, start);
      bits = Math.max(bits, commonBits(words, start));
    }
    return bits + 1;
  }
}

/**
 * Returns a view of a partition in which ranges that have the same answer are one range.
 *
 * @param answerOf returns the answer of a record as text; records with an embedded IPv4 address stay as they are
 * @returns the file itself if no two records have the same answer
 */
export function withSameAnswers<Rec extends FileRecord>(
  file: PartitionFile<Rec>,
  answerOf: (record: Rec) => string,
): PartitionFile<Rec> {
  const classOf = new Map<string, number>();
  const classes = new Uint32Array(file.records.length);
  const records: Rec[] = [];
  file.records.forEach((record, index) => {
    const answer = record.kind === 'embedded' ? `embedded ${record.scheme}` : `answer ${answerOf(record)}`;
    const known = classOf.get(answer) ?? records.push(record) - 1;
    classOf.set(answer, known);
    classes[index] = known;
  });
  if (records.length === file.records.length) return file;
  const { asOf, path } = file;
  const [v4, v6] = ([4, 6] as const).map((family) => joinRanges(rangeColumns(file, family), classes));
  return partitionInMemory({ asOf, v4: v4!, v6: v6!, records }, path);
}
