/** Who is calling: the socket's peer, or what trusted proxies say about it. */

import { type Family, parseAddress } from '../address/parse.js';
import { addressWords } from '../address/words.js';
import { AtlasError } from '../errors.js';
import { parseCidr } from '../range/cidr.js';

/** A block of addresses. */
interface Block {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
}

/** Bits in front of the IPv4 address in an IPv4-mapped one. */
const MAPPED_BITS = 96;

/** Scratch for the address at hand; everything here is synchronous. */
const words = new Uint32Array(4);

/** A block as an administrator writes it. An IPv4-mapped one is the IPv4 block inside, as with addresses. */
function parseBlock(text: string): Block {
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  const block = parseCidr(text, first, last);
  if (block === undefined || block.hostBitsSet) {
    throw new AtlasError(
      'E_USAGE',
      `--trust-proxy: ${JSON.stringify(text)} is no CIDR block${block?.hostBitsSet ? ' (it has bits behind its prefix)' : ''}; write it as 10.0.0.0/8 or 2001:db8::/32`,
    );
  }
  const mapped =
    block.family === 6 && block.prefix >= MAPPED_BITS && first[0] === 0 && first[1] === 0 && first[2] === 0xffff;
  if (mapped) return { family: 4, first: first.slice(3), last: last.slice(3) };
  const count = addressWords(block.family);
  return { family: block.family, first: first.slice(0, count), last: last.slice(0, count) };
}

function notBelow(address: Uint32Array, bound: Uint32Array): boolean {
  for (let i = 0; i < bound.length; i++) if (address[i] !== bound[i]) return address[i]! > bound[i]!;
  return true;
}

function notAbove(address: Uint32Array, bound: Uint32Array): boolean {
  for (let i = 0; i < bound.length; i++) if (address[i] !== bound[i]) return address[i]! < bound[i]!;
  return true;
}

/** A link-local peer carries its interface behind a percent sign (RFC 4007 §11): not part of the address. */
function withoutZone(peer: string): string {
  const percent = peer.indexOf('%');
  return percent < 0 ? peer : peer.slice(0, percent);
}

/** The proxies whose word is taken. */
export class TrustedProxies {
  readonly #blocks: Block[];

  /**
   * @param cidrs the blocks that the proxies' addresses lie in
   * @throws AtlasError E_USAGE where one is no CIDR block
   */
  constructor(cidrs: readonly string[] = []) {
    this.#blocks = cidrs.map(parseBlock);
  }

  /**
   * The caller's address.
   *
   * Each proxy appends the address that it was called from to `X-Forwarded-For`. Read from the right, the entries are
   * true as long as they were written by trusted proxies: the first that is none of them is the caller. Whatever stands
   * left of it the caller may have made up. Other forwarding headers are not read: a proxy that does not set one passes
   * on whatever the caller sent.
   *
   * @param peer the address of the socket's other end
   * @param forwardedFor the header, several ones joined by commas
   * @returns the right-most address that is no trusted proxy; where all are trusted, the left-most; where an entry is no
   *   address, the trusted proxy that wrote it
   */
  caller(peer: string, forwardedFor: string | undefined): string {
    let caller = withoutZone(peer);
    if (forwardedFor === undefined || !this.#trusts(caller)) return caller;
    const entries = forwardedFor.split(',');
    for (let i = entries.length - 1; i >= 0; i--) {
      const entry = entries[i]!.trim();
      if (parseAddress(entry, words) === 0) return caller;
      caller = entry;
      if (!this.#trusts(caller)) return caller;
    }
    return caller;
  }

  #trusts(address: string): boolean {
    if (this.#blocks.length === 0) return false;
    const family = parseAddress(address, words);
    return this.#blocks.some(
      (block) => block.family === family && notBelow(words, block.first) && notAbove(words, block.last),
    );
  }
}
