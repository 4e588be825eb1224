/**
 * Makes the lookup tables of the release's columns, in place. In JavaScript, which is interpreted when it has just been
 * loaded, this takes ten times as long.
 */
import { CROWDED_BYTES, LEVEL_FAN_OUT, ROW_BLOCK, ROW_BLOCK_END, ROW_BYTES, ROW_NETWORK, ROW_RECORD } from '../abi';
import {
  buckets4,
  count4,
  count6,
  crowded4,
  isDirect,
  levelCount6,
  levels6,
  network4,
  network6,
  networkAnswers,
  record4,
  record6,
  recordAnswers,
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
  for (let range: usize = 0; range < count4; range += 8) {
    const from = start4 + (range << 2);
    const low = i16x8.shuffle(v128.load(from), v128.load(from, 16), 0, 2, 4, 6, 8, 10, 12, 14);
    v128.store(start4 + (range << 1), low);
  }
}

/** Pads a level with the greatest key to a whole group. */
function pad(level: usize, count: u32): void {
  for (let i = count; i % <u32>LEVEL_FAN_OUT != 0; i++) store<i64>(level + (<usize>i << 3), i64.MAX_VALUE);
}

/** Biases the lowest level, which are the first halves of IPv6 start addresses, and fills each level above with every eighth
 * key of the one below. */
function makeLevels(levels: usize, levelCount: u32, count: u32): void {
  let below: usize = load<u32>(levels + (<usize>(levelCount - 1) << 2));
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

/** Returns whether everything that was asked for is the same in two ranges. */
@inline function haveSameAnswers(row: usize, other: usize): bool {
  const record: usize = load<u32>(row, ROW_RECORD);
  const otherRecord: usize = load<u32>(other, ROW_RECORD);
  if (load<u32>(recordAnswers + (record << 2)) != load<u32>(recordAnswers + (otherRecord << 2))) return false;
  const network: usize = load<u32>(row, ROW_NETWORK);
  const otherNetwork: usize = load<u32>(other, ROW_NETWORK);
  return load<u32>(networkAnswers + (network << 2)) == load<u32>(networkAnswers + (otherNetwork << 2));
}

/**
 * Makes the rows of a family.
 *
 * @param starts the start addresses by which the rows of IPv4 give the bounds of blocks; 0 for IPv6
 */
function makeRows(rows: usize, records: usize, networks: usize, starts: usize, count: u32): void {
  let block: u32 = 0;
  for (let range: u32 = 0; range < count; range++) {
    const row = rows + <usize>range * ROW_BYTES;
    const at = <usize>range << 2;
    store<u32>(row, load<u32>(records + at), ROW_RECORD);
    store<u32>(row, networks == 0 ? 0 : load<u32>(networks + at), ROW_NETWORK);
    if (recordAnswers == 0) continue;
    if (range > 0 && !haveSameAnswers(row, row - ROW_BYTES)) block = starts == 0 ? range : load<u32>(starts + at);
    store<u32>(row, block, ROW_BLOCK);
  }
  if (recordAnswers == 0) return;
  let end: u32 = starts == 0 ? count : 0;
  for (let row = rows + <usize>count * ROW_BYTES; row > rows; ) {
    row -= ROW_BYTES;
    const own = load<u32>(row, ROW_BLOCK);
    if (own != block) {
      end = block;
      block = own;
    }
    store<u32>(row, end, ROW_BLOCK_END);
  }
}

/** Makes the tables. Must be called once in a memory. */
export function makeTables(): void {
  if (rows4 != 0) {
    makeRows(rows4, record4, network4, start4, count4);
    makeRows(rows6, record6, network6, 0, count6);
  }
  makeBuckets();
  narrowStarts();
  makeLevels(levels6, levelCount6, count6);
}
