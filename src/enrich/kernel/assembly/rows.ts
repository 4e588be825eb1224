/**
 * Cuts the address space where one of several partitions begins another range, and makes a row for each of these ranges, see
 * `ROW_…` in ../abi.ts. The partitions are cut here rather than with src/range/cut.ts because JavaScript that has just been loaded
 * takes ten times as long.
 */
import {
  PARTITION_ANSWERS,
  PARTITION_BYTES,
  PARTITION_COUNT,
  PARTITION_HIGHS,
  PARTITION_LOWS,
  PARTITION_RANGE,
  PARTITION_RECORD_BYTES,
  PARTITION_RECORDS,
  ROW_BLOCK,
  ROW_BLOCK_END,
  ROW_BYTES,
} from '../abi';

/** Returns the first half of the start address of a range; of an IPv4 address, all of it. */
@inline function highOf(highs: usize, range: usize, isIPv6: bool): u64 {
  return isIPv6 ? load<u64>(highs + (range << 3)) : <u64>load<u32>(highs + (range << 2));
}

@inline function lowOf(lows: usize, range: usize, isIPv6: bool): u64 {
  return isIPv6 ? load<u64>(lows + (range << 3)) : 0;
}

/** Writes the end of the block of each row, which has its beginning. */
function endBlocks(rows: usize, count: usize): void {
  let block: u32 = 0;
  let blockEnd: u32 = 0;
  for (let row = rows + count * ROW_BYTES; row > rows; ) {
    row -= ROW_BYTES;
    const own = load<u32>(row, ROW_BLOCK);
    if (own != block) {
      blockEnd = block;
      block = own;
    }
    store<u32>(row, blockEnd, ROW_BLOCK_END);
  }
}

/**
 * Makes the ranges and rows of a family.
 *
 * @param partitions `PARTITION_…` in ../abi.ts; @param end their end
 * @param highs, lows receive the start addresses; IPv4 has no `lows`
 * @returns the number of ranges
 */
export function makeRows(partitions: usize, end: usize, rows: usize, highs: usize, lows: usize): u32 {
  const isIPv6 = lows != 0;
  let count: usize = 0;
  let high: u64 = 0;
  let low: u64 = 0;
  let isLast = false;
  let block: u32 = 0;
  while (!isLast) {
    if (isIPv6) {
      store<u64>(highs + (count << 3), high);
      store<u64>(lows + (count << 3), low);
    } else store<u32>(highs + (count << 2), <u32>high);
    isLast = true;
    let nextHigh: u64 = 0;
    let nextLow: u64 = 0;
    let value = rows + count * ROW_BYTES;
    for (let partition = partitions; partition < end; partition += PARTITION_BYTES, value += 4) {
      const length = load<u32>(partition, PARTITION_COUNT);
      const ownHighs: usize = load<u32>(partition, PARTITION_HIGHS);
      const ownLows: usize = load<u32>(partition, PARTITION_LOWS);
      let range: usize = load<u32>(partition, PARTITION_RANGE);
      const next = range + 1;
      const begins = next < length && highOf(ownHighs, next, isIPv6) == high && lowOf(ownLows, next, isIPv6) == low;
      if (begins) {
        range = next;
        store<u32>(partition, <u32>range, PARTITION_RANGE);
      }
      const records: usize = load<u32>(partition, PARTITION_RECORDS);
      const isNarrow = load<u32>(partition, PARTITION_RECORD_BYTES) == 2;
      const record: usize = isNarrow ? load<u16>(records + (range << 1)) : load<u32>(records + (range << 2));
      store<u32>(value, <u32>record);
      const answers: usize = load<u32>(partition, PARTITION_ANSWERS);
      if (begins && answers != 0) {
        const before: usize = load<u32>(value - ROW_BYTES);
        // Another answer begins another block.
        if (load<u32>(answers + (record << 2)) != load<u32>(answers + (before << 2))) block = isIPv6 ? <u32>count : <u32>high;
      }
      if (range + 1 >= length) continue;
      const ownHigh = highOf(ownHighs, range + 1, isIPv6);
      const ownLow = lowOf(ownLows, range + 1, isIPv6);
      if (isLast || ownHigh < nextHigh || (ownHigh == nextHigh && ownLow < nextLow)) {
        nextHigh = ownHigh;
        nextLow = ownLow;
      }
      isLast = false;
    }
    store<u32>(rows + count * ROW_BYTES, block, ROW_BLOCK);
    high = nextHigh;
    low = nextLow;
    count++;
  }
  if (load<u32>(partitions, PARTITION_ANSWERS) != 0) endBlocks(rows, count);
  return <u32>count;
}
