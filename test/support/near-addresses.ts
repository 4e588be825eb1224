/** Random addresses in blocks, near their bounds of blocks, and IPv6 addresses that embed such an IPv4 address. */
import fc from 'fast-check';
import { formatAddress } from '../../src/address/format.js';
import { parseCidr } from '../../src/range/cidr.js';
import { embeddings } from './boundaries.js';

/** Addresses anywhere in blocks. @param cidrs the blocks */
export function addressesIn(cidrs: readonly string[]): fc.Arbitrary<string> {
  const words = fc.array(fc.nat(0xffffffff), { minLength: 4, maxLength: 4 });
  return fc.tuple(fc.constantFrom(...cidrs), words).map(([cidr, random]) => {
    const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
    const { family } = parseCidr(cidr, first, last)!;
    const address = random.map((word, k) => (first[k]! | (word & (first[k]! ^ last[k]!))) >>> 0);
    return formatAddress(family, address.slice(0, family === 4 ? 1 : 4));
  });
}

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
