/**
 * The search tree of the MaxMind DB format, built from the sorted ranges of a range file.
 *
 * Nodes are in two columns, not in objects. Equal subtrees are stored once: readers follow node numbers and see no
 * difference. So aliases of the IPv4 addresses cost no space, and a run of bits that vary freely costs one node per bit.
 */
import { EMBEDDED_LAYOUT, type EmbeddedScheme } from '../../address/embedded.js';
import { compareAddresses, hostMask } from '../../address/words.js';
import { type PartitionFile, rangeColumns } from '../../rangefile/reader.js';

/** What a record of a node refers to: a node if not negative, else a leaf. */
export type Reference = number;

/** The leaf for addresses without data. */
export const NO_DATA: Reference = -1;

/** Returns the leaf for a record of the range file. */
export function leafOf(record: number): Reference {
  return -2 - record;
}

/** Returns the record of the range file for a leaf. */
export function recordOf(leaf: Reference): number {
  return -2 - leaf;
}

/** A tree in columns. Node 0 is the root. */
export interface Tree {
  count: number;
  left: Int32Array;
  right: Int32Array;
}

const FIRST_CAPACITY = 1 << 16;

/** Stores nodes so that each pair of references exists once. */
class NodeStore {
  count = 0;
  left = new Int32Array(FIRST_CAPACITY);
  right = new Int32Array(FIRST_CAPACITY);
  /** Hash table with open addressing: node number plus 1, or 0 for an empty slot. At least twice as many slots as nodes. */
  #slots = new Int32Array(2 * FIRST_CAPACITY);

  /** Returns the node with these two references; if both are the same leaf, that leaf. */
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

/** Returns bit `depth` of an address, counted from the most significant one. */
function bitAt(words: Uint32Array, depth: number): number {
  return (words[depth >>> 5]! >>> (31 - (depth & 31))) & 1;
}

/** The two /96 blocks of an IPv6 tree that hold the IPv4 addresses: `::/96`, by the format, and IPv4-mapped addresses. */
const IPV4_BLOCKS = [new Uint32Array(4), Uint32Array.of(0, 0, 0xffff, 0)] as const;
const IPV4_DEPTH = 96;

/** The ranges of a family, and the references for blocks of addresses in them. */
interface Column {
  words: number;
  count: number;
  first: Uint32Array;
  /** Returns the reference for a block inside one range; the block is the first `depth` bits of `path`. */
  leaf(range: number, path: Uint32Array, depth: number): Reference;
  /** Returns the reference for a block whose content does not depend on the ranges; undefined for all others. */
  fixed?(path: Uint32Array, depth: number): Reference | undefined;
  /** Whether a block inside one range must be divided because it contains a fixed block. */
  mustDivide?(path: Uint32Array, depth: number): boolean;
}

/** Builds the tree of a family from its ranges, depth first. */
class ColumnBuilder {
  readonly #store: NodeStore;
  readonly #column: Column;
  /** First address of the block that is being built. */
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
   * Returns the reference for the block of `depth` bits at the current path.
   *
   * @param low the range that contains the start of the block
   * @param high the first range after the block
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

  /** Returns the first range from `low` to below `high` that begins in the upper half of the block, or `high`. */
  #firstInUpperHalf(low: number, high: number, depth: number): number {
    const { first, words } = this.#column;
    const word = depth >>> 5;
    const shift = 31 - (depth & 31);
    // All of these ranges begin in the block, so one bit decides.
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

/** The tree of the IPv4 addresses, and the same with all address bits inverted, for IPv6 blocks to refer to. */
class IPv4Trees {
  readonly plain: Reference;
  readonly #store: NodeStore;
  #inverted: Reference | undefined;

  constructor(store: NodeStore, plain: Reference) {
    this.#store = store;
    this.plain = plain;
  }

  /** Returns the reference for a block of a scheme. */
  at(scheme: EmbeddedScheme, path: Uint32Array, depth: number): Reference {
    const { offset, inverted } = EMBEDDED_LAYOUT[scheme];
    let reference = inverted ? this.#invertedTree() : this.plain;
    for (let bit = offset; bit < Math.min(depth, offset + 32) && reference >= 0; bit++) {
      reference = this.#store[bitAt(path, bit) === 0 ? 'left' : 'right'][reference]!;
    }
    // Bits between the block and the IPv4 address vary freely: both values of each refer to the same node.
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

/** Numbers the nodes in depth-first order, so that the root is 0 and a lookup reads nodes that are close together. */
function numbered(store: NodeStore, top: Reference): Tree {
  // A tree has at least one node, even if all addresses have the same data.
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
  file: PartitionFile;
  /** By record number: whether the addresses of the record have data. */
  isChosen: readonly boolean[];
  /** The schemes whose IPv6 blocks refer to the tree of the IPv4 addresses. */
  embedded: ReadonlySet<EmbeddedScheme>;
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
    IPV4_BLOCKS.some((block) => path.every((word, k) => ((word ^ block[k]!) & ~hostMask(depth, k)) === 0));
  return {
    words: 4,
    count: file.count6,
    first: rangeColumns(file, 6).first,
    leaf(range, path, depth) {
      const record = file.record6[range]!;
      const scheme = schemes[record];
      if (scheme !== undefined && embedded.has(scheme)) return trees.at(scheme, path, depth);
      return isChosen[record] ? leafOf(record) : NO_DATA;
    },
    mustDivide: (path, depth) => depth < IPV4_DEPTH && leadsToIPv4(path, depth),
    fixed(path, depth) {
      if (depth !== IPV4_DEPTH || !leadsToIPv4(path, depth)) return undefined;
      return withIPv4 ? trees.plain : NO_DATA;
    },
  };
}

/** Builds the tree of the IPv4 addresses alone, for a file with `ip_version` 4. */
export function buildIPv4Tree(request: TreeRequest): Tree {
  const store = new NodeStore();
  return numbered(store, new ColumnBuilder(store, ipv4Column(request)).build());
}

/**
 * Builds the tree of both families, for a file with `ip_version` 6.
 *
 * IPv4 addresses are at `::/96` and, IPv4-mapped, at `::ffff:0:0/96`. Blocks of the chosen schemes refer to the tree of the
 * IPv4 addresses.
 *
 * @param withIPv4 whether IPv4 addresses themselves have data
 */
export function buildIPv6Tree(request: TreeRequest, withIPv4: boolean): Tree {
  const store = new NodeStore();
  const plain = new ColumnBuilder(store, ipv4Column(request)).build();
  const column = ipv6Column(request, new IPv4Trees(store, plain), withIPv4);
  return numbered(store, new ColumnBuilder(store, column).build());
}
