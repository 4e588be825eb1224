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

/**
 * Adds `value` times a power of two to an address.
 *
 * @param value below 2^8
 * @param exponent at most the number of bits of the address
 * @returns what is carried out of the address
 */
function addToAddress(address: Uint32Array, value: number, exponent: number): number {
  let carry = value * ((1 << (exponent & 31)) >>> 0);
  for (let k = address.length - 1 - (exponent >>> 5); k >= 0 && carry > 0; k--) {
    const sum = address[k]! + carry;
    address[k] = sum; // modulo 2^32
    carry = Math.floor(sum / 2 ** 32);
  }
  return carry;
}

/** Reads the ranges of a partition one by one, so that each reader stores them in its own form. */
export class PartitionReader {
  readonly family: Family;
  /** Number of ranges, at most half the bytes of the section. */
  readonly count: number;
  /** First address of the range that `next` read, most significant word first. */
  readonly first: Uint32Array;
  /** Record of the range that `next` read. */
  record = -1;
  readonly #name: string;
  readonly #recordCount: number;
  readonly #records: NumberReader;
  readonly #sizes: Uint8Array;
  readonly #factors: Uint8Array;
  /** First address of the next range. */
  readonly #next: Uint32Array;
  readonly #bits: number;
  #index = 0;
  #factor = 0;

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
    this.first = new Uint32Array(addressWords(family));
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
    this.#records = new NumberReader(codes, section.subarray(othersAt, factorsAt), list);
    this.#sizes = section.subarray(sizesAt, othersAt);
    this.#factors = section.subarray(factorsAt);
  }

  /**
   * Reads the next range into `first` and `record`.
   *
   * @returns false after the last range
   * @throws AtlasError E_DAMAGED if the ranges are not a partition of the address space, or a record does not exist
   */
  next(): boolean {
    if (this.#index === this.count) return false;
    for (let k = 0; k < this.first.length; k++) this.first[k] = this.#next[k]!;
    const record = this.#records.next();
    if (record < 0 || record >= this.#recordCount) throw this.#damaged('names a record that does not exist');
    if (record === this.record) throw this.#damaged('has neighbors with the same record');
    this.record = record;
    const carry = this.#addSize(this.#sizes[this.#index++]!);
    if (this.#index < this.count) {
      if (carry !== 0) throw this.#damaged('has ranges after the last address');
    } else if (carry !== 1 || this.#next.some((word) => word !== 0)) {
      throw this.#damaged('does not end with the last address');
    } else if (!this.#records.isAtEnd || this.#factor !== this.#factors.length) {
      throw this.#damaged('has bytes that belong to no range');
    }
    return true;
  }

  /** Adds the size of a range to the address of the next one. Returns what is carried out. */
  #addSize(code: number): number {
    if (code < this.#bits) {
      // Nearly all sizes are one bit of one word, without a carry.
      const at = this.#next.length - 1 - (code >>> 5);
      const sum = this.#next[at]! + ((1 << (code & 31)) >>> 0);
      if (sum <= 0xffffffff) {
        this.#next[at] = sum;
        return 0;
      }
    }
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
