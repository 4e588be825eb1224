/** The network of an address. */
import { formatAddress } from './format.js';
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
  for (let i = 0; i < 4; i++) words[i] = words[i]! & ~hostMask(bits, i);
  return `${formatAddress(6, words)}/${bits}`;
}
