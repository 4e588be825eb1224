/** Random addresses near the bounds of blocks, and IPv6 addresses that embed such an IPv4 address. */
import fc from 'fast-check';
import { formatAddress } from '../../src/address/format.js';
import { parseCidr } from '../../src/range/cidr.js';
import { embeddings } from './boundaries.js';

/** @param cidrs the blocks */
export function addressesNear(cidrs: readonly string[]): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...cidrs), fc.boolean(), fc.integer({ min: -2, max: 2 }), fc.nat(7))
    .map(([cidr, isLast, step, form]) => {
      const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
      const { family } = parseCidr(cidr, first, last)!;
      const words = [...(isLast ? last : first)].slice(0, family === 4 ? 1 : 4);
      words[words.length - 1] = (words.at(-1)! + step) >>> 0;
      return family === 6 || form < 4 ? formatAddress(family, words) : embeddings(words[0]!)[form - 4]!;
    });
}
