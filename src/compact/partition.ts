/**
 * A partition in the compact form: the ranges of one family in order, without gaps, each with its size and its record. See
 * FORMAT.md.
 */
import type { Family } from '../address/parse.js';
import { addressBits, addressWords } from '../address/words.js';
import type { RangeColumns } from '../range/columns.js';
import { INDEX_ENTRIES } from '../rangefile/layout.js';
import { ByteWriter, decodeNumbers, encodeNumbers, LISTS, type ListKind, readUint32 } from './codes.js';
import { damaged } from './container.js';

/** Bytes before the columns: number of ranges, kind of list, bytes of the other records. */
const HEADER_BYTES = 12;

/** A size code up to this is the exponent of a power of two; one above is 255 less the exponent of an odd multiple. */
const MAX_EXPONENT = 128;

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
export function encodePartition({ family, count, first, value }: RangeColumns, list: ListKind): Uint8Array {
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

/** Comparing signed numbers with this bit inverted compares them as unsigned ones. */
const SIGN = 1 << 31;

/** A partition that was decoded. */
export interface DecodedPartition<V extends Uint16Array | Uint32Array> extends RangeColumns {
  value: V;
  /** How many ranges begin below each value of the top 16 bits, if it is for searches; as `buildIndex` returns it. */
  index: Uint32Array;
}

/**
 * Decodes the section of a partition. One loop does all the work for both families, because until V8 has compiled a loop, it
 * takes longer than ever after.
 *
 * @param section the bytes that {@link encodePartition} returned
 * @param recordCount number of records of the partition
 * @param name of the file, for messages
 * @param column makes the column of the records of so many ranges
 * @param isForSearch whether it has an index, and `first` the columns of IPv6 that a search needs: the upper halves of all
 *   addresses, then the lower halves, the less significant word of each half first
 * @throws AtlasError E_DAMAGED if it is not a partition of the address space as FORMAT.md describes it
 */
export function decodePartition<V extends Uint16Array | Uint32Array>(
  section: Uint8Array,
  family: Family,
  recordCount: number,
  name: string,
  column: (count: number) => V,
  isForSearch = false,
): DecodedPartition<V> {
  const fail = (what: string): Error => damaged(name, `its IPv${family} partition ${what}`);
  if (section.length < HEADER_BYTES) throw fail('has no ranges');
  const count = readUint32(section, 0);
  const list = LISTS[readUint32(section, 4)];
  const sizesAt = HEADER_BYTES + count;
  const othersAt = sizesAt + count;
  const factorsAt = othersAt + readUint32(section, 8);
  if (factorsAt > section.length) throw fail('ends before its columns do');
  if (count === 0) throw fail('has no ranges');
  if (list === undefined) throw fail('has an unknown kind of list');
  const sizes = section.subarray(sizesAt, othersAt);
  const others = section.subarray(othersAt, factorsAt);
  const factors = section.subarray(factorsAt);

  const value = column(count);
  const othersRead = decodeNumbers(section.subarray(HEADER_BYTES, sizesAt), others, list, recordCount, value);
  if (othersRead < 0) throw fail('names a record that does not exist');

  const words = addressWords(family);
  const bits = addressBits(family);
  const first = new Uint32Array(words * count);
  // Word k of range i is element places[k] + i * step.
  const isSplit = isForSearch && family === 6;
  const places = isSplit ? [1, 0, 2 * count + 1, 2 * count] : [0, 1, 2, 3];
  const step = isSplit ? 2 : words;
  const next = new Int32Array(words);
  const index = new Uint32Array(isForSearch ? INDEX_ENTRIES : 0);
  let below = 0;
  let last = -1;
  let factorAt = 0;
  let beyond = 0;
  for (let i = 0; i < count; i++) {
    const record = value[i]!;
    if (record >= recordCount) throw fail('names a record that does not exist');
    if (record === last) throw fail('has neighbors with the same record');
    if (beyond !== 0) throw fail('has ranges after the last address');
    last = record;
    if (isForSearch) for (const bucket = next[0]! >>> 16; below <= bucket; below++) index[below] = i;
    for (let k = 0; k < words; k++) {
      const word = next[k]!;
      // Zeros are there already. Most of the lower halves are zero; their memory is not even used then.
      if (word !== 0) first[places[k]! + i * step] = word;
    }
    const code = sizes[i]!;
    let hasFactor = code > MAX_EXPONENT;
    let exponent = hasFactor ? 255 - code : code;
    let factor = hasFactor ? 3 : 1;
    do {
      if (hasFactor) {
        if (factorAt === factors.length) throw fail('ends within a size');
        const byte = factors[factorAt++]!;
        factor += 2 * (byte & 127);
        hasFactor = byte > 127;
      }
      if (exponent > bits) throw fail('has a range that is larger than the address space');
      let add = factor << (exponent & 31);
      let above = (factor >>> 1) >>> (31 - (exponent & 31));
      for (let k = words - 1 - (exponent >>> 5); k >= 0 && (add | above) !== 0; k--) {
        const word = next[k]!;
        const sum = (word + add) | 0;
        next[k] = sum;
        add = above + ((sum ^ SIGN) < (word ^ SIGN) ? 1 : 0);
        above = 0;
      }
      beyond += add;
      factor = 0;
      exponent += 7;
    } while (hasFactor);
  }
  if (beyond !== 1 || next.some((word) => word !== 0)) throw fail('does not end with the last address');
  if (othersRead !== others.length || factorAt !== factors.length) throw fail('has bytes that belong to no range');
  index.fill(count, below);
  return { family, count, first, value, index };
}
