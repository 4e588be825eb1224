/**
 * Turns the release's columns, copied as they are, into what the look-ups want: done here and in place, since that takes a
 * tenth of the time that it takes in JavaScript which has only just been loaded.
 */
import { ANSWERED, buckets4, count4, count6, crowded4, levelCount, levels6, low4, record4 } from './config';

/** Keys of a level that are compared at a time: 64 bytes, one line of a processor's cache. */
const FAN_OUT: u32 = 8;

/** The number of different first 16 bits. */
const BUCKETS: u32 = 65_536;

/** Turns the order of unsigned numbers into that of signed ones, which is all that WebAssembly compares two at a time. */
const BIAS: u64 = 0x8000_0000_0000_0000;

/**
 * Makes `buckets4` of the index that stands there: for each first 16 bits, where its ranges begin. Where no more than one
 * range holds all addresses of a bucket, its record is the answer; most are of that kind, and need no other table.
 */
function makeBuckets(): void {
  let crowded: u32 = 0;
  for (let bucket: u32 = 0; bucket < BUCKETS; bucket++) {
    const entry = buckets4 + (<usize>bucket << 2);
    const range: u32 = load<u32>(entry);
    const count: u32 = load<u32>(entry, 4) - range;
    const startsHere = count == 1 && load<u16>(low4 + (<usize>range << 2)) == 0;
    if (count == 0 || startsHere) {
      store<u32>(entry, ANSWERED | <u32>load<u16>(record4 + (<usize>(startsHere ? range : range - 1) << 1)));
      continue;
    }
    store<u32>(entry, crowded);
    store<u32>(crowded4 + (<usize>crowded << 3), range);
    store<u32>(crowded4 + (<usize>crowded << 3), count, 4);
    crowded++;
  }
}

/** Leaves of the IPv4 start addresses the last 16 bits: the first ones are the same for all of a bucket. */
function narrowStarts(): void {
  for (let range: usize = 0; range < count4; range++) {
    store<u16>(low4 + (range << 1), load<u16>(low4 + (range << 2)));
  }
}

/** Fills a level up to a whole group with the greatest key. */
function fillUp(level: usize, count: u32): void {
  for (let i = count; i % FAN_OUT != 0; i++) store<i64>(level + (<usize>i << 3), i64.MAX_VALUE);
}

/** Biases the lowest level, the first halves of the IPv6 start addresses, and makes of each level the one above it: every
 * eighth key. */
function makeLevels(): void {
  let below: usize = load<u32>(levels6 + (<usize>(levelCount - 1) << 2));
  for (let i: usize = 0; i < count6; i++) store<u64>(below + (i << 3), load<u64>(below + (i << 3)) ^ BIAS);
  fillUp(below, count6);
  let count = count6;
  for (let level = levelCount - 1; level > 0; level--) {
    const above: usize = load<u32>(levels6 + (<usize>(level - 1) << 2));
    count = (count + FAN_OUT - 1) / FAN_OUT;
    for (let i: usize = 0; i < count; i++) store<u64>(above + (i << 3), load<u64>(below + (i << 6)));
    fillUp(above, count);
    below = above;
  }
}

/** Makes the tables; once in a memory. */
export function makeTables(): void {
  makeBuckets();
  narrowStarts();
  makeLevels();
}
