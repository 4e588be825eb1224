/** The release's columns as the kernel wants them: narrower, and so that a search has no step that cannot be foreseen. */
import type { RangeFile } from '../../rangefile/reader.js';

/** Keys of a level that are compared at a time: 64 bytes, one line of a processor's cache. */
const FAN_OUT = 8;

/** Turns the order of unsigned numbers into that of signed ones, which is all that WebAssembly compares two at a time. */
const BIAS = 0x8000_0000;

/** Room for `count` keys, filled up to a whole group with the greatest key. */
function makeLevel(count: number): Uint32Array {
  const level = new Uint32Array(2 * FAN_OUT * Math.ceil(count / FAN_OUT));
  for (let i = 2 * count; i < level.length; i += 2) {
    level[i] = 0xffff_ffff;
    level[i + 1] = 0xffff_ffff ^ BIAS;
  }
  return level;
}

/**
 * The first halves of the IPv6 start addresses, and above them, level upon level, every eighth one of the level below, until
 * eight or fewer are left. A search goes from the top level down, one group of eight keys a level.
 *
 * @returns the levels, the topmost first; 64-bit keys, less significant word first, biased, each level filled up to a
 *   whole group with the greatest key
 */
export function searchLevels({ count6, high6 }: RangeFile): Uint32Array[] {
  let level = makeLevel(count6);
  for (let i = 0; i < 2 * count6; i += 2) {
    level[i] = high6[i]!;
    level[i + 1] = high6[i + 1]! ^ BIAS;
  }
  const levels = [level];
  for (let count = count6; count > FAN_OUT; levels.unshift(level)) {
    const below = level;
    count = Math.ceil(count / FAN_OUT);
    level = makeLevel(count);
    for (let i = 0; i < 2 * count; i += 2) {
      level[i] = below[FAN_OUT * i]!;
      level[i + 1] = below[FAN_OUT * i + 1]!;
    }
  }
  return levels;
}

/**
 * The last 16 bits of the IPv4 start addresses: the first 16 are the same for all of a bucket of the index, which a search
 * keeps to.
 */
export function lowHalves({ count4, start4Low }: RangeFile): Uint16Array {
  const halves = new Uint16Array(count4);
  for (let i = 0; i < count4; i++) halves[i] = start4Low[2 * i]!;
  return halves;
}

/** Set in an entry of {@link buckets} that is the answer itself. */
const ANSWERED = 0x8000_0000;

/**
 * For each first 16 bits of an IPv4 address, the answer: a record's number and `ANSWERED`, where one range holds all of
 * them; else a number n, and `crowded[2n]` is the first range that begins there, `crowded[2n + 1]` how many do. Most are of
 * the first kind, and need no other table.
 */
export function buckets({ index4, start4Low, record4 }: RangeFile): { first: Uint32Array; crowded: Uint32Array } {
  const first = new Uint32Array(index4.length - 1);
  const crowded: number[] = [];
  for (let bucket = 0; bucket < first.length; bucket++) {
    const range = index4[bucket]!;
    const count = index4[bucket + 1]! - range;
    if (count === 0) first[bucket] = ANSWERED | record4[range - 1]!;
    else if (count === 1 && start4Low[2 * range] === 0) first[bucket] = ANSWERED | record4[range]!;
    else first[bucket] = crowded.push(range, count) / 2 - 1;
  }
  return { first, crowded: Uint32Array.from(crowded) };
}
