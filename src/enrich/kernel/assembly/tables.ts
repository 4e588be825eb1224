/**
 * Makes the lookup tables of the release's columns, in place. In JavaScript, which is interpreted when it has just been
 * loaded, this takes ten times as long.
 */
import { CROWDED_BYTES, LEVEL_FAN_OUT } from '../abi';
import { makeRows } from './rows';
import {
  buckets4,
  counts,
  crowded4,
  isDirect,
  levelCount6,
  levels6,
  low6,
  partitions4,
  partitions6,
  record4,
  rows4,
  rows6,
  start4,
} from './settings';

/** Returns the record of a range; if it has a row, the range itself; with history and without rows, its timeline. */
@inline export function recordOfRange(column: usize, range: u32): u32 {
  if (isDirect) return load<u16>(column + (<usize>range << 1));
  return rows4 != 0 ? range : load<u32>(column + (<usize>range << 2));
}

/** Marks a bucket in which one range holds all addresses: the other bits are its record. */
export const DECIDED: u32 = 0x8000_0000;

/** The number of different first 16 bits. */
const BUCKETS: u32 = 65_536;

/** Turns the order of unsigned numbers into that of signed ones: WebAssembly compares vectors of 64-bit numbers signed only. */
export const BIAS: u64 = 0x8000_0000_0000_0000;

/** Makes an index like that of a range file: for each bucket, and one more, the number of ranges that begin below it. */
function makeIndex(): void {
  const count = load<u32>(counts);
  let range: u32 = 0;
  for (let bucket: u32 = 0; bucket <= BUCKETS; bucket++) {
    while (range < count && load<u32>(start4 + (<usize>range << 2)) >> 16 < bucket) range++;
    store<u32>(buckets4 + (<usize>bucket << 2), range);
  }
}

/**
 * Makes the bucket table of the file's index, which has the first range of each bucket. If one range has all addresses of a
 * bucket, which is so for most, the bucket is that range's record; otherwise it is the number of a crowded bucket.
 */
function makeBuckets(): void {
  let crowded: u32 = 0;
  for (let bucket: u32 = 0; bucket < BUCKETS; bucket++) {
    const entry = buckets4 + (<usize>bucket << 2);
    const range: u32 = load<u32>(entry);
    const count: u32 = load<u32>(entry, 4) - range;
    const startsHere = count == 1 && load<u16>(start4 + (<usize>range << 2)) == 0;
    if (count == 0 || startsHere) {
      store<u32>(entry, DECIDED | recordOfRange(record4, startsHere ? range : range - 1));
      continue;
    }
    store<u32>(entry, crowded);
    const ranges = crowded4 + <usize>crowded * CROWDED_BYTES;
    store<u32>(ranges, range);
    store<u32>(ranges, count, 4);
    crowded++;
  }
}

/**
 * Keeps the last 16 bits of the IPv4 start addresses, eight at a time: the first 16 are the same within a bucket. The column
 * begins at a multiple of 16 bytes, so that no other column begins in the last 16 bytes written.
 */
function narrowStarts(): void {
  const count: usize = load<u32>(counts);
  for (let range: usize = 0; range < count; range += 8) {
    const from = start4 + (range << 2);
    const low = i16x8.shuffle(v128.load(from), v128.load(from, 16), 0, 2, 4, 6, 8, 10, 12, 14);
    v128.store(start4 + (range << 1), low);
  }
}

/** Pads a level with the greatest key to a whole group. */
function pad(level: usize, count: u32): void {
  for (let i = count; i % <u32>LEVEL_FAN_OUT != 0; i++) store<i64>(level + (<usize>i << 3), i64.MAX_VALUE);
}

/** Returns the lowest level of the start addresses, which are their first halves. */
@inline export function bottomLevel(levels: usize, levelCount: u32): usize {
  return load<u32>(levels + (<usize>(levelCount - 1) << 2));
}

/** Biases the lowest level, which are the first halves of IPv6 start addresses, and fills each level above with every eighth
 * key of the one below. */
function makeLevels(levels: usize, levelCount: u32, count: u32): void {
  let below = bottomLevel(levels, levelCount);
  const bias = i64x2.splat(BIAS);
  for (let i: usize = 0; i < count; i += 2) v128.store(below + (i << 3), v128.xor(v128.load(below + (i << 3)), bias));
  pad(below, count);
  for (let level = levelCount - 1; level > 0; level--) {
    const above: usize = load<u32>(levels + (<usize>(level - 1) << 2));
    count = (count + LEVEL_FAN_OUT - 1) / LEVEL_FAN_OUT;
    for (let i: usize = 0; i < count; i++) store<u64>(above + (i << 3), load<u64>(below + (i << 6)));
    pad(above, count);
    below = above;
  }
}

/** Makes the tables of IPv4, and the rows. Must be called once in a memory. */
export function makeTables(): void {
  if (rows4 != 0) {
    const end6 = partitions6 + (partitions6 - partitions4);
    store<u32>(counts, makeRows(partitions4, partitions6, rows4, start4, 0));
    store<u32>(counts, makeRows(partitions6, end6, rows6, bottomLevel(levels6, levelCount6), low6), 4);
    makeIndex();
  }
  makeBuckets();
  narrowStarts();
}

/** Makes the tables of IPv6, once. */
export function makeTables6(): void {
  makeLevels(levels6, levelCount6, load<u32>(counts, 4));
}
