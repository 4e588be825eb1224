/** Finds the record of an address in a partition, and the block of addresses around it with the same answer. */
import { EMBEDDED_LAYOUT, type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import { commonBits, previousAddress } from '../address/words.js';
import type { FileRecord } from '../rangefile/layout.js';
import { firstIPv6, type PartitionFile } from '../rangefile/reader.js';
import { findIPv4, findIPv6 } from '../rangefile/search.js';

/** Instead of the length of a prefix: no prefix has the addresses around (Teredo inverts the IPv4 address inside). */
export const NO_PREFIX = -1;

/**
 * Returns a function that numbers the records of a file: those with the same answer have the same number. A record is decoded when
 * its number is first needed.
 *
 * @param answerOf returns the answer of a record as text; embedded IPv4 addresses have the answer of their scheme
 */
function answerNumbers<Rec extends FileRecord>(
  file: PartitionFile<Rec>,
  answerOf: (record: Rec) => string,
): (record: number) => number {
  /** By record, from 1. */
  const numbers = new Uint32Array(file.recordCount);
  const known = new Map<string, number>();
  return (index) => {
    if (numbers[index] !== 0) return numbers[index]!;
    const record = file.recordAt(index);
    const answer = record.kind === 'embedded' ? `embedded ${record.scheme}` : `answer ${answerOf(record)}`;
    const number = known.get(answer) ?? known.size + 1;
    known.set(answer, number);
    numbers[index] = number;
    return number;
  };
}

/** Runs of neighboring ranges that have the same answer. A run is found when one of its ranges is first asked for. */
class Runs {
  readonly #records: PartitionFile['record4'];
  readonly #numberOf: (record: number) => number;
  /** For each range: the first range of its run, and the one after the last; both are 0 as long as they are not known. */
  readonly #bounds: Uint32Array;

  constructor(records: PartitionFile['record4'], count: number, numberOf: (record: number) => number) {
    this.#records = records;
    this.#numberOf = numberOf;
    this.#bounds = new Uint32Array(2 * count);
  }

  /** Returns the first range of the run of a range. */
  first(range: number): number {
    if (this.#bounds[2 * range + 1] === 0) this.#find(range);
    return this.#bounds[2 * range]!;
  }

  /** Returns the range after the last one of the run. */
  end(range: number): number {
    if (this.#bounds[2 * range + 1] === 0) this.#find(range);
    return this.#bounds[2 * range + 1]!;
  }

  #find(range: number): void {
    const bounds = this.#bounds;
    const numberAt = (other: number): number => this.#numberOf(this.#records[other]!);
    const own = numberAt(range);
    let first = range;
    while (first > 0 && numberAt(first - 1) === own) first--;
    let end = range + 1;
    while (2 * end < bounds.length && numberAt(end) === own) end++;
    for (let i = first; i < end; i++) {
      bounds[2 * i] = first;
      bounds[2 * i + 1] = end;
    }
  }
}

/**
 * Finds addresses in a partition. The result of a find is in the members, so that none is made for each address.
 *
 * Neighbors of the partition have different records, so the largest block around an address with the same record is the largest
 * one inside its range; the largest one with the same answer is inside the run of its range.
 */
export class PartitionFinder<Rec extends FileRecord = FileRecord> {
  readonly file: PartitionFile<Rec>;
  /** Number of the record; that of the IPv4 address inside, if that one decides. */
  record = 0;
  /** Of the last IPv6 address: how it embeds the IPv4 address that decides; null if it does not. */
  scheme: EmbeddedScheme | null = null;
  /** Length in bits of the prefix of the largest block with the same answer, or {@link NO_PREFIX}. Only if it is wanted. */
  prefix = 0;
  readonly #wantsPrefix: boolean;
  readonly #runs4: Runs | undefined;
  readonly #runs6: Runs | undefined;
  /** By record number: the scheme of records with an embedded IPv4 address. */
  readonly #schemes: (EmbeddedScheme | undefined)[] = [];
  readonly #start = new Uint32Array(4);

  /** @param answerOf returns the answer of a record as text; without it, no two records have the same */
  constructor(file: PartitionFile<Rec>, wantsPrefix: boolean, answerOf?: (record: Rec) => string) {
    this.file = file;
    this.#wantsPrefix = wantsPrefix;
    if (wantsPrefix && answerOf !== undefined) {
      const numberOf = answerNumbers(file, answerOf);
      this.#runs4 = new Runs(file.record4, file.count4, numberOf);
      this.#runs6 = new Runs(file.record6, file.count6, numberOf);
    }
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
    // The block must not reach the address before the run, nor the one after it.
    const first = this.#runs4?.first(range) ?? range;
    const end = this.#runs4?.end(range) ?? range + 1;
    const below = first === 0 ? -1 : Math.clz32(address ^ (file.start4[first]! - 1));
    const above = end === file.count4 ? -1 : Math.clz32(address ^ file.start4[end]!);
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
    const first = this.#runs6?.first(range) ?? range;
    const end = this.#runs6?.end(range) ?? range + 1;
    let bits = -1;
    if (first > 0) {
      firstIPv6(file, first, start);
      previousAddress(start, 0, 4, start);
      bits = commonBits(words, 0, start, 0, 4);
    }
    if (end < file.count6) {
      firstIPv6(file, end, start);
      bits = Math.max(bits, commonBits(words, 0, start, 0, 4));
    }
    return bits + 1;
  }
}
