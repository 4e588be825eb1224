import fc from 'fast-check';
import { fastify } from 'fastify';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { callerOf, trustFunction } from '../../src/api/caller.js';

/** Returns the caller as Fastify and the two functions tell it. */
async function caller(cidrs: string[], peer: string, forwardedFor?: string): Promise<string> {
  const app = fastify({ trustProxy: trustFunction(cidrs) });
  app.get('/', (request, reply) => void reply.send(`<${callerOf(request)}>`));
  const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
  const { body } = await app.inject({ url: '/', remoteAddress: peer, headers });
  return body.slice(1, -1);
}

describe('the caller', () => {
  it.each<[string[], string, string | undefined, string]>([
    // No proxy is trusted: the peer.
    [[], '192.0.2.1', undefined, '192.0.2.1'],
    [[], '192.0.2.1', '8.8.8.8', '192.0.2.1'],
    [[], 'fe80::1%eth0', '8.8.8.8', 'fe80::1'],
    [['10.0.0.0/8'], '192.0.2.1', '8.8.8.8', '192.0.2.1'],
    // The right-most address that is not a proxy.
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8', '8.8.8.8'],
    [['10.0.0.0/8'], '::ffff:10.1.1.1', '8.8.8.8', '8.8.8.8'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8, 9.9.9.9', '9.9.9.9'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8,9.9.9.9 ,10.2.2.2', '9.9.9.9'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8, 9.9.9.9, ::ffff:10.2.2.2', '9.9.9.9'],
    [['10.0.0.0/8', '2001:db8::/32'], '2001:db8::7', '2a00::1, 10.2.2.2', '2a00::1'],
    [['::ffff:10.0.0.0/104'], '10.1.1.1', '8.8.8.8', '8.8.8.8'],
    [['fe80::/10'], 'fe80::1%eth0', '8.8.8.8', '8.8.8.8'],
    [['192.0.2.7'], '192.0.2.7', '8.8.8.8', '8.8.8.8'],
    [['0.0.0.0/0'], '::1', '8.8.8.8', '::1'],
    // All are proxies: the one that is farthest away.
    [['10.0.0.0/8'], '10.1.1.1', '10.3.3.3, 10.2.2.2', '10.3.3.3'],
    [['10.0.0.0/8'], '10.1.1.1', undefined, '10.1.1.1'],
    // An entry that is not an address: the proxy that passed it on.
    [['10.0.0.0/8'], '10.1.1.1', '', '10.1.1.1'],
    [['10.0.0.0/8'], '10.1.1.1', 'unknown', '10.1.1.1'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8, _hidden, 10.2.2.2', '10.2.2.2'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8:1234', '8.8.8.8'],
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8, 10.2.2.2:4444', '8.8.8.8'],
    [['10.0.0.0/8', '2001:db8::/32'], '10.1.1.1', '[2a00::1]:80, [2001:db8::1]:443', '2a00::1'],
    [['10.0.0.0/8'], '10.1.1.1', '[::ffff:8.8.4.4]', '8.8.4.4'],
    // An empty element of a list counts for nothing (RFC 9110 §5.6.1).
    [['10.0.0.0/8'], '10.1.1.1', '8.8.8.8,', '8.8.8.8'],
    [['10.0.0.0/8'], '10.1.1.1', 'garbage, 9.9.9.9', '9.9.9.9'],
  ])('with trusted proxies %j, peer %s and X-Forwarded-For %j is %s', async (cidrs, peer, forwardedFor, expected) => {
    expect(await caller(cidrs, peer, forwardedFor)).toBe(expected);
  });

  it.each(['10.0.0.0/33', '10.0.0.1/8', '10.0.0', '', ' 10.0.0.0/8', '10.0.0.0/8 ', 'localhost', '::/129', '*', '1'])(
    'refuses %j as a trusted proxy',
    (cidr) => {
      expect(() => trustFunction([cidr])).toThrow(/--trust-proxy: .* is not a CIDR block/);
    },
  );

  it('agrees with ipaddr.js on which addresses are in a block', () => {
    const address = fc.oneof(
      fc.tuple(fc.integer({ min: 8, max: 11 }), fc.nat(255), fc.nat(3), fc.nat(255)).map((bytes) => bytes.join('.')),
      fc
        .array(fc.constantFrom('0', '1', '2001', 'ffff'), { minLength: 8, maxLength: 8 })
        .map((groups) => groups.join(':')),
    );
    fc.assert(
      fc.property(address, address, fc.nat(128), (base, asked, length) => {
        const parsed = ipaddr.process(base);
        const prefix = length % (parsed.kind() === 'ipv4' ? 33 : 129);
        const network =
          parsed.kind() === 'ipv4'
            ? ipaddr.IPv4.networkAddressFromCIDR(`${parsed}/${prefix}`)
            : ipaddr.IPv6.networkAddressFromCIDR(`${parsed}/${prefix}`);
        const peer = ipaddr.process(asked);
        const inside = peer.kind() === network.kind() && peer.match(network as ipaddr.IPv4, prefix);
        const trusts = trustFunction([`${network}/${prefix}`]);
        const trusted = trusts !== false && trusts(asked);
        expect(trusted).toBe(inside);
      }),
    );
  });
});
