/** IPv6 addresses that carry an IPv4 address, and where in them it stands. */

/** The schemes whose addresses answer with the country of the IPv4 address inside. */
export const EMBEDDED_SCHEMES = ['6to4', 'nat64', 'teredo'] as const;
export type EmbeddedScheme = (typeof EMBEDDED_SCHEMES)[number];

/** The bit, counted from the most significant one, at which the IPv4 address begins, and whether its bits are inverted. */
export const EMBEDDED_LAYOUT: Record<EmbeddedScheme, { offset: 16 | 96; inverted: boolean }> = {
  '6to4': { offset: 16, inverted: false },
  nat64: { offset: 96, inverted: false },
  teredo: { offset: 96, inverted: true },
};

/**
 * The IPv4 address inside an IPv6 address.
 *
 * - `6to4` (RFC 3056 §2): the 32 bits behind `2002::/16`.
 * - `nat64` (RFC 6052 §2.2): the last 32 bits of `64:ff9b::/96`.
 * - `teredo` (RFC 4380 §4): the client's address, the last 32 bits of `2001::/32`, each bit inverted.
 *
 * @param scheme the scheme of the prefix that the address lies in
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
