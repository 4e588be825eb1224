/**
 * A partition in the compact form: the ranges of one family in order, without gaps, each with its size and its record. See
 * FORMAT.md.
 */
import type { Family } from '../address/parse.js';
import { addressBits, addressWords } from '../address/words.js';
import { ByteWriter, encodeNumbers, LISTS, type ListKind, NumberReader, readUint32 } from './codes.js';
import { damaged } from './container.js';

/** Bytes before the columns: number of ranges, kind of list, bytes of the other records. */
const HEADER_BYTES = 12;

/** A size code up to this is the exponent of a power of two; one above is 255 less the exponent of an odd multiple. */
const MAX_EXPONENT = 128;

/** Ranges to encode: a partition of the address space of one family. */
export interface Partition {
  family: Family;
  count: number;
  /** First address of each range, most significant word first; ascending, the first is zero. */
  first: Uint32Array;
  /** Record of each range; neighbors differ. */
  value: Uint16Array | Uint32Array;
}

/** Returns address `index` of a column as a number. */
function addressAt(first: Uint32Array, index: number, words: number): bigint {
  let address = 0n;
  for (let k = 0; k < words; k++) address = (address << 32n) + BigInt(first[index * words + k]!);
  return address;
}

/** Returns the exponent of the largest power of two that divides a number above zero. */
function trailingZeros(value: bigint): number {
  let zeros = 0;
  let rest = value;
  for (; (rest & 0xffffffffn) === 0n; rest >>= 32n) zeros += 32;
  const word = Number(rest & 0xffffffffn);
  return zeros + 31 - Math.clz32(word & -word);
}

/**
 * Encodes a partition of one family as a section.
 *
 * @param list `fixed` for partitions with a few hundred records, `recent` for others
 */
export function encodePartition({ family, count, first, value }: Partition, list: ListKind): Uint8Array {
  const words = addressWords(family);
  const sizes = new Uint8Array(count);
  const factors = new ByteWriter();
  let start = 0n;
  for (let i = 0; i < count; i++) {
    const end = i + 1 < count ? addressAt(first, i + 1, words) : 1n << BigInt(addressBits(family));
    const exponent = trailingZeros(end - start);
    const factor = (end - start) >> BigInt(exponent);
    sizes[i] = factor === 1n ? exponent : 255 - exponent;
    if (factor > 1n) factors.varint((factor - 3n) >> 1n);
    start = end;
  }
  const { codes, others } = encodeNumbers(value.subarray(0, count), list);
  const section = new ByteWriter();
  section.uint32(count);
  section.uint32(LISTS.indexOf(list));
  section.uint32(others.length);
  for (const column of [codes, sizes, others, factors.finish()]) section.bytes(column);
  return section.finish();
}

/** Powers of two, as floating-point numbers: sums with them never change their type in compiled code. */
const POWERS = Float64Array.from({ length: 32 }, (_, exponent) => 2 ** exponent);

/**
 * Adds `value` times a power of two to an address.
 *
 * @param value below 2^8
 * @param exponent at most the number of bits of the address
 * @returns what is carried out of the address
 */
function addToAddress(address: Uint32Array, value: number, exponent: number): number {
  let carry = value * POWERS[exponent & 31]!;
  for (let k = address.length - 1 - (exponent >>> 5); k >= 0 && carry > 0; k--) {
    const sum = address[k]! + carry;
    address[k] = sum; // modulo 2^32
    carry = Math.floor(sum / 2 ** 32);
  }
  return carry;
}

/** Ranges that are read at a time: enough for V8 to compile the loop soon, and little memory. */
const BLOCK_RANGES = 4096;

/** Reads the ranges of a partition in blocks, so that each reader stores them in its own form. */
export class PartitionReader {
  readonly family: Family;
  /** Number of ranges, at most half the bytes of the section. */
  readonly count: number;
  /** First addresses of the ranges that `nextBlock` read, most significant word first. */
  readonly first: Uint32Array;
  /** Records of the ranges that `nextBlock` read. */
  readonly records = new Uint32Array(BLOCK_RANGES);
  readonly #name: string;
  readonly #recordCount: number;
  readonly #numbers: NumberReader;
  readonly #sizes: Uint8Array;
  readonly #factors: Uint8Array;
  /** First address of the next range. */
  readonly #next: Uint32Array;
  readonly #bits: number;
  #index = 0;
  #factor = 0;
  #lastRecord = -1;

  /**
   * @param section the bytes that {@link encodePartition} returned
   * @param recordCount number of records of the partition
   * @param name of the file, for messages
   * @throws AtlasError E_DAMAGED if the columns do not fit into the section
   */
  constructor(section: Uint8Array, family: Family, recordCount: number, name: string) {
    this.family = family;
    this.#name = name;
    this.#recordCount = recordCount;
    this.first = new Uint32Array(addressWords(family) * BLOCK_RANGES);
    this.#next = new Uint32Array(addressWords(family));
    this.#bits = addressBits(family);
    if (section.length < HEADER_BYTES) throw this.#damaged('has no ranges');
    this.count = readUint32(section, 0);
    const list = LISTS[readUint32(section, 4)];
    const sizesAt = HEADER_BYTES + this.count;
    const othersAt = sizesAt + this.count;
    const factorsAt = othersAt + readUint32(section, 8);
    if (factorsAt > section.length) throw this.#damaged('ends before its columns do');
    if (this.count === 0) throw this.#damaged('has no ranges');
    if (list === undefined) throw this.#damaged('has an unknown kind of list');
    const codes = section.subarray(HEADER_BYTES, sizesAt);
    this.#numbers = new NumberReader(codes, section.subarray(othersAt, factorsAt), list);
    this.#sizes = section.subarray(sizesAt, othersAt);
    this.#factors = section.subarray(factorsAt);
  }

  /**
   * Reads the next ranges into `first` and `records`.
   *
   * @returns their number; 0 after the last range
   * @throws AtlasError E_DAMAGED if the ranges are not a partition of the address space, or a record does not exist
   */
  nextBlock(): number {
    const from = this.#index;
    const length = Math.min(BLOCK_RANGES, this.count - from);
    this.#readRecords(length);
    while (this.#index < from + length) {
      this.#readPlainSizes(from, length);
      if (this.#index === from + length) break;
      this.#storeFirst(this.#index - from);
      const carry = this.#addSize(this.#sizes[this.#index++]!);
      if (carry !== 0 || this.#index === this.count) this.#checkEnd(carry);
    }
    return length;
  }

  /**
   * Reads ranges whose size has at most one byte of factor and carries into no other word: nearly all have. The loop calls
   * nothing, so that V8 compiles it soon, and nothing else. It stops at the last range of all, and leaves it.
   */
  #readPlainSizes(from: number, length: number): void {
    const { first } = this;
    const [next, sizes, factors] = [this.#next, this.#sizes, this.#factors];
    const words = next.length;
    const end = Math.min(from + length, this.count - 1);
    let index = this.#index;
    let factorAt = this.#factor;
    let to = (index - from) * words;
    for (; index < end; index++) {
      const code = sizes[index]!;
      const hasFactor = code > MAX_EXPONENT;
      const exponent = hasFactor ? 255 - code : code;
      const byte = hasFactor ? factors[factorAt]! : 0;
      const at = words - 1 - (exponent >>> 5);
      // Also if there is no byte.
      if (at < 0 || !(byte < 128)) break;
      const sum = next[at]! + (hasFactor ? 2 * byte + 3 : 1) * POWERS[exponent & 31]!;
      if (sum > 0xffffffff) break;
      if (hasFactor) factorAt++;
      for (let k = 0; k < words; k++) first[to++] = next[k]!;
      next[at] = sum;
    }
    this.#index = index;
    this.#factor = factorAt;
  }

  /** Stores the first address of a range of the block. */
  #storeFirst(index: number): void {
    this.first.set(this.#next, index * this.#next.length);
  }

  #readRecords(length: number): void {
    const { records } = this;
    const recordCount = this.#recordCount;
    let last = this.#lastRecord;
    if (!this.#numbers.read(records, length)) throw this.#damaged('names a record that does not exist');
    for (let i = 0; i < length; i++) {
      const record = records[i]!;
      if (record >= recordCount) throw this.#damaged('names a record that does not exist');
      if (record === last) throw this.#damaged('has neighbors with the same record');
      last = record;
    }
    this.#lastRecord = last;
  }

  /**
   * Reads all ranges of a partition of which none was read before.
   *
   * @param value gets their records; it has `count` numbers
   */
  readAll<V extends Uint16Array | Uint32Array>(value: V): Partition & { value: V } {
    const words = this.#next.length;
    const first = new Uint32Array(this.count * words);
    for (let at = 0, length = this.nextBlock(); length > 0; at += length, length = this.nextBlock()) {
      first.set(this.first.subarray(0, length * words), at * words);
      value.set(this.records.subarray(0, length), at);
    }
    return { family: this.family, count: this.count, first, value };
  }

  /** Checks the end of the last range, or of one that carries out of the address space. */
  #checkEnd(carry: number): void {
    if (this.#index < this.count) throw this.#damaged('has ranges after the last address');
    if (carry !== 1 || this.#next.some((word) => word !== 0)) {
      throw this.#damaged('does not end with the last address');
    }
    if (!this.#numbers.isAtEnd || this.#factor !== this.#factors.length) {
      throw this.#damaged('has bytes that belong to no range');
    }
  }

  /** Adds the size of a range to the address of the next one. Returns what is carried out. */
  #addSize(code: number): number {
    if (code <= MAX_EXPONENT) return this.#add(1, code);
    let exponent = 255 - code;
    let carry = this.#add(3, exponent++);
    for (; ; exponent += 7) {
      if (this.#factor === this.#factors.length) throw this.#damaged('ends within a size');
      const byte = this.#factors[this.#factor++]!;
      carry += this.#add(byte & 127, exponent);
      if (byte < 128) return carry;
    }
  }

  #add(value: number, exponent: number): number {
    if (exponent > this.#bits) throw this.#damaged('has a range that is larger than the address space');
    return addToAddress(this.#next, value, exponent);
  }

  #damaged(what: string): Error {
    return damaged(this.#name, `its IPv${this.family} partition ${what}`);
  }
}
