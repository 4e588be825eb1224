/**
 * Reads a MaxMind DB file as a source: every network with its country.
 *
 * The tree is walked here, since no reader gives all networks; what the file says of itself and the data of a network come
 * from mmdb-lib. Whatever an IPv6 tree holds of IPv4 a second time (aliases, copies, Teredo's inverted copy) is passed over:
 * a build answers those addresses by itself, from the IPv4 address inside.
 */

import { readFileSync } from 'node:fs';
import { Reader, type Response } from 'mmdb-lib';
import { EMBEDDED_LAYOUT, type EmbeddedScheme } from '../../src/address/embedded.js';
import { formatAddress } from '../../src/address/format.js';
import { type Family, isMapped } from '../../src/address/parse.js';
import { addressBits, addressWords } from '../../src/address/words.js';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_MMDB_STEPS } from '../../src/limits.js';
import { hostMask } from '../../src/range/cidr.js';

/** Where a country's code stands in records, by the habits of those who publish such files; the first that is there counts. */
export const DEFAULT_COUNTRY_PATHS: readonly string[] = [
  'country.iso_code', // GeoIP2 and what follows its shape
  'country_code',
  'country',
  'registered_country.iso_code', // GeoIP2, where the address is used in no country
];

/**
 * Takes one range. The arrays hold during the call only.
 *
 * @param country what stands where the code should; undefined where the record names none
 */
export type TakeRange = (family: Family, first: Uint32Array, last: Uint32Array, country: unknown) => void;

/** What a record of a node refers to: a node below the node count, nothing at the count, data above it. */
type Reference = number;

/** The scheme by which all addresses of a block carry an IPv4 address, by the prefixes of RFC 3056, RFC 4380 and RFC 6052. */
function schemeOf(path: Uint32Array, depth: number): EmbeddedScheme | undefined {
  const top = path[0]!;
  if (depth >= 16 && top >>> 16 === 0x2002) return '6to4';
  if (depth >= 32 && top === 0x2001_0000) return 'teredo';
  if (depth >= 96 && top === 0x0064_ff9b && path[1] === 0 && path[2] === 0) return 'nat64';
  return undefined;
}

const IPV4_DEPTH = 96;

/** A big-endian number of three bytes. */
function readBytes3(bytes: Buffer, at: number): number {
  return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
}

/** The search tree, read record by record. */
class Tree {
  readonly nodeCount: number;
  readonly #bytes: Buffer;
  readonly #recordSize: number;
  readonly #nodeBytes: number;
  #stepsLeft: number;

  constructor(bytes: Buffer, metadata: Reader<Response>['metadata'], maxSteps: number) {
    const { nodeCount, recordSize, nodeByteSize, searchTreeSize } = metadata;
    if (searchTreeSize > bytes.length) throw new Error('its tree is cut off');
    this.#bytes = bytes;
    this.nodeCount = nodeCount;
    this.#recordSize = recordSize;
    this.#nodeBytes = nodeByteSize;
    this.#stepsLeft = maxSteps;
  }

  isNode(reference: Reference): boolean {
    return reference < this.nodeCount;
  }

  /** The left (0) or right (1) record of a node. */
  child(node: Reference, side: number): Reference {
    // A small file can stand for a tree without end: two records may refer to one node, level after level.
    if (this.#stepsLeft-- === 0) throw new Error('its tree stands for too many networks');
    const at = node * this.#nodeBytes;
    const bytes = this.#bytes;
    if (this.#recordSize === 24) return readBytes3(bytes, at + 3 * side);
    if (this.#recordSize === 32) return bytes.readUInt32BE(at + 4 * side);
    const middle = bytes[at + 3]!;
    const top = side === 0 ? middle >>> 4 : middle & 15;
    return top * 2 ** 24 + readBytes3(bytes, at + 4 * side);
  }

  /** Whether two references lead to the same answers at the same bits, or at bits that are inverted in the second. */
  sameAnswers(a: Reference, b: Reference, inverted: boolean): boolean {
    if (a === b && !(inverted && this.isNode(a))) return true;
    if (!this.isNode(a) || !this.isNode(b)) return false;
    return [0, 1].every((side) =>
      this.sameAnswers(this.child(a, side), this.child(b, inverted ? 1 - side : side), inverted),
    );
  }
}

function isZero(path: Uint32Array): boolean {
  return path.every((word) => word === 0);
}

/** Finds what in an IPv6 tree is there for IPv4's sake. */
class IPv4Copies {
  readonly root: Reference;
  readonly #tree: Tree;
  /** By the node behind the free bits: whether it is the inverted copy of all IPv4. */
  readonly #invertedCopies = new Map<Reference, boolean>();

  constructor(tree: Tree) {
    this.#tree = tree;
    let reference = 0;
    for (let depth = 0; depth < IPV4_DEPTH && tree.isNode(reference); depth++) reference = tree.child(reference, 0);
    this.root = reference;
  }

  /** Whether the block at `path` answers just as IPv4 does. */
  has(reference: Reference, path: Uint32Array, depth: number): boolean {
    if (reference === this.root && this.#tree.isNode(reference)) return true;
    if (depth === IPV4_DEPTH && path[0] === 0 && (isMapped(path) || isZero(path))) return true;
    const scheme = schemeOf(path, depth);
    return scheme !== undefined && this.#isCopy(reference, path, depth, scheme);
  }

  #isCopy(reference: Reference, path: Uint32Array, depth: number, scheme: EmbeddedScheme): boolean {
    const tree = this.#tree;
    const { offset, inverted } = EMBEDDED_LAYOUT[scheme];
    if (depth < offset) return this.#isFreeUpTo(offset, reference, depth);
    let answer = this.root;
    for (let bit = offset; bit < Math.min(depth, offset + 32) && tree.isNode(answer); bit++) {
      const side = (path[bit >>> 5]! >>> (31 - (bit & 31))) & 1;
      answer = tree.child(answer, inverted ? 1 - side : side);
    }
    return tree.sameAnswers(reference, answer, inverted);
  }

  /** Whether all bits up to `offset` make no difference, and behind them is the inverted copy. */
  #isFreeUpTo(offset: number, from: Reference, depth: number): boolean {
    const tree = this.#tree;
    let reference = from;
    for (let bit = depth; bit < offset && tree.isNode(reference); bit++) {
      const left = tree.child(reference, 0);
      if (left !== tree.child(reference, 1)) return false;
      reference = left;
    }
    let isCopy = this.#invertedCopies.get(reference);
    if (isCopy === undefined) {
      isCopy = tree.sameAnswers(reference, this.root, true);
      this.#invertedCopies.set(reference, isCopy);
    }
    return isCopy;
  }
}

/** In place of a reference: there is no open range. */
const NO_RANGE = -1;

/** Joins neighboring networks of the same data, and hands them on with their country. */
class Ranges {
  readonly #reader: Reader<Response>;
  readonly #paths: readonly string[][];
  readonly #take: TakeRange;
  /** The country in a record of the data section, by the reference to it. */
  readonly #countries = new Map<Reference, unknown>();
  /** The range that the next network may prolong. */
  readonly #open = { family: 4 as Family, first: new Uint32Array(4), last: new Uint32Array(4), data: NO_RANGE };

  constructor(reader: Reader<Response>, paths: readonly string[], take: TakeRange) {
    this.#reader = reader;
    this.#paths = paths.map((path) => path.split('.'));
    this.#take = take;
  }

  /** @param path first address of the network, an IPv4 one in the last word; @param prefix its bits of 128 */
  add(family: Family, path: Uint32Array, prefix: number, data: Reference): void {
    const open = this.#open;
    if (open.data !== data || open.family !== family || !follows(path, open.last)) {
      this.flush();
      open.family = family;
      open.first.set(path);
      open.data = data;
    }
    for (let k = 0; k < 4; k++) open.last[k] = path[k]! | hostMask(prefix, k);
  }

  /** Hands the open range on. */
  flush(): void {
    const { family, data } = this.#open;
    if (data === NO_RANGE) return;
    const from = 4 - addressWords(family);
    const [first, last] = [this.#open.first.subarray(from), this.#open.last.subarray(from)];
    if (!this.#countries.has(data)) {
      this.#countries.set(data, this.#countryOf(this.#reader.get(formatAddress(family, first))));
    }
    this.#take(family, first, last, this.#countries.get(data));
    this.#open.data = NO_RANGE;
  }

  #countryOf(record: unknown): unknown {
    for (const path of this.#paths) {
      const value = path.reduce<unknown>((part, key) => memberOf(part, key), record);
      if (value !== undefined && value !== '' && typeof value !== 'object') return value;
    }
    return undefined;
  }
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string, unknown>)[key]
    : undefined;
}

/** Whether `address` is the one right behind `before`. */
function follows(address: Uint32Array, before: Uint32Array): boolean {
  let carry = 1;
  for (let k = address.length - 1; k >= 0; k--) {
    const sum = before[k]! + carry;
    carry = sum > 0xffffffff ? 1 : 0;
    if (address[k] !== sum >>> 0) return false;
  }
  return carry === 0;
}

/** Walks the networks in ascending order of their addresses. */
class Walk {
  readonly #tree: Tree;
  readonly #ranges: Ranges;
  /** Of the block at hand. An IPv4 address stands in the last word, as it does in the file. */
  readonly #path = new Uint32Array(4);
  readonly #copies: IPv4Copies | undefined;

  constructor(tree: Tree, ranges: Ranges, family: Family) {
    this.#tree = tree;
    this.#ranges = ranges;
    if (family === 6) this.#copies = new IPv4Copies(tree);
  }

  run(): void {
    this.#block(4, this.#copies?.root ?? 0, 0);
    if (this.#copies !== undefined) this.#block(6, 0, 0);
    this.#ranges.flush();
  }

  #block(family: Family, reference: Reference, depth: number): void {
    const tree = this.#tree;
    const path = this.#path;
    if (reference === tree.nodeCount) return;
    if (family === 6 && this.#copies!.has(reference, path, depth)) return;
    if (!tree.isNode(reference)) {
      this.#ranges.add(family, path, depth + 128 - addressBits(family), reference);
      return;
    }
    if (depth === addressBits(family)) throw new Error('its tree is deeper than an address is long');
    this.#block(family, tree.child(reference, 0), depth + 1);
    const bit = depth + 128 - addressBits(family);
    const mask = (1 << (31 - (bit & 31))) >>> 0;
    path[bit >>> 5] = path[bit >>> 5]! + mask;
    this.#block(family, tree.child(reference, 1), depth + 1);
    path[bit >>> 5] = path[bit >>> 5]! - mask;
  }
}

/**
 * Reads an MMDB file.
 *
 * @param path of the file; read whole into memory
 * @param name what messages call it
 * @param countryPaths where the country's code stands in a record, keys joined by dots; the first that is there counts
 * @param take receives the ranges, IPv4 before IPv6, ascending; neighbors of the same record as one
 * @param maxSteps records of the tree that may be looked at
 * @throws AtlasError E_FETCH where the file cannot be read, E_BAD_INPUT where it is no sound MMDB file
 */
export function readMmdb(
  path: string,
  name: string,
  countryPaths: readonly string[],
  take: TakeRange,
  maxSteps = MAX_MMDB_STEPS,
): void {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new AtlasError('E_FETCH', `cannot read ${name}: ${messageOf(error)}`, { cause: error });
  }
  try {
    const reader = new Reader<Response>(bytes);
    const { metadata } = reader;
    const ranges = new Ranges(reader, countryPaths, take);
    new Walk(new Tree(bytes, metadata, maxSteps), ranges, metadata.ipVersion === 4 ? 4 : 6).run();
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_BAD_INPUT', `${name} is no sound MMDB file: ${messageOf(error)}`, { cause: error });
  }
}
