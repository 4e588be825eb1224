/** Blocks within blocks, for programs that take the value of the smallest block that holds an address. */
import type { Family } from '../address/parse.js';
import { addressWords, hostMask } from '../address/words.js';
import { formatCidr } from '../range/cidr.js';
import type { ExportedRange } from './ranges.js';

/** Characters of a piece of the output. */
const PIECE_LENGTH = 65_536;

/**
 * Blocks that are kept at most before what is in them is written: then no block is around them, which costs some hundreds more of a
 * million. All of them would take 700 MB.
 */
const MAX_PARTS = 4_096;

/** A block of the address space. */
interface Part {
  /** The values that the block may have with the fewest blocks in it; only the empty one if some address has no value. */
  values: readonly string[];
  halves?: { left: Part; right: Part };
  /** Blocks in it. */
  size: number;
}

const NOTHING: Part = { values: [''], size: 0 };

/** Returns the values of a block from those of its halves. */
function sharedValues(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a === b) return a;
  if (a[0] === '' || b[0] === '') return NOTHING.values;
  const both = a.filter((value) => b.includes(value));
  if (both.length === 0) return [...a, ...b];
  return both.length === a.length ? a : both;
}

/**
 * Formats ranges as the fewest blocks of which the smallest around an address has its value (Draves et al., "Constructing
 * Optimal IP Routing Tables", 1999): less than half of the disjoint ones. No block holds an address without a value. A block
 * comes after those within it, for programs that take the first one that matches.
 *
 * @param ranges disjoint, in ascending order
 * @param ends by record number, the value: the text after the block, line end included
 * @returns the lines, in pieces
 */
export function nestedLines(family: Family, ranges: Iterable<ExportedRange>, ends: readonly string[]): Uint8Array[] {
  /** First address of the block that is read or written; the bits after its prefix are zero. */
  const path = new Uint32Array(addressWords(family));
  const byValue = new Map(ends.map((end): [string, Part] => [end, { values: [end], size: 0 }]));
  const leaves = ends.map((end) => byValue.get(end)!);
  const source = ranges[Symbol.iterator]();
  let next = source.next();

  /** Compares an address with the first one of the block at the path; with a depth, with its last one. */
  function compare(address: Uint32Array, depth = 128): number {
    for (let k = 0; k < path.length; k++) {
      const word = (path[k]! | hostMask(depth, k)) >>> 0;
      if (address[k] !== word) return address[k]! < word ? -1 : 1;
    }
    return 0;
  }

  /** Moves the path between the halves of a block. */
  function toggle(depth: number): void {
    path[depth >>> 5]! ^= 1 << (31 - (depth & 31));
  }

  function read(depth: number): Part {
    while (!next.done && compare(next.value.last) < 0) next = source.next();
    if (next.done || compare(next.value.first, depth) > 0) return NOTHING;
    const { first, last, record } = next.value;
    if (compare(first) <= 0 && compare(last, depth) >= 0) return leaves[record]!;
    const left = read(depth + 1);
    toggle(depth);
    const right = read(depth + 1);
    toggle(depth);
    const halves = { left, right };
    const size = left.size + right.size + 1;
    if (size < MAX_PARTS) return { values: sharedValues(left.values, right.values), halves, size };
    writeHalves(halves, depth, '');
    return NOTHING;
  }

  // As bytes: a text that is put together from pieces keeps all of them.
  const pieces: Uint8Array[] = [];
  let piece = '';
  function writeHalves({ left, right }: Required<Part>['halves'], depth: number, inherited: string): void {
    write(left, depth + 1, inherited);
    toggle(depth);
    write(right, depth + 1, inherited);
    toggle(depth);
  }

  /** @param inherited the value of the block around this one */
  function write({ values, halves }: Part, depth: number, inherited: string): void {
    const value = values.includes(inherited) ? inherited : values[0]!;
    if (halves !== undefined) writeHalves(halves, depth, value);
    if (value === inherited) return;
    piece += formatCidr(family, path, depth) + value;
    if (piece.length < PIECE_LENGTH) return;
    pieces.push(Buffer.from(piece));
    piece = '';
  }
  write(read(0), 0, '');
  return [...pieces, Buffer.from(piece)];
}
