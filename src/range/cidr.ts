/** CIDR blocks (RFC 4632, RFC 4291 §2.3): text to range, range to the fewest blocks. */
import { formatAddress } from '../address/format.js';
import { type Family, parseIPv4, parseIPv6 } from '../address/parse.js';
import { addressBits, addressWords } from '../address/words.js';

/** The mask of the host bits of word `index` under a prefix of `prefix` bits: 1 where the bit may vary. */
export function hostMask(prefix: number, index: number): number {
  const bits = Math.min(32, Math.max(0, prefix - 32 * index));
  return bits === 32 ? 0 : 0xffffffff >>> bits;
}

/**
 * Parses a CIDR block, `10.0.0.0/8` or `2001:db8::/32`. A block without `/…` is a single address.
 *
 * An IPv4-mapped block stays IPv6 here: whoever lays ranges into a family moves it.
 *
 * @param text the block
 * @param first receives the first address; @param last the last; word 0 alone for IPv4
 * @returns the family and whether host bits were set behind the prefix (`10.0.0.1/8`), or undefined where the text is no block
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

/** Number of zero bits at the end of the address, up to the family's width. */
function trailingZeros(words: Uint32Array): number {
  let zeros = 0;
  for (let i = words.length - 1; i >= 0; i--) {
    const word = words[i]!;
    if (word !== 0) return zeros + (31 - Math.clz32(word & -word));
    zeros += 32;
  }
  return zeros;
}

/** The exponent of the greatest power of two that is not above the number; -1 for zero. */
function log2Floor(words: Uint32Array): number {
  for (let i = 0; i < words.length; i++) {
    if (words[i] !== 0) return 32 * (words.length - i) - 1 - Math.clz32(words[i]!);
  }
  return -1;
}

/** Adds 2^exponent, modulo the width. */
function addPower(words: Uint32Array, exponent: number): void {
  let add = (1 << (exponent & 31)) >>> 0;
  for (let i = words.length - 1 - (exponent >>> 5); i >= 0 && add !== 0; i--) {
    const sum = words[i]! + add;
    words[i] = sum;
    add = sum > 0xffffffff ? 1 : 0;
  }
}

/** Subtracts 2^exponent, modulo the width. */
function subtractPower(words: Uint32Array, exponent: number): void {
  let subtract = (1 << (exponent & 31)) >>> 0;
  for (let i = words.length - 1 - (exponent >>> 5); i >= 0 && subtract !== 0; i--) {
    const difference = words[i]! - subtract;
    words[i] = difference;
    subtract = difference < 0 ? 1 : 0;
  }
}

/** Number of addresses from `first` to `last`, modulo the width: zero stands for the whole space. */
function sizeOf(first: Uint32Array, last: Uint32Array, words: number): Uint32Array {
  const size = new Uint32Array(words);
  let carry = 1;
  for (let i = words - 1; i >= 0; i--) {
    const sum = last[i]! - first[i]! + carry;
    size[i] = sum;
    carry = Math.floor(sum / 2 ** 32);
  }
  return size;
}

/**
 * The fewest CIDR blocks that make up a range, in ascending order.
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
  const at = first.slice(0, words);
  const rest = sizeOf(first, last, words);
  let fits = log2Floor(rest);
  if (fits < 0) {
    visit(at, 0);
    return;
  }
  // The largest block that starts here is bounded by the alignment of its start and by what is left of the range.
  for (; fits >= 0; fits = log2Floor(rest)) {
    const exponent = Math.min(trailingZeros(at), fits);
    visit(at, bits - exponent);
    addPower(at, exponent);
    subtractPower(rest, exponent);
  }
}

/** A block as text: RFC 5952 for IPv6. */
export function formatCidr(family: Family, first: ArrayLike<number>, prefix: number): string {
  return `${formatAddress(family, first)}/${prefix}`;
}
