/**
 * Reads a MaxMind DB file as a source: every network with its country.
 *
 * The tree is walked here, because mmdb-lib cannot list all networks; mmdb-lib reads the metadata and the data records.
 * The parts of an IPv6 tree with IPv4 addresses inside (aliases of the IPv4 tree, 6to4, NAT64, Teredo) are skipped: a
 * build gives those addresses the country of the IPv4 address inside.
 */

import { readFileSync } from 'node:fs';
import { Reader, type Response } from 'mmdb-lib';
import { schemeOf } from '../../src/address/embedded.js';
import { formatAddress } from '../../src/address/format.js';
import { type Family, isMapped } from '../../src/address/parse.js';
import { addressBits, addressWords, hostMask, isNextAddress } from '../../src/address/words.js';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_MMDB_STEPS } from '../../src/limits.js';

/**
 * Receives one range. The arrays are valid only during the call.
 *
 * @param country the value at the country's path; undefined if the record has none
 */
export type NetworkListener = (family: Family, first: Uint32Array, last: Uint32Array, country: unknown) => void;

/** Target of a node's record: a node if below the node count, nothing if equal to it, a data record if above it. */
type Reference = number;

/** Depth of the IPv4 tree in an IPv6 tree (MaxMind DB file format specification, IPv4 addresses in an IPv6 tree). */
const IPV4_DEPTH = 96;

/** Reads a big-endian number of three bytes. */
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

  /** Returns the left (0) or right (1) record of a node. */
  child(node: Reference, side: number): Reference {
    // A small file can describe an exponential number of networks: both records of a node may refer to the same node.
    if (this.#stepsLeft-- === 0) throw new Error('its tree describes too many networks');
    const at = node * this.#nodeBytes;
    const bytes = this.#bytes;
    if (this.#recordSize === 24) return readBytes3(bytes, at + 3 * side);
    if (this.#recordSize === 32) return bytes.readUInt32BE(at + 4 * side);
    const middle = bytes[at + 3]!;
    const top = side === 0 ? middle >>> 4 : middle & 15;
    return top * 2 ** 24 + readBytes3(bytes, at + 4 * side);
  }
}

function isZero(path: Uint32Array): boolean {
  return path.every((word) => word === 0);
}

/** Returns the IPv4 tree in an IPv6 tree. */
function ipv4TreeOf(tree: Tree): Reference {
  let reference = 0;
  for (let depth = 0; depth < IPV4_DEPTH && tree.isNode(reference); depth++) reference = tree.child(reference, 0);
  return reference;
}

/** Value of `data` if there is no open range. */
const NO_RANGE = -1;

/** Joins adjacent networks with the same data record, and reports them with their country. */
class Ranges {
  readonly #reader: Reader<Response>;
  readonly #paths: readonly string[][];
  readonly #onRange: NetworkListener;
  /** Country by reference to a data record. */
  readonly #countries = new Map<Reference, unknown>();
  /** The range that the next network may extend. */
  readonly #open = { family: 4 as Family, first: new Uint32Array(4), last: new Uint32Array(4), data: NO_RANGE };

  constructor(reader: Reader<Response>, paths: readonly string[], onRange: NetworkListener) {
    this.#reader = reader;
    this.#paths = paths.map((path) => path.split('.'));
    this.#onRange = onRange;
  }

  /**
   * Adds a network.
   *
   * @param path its first address; an IPv4 address is in the last word
   * @param prefix its length in bits, of 128
   */
  add(family: Family, path: Uint32Array, prefix: number, data: Reference): void {
    const open = this.#open;
    if (open.data !== data || open.family !== family || !isNextAddress(open.last, path)) {
      this.flush();
      open.family = family;
      open.first.set(path);
      open.data = data;
    }
    for (let k = 0; k < 4; k++) open.last[k] = path[k]! | hostMask(prefix, k);
  }

  /** Reports the open range. */
  flush(): void {
    const { family, data } = this.#open;
    if (data === NO_RANGE) return;
    const from = 4 - addressWords(family);
    const [first, last] = [this.#open.first.subarray(from), this.#open.last.subarray(from)];
    if (!this.#countries.has(data)) {
      this.#countries.set(data, this.#countryOf(this.#reader.get(formatAddress(family, first))));
    }
    this.#onRange(family, first, last, this.#countries.get(data));
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

/** Visits the networks in ascending order of their addresses. */
class TreeWalker {
  readonly #tree: Tree;
  readonly #ranges: Ranges;
  /** First address of the current block. An IPv4 address is in the last word, as in the file. */
  readonly #path = new Uint32Array(4);
  readonly #family: Family;
  readonly #ipv4Tree: Reference;

  constructor(tree: Tree, ranges: Ranges, family: Family) {
    this.#tree = tree;
    this.#ranges = ranges;
    this.#family = family;
    this.#ipv4Tree = family === 4 ? 0 : ipv4TreeOf(tree);
  }

  run(): void {
    this.#visit(4, this.#ipv4Tree, 0);
    if (this.#family === 6) this.#visit(6, 0, 0);
    this.#ranges.flush();
  }

  /** Returns whether the IPv6 block at the path has IPv4 addresses inside. */
  #hasIPv4(reference: Reference, depth: number): boolean {
    const path = this.#path;
    if (reference === this.#ipv4Tree && this.#tree.isNode(reference)) return true;
    if (depth === IPV4_DEPTH && path[0] === 0 && (isMapped(path) || isZero(path))) return true;
    return schemeOf(path, depth) !== undefined;
  }

  #visit(family: Family, reference: Reference, depth: number): void {
    const tree = this.#tree;
    const path = this.#path;
    if (reference === tree.nodeCount) return;
    if (family === 6 && this.#hasIPv4(reference, depth)) return;
    if (!tree.isNode(reference)) {
      this.#ranges.add(family, path, depth + 128 - addressBits(family), reference);
      return;
    }
    if (depth === addressBits(family)) throw new Error('its tree is deeper than an address is long');
    this.#visit(family, tree.child(reference, 0), depth + 1);
    const bit = depth + 128 - addressBits(family);
    const mask = (1 << (31 - (bit & 31))) >>> 0;
    path[bit >>> 5] = path[bit >>> 5]! + mask;
    this.#visit(family, tree.child(reference, 1), depth + 1);
    path[bit >>> 5] = path[bit >>> 5]! - mask;
  }
}

/**
 * Reads an MMDB file.
 *
 * @param path the file; it is read into memory
 * @param name the file's name for messages
 * @param countryPaths paths of the country code in a record, keys joined by dots; the first that exists counts
 * @param onRange receives the ranges in ascending order, IPv4 before IPv6
 * @param maxSteps how many records of the tree may be read
 * @throws AtlasError E_FETCH if the file cannot be read, E_BAD_INPUT if it is not a valid MMDB file
 */
export function readMmdb(
  path: string,
  name: string,
  countryPaths: readonly string[],
  onRange: NetworkListener,
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
    const ranges = new Ranges(reader, countryPaths, onRange);
    new TreeWalker(new Tree(bytes, metadata, maxSteps), ranges, metadata.ipVersion === 4 ? 4 : 6).run();
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_BAD_INPUT', `${name} is not a valid MMDB file: ${messageOf(error)}`, { cause: error });
  }
}
