/** The caller's address: the peer of the socket, or what trusted proxies say about it. */
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

/** Bits before the IPv4 address in an IPv4-mapped address. */
const MAPPED_BITS = 96;

/** Words of the address that is being checked; everything here is synchronous. */
const words = new Uint32Array(4);

/** Parses a block. An IPv4-mapped block is the IPv4 block in it, as with addresses. */
function parseBlock(text: string): Block {
  const first = new Uint32Array(4);
  const last = new Uint32Array(4);
  const block = parseCidr(text, first, last);
  if (block === undefined || block.hostBitsSet) {
    throw new AtlasError(
      'E_USAGE',
      `--trust-proxy: ${JSON.stringify(text)} is not a CIDR block${block?.hostBitsSet ? ' (it has bits set after its prefix)' : ''}; write it as 10.0.0.0/8 or 2001:db8::/32`,
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

/** Removes the zone of a link-local address, its interface after a percent sign (RFC 4007 §11). */
function withoutZone(peer: string): string {
  const percent = peer.indexOf('%');
  return percent < 0 ? peer : peer.slice(0, percent);
}

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #blocks: Block[];

  /**
   * @param cidrs the blocks that contain the proxies' addresses
   * @throws AtlasError E_USAGE if one is not a CIDR block
   */
  constructor(cidrs: readonly string[] = []) {
    this.#blocks = cidrs.map(parseBlock);
  }

  /**
   * Returns the caller's address.
   *
   * Each proxy appends the address that called it to `X-Forwarded-For`. Read from the right, the entries are true as long
   * as trusted proxies wrote them: the first address that is not a trusted proxy is the caller. The caller may have
   * invented everything to the left of it. Other forwarding headers are ignored: a proxy that does not set one passes on
   * what the caller sent.
   *
   * @param peer the address of the other end of the socket
   * @param forwardedFor the header; repeated headers are joined by commas
   * @returns the right-most address that is not a trusted proxy; if all are trusted, the left-most; if an entry is not an
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
