/**
 * The search tree of the MaxMind DB format, built from the sorted ranges of a range file.
 *
 * Nodes stand in two columns, not in objects. A subtree that occurs twice is stored once: a reader follows node numbers and
 * cannot tell. So an alias, a shared subtree and a prefix of many free bits are all the same thing here.
 */
import { EMBEDDED_LAYOUT, type EmbeddedScheme } from '../../address/embedded.js';
import { compareAddresses } from '../../address/words.js';
import { type RangeFile, rangeColumns } from '../../rangefile/reader.js';

/** What a record of a node refers to: a node, 0 and up; or a leaf, below 0. */
export type Reference = number;

/** The leaf of addresses without data. */
export const NO_DATA: Reference = -1;

/** The leaf of a record of the range file. */
export function leafOf(record: number): Reference {
  return -2 - record;
}

/** The record of the range file that a leaf stands for. */
export function recordOf(leaf: Reference): number {
  return -2 - leaf;
}

/** A tree in columns. Node 0 is the root; every node is above those that it refers to. */
export interface Tree {
  count: number;
  left: Int32Array;
  right: Int32Array;
}

const FIRST_CAPACITY = 1 << 16;

/** Nodes, each pair of references once. */
class NodeStore {
  count = 0;
  left = new Int32Array(FIRST_CAPACITY);
  right = new Int32Array(FIRST_CAPACITY);
  /** Open addressing: a node's number plus 1, or 0; twice as many slots as nodes at least. */
  #slots = new Int32Array(2 * FIRST_CAPACITY);

  /** The node with these two references; two times the same leaf is that leaf. */
  node(left: Reference, right: Reference): Reference {
    return left === right && left < 0 ? left : this.nodeEvenIfEqual(left, right);
  }

  nodeEvenIfEqual(left: Reference, right: Reference): Reference {
    const slot = this.#slotOf(left, right);
    if (this.#slots[slot] !== 0) return this.#slots[slot]! - 1;
    const number = this.count++;
    this.left[number] = left;
    this.right[number] = right;
    this.#slots[slot] = number + 1;
    if (this.count === this.left.length) this.#grow();
    return number;
  }

  #slotOf(left: Reference, right: Reference): number {
    const mask = this.#slots.length - 1;
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca77);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    for (let slot = (hash ^ (hash >>> 13)) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]! - 1;
      if (number < 0 || (this.left[number] === left && this.right[number] === right)) return slot;
    }
  }

  #grow(): void {
    const { left, right } = this;
    this.left = new Int32Array(2 * left.length);
    this.right = new Int32Array(2 * right.length);
    this.left.set(left);
    this.right.set(right);
    this.#slots = new Int32Array(2 * this.#slots.length);
    for (let number = 0; number < this.count; number++) {
      this.#slots[this.#slotOf(this.left[number]!, this.right[number]!)] = number + 1;
    }
  }
}

/** Bit `depth` of an address, counted from the most significant one. */
function bitAt(words: Uint32Array, depth: number): number {
  return (words[depth >>> 5]! >>> (31 - (depth & 31))) & 1;
}

/** The bits of word `index` that lie in the first `depth` bits of an address. */
function prefixMask(depth: number, index: number): number {
  const bits = Math.min(32, Math.max(0, depth - 32 * index));
  return bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0;
}

/** The two /96 blocks that hold the IPv4 addresses in a tree for IPv6: where the format keeps them, and IPv4-mapped ones. */
const IPV4_BLOCKS = [new Uint32Array(4), Uint32Array.of(0, 0, 0xffff, 0)] as const;
const IPV4_DEPTH = 96;

/** Sorted first addresses of a family's ranges, and what each range leads to. */
interface Column {
  words: number;
  count: number;
  first: Uint32Array;
  /** The reference for a whole block in range `range` that begins at `path` and is `depth` bits deep. */
  leaf(range: number, path: Uint32Array, depth: number): Reference;
  /** What a block leads to, whatever the ranges say; undefined where they decide. */
  fixed?(path: Uint32Array, depth: number): Reference | undefined;
  /** Whether a block that lies in one range must be divided nevertheless. */
  mustDivide?(path: Uint32Array, depth: number): boolean;
}

/** Builds a family's tree from its ranges, in one pass from the root down and back. */
class ColumnBuilder {
  readonly #store: NodeStore;
  readonly #column: Column;
  /** The first address of the block at hand. */
  readonly #path: Uint32Array;

  constructor(store: NodeStore, column: Column) {
    this.#store = store;
    this.#column = column;
    this.#path = new Uint32Array(column.words);
  }

  build(): Reference {
    return this.#block(0, this.#column.count, 0);
  }

  /**
   * @param low the range that the block begins in
   * @param high the first range behind the block
   */
  #block(low: number, high: number, depth: number): Reference {
    const path = this.#path;
    const column = this.#column;
    const fixed = column.fixed?.(path, depth);
    if (fixed !== undefined) return fixed;
    if (high - low === 1 && column.mustDivide?.(path, depth) !== true) return column.leaf(low, path, depth);
    const middle = this.#firstInUpperHalf(low + 1, high, depth);
    const left = this.#block(low, middle, depth + 1);
    const word = depth >>> 5;
    const bit = (1 << (31 - (depth & 31))) >>> 0;
    path[word] = path[word]! + bit;
    const right = this.#block(this.#beginsAtPath(middle, high) ? middle : middle - 1, high, depth + 1);
    path[word] = path[word]! - bit;
    return this.#store.node(left, right);
  }

  /** The first of the ranges from `low` to below `high` that begins in the upper half of the block; `high` if none does. */
  #firstInUpperHalf(low: number, high: number, depth: number): number {
    const { first, words } = this.#column;
    const word = depth >>> 5;
    const shift = 31 - (depth & 31);
    // All of them begin in the block, so this one bit decides.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (((first[middle * words + word]! >>> shift) & 1) === 1) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #beginsAtPath(range: number, high: number): boolean {
    if (range === high) return false;
    const { first, words } = this.#column;
    return compareAddresses(first, range, this.#path, 0, words) === 0;
  }
}

/** The trees of the IPv4 addresses, plain and with all bits inverted, for IPv6 blocks to lead to. */
class IPv4Trees {
  readonly plain: Reference;
  readonly #store: NodeStore;
  #inverted: Reference | undefined;

  constructor(store: NodeStore, plain: Reference) {
    this.#store = store;
    this.plain = plain;
  }

  /** What a block of a scheme leads to. */
  at(scheme: EmbeddedScheme, path: Uint32Array, depth: number): Reference {
    const { offset, inverted } = EMBEDDED_LAYOUT[scheme];
    let reference = inverted ? this.#invertedTree() : this.plain;
    for (let bit = offset; bit < Math.min(depth, offset + 32) && reference >= 0; bit++) {
      reference = this.#store[bitAt(path, bit) === 0 ? 'left' : 'right'][reference]!;
    }
    // Free bits before the IPv4 address: both values of each lead to the same node.
    for (let bit = depth; bit < offset; bit++) reference = this.#store.node(reference, reference);
    return reference;
  }

  #invertedTree(): Reference {
    this.#inverted ??= this.#invert(this.plain, new Map());
    return this.#inverted;
  }

  #invert(reference: Reference, known: Map<Reference, Reference>): Reference {
    if (reference < 0) return reference;
    const before = known.get(reference);
    if (before !== undefined) return before;
    const left = this.#invert(this.#store.right[reference]!, known);
    const right = this.#invert(this.#store.left[reference]!, known);
    const result = this.#store.node(left, right);
    known.set(reference, result);
    return result;
  }
}

/** Numbers the nodes from the root down, so that the root is 0 and what belongs together lies together. */
function numbered(store: NodeStore, top: Reference): Tree {
  // A tree has a node, even where all addresses have the same answer.
  const root = top >= 0 ? top : store.nodeEvenIfEqual(top, top);
  const numberOf = new Int32Array(store.count).fill(-1);
  const order = new Int32Array(store.count);
  const pending = [root];
  let count = 0;
  for (let old = pending.pop(); old !== undefined; old = pending.pop()) {
    if (numberOf[old] !== -1) continue;
    order[count] = old;
    numberOf[old] = count++;
    if (store.right[old]! >= 0) pending.push(store.right[old]!);
    if (store.left[old]! >= 0) pending.push(store.left[old]!);
  }
  const renumbered = (column: Int32Array): Int32Array =>
    Int32Array.from({ length: count }, (_, number) => {
      const reference = column[order[number]!]!;
      return reference < 0 ? reference : numberOf[reference]!;
    });
  return { count, left: renumbered(store.left), right: renumbered(store.right) };
}

export interface TreeRequest {
  file: RangeFile;
  /** The records, by number, that get a leaf; the others' addresses have no data. */
  isChosen: readonly boolean[];
  /** Whether IPv6 blocks of a scheme lead into the IPv4 addresses. */
  embedded: boolean;
}

function ipv4Column({ file, isChosen }: TreeRequest): Column {
  return {
    words: 1,
    count: file.count4,
    first: file.start4,
    leaf: (range) => (isChosen[file.record4[range]!] ? leafOf(file.record4[range]!) : NO_DATA),
  };
}

function ipv6Column({ file, isChosen, embedded }: TreeRequest, trees: IPv4Trees, withIPv4: boolean): Column {
  const schemes = file.records.map((record) => (record.kind === 'embedded' ? record.scheme : undefined));
  const leadsToIPv4 = (path: Uint32Array, depth: number): boolean =>
    IPV4_BLOCKS.some((block) => path.every((word, k) => word === (block[k]! & prefixMask(depth, k)) >>> 0));
  return {
    words: 4,
    count: file.count6,
    first: rangeColumns(file, 6).first,
    leaf(range, path, depth) {
      const record = file.record6[range]!;
      const scheme = schemes[record];
      if (scheme !== undefined && embedded) return trees.at(scheme, path, depth);
      return isChosen[record] ? leafOf(record) : NO_DATA;
    },
    mustDivide: (path, depth) => depth < IPV4_DEPTH && leadsToIPv4(path, depth),
    fixed(path, depth) {
      if (depth !== IPV4_DEPTH || !leadsToIPv4(path, depth)) return undefined;
      return withIPv4 ? trees.plain : NO_DATA;
    },
  };
}

/**
 * The tree of IPv4 addresses alone, for a file of `ip_version` 4.
 */
export function buildIPv4Tree(request: TreeRequest): Tree {
  const store = new NodeStore();
  return numbered(store, new ColumnBuilder(store, ipv4Column(request)).build());
}

/**
 * The tree of both families, for a file of `ip_version` 6.
 *
 * IPv4 addresses are at `::/96` and, as IPv4-mapped ones, at `::ffff:0:0/96`. Blocks of 6to4, NAT64 and Teredo lead to the
 * IPv4 address that `ipatlas lookup` takes out of them.
 *
 * @param withIPv4 whether IPv4 addresses themselves have data
 */
export function buildIPv6Tree(request: TreeRequest, withIPv4: boolean): Tree {
  const store = new NodeStore();
  const plain = new ColumnBuilder(store, ipv4Column(request)).build();
  const column = ipv6Column(request, new IPv4Trees(store, plain), withIPv4);
  return numbered(store, new ColumnBuilder(store, column).build());
}
