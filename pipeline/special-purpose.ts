/** Special-purpose blocks as disjoint ranges: where blocks nest, the narrowest one counts. */
import type { Family } from '../src/address/parse.js';
import type { RangeAnswer } from '../src/country/answer.js';
import { addressWords } from '../src/range/cidr.js';

/** A range of addresses whose meaning is set by a standard. */
export interface SpecialRange {
  family: Family;
  /** First address, `addressWords(family)` words, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  /** Why there is no country, or the scheme by which an IPv4 address inside answers. */
  answer: Exclude<RangeAnswer, { kind: 'country' }>;
  /**
   * `over`: the range answers so whatever a source says. `under`: a source that names a country for a range inside the block
   * answers first.
   */
  layer: 'over' | 'under';
  /** The block that the range is (a part of), as the registry writes it, its name there, and the RFC that defines it. */
  block: string;
  name: string;
  rfc: string;
}

/** An address as one number. */
function toBigInt(words: Uint32Array): bigint {
  return words.reduce((number, word) => (number << 32n) | BigInt(word), 0n);
}

/** A number as an address of `count` words. */
function toWords(number: bigint, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, (_, i) => Number((number >> BigInt(32 * (count - 1 - i))) & 0xffffffffn));
}

/** Ends of a block as numbers, with the block. */
interface Span {
  first: bigint;
  last: bigint;
  range: SpecialRange;
}

/** The blocks of one family cut into disjoint ranges, ascending. */
function disjointOf(family: Family, blocks: readonly SpecialRange[]): SpecialRange[] {
  const spans = blocks
    .filter((range) => range.family === family)
    .map((range): Span => ({ first: toBigInt(range.first), last: toBigInt(range.last), range }))
    // A block stands before the blocks inside it, though they may begin at the same address.
    .sort((a, b) => (a.first !== b.first ? (a.first < b.first ? -1 : 1) : a.last > b.last ? -1 : 1));
  const result: SpecialRange[] = [];
  const count = addressWords(family);
  /** The blocks around the place reached, each inside the one before it. */
  const open: Span[] = [];
  /** First address that has no range yet. */
  let next = 0n;
  const emit = (last: bigint, { range }: Span): void => {
    if (next <= last) result.push({ ...range, first: toWords(next, count), last: toWords(last, count) });
    next = last + 1n;
  };
  const closeBefore = (first: bigint | undefined): void => {
    for (let top = open.at(-1); top !== undefined && (first === undefined || top.last < first); top = open.at(-1)) {
      emit(top.last, top);
      open.pop();
    }
  };
  for (const span of spans) {
    closeBefore(span.first);
    const around = open.at(-1);
    if (around !== undefined) emit(span.first - 1n, around);
    next = span.first;
    open.push(span);
  }
  closeBefore(undefined);
  return result;
}

/**
 * Cuts CIDR blocks into disjoint ranges; an address inside several blocks belongs to the narrowest.
 *
 * @param blocks blocks, no two of them equal; of CIDR blocks any two are disjoint or one lies inside the other
 * @returns the ranges, IPv4 before IPv6, ascending
 */
export function disjointRanges(blocks: readonly SpecialRange[]): SpecialRange[] {
  return [...disjointOf(4, blocks), ...disjointOf(6, blocks)];
}
