/** IPv6 addresses that embed an IPv4 address, and its position in them. */

/** The schemes whose addresses have the country of the embedded IPv4 address. */
export const EMBEDDED_SCHEMES = ['6to4', 'nat64', 'teredo'] as const;
export type EmbeddedScheme = (typeof EMBEDDED_SCHEMES)[number];

/** Position of the IPv4 address in bits from the most significant one, and whether its bits are inverted. */
export const EMBEDDED_LAYOUT: Record<EmbeddedScheme, { offset: 16 | 96; inverted: boolean }> = {
  '6to4': { offset: 16, inverted: false },
  nat64: { offset: 96, inverted: false },
  teredo: { offset: 96, inverted: true },
};

/**
 * Returns the scheme whose prefix an IPv6 address is in: `2002::/16` (RFC 3056 §2), `2001::/32` (RFC 4380 §2.6) or
 * `64:ff9b::/96` (RFC 6052 §2.1); undefined if it is in none.
 *
 * @param words the address, four words, most significant first
 * @param bits length of the prefix that `words` begins; the address itself by default. A prefix shorter than that of
 *   a scheme is not in it
 */
export function schemeOf(words: Uint32Array, bits = 128): EmbeddedScheme | undefined {
  const top = words[0]!;
  if (bits >= 16 && top >>> 16 === 0x2002) return '6to4';
  if (bits >= 32 && top === 0x2001_0000) return 'teredo';
  if (bits >= 96 && top === 0x0064_ff9b && words[1] === 0 && words[2] === 0) return 'nat64';
  return undefined;
}

/**
 * Returns the IPv4 address that an IPv6 address embeds.
 *
 * - `6to4` (RFC 3056 §2): the 32 bits after `2002::/16`.
 * - `nat64` (RFC 6052 §2.2): the last 32 bits of `64:ff9b::/96`.
 * - `teredo` (RFC 4380 §4): the client's address, the last 32 bits of `2001::/32`, each bit inverted.
 *
 * @param scheme of the prefix that contains the address
 * @param words the IPv6 address, four words, most significant first
 * @returns the IPv4 address, 0 to 2^32 - 1
 */
export function embeddedIPv4(scheme: EmbeddedScheme, words: Uint32Array): number {
  switch (scheme) {
    case '6to4':
      return ((words[0]! << 16) | (words[1]! >>> 16)) >>> 0;
    case 'nat64':
      return words[3]!;
    case 'teredo':
      return ~words[3]! >>> 0;
  }
}
