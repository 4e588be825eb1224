/** The network of an address. */
import { schemeOf } from './embedded.js';
import { formatAddress, formatIPv6Full } from './format.js';
import { parseAddress } from './parse.js';
import { hostMask } from './words.js';

/**
 * Returns the network of an address as text: the block of the first `bits` bits of an IPv6 address, such as
 * `2001:db8::/48`; an IPv4 address itself.
 *
 * @returns an empty text if it is not an address
 */
export function networkOf(address: string, bits: number): string {
  const words = new Uint32Array(4);
  const family = parseAddress(address, words);
  if (family === 0) return '';
  if (family === 4) return formatAddress(4, words);
  clearHost(words, bits);
  return `${formatAddress(6, words)}/${bits}`;
}

function clearHost(words: Uint32Array, bits: number): void {
  for (let i = 0; i < 4; i++) words[i] = words[i]! & ~hostMask(bits, i);
}

/** The bits that stay of an IPv6 address: 24 of an IPv4 address in it. */
const KEPT_BITS = { '6to4': 16 + 24, nat64: 96 + 24 } as const;

/**
 * Returns an address cut to its /24 or /48, as `ipatlas redact --redact truncate` does, IPv6 in full.
 *
 * @returns null for Teredo, of which no short prefix is free of an IPv4 address, and for what is no address
 */
export function truncatedAddress(address: string): string | null {
  const words = new Uint32Array(4);
  const family = parseAddress(address, words);
  if (family === 4) return formatAddress(4, Uint32Array.of(words[0]! & 0xffffff00));
  const scheme = schemeOf(words);
  if (family === 0 || scheme === 'teredo') return null;
  clearHost(words, scheme === undefined ? 48 : KEPT_BITS[scheme]);
  return formatIPv6Full(words);
}
