/** CIDR blocks (RFC 4632, RFC 4291 §2.3): parsing, formatting, and splitting a range into the fewest blocks. */
import { formatAddress } from '../address/format.js';
import { type Family, isMapped, parseIPv4, parseIPv6 } from '../address/parse.js';
import { addressBits, addressWords, hostMask } from '../address/words.js';

/**
 * Parses a CIDR block, `10.0.0.0/8` or `2001:db8::/32`. Without a prefix length it is a single address.
 *
 * An IPv4-mapped block stays IPv6 here; see {@link parseBlock}.
 *
 * @param text the block
 * @param first receives the first address; IPv4 uses word 0 only
 * @param last receives the last address
 * @returns the family, the prefix length, and whether the text had host bits set (`10.0.0.1/8`); undefined if it is not a block
 */
export function parseCidr(
  text: string,
  first: Uint32Array,
  last: Uint32Array,
): { family: Family; prefix: number; hostBitsSet: boolean } | undefined {
  const slash = text.indexOf('/');
  const address = slash < 0 ? text : text.slice(0, slash);
  let family: Family;
  const v4 = parseIPv4(address);
  if (v4 >= 0) {
    family = 4;
    first[0] = v4;
  } else if (parseIPv6(address, first)) {
    family = 6;
  } else {
    return undefined;
  }
  const bits = addressBits(family);
  let prefix: number = bits;
  if (slash >= 0) {
    const length = text.slice(slash + 1);
    if (!/^(0|[1-9]\d{0,2})$/.test(length)) return undefined;
    prefix = Number(length);
    if (prefix > bits) return undefined;
  }
  let hostBitsSet = false;
  for (let i = 0; i < bits / 32; i++) {
    const mask = hostMask(prefix, i);
    if ((first[i]! & mask) !== 0) hostBitsSet = true;
    first[i] = first[i]! & ~mask;
    last[i] = first[i]! | mask;
  }
  return { family, prefix, hostBitsSet };
}

/** A block of addresses; both ends have as many words as the family. */
export interface Block {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  /** Whether the text had host bits set. */
  hostBitsSet: boolean;
}

/** Parses a CIDR block as {@link parseCidr} does; an IPv4-mapped one becomes IPv4. Returns undefined if it is not a block. */
export function parseBlock(text: string): Block | undefined {
  const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
  const block = parseCidr(text, first, last);
  if (block === undefined) return undefined;
  const { family, hostBitsSet } = block;
  if (family === 4) return { family, first: first.slice(0, 1), last: last.slice(0, 1), hostBitsSet };
  if (!isMapped(first) || !isMapped(last)) return { family, first, last, hostBitsSet };
  return { family: 4, first: first.slice(3), last: last.slice(3), hostBitsSet };
}

/** Returns the number of trailing zero bits; all bits if the number is zero. */
function trailingZeros(words: Uint32Array): number {
  let zeros = 0;
  for (let i = words.length - 1; i >= 0; i--) {
    const word = words[i]!;
    if (word !== 0) return zeros + (31 - Math.clz32(word & -word));
    zeros += 32;
  }
  return zeros;
}

/** Returns the exponent of the greatest power of two that is not above the number; -1 for zero. */
function log2Floor(words: Uint32Array): number {
  for (let i = 0; i < words.length; i++) {
    if (words[i] !== 0) return 32 * (words.length - i) - 1 - Math.clz32(words[i]!);
  }
  return -1;
}

/** Adds 2^exponent, modulo the address space. */
function addPower(words: Uint32Array, exponent: number): void {
  let add = (1 << (exponent & 31)) >>> 0;
  for (let i = words.length - 1 - (exponent >>> 5); i >= 0 && add !== 0; i--) {
    const sum = words[i]! + add;
    words[i] = sum;
    add = sum > 0xffffffff ? 1 : 0;
  }
}

/** Writes the number of addresses from `first` to `last` into `size`, modulo the address space: zero for the whole space. */
function writeSize(first: Uint32Array, last: Uint32Array, words: number, size: Uint32Array): void {
  let carry = 1;
  for (let i = words - 1; i >= 0; i--) {
    const sum = last[i]! - first[i]! + carry;
    size[i] = sum;
    carry = Math.floor(sum / 2 ** 32);
  }
}

/**
 * Splits a range into the fewest CIDR blocks, in ascending order.
 *
 * @param family the family of the range
 * @param first its first address, one word (IPv4) or four
 * @param last its last address, not below the first
 * @param visit called for each block with its first address (valid during the call only) and its prefix length
 */
export function rangeToCidrs(
  family: Family,
  first: Uint32Array,
  last: Uint32Array,
  visit: (first: Uint32Array, prefix: number) => void,
): void {
  const words = addressWords(family);
  const bits = addressBits(family);
  const start = first.slice(0, words);
  const rest = new Uint32Array(words);
  for (;;) {
    // The next block is limited by the alignment of its start and by the rest of the range.
    writeSize(start, last, words, rest);
    const fits = log2Floor(rest);
    if (fits < 0) {
      visit(start, 0); // the whole address space
      return;
    }
    const exponent = Math.min(trailingZeros(start), fits);
    visit(start, bits - exponent);
    if (trailingZeros(rest) === exponent && fits === exponent) return;
    addPower(start, exponent);
  }
}

/** Formats a block; IPv6 in the form of RFC 5952. */
export function formatCidr(family: Family, first: ArrayLike<number>, prefix: number): string {
  return `${formatAddress(family, first)}/${prefix}`;
}
