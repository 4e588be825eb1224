/**
 * Range algebra: overlapping candidates on an address space become one sorted, disjoint, gap-free list.
 *
 * Addresses are 32-bit words, most significant first: one word an IPv4 address, four an IPv6 address. Everything here is
 * written over words, so both families go through the same code.
 */
import type { Family } from '../address/parse.js';
import { addressWords, compareAddresses, nextAddress } from '../address/words.js';
import type { CandidateRanges, MergedRanges } from './columns.js';

/**
 * Sorts indexes by natural merge sort: runs that are already in order are found and merged. Sources come sorted, so this
 * is close to one pass, where a general sort with a comparison function would take a second.
 */
export function sortedOrder(count: number, compare: (a: number, b: number) => number): Uint32Array {
  let from = new Uint32Array(count);
  for (let i = 0; i < count; i++) from[i] = i;
  let runs: number[] = [0];
  for (let i = 1; i < count; i++) if (compare(i - 1, i) > 0) runs.push(i);
  let into = runs.length > 1 ? new Uint32Array(count) : from;
  while (runs.length > 1) {
    const merged: number[] = [];
    for (let r = 0; r < runs.length; r += 2) {
      const start = runs[r]!;
      const middle = runs[r + 1] ?? count;
      const end = runs[r + 2] ?? count;
      merged.push(start);
      let left = start;
      let right = middle;
      for (let k = start; k < end; k++) {
        const takeLeft = left < middle && (right >= end || compare(from[left]!, from[right]!) <= 0);
        into[k] = takeLeft ? from[left++]! : from[right++]!;
      }
    }
    [from, into] = [into, from];
    runs = merged;
  }
  return from;
}

/** Compares the sizes of two candidates. */
export function compareWidth(candidates: CandidateRanges, a: number, b: number, words: number): number {
  const { first, last } = candidates;
  // Long subtraction from the least significant word; the last difference found is that of the highest word.
  let order = 0;
  let borrowA = 0;
  let borrowB = 0;
  for (let k = words - 1; k >= 0; k--) {
    const rawA = last[a * words + k]! - first[a * words + k]! - borrowA;
    const rawB = last[b * words + k]! - first[b * words + k]! - borrowB;
    borrowA = rawA < 0 ? 1 : 0;
    borrowB = rawB < 0 ? 1 : 0;
    const wordA = rawA >>> 0;
    const wordB = rawB >>> 0;
    if (wordA !== wordB) order = wordA < wordB ? -1 : 1;
  }
  return order;
}

/** CandidateRanges that are open at the sweep's position, the one that holds on top: a binary heap. */
export class OpenRanges {
  readonly #heap: number[] = [];
  readonly #candidates: CandidateRanges;
  readonly #words: number;

  constructor(candidates: CandidateRanges, words: number) {
    this.#candidates = candidates;
    this.#words = words;
  }

  /** The candidate that holds, or -1. */
  get top(): number {
    return this.#heap[0] ?? -1;
  }

  /** Removes the candidates that end before `position`, so that {@link top} covers it. */
  popEnded(position: Uint32Array): void {
    const { last } = this.#candidates;
    while (this.top >= 0 && compareAddresses(last, this.top, position, 0, this.#words) < 0) this.pop();
  }

  /** Whether candidate `a` covers candidate `b`: the higher layer, in one layer the narrower, of equal ones the later. */
  #covers(a: number, b: number): boolean {
    const { layer } = this.#candidates;
    if (layer[a] !== layer[b]) return layer[a]! > layer[b]!;
    const width = compareWidth(this.#candidates, a, b, this.#words);
    return width === 0 ? a > b : width < 0;
  }

  push(candidate: number): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(candidate);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#covers(candidate, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = candidate;
  }

  pop(): void {
    const heap = this.#heap;
    const moved = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#covers(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#covers(heap[child]!, moved)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = moved;
  }
}

/** Collects the partition's ranges, merging neighbors of one value. */
export class MergedBuilder {
  readonly words: number;
  count = 0;
  first: Uint32Array;
  value: Uint16Array;
  layers: Uint32Array;
  confidence: Uint8Array;

  constructor(words: number, capacity: number) {
    this.words = words;
    this.first = new Uint32Array(capacity * words);
    this.value = new Uint16Array(capacity);
    this.layers = new Uint32Array(capacity);
    this.confidence = new Uint8Array(capacity);
  }

  add(position: Uint32Array, value: number, layers: number, confidence = 100): void {
    const { words } = this;
    const before = this.count - 1;
    if (before >= 0 && this.value[before] === value) {
      this.layers[before] = this.layers[before]! | layers;
      if (confidence < this.confidence[before]!) this.confidence[before] = confidence;
      return;
    }
    for (let k = 0; k < words; k++) this.first[this.count * words + k] = position[k]!;
    this.value[this.count] = value;
    this.layers[this.count] = layers;
    this.confidence[this.count] = confidence;
    this.count++;
  }

  /** Returns the ranges so far, in columns of exactly their length. */
  finish(family: Family): Omit<MergedRanges, 'duplicates' | 'conflicts'> {
    const { count } = this;
    return {
      family,
      count,
      first: this.first.slice(0, count * this.words),
      value: this.value.slice(0, count),
      layers: this.layers.slice(0, count),
      confidence: this.confidence.slice(0, count),
    };
  }
}

/** Returns the indexes of candidates in order of first address, last address, layer and index. */
export function sortCandidates({ family, count, first, last, layer }: CandidateRanges): Uint32Array {
  const words = addressWords(family);
  return sortedOrder(
    count,
    (a, b) =>
      compareAddresses(first, a, first, b, words) ||
      compareAddresses(last, a, last, b, words) ||
      layer[a]! - layer[b]! ||
      a - b,
  );
}

/**
 * Counts candidates that have the bounds of another one in their layer.
 *
 * @param order see {@link sortCandidates}
 */
export function countDuplicates(
  { family, count, first, last, value, layer }: CandidateRanges,
  order: Uint32Array,
): Pick<MergedRanges, 'duplicates' | 'conflicts'> {
  const words = addressWords(family);
  let duplicates = 0;
  let conflicts = 0;
  for (let i = 1; i < count; i++) {
    const a = order[i - 1]!;
    const b = order[i]!;
    if (layer[a] !== layer[b] || compareAddresses(first, a, first, b, words) !== 0) continue;
    if (compareAddresses(last, a, last, b, words) !== 0) continue;
    duplicates++;
    if (value[a] !== value[b]) conflicts++;
  }
  return { duplicates, conflicts };
}

/**
 * Lays candidates over one another.
 *
 * The candidate that holds at an address is the one of the highest layer there; within a layer the narrowest; of candidates of
 * one width the latest. Where there is none, the value is 0.
 *
 * @param candidates any number of candidates, in any order, overlapping at will
 * @returns the whole address space of the family as ranges; see {@link MergedRanges}
 */
export function mergeRanges(candidates: CandidateRanges): MergedRanges {
  const { family, count, first, last, value, layer } = candidates;
  const words = addressWords(family);
  const order = sortCandidates(candidates);
  // Each candidate begins and ends once, so there are at most two boundaries a candidate, and the start of the space.
  const ranges = new MergedBuilder(words, 2 * count + 1);
  const open = new OpenRanges(candidates, words);
  const position = new Uint32Array(words);
  let next = 0;
  for (let atEnd = false; !atEnd; ) {
    while (next < count && compareAddresses(first, order[next]!, position, 0, words) <= 0) open.push(order[next++]!);
    open.popEnded(position);
    const top = open.top;
    if (top < 0) ranges.add(position, 0, 0);
    else ranges.add(position, value[top]!, (1 << layer[top]!) >>> 0);
    // The answer may change where the candidate that holds ends, or where the next one begins.
    const nextFirst = next < count ? order[next]! : -1;
    if (top >= 0 && (nextFirst < 0 || compareAddresses(last, top, first, nextFirst, words) < 0)) {
      atEnd = !nextAddress(last, top, words, position);
    } else if (nextFirst >= 0) {
      for (let k = 0; k < words; k++) position[k] = first[nextFirst * words + k]!;
    } else {
      atEnd = true;
    }
  }
  return { ...ranges.finish(family), ...countDuplicates(candidates, order) };
}
