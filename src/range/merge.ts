/** Merges candidate ranges, which may overlap, into one sorted partition of the address space. */
import type { Family } from '../address/parse.js';
import { addressWords, compareAddresses, compareSizes, copyAddress, nextAddress } from '../address/words.js';
import { type CandidateRanges, enlarged, type MergedRanges, type RangeColumns } from './columns.js';

/**
 * Returns the indexes from 0 to `count - 1` in ascending order, sorted stably by natural merge sort: it finds runs that are
 * already sorted and merges them. Sources are sorted, so this takes little more than one pass.
 *
 * @param compare compares the elements at two indexes, as for `Array.prototype.sort`
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

/** Layers of candidates: a set of them has 32 bits. */
const LAYER_COUNT = 32;

/** The candidates that contain the position of the sweep, in a binary heap: the one that takes precedence is on top. */
class ActiveRanges {
  readonly #heap: number[] = [];
  readonly #candidates: CandidateRanges;
  readonly #words: number;

  constructor(candidates: CandidateRanges, words: number) {
    this.#candidates = candidates;
    this.#words = words;
  }

  /** Index of the candidate that takes precedence, or -1. */
  get top(): number {
    return this.#heap[0] ?? -1;
  }

  /** Removes the candidates that end before `position`, so that {@link top} contains it. */
  popEnded(position: Uint32Array): void {
    const { last } = this.#candidates;
    while (this.top >= 0 && compareAddresses(last, this.top, position, 0, this.#words) < 0) this.pop();
  }

  /** Whether candidate `a` takes precedence over candidate `b`: higher layer first, then smaller size, then higher index. */
  #precedes(a: number, b: number): boolean {
    const { first, last, layer } = this.#candidates;
    if (layer[a] !== layer[b]) return layer[a]! > layer[b]!;
    const order = compareSizes(first, last, a, b, this.#words);
    return order === 0 ? a > b : order < 0;
  }

  push(candidate: number): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(candidate);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#precedes(candidate, heap[parent]!)) break;
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
      if (child + 1 < heap.length && this.#precedes(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#precedes(heap[child]!, moved)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = moved;
  }
}

/** The candidates that contain one address: those of each voter, who has a layer of its own, and all others together. */
export class CoveringCandidates {
  /** For each voter its candidate that takes precedence, or -1. */
  readonly rows: Int32Array;
  /** The candidate of no voter that takes precedence, or -1. */
  other = -1;
  /** The one among these candidates that ends first, or -1. */
  ending = -1;
  readonly #candidates: CandidateRanges;
  readonly #words: number;
  /** The active candidates of each voter, and at the end those of no voter. */
  readonly #active: ActiveRanges[];
  /** Index into `#active` by layer. */
  readonly #activeOf: Uint8Array;

  /** @param voterLayers the layer of each voter; no two have the same */
  constructor(candidates: CandidateRanges, voterLayers: readonly number[]) {
    this.#candidates = candidates;
    this.#words = addressWords(candidates.family);
    this.rows = new Int32Array(voterLayers.length).fill(-1);
    this.#active = [...voterLayers, undefined].map(() => new ActiveRanges(candidates, this.#words));
    this.#activeOf = new Uint8Array(LAYER_COUNT).fill(voterLayers.length);
    for (const [voter, layer] of voterLayers.entries()) this.#activeOf[layer] = voter;
  }

  /** Adds a candidate that does not begin after the next address. */
  add(candidate: number): void {
    this.#active[this.#activeOf[this.#candidates.layer[candidate]!]!]!.push(candidate);
  }

  /** Removes the candidates that end before an address, and finds those that take precedence there. */
  moveTo(address: Uint32Array): void {
    const { last } = this.#candidates;
    this.ending = -1;
    for (let index = 0; index <= this.rows.length; index++) {
      const active = this.#active[index]!;
      active.popEnded(address);
      const { top } = active;
      if (index < this.rows.length) this.rows[index] = top;
      else this.other = top;
      if (top < 0) continue;
      if (this.ending < 0 || compareAddresses(last, top, last, this.ending, this.#words) < 0) this.ending = top;
    }
  }
}

/**
 * Visits each address of the family from which on other candidates may take precedence, in ascending order.
 *
 * @param order see {@link sortCandidates}
 * @param voterLayers see {@link CoveringCandidates}
 */
export function sweep(
  candidates: CandidateRanges,
  order: Uint32Array,
  voterLayers: readonly number[],
  visit: (position: Uint32Array, covering: CoveringCandidates) => void,
): void {
  const { family, count, first, last } = candidates;
  const words = addressWords(family);
  const covering = new CoveringCandidates(candidates, voterLayers);
  const position = new Uint32Array(words);
  let next = 0;
  for (let atEnd = false; !atEnd; ) {
    for (; next < count && compareAddresses(first, order[next]!, position, 0, words) <= 0; next++) {
      covering.add(order[next]!);
    }
    covering.moveTo(position);
    visit(position, covering);
    // Precedence can change only after the last address of a candidate that takes it, or where the next candidate begins.
    const { ending } = covering;
    const nextFirst = next < count ? order[next]! : -1;
    if (ending >= 0 && (nextFirst < 0 || compareAddresses(last, ending, first, nextFirst, words) < 0)) {
      atEnd = !nextAddress(last, ending, words, position);
    } else if (nextFirst >= 0) {
      copyAddress(first, nextFirst, words, position);
    } else {
      atEnd = true;
    }
  }
}

/** Collects the ranges of the partition, and joins neighbors with the same value. */
export class MergedBuilder {
  readonly words: number;
  count = 0;
  first: Uint32Array;
  value: Uint32Array;
  layers: Uint32Array;
  confidence: Uint8Array;

  /** @param candidates number of ranges to make room for: there may be twice as many, but most sources have few gaps */
  constructor(words: number, candidates: number) {
    const capacity = candidates + 1;
    this.words = words;
    this.first = new Uint32Array(capacity * words);
    this.value = new Uint32Array(capacity);
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
    if (this.count === this.value.length) this.#grow();
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

  #grow(): void {
    const capacity = 2 * this.value.length;
    this.first = enlarged(this.first, capacity * this.words);
    this.value = enlarged(this.value, capacity);
    this.layers = enlarged(this.layers, capacity);
    this.confidence = enlarged(this.confidence, capacity);
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
 * Merges candidates of which several count at an address.
 *
 * @param layers those of which each has a candidate, see {@link CoveringCandidates}
 * @param valueAt returns the value of the addresses that candidates cover
 */
export function mergeRows(
  candidates: CandidateRanges,
  layers: readonly number[],
  valueAt: (covering: CoveringCandidates) => number,
): RangeColumns {
  const merged = new MergedBuilder(addressWords(candidates.family), candidates.count);
  sweep(candidates, sortCandidates(candidates), layers, (position, covering) => {
    merged.add(position, valueAt(covering), 0);
  });
  return merged.finish(candidates.family);
}

/**
 * Merges candidate ranges.
 *
 * At each address, the candidate of the highest layer wins; within a layer the smallest; of equal sizes the one with the
 * highest index. The value of an address without a candidate is 0.
 *
 * @param candidates in any order; may overlap
 * @returns the whole address space of the family; see {@link MergedRanges}
 */
export function mergeRanges(candidates: CandidateRanges): MergedRanges {
  const { family, count, value, layer } = candidates;
  const order = sortCandidates(candidates);
  const ranges = new MergedBuilder(addressWords(family), count);
  sweep(candidates, order, [], (position, { other }) => {
    if (other < 0) ranges.add(position, 0, 0);
    else ranges.add(position, value[other]!, (1 << layer[other]!) >>> 0);
  });
  return { ...ranges.finish(family), ...countDuplicates(candidates, order) };
}
