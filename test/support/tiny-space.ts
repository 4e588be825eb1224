/** A tiny address space of 64 addresses, in which tests compare with models that look at every address. */
import type { CandidateRanges } from '../../src/range/columns.js';

export const SIZE = 64;

/** A candidate range by offsets in the tiny space, both inclusive. */
export interface TinyCandidate {
  from: number;
  to: number;
  value: number;
  layer: number;
}

/** Returns the words of the address at an offset. */
export type Place = (offset: number) => number[];

/** The positions of the tiny space in the real one, chosen so that carries between words occur. */
export const PLACES: Record<string, { family: 4 | 6; place: Place }> = {
  'IPv4 bottom': { family: 4, place: (offset) => [offset] },
  'IPv4 top': { family: 4, place: (offset) => [2 ** 32 - SIZE + offset] },
  'IPv6 bottom': { family: 6, place: (offset) => [0, 0, 0, offset] },
  'IPv6 top': { family: 6, place: (offset) => [2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - SIZE + offset] },
  'IPv6 across words': {
    family: 6,
    place: (offset) => (offset < 32 ? [7, 1, 2 ** 32 - 1, 2 ** 32 - 32 + offset] : [7, 2, 0, offset - 32]),
  },
  'IPv6 across the middle': {
    family: 6,
    place: (offset) => (offset < 32 ? [7, 2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 32 + offset] : [8, 0, 0, offset - 32]),
  },
};

export function toCandidates(family: 4 | 6, place: Place, list: readonly TinyCandidate[]): CandidateRanges {
  return {
    family,
    count: list.length,
    first: Uint32Array.from(list.flatMap(({ from }) => place(from))),
    last: Uint32Array.from(list.flatMap(({ to }) => place(to))),
    value: Uint16Array.from(list.map(({ value }) => value)),
    layer: Uint8Array.from(list.map(({ layer }) => layer)),
  };
}

/** Returns an address as text that sorts like the address. */
export function sortKey(words: Iterable<number>): string {
  return [...words].map((word) => word.toString(16).padStart(8, '0')).join('');
}
