/** Covers with few blocks, against a naive twin that tries every cover of a tiny space. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCidr } from '../../src/range/cidr.js';
import { type Blocks, coverBlocks } from '../../src/range/cover.js';

/** Bits of the tiny space: the last of an IPv4 address. */
const BITS = 6;
const SIZE = 2 ** BITS;
const BASE = 0xc0000200;

/** Returns the fewest blocks of some addresses, from the largest downward. */
function blocksOf(has: readonly boolean[]): Blocks {
  const first: number[] = [];
  const prefix: number[] = [];
  const add = (from: number, size: number): void => {
    const inside = has.slice(from, from + size);
    if (inside.every(Boolean)) {
      first.push(BASE + from);
      prefix.push(32 - Math.log2(size));
    } else if (inside.some(Boolean)) {
      add(from, size / 2);
      add(from + size / 2, size / 2);
    }
  };
  add(0, SIZE);
  return { first: Uint32Array.from(first), prefix: Uint8Array.from(prefix) };
}

/** Returns the least number of added addresses for each number of blocks: of each half, and of the whole as one block. */
function leastAdded(has: readonly boolean[]): number[] {
  if (!has.some(Boolean)) return [0];
  const whole = has.filter((one) => !one).length;
  const least = [Number.POSITIVE_INFINITY, whole];
  if (has.length === 1) return least;
  const [a, b] = [leastAdded(has.slice(0, has.length / 2)), leastAdded(has.slice(has.length / 2))];
  for (const [i, x] of a.entries())
    for (const [j, y] of b.entries())
      if (i + j > 0) least[i + j] = Math.min(least[i + j] ?? Number.POSITIVE_INFINITY, x + y);
  return least;
}

/** Checks a cover; returns the number of addresses that it adds. */
function added(has: readonly boolean[], { first, prefix }: Blocks): number {
  const covered = new Array(SIZE).fill(0);
  for (const [index, length] of prefix.entries()) {
    const [from, size] = [first[index]! - BASE, 2 ** (32 - length)];
    expect(from % size).toBe(0);
    for (let at = from; at < from + size; at++) covered[at]++;
  }
  for (const [at, one] of has.entries()) if (one) expect(covered[at]).toBe(1);
  expect(Math.max(...covered)).toBeLessThanOrEqual(1);
  return covered.filter((count, at) => count > 0 && !has[at]).length;
}

const ADDRESSES = fc
  .tuple(
    fc.array(fc.boolean(), { minLength: SIZE, maxLength: SIZE }),
    fc.array(fc.boolean(), { minLength: SIZE, maxLength: SIZE }),
    fc.boolean(),
  )
  .map(([a, b, isSparse]) => a.map((one, at) => (isSparse ? one && b[at]! : one || b[at]!)))
  .filter((has) => has.some(Boolean));

describe('coverBlocks', () => {
  it('adds as few addresses as any cover of so many blocks', () => {
    fc.assert(
      fc.property(ADDRESSES, fc.integer({ min: 1, max: SIZE }), (has, max) => {
        const cover = coverBlocks(4, blocksOf(has), max);
        expect(cover.prefix.length).toBeLessThanOrEqual(max);
        expect(added(has, cover)).toBe(Math.min(...leastAdded(has).slice(0, max + 1)));
      }),
    );
  });

  it('of many blocks is near the least, never has more than allowed, and loses none', () => {
    // Pairs of blocks with a gap of each size, again and again: the least is known.
    const count = 10_000;
    const first = Uint32Array.from({ length: 2 * count }, (_, i) => (i >> 1) * 4096 + (i % 2) * (2 << ((i >> 1) % 10)));
    const blocks = { first, prefix: new Uint8Array(2 * count).fill(32) };
    for (const max of [count + 5_000, count + 1_234, count]) {
      const cover = coverBlocks(4, blocks, max);
      expect(cover.prefix.length).toBeLessThanOrEqual(max);
      expect(cover.prefix.length).toBeGreaterThan(max - 10);
      const sizes = Array.from({ length: count }, (_, i) => 2 ** (2 + (i % 10)) - 2).sort((a, b) => a - b);
      const least = sizes.slice(0, 2 * count - max).reduce((sum, size) => sum + size, 0);
      const total = cover.prefix.reduce((sum, prefix) => sum + 2 ** (32 - prefix), 0) - 2 * count;
      expect(total).toBeGreaterThanOrEqual(least);
      expect(total).toBeLessThanOrEqual(1.05 * least);
    }
  });

  it('of IPv6 counts /64 blocks', () => {
    const texts = ['2001:db8::/48', '2001:db8:2::/48', '2001:db8:4::1/128', '2001:db8:4::4/128'];
    const words = texts.map((text) => {
      const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
      return { ...parseCidr(text, first, last)!, first };
    });
    const blocks = {
      first: Uint32Array.from(words.flatMap(({ first }) => [...first])),
      prefix: Uint8Array.from(words, ({ prefix }) => prefix),
    };
    expect([...coverBlocks(6, blocks, 3).prefix]).toEqual([48, 48, 125]);
    expect([...coverBlocks(6, blocks, 2).prefix]).toEqual([46, 125]);
  });
});
