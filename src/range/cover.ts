/**
 * Covers blocks with fewer, larger ones: at most so many that hold all addresses of the blocks, and as few others as possible.
 *
 * The blocks are the leaves of a binary tree whose inner nodes are the smallest blocks that hold two of them. A cover is a set
 * of nodes with one above each leaf; a node's waste is the number of its addresses that no leaf has. Small trees are solved
 * exactly, by the least waste for each number of blocks in each subtree. In large ones a price is put on each block, so that each
 * subtree can decide alone whether it is cheaper as one block, and the lowest price is taken with which the blocks are few enough
 * (a Lagrange multiplier). Only subtrees that cost the same either way at that price are then left to choose between.
 */
import type { Family } from '../address/parse.js';
import { addressBits, addressWords, commonBits, hostMask } from '../address/words.js';

/** Blocks in ascending order, without overlap. */
export interface Blocks {
  /** First addresses, one word each (IPv4) or four. */
  first: Uint32Array;
  /** Prefix lengths. */
  prefix: Uint8Array;
}

/** Most entries of the tables of the exact method: 40 MB. */
const MAX_TABLE = 5_000_000;
/** Steps of the search for the price: more than the bits of a floating-point number. */
const PRICE_STEPS = 80;

/** The tree, in columns; children come before their parents, and leaves have none (-1). The root is the last node. */
interface Tree {
  left: Int32Array;
  right: Int32Array;
  prefix: Uint8Array;
  /** Leaves below. */
  leaves: Uint32Array;
  /** Addresses without a leaf, of IPv6 in /64 blocks. */
  waste: Float64Array;
  /** The first leaf below. */
  start: Uint32Array;
}

function buildTree(family: Family, { first, prefix }: Blocks): Tree {
  const words = addressWords(family);
  const unitBits = family === 4 ? addressBits(4) : 64;
  const size = 2 * prefix.length - 1;
  const tree: Tree = {
    left: new Int32Array(size).fill(-1),
    right: new Int32Array(size).fill(-1),
    prefix: new Uint8Array(size),
    leaves: new Uint32Array(size),
    waste: new Float64Array(size),
    start: new Uint32Array(size),
  };
  const covered = new Float64Array(size);
  let count = 0;
  // Nodes from the root downward to the last leaf that have no right neighbor yet, and the bits in common with what is before each.
  const open: { node: number; common: number }[] = [];
  const fold = (common: number): void => {
    while (open.length > 1 && open.at(-1)!.common >= common) {
      const right = open.pop()!;
      const left = open.pop()!;
      const node = count++;
      tree.left[node] = left.node;
      tree.right[node] = right.node;
      tree.prefix[node] = right.common;
      tree.leaves[node] = tree.leaves[left.node]! + tree.leaves[right.node]!;
      tree.start[node] = tree.start[left.node]!;
      covered[node] = covered[left.node]! + covered[right.node]!;
      tree.waste[node] = 2 ** (unitBits - right.common) - covered[node]!;
      open.push({ node, common: left.common });
    }
  };
  for (let leaf = 0; leaf < prefix.length; leaf++) {
    const common = leaf === 0 ? -1 : commonBits(first, leaf - 1, first, leaf, words);
    fold(common + 1);
    tree.prefix[count] = prefix[leaf]!;
    tree.leaves[count] = 1;
    tree.start[count] = leaf;
    covered[count] = 2 ** (unitBits - prefix[leaf]!);
    open.push({ node: count++, common });
  }
  fold(0);
  return tree;
}

/** Returns the nodes of the cover with the least waste. */
function exactCover(tree: Tree, max: number): number[] {
  const { left, right, leaves, waste } = tree;
  // By node, the least waste with 1, 2, … blocks, at index 1, 2, …
  const least: Float64Array[] = [];
  for (let node = 0; node < left.length; node++) {
    const table = new Float64Array(Math.min(max, leaves[node]!) + 1).fill(Number.POSITIVE_INFINITY);
    table[1] = waste[node]!;
    const [a, b] = [least[left[node]!], least[right[node]!]];
    if (a !== undefined && b !== undefined)
      for (let i = 1; i < a.length; i++)
        for (let j = 1; j < b.length && i + j < table.length; j++)
          table[i + j] = Math.min(table[i + j]!, a[i]! + b[j]!);
    least.push(table);
  }
  const nodes: number[] = [];
  const choose = (node: number, blocks: number): void => {
    const table = least[node]!;
    if (blocks === 1 || table[1]! <= table[blocks]!) {
      nodes.push(node);
      return;
    }
    const [a, b] = [least[left[node]!]!, least[right[node]!]!];
    let i = Math.max(1, blocks - b.length + 1);
    while (a[i]! + b[blocks - i]! > table[blocks]!) i++;
    choose(left[node]!, i);
    choose(right[node]!, blocks - i);
  };
  const root = least.at(-1)!;
  choose(left.length - 1, root.indexOf(Math.min(...root)));
  return nodes;
}

/** Returns the nodes of a cover by a price for each block. */
function pricedCover(tree: Tree, max: number): number[] {
  const { left, right, leaves, waste } = tree;
  const root = left.length - 1;
  /** Returns the number of blocks of each subtree at a price. */
  const blocksAt = (price: number): Uint32Array => {
    const blocks = new Uint32Array(left.length).fill(1);
    const cost = new Float64Array(left.length).fill(price);
    for (let node = 0; node <= root; node++) {
      if (left[node]! < 0) continue;
      cost[node] = waste[node]! + price;
      const apart = cost[left[node]!]! + cost[right[node]!]!;
      if (cost[node]! <= apart) continue;
      cost[node] = apart;
      blocks[node] = blocks[left[node]!]! + blocks[right[node]!]!;
    }
    return blocks;
  };
  let [low, high] = [0, waste[root]! + 1];
  for (let step = 0; step < PRICE_STEPS; step++) {
    const middle = (low + high) / 2;
    if (blocksAt(middle)[root]! <= max) high = middle;
    else low = middle;
  }
  const [few, many] = [blocksAt(high), blocksAt(low)];
  let free = max - few[root]!;
  const nodes: number[] = [];
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (few[node] === 1 && many[node]! > 1 && many[node]! - 1 <= free) {
      // It costs the same either way, and there is room. The nodes of a subtree are beside each other.
      free -= many[node]! - 1;
      const start = node - 2 * leaves[node]! + 2;
      few.set(many.subarray(start, node + 1), start);
    }
    if (few[node] === 1) nodes.push(node);
    else open.push(right[node]!, left[node]!);
  }
  return nodes;
}

/**
 * Covers blocks with at most `max` blocks.
 *
 * @param max at least 1
 * @returns blocks that hold all addresses of the given ones, in ascending order; the given ones if they are few enough
 */
export function coverBlocks(family: Family, blocks: Blocks, max: number): Blocks {
  const count = blocks.prefix.length;
  if (count <= max) return blocks;
  const tree = buildTree(family, blocks);
  const nodes = count * max <= MAX_TABLE ? exactCover(tree, max) : pricedCover(tree, max);
  const words = addressWords(family);
  const first = new Uint32Array(nodes.length * words);
  nodes.forEach((node, index) => {
    for (let k = 0; k < words; k++)
      first[index * words + k] = blocks.first[tree.start[node]! * words + k]! & ~hostMask(tree.prefix[node]!, k);
  });
  return { first, prefix: Uint8Array.from(nodes, (node) => tree.prefix[node]!) };
}
