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
import { MAX_MMDB_STEPS, MAX_MMDB_VALUES } from '../../src/limits.js';

/**
 * Receives one range. The arrays are valid only during the call.
 *
 * @param country the value at the country's path; undefined if the record has none
 */
export type NetworkListener = (family: Family, first: Uint32Array, last: Uint32Array, country: unknown) => void;

/** Records of the tree that are read for each of its nodes: two, and more only if several records refer to the same node. */
const STEPS_PER_NODE = 8;

/** Target of a node's record: a node if below the node count, nothing if equal to it, a data record if above it. */
type Reference = number;

/** Depth of the IPv4 tree in an IPv6 tree (MaxMind DB file format specification, IPv4 addresses in an IPv6 tree). */
const IPV4_DEPTH = 96;

/** Reads a big-endian number of three bytes. */
function readBytes3(bytes: Buffer, at: number): number {
  return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
}

/** Types of values (MaxMind DB file format specification, Data Field Format). */
const TYPE = { extended: 0, pointer: 1, map: 7, array: 11, boolean: 14 } as const;

/** What is added to a pointer, by the bytes that it has. */
const POINTER_BASE = [0, 0, 2048, 526_336, 0] as const;

/** What is added to a size, by the bytes that it has. */
const SIZE_BASE = [0, 29, 285, 65_821] as const;

/** Bytes of a text that count as one more value: a small file can have a long text many times, by pointers. */
const BYTES_PER_VALUE = 256;

/** Values of all records together. The largest files of cities have about a million records, of 150 values each. */
const MAX_VALUES = 200_000_000;

/** Length of a country's value: larger ones are not codes, and a small file can have many of them that overlap. */
const MAX_VALUE_LENGTH = 255;

function spend(budget: { left: number }, values: number): void {
  budget.left -= values;
  if (budget.left < 0) throw new Error(`one of its records has more than ${MAX_MMDB_VALUES} values`);
}

/**
 * Counts the values that mmdb-lib makes of a value, those that pointers repeat included: 920 bytes can describe 28^12 of them.
 *
 * @param start of the section that pointers count from
 * @param at where the value begins
 * @param budget how many values there may be; it is reduced
 * @returns where the value ends
 */
function checkValue(bytes: Buffer, start: number, at: number, budget: { left: number }): number {
  spend(budget, 1);
  const control = bytes.readUInt8(at++);
  let type = control >> 5;
  if (type === TYPE.pointer) {
    const length = ((control >> 3) & 3) + 1;
    const high = length === 4 ? 0 : (control & 7) * 256 ** length;
    checkValue(bytes, start, start + POINTER_BASE[length]! + high + bytes.readUIntBE(at, length), budget);
    return at + length;
  }
  if (type === TYPE.extended) type = 7 + bytes.readUInt8(at++);
  let size = control & 31;
  if (size >= 29) {
    const length = size - 28;
    size = SIZE_BASE[length]! + bytes.readUIntBE(at, length);
    at += length;
  }
  if (type === TYPE.boolean) return at;
  if (type !== TYPE.map && type !== TYPE.array) {
    spend(budget, Math.floor(size / BYTES_PER_VALUE));
    return at + size;
  }
  for (let left = type === TYPE.map ? 2 * size : size; left > 0; left--) at = checkValue(bytes, start, at, budget);
  return at;
}

/** Marks the beginning of the metadata, which is the last of its kind in the file. */
const METADATA_MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1');

/** Opens a file whose metadata have been checked, as {@link checkValue} does. */
function openReader(bytes: Buffer): Reader<Response> {
  const budget = { left: MAX_MMDB_VALUES };
  // All that are marked as metadata: mmdb-lib does not find the last marker if a part of one follows it.
  for (let at = bytes.indexOf(METADATA_MARKER); at >= 0; at = bytes.indexOf(METADATA_MARKER, at + 1)) {
    const metadata = at + METADATA_MARKER.length;
    checkValue(bytes, metadata, metadata, budget);
  }
  return new Reader<Response>(bytes);
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
    this.#stepsLeft = Math.min(maxSteps, 1000 + STEPS_PER_NODE * nodeCount);
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
  readonly #bytes: Buffer;
  readonly #reader: Reader<Response>;
  readonly #paths: readonly string[][];
  readonly #onRange: NetworkListener;
  /** Country by reference to a data record. */
  readonly #countries = new Map<Reference, unknown>();
  /** How many values all records together may still have. */
  #valuesLeft = MAX_VALUES;
  /** The range that the next network may extend. */
  readonly #open = { family: 4 as Family, first: new Uint32Array(4), last: new Uint32Array(4), data: NO_RANGE };

  constructor(bytes: Buffer, reader: Reader<Response>, paths: readonly string[], onRange: NetworkListener) {
    this.#bytes = bytes;
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
      const { nodeCount, searchTreeSize } = this.#reader.metadata;
      // A reference counts from the tree's end, and 16 bytes of zeros follow the tree.
      const section = searchTreeSize + 16;
      const budget = { left: MAX_MMDB_VALUES };
      checkValue(this.#bytes, section, data - nodeCount + searchTreeSize, budget);
      this.#valuesLeft -= MAX_MMDB_VALUES - budget.left;
      if (this.#valuesLeft < 0) throw new Error('its records have too many values');
      this.#countries.set(data, this.#countryOf(this.#reader.get(formatAddress(family, first))));
    }
    this.#onRange(family, first, last, this.#countries.get(data));
    this.#open.data = NO_RANGE;
  }

  #countryOf(record: unknown): unknown {
    for (const path of this.#paths) {
      const value = path.reduce<unknown>((part, key) => memberOf(part, key), record);
      if (typeof value === 'string' && value.length > MAX_VALUE_LENGTH) throw new Error('a country in it is too long');
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
    const reader = openReader(bytes);
    const { metadata } = reader;
    const ranges = new Ranges(bytes, reader, countryPaths, onRange);
    new TreeWalker(new Tree(bytes, metadata, maxSteps), ranges, metadata.ipVersion === 4 ? 4 : 6).run();
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw new AtlasError('E_BAD_INPUT', `${name} is not a valid MMDB file: ${messageOf(error)}`, { cause: error });
  }
}
