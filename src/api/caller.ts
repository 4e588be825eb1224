/** The caller's address: the peer of the socket, or what trusted proxies say about it. */
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { parseAddress } from '../address/parse.js';
import { addressWords, rangeContains } from '../address/words.js';
import { misuse } from '../errors.js';
import { type Block, parseBlock } from '../range/cidr.js';

/** An address in brackets, or an IPv4 address, with a port: some proxies write the port, too. */
const WITH_PORT = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/;

/** An IPv4-mapped address, as the kernel gives it to a socket of both families. */
const MAPPED = /^::ffff:([\d.]+)$/i;

/** Returns an address without its port and its zone (RFC 4007 §11), and the IPv4 address of a mapped one. */
function plainAddress(text: string): string {
  if (!/[:%[]/.test(text)) return text;
  const [, bracketed, v4] = WITH_PORT.exec(text) ?? [];
  const address = (bracketed ?? v4 ?? text).replace(/%.*$/, '');
  return MAPPED.exec(address)?.[1] ?? address;
}

/**
 * Returns the function that tells Fastify (`trustProxy`) which addresses are proxies whose `X-Forwarded-For` is trusted.
 *
 * Each proxy appends the address that called it to `X-Forwarded-For`. Read from the right, the entries are true as long as
 * trusted proxies wrote them: the first address that is not a trusted proxy is the caller. Other forwarding headers are
 * ignored: a proxy that does not set one passes on what the caller sent.
 *
 * @param cidrs the blocks that contain the proxies' addresses
 * @throws AtlasError E_USAGE if one is not a CIDR block
 */
export function trustFunction(cidrs: readonly string[]): false | ((address: string) => boolean) {
  const proxies = cidrs.map((text): Block => {
    const block = parseBlock(text);
    if (block === undefined || block.hostBitsSet) {
      throw misuse(
        `--trust-proxy: ${JSON.stringify(text)} is not a CIDR block${block?.hostBitsSet ? ' (it has bits set after its prefix)' : ''}; write it as 10.0.0.0/8 or 2001:db8::/32`,
      );
    }
    return block;
  });
  if (cidrs.length === 0) return false;
  const words = { 4: new Uint32Array(addressWords(4)), 6: new Uint32Array(addressWords(6)) };
  // Not a BlockList of Node: it makes an object outside of JavaScript for each address, a tenth of a request.
  const isProxy = (address: string): boolean => {
    const family = parseAddress(plainAddress(address), words[6]);
    if (family === 0) return false;
    words[4][0] = words[6][0]!;
    return proxies.some((block) => block.family === family && rangeContains(block.first, block.last, words[family]));
  };
  // Most requests come from the proxy that sent the one before.
  let last: { address: string | undefined; isProxy: boolean } = { address: undefined, isProxy: false };
  return (address) => {
    if (address !== last.address) last = { address, isProxy: isProxy(address) };
    return last.isProxy;
  };
}

/** Returns the address that trusted proxies report; undefined if none of them sent the request, or its header is no address. */
export function forwardedCaller({ ips }: Pick<FastifyRequest, 'ips'>): string | undefined {
  if (ips === undefined || ips.length < 2) return undefined;
  const address = plainAddress(ips.at(-1)!);
  return isIP(address) === 0 ? undefined : address;
}

/**
 * Returns the caller's address: the right-most one that is not a trusted proxy; if all are trusted, the left-most; if an
 * entry is not an address, the trusted proxy that wrote it. Empty if the client is gone, which reads no response.
 */
export function callerOf({ ips, ip }: Pick<FastifyRequest, 'ips' | 'ip'>): string {
  return (ips ?? [ip ?? '']).map(plainAddress).findLast((address) => isIP(address) !== 0) ?? '';
}
