/** The release's columns as the kernel wants them: narrower, and so that a search has no step that cannot be foreseen. */
import type { RangeFile } from '../../rangefile/reader.js';

/** Keys of a level that are compared at a time: 64 bytes, one line of a processor's cache. */
const FAN_OUT = 8;

/** Turns the order of unsigned numbers into that of signed ones, which is all that WebAssembly compares two at a time. */
const BIAS = 0x8000_0000;

/**
 * The first halves of the IPv6 start addresses, and above them, level upon level, every eighth one of the level below, until
 * eight or fewer are left. A search goes from the top level down, one group of eight keys a level.
 *
 * @returns the levels, the topmost first; 64-bit keys, less significant word first, biased, each level filled up to a
 *   whole group with the greatest key
 */
export function searchLevels(file: RangeFile): Uint32Array[] {
  const levels: Uint32Array[] = [];
  let count = file.count6;
  for (let step = 1; ; step *= FAN_OUT, count = Math.ceil(count / FAN_OUT)) {
    const level = new Uint32Array(2 * FAN_OUT * Math.ceil(count / FAN_OUT));
    for (let i = 0; 2 * i < level.length; i++) {
      const range = i * step;
      level[2 * i] = i < count ? file.high6[2 * range]! : 0xffff_ffff;
      level[2 * i + 1] = (i < count ? file.high6[2 * range + 1]! : 0xffff_ffff) ^ BIAS;
    }
    levels.unshift(level);
    if (count <= FAN_OUT) return levels;
  }
}

/**
 * The last 16 bits of the IPv4 start addresses: the first 16 are the same for all of a bucket of the index, which a search
 * keeps to.
 */
export function lowHalves(file: RangeFile): Uint16Array {
  return Uint16Array.from(file.start4, (start) => start & 0xffff);
}

/** Set in an entry of {@link buckets} that is the answer itself. */
const ANSWERED = 0x8000_0000;

/**
 * For each first 16 bits of an IPv4 address, the answer: a record's number and `ANSWERED`, where one range holds all of
 * them; else a number n, and `crowded[2n]` is the first range that begins there, `crowded[2n + 1]` how many do. Most are of
 * the first kind, and need no other table.
 */
export function buckets(file: RangeFile): { first: Uint32Array; crowded: Uint32Array } {
  const crowded: number[] = [];
  const first = Uint32Array.from({ length: file.index4.length - 1 }, (_, bucket) => {
    const range = file.index4[bucket]!;
    const count = file.index4[bucket + 1]! - range;
    if (count === 0) return ANSWERED | file.record4[range - 1]!;
    if (count === 1 && (file.start4[range]! & 0xffff) === 0) return ANSWERED | file.record4[range]!;
    return crowded.push(range, count) / 2 - 1;
  });
  return { first, crowded: Uint32Array.from(crowded) };
}
