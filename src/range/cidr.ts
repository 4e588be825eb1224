/** CIDR blocks (RFC 4632, RFC 4291 §2.3): text to range, range to the fewest blocks. */
import { formatAddress } from '../address/format.js';
import { type Family, parseIPv4, parseIPv6 } from '../address/parse.js';

/** Bits in an address of the family. */
export function addressBits(family: Family): 32 | 128 {
  return family === 4 ? 32 : 128;
}

/** 32-bit words in an address of the family. */
export function addressWords(family: Family): 1 | 4 {
  return family === 4 ? 1 : 4;
}

/** The mask of the host bits of word `index` under a prefix of `prefix` bits: 1 where the bit may vary. */
function hostMask(prefix: number, index: number): number {
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
function trailingZeros(words: Uint32Array, count: number): number {
  let zeros = 0;
  for (let i = count - 1; i >= 0; i--) {
    const word = words[i]!;
    if (word !== 0) return zeros + (31 - Math.clz32(word & -word));
    zeros += 32;
  }
  return zeros;
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
  const count = addressWords(family);
  const bits = addressBits(family);
  const at = first.slice(0, count);
  const end = new Uint32Array(count);
  for (;;) {
    // The largest block that starts here is bounded by the alignment of its start …
    let free = trailingZeros(at, count);
    // … and by the end of the range: shrink until the block's last address is within it.
    for (; ; free--) {
      for (let i = 0; i < count; i++) end[i] = at[i]! | hostMask(bits - free, i);
      let order = 0;
      for (let i = 0; i < count && order === 0; i++) order = end[i]! - last[i]!;
      if (order <= 0) {
        visit(at, bits - free);
        if (order === 0) return;
        break;
      }
    }
    // Step behind the block. It cannot wrap: the block ended below the range's last address.
    at.set(end);
    for (let i = count - 1; i >= 0; i--) {
      at[i] = at[i]! + 1;
      if (at[i] !== 0) break;
    }
  }
}

/** A block as text: RFC 5952 for IPv6. */
export function formatCidr(family: Family, first: ArrayLike<number>, prefix: number): string {
  return `${formatAddress(family, first)}/${prefix}`;
}
