import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { formatAddress, formatIPv4, formatIPv6, formatIPv6Full } from '../../src/address/format.js';
import { parseAddress } from '../../src/address/parse.js';
import { NOT_ADDRESSES } from '../support/nasty-addresses.js';

const RUNS = 4 * Number(process.env.FUZZ_RUNS ?? 1_000);

/** Returns the result of the parser under test: family and bytes in network order, or undefined. */
function ours(text: string): { family: number; bytes: number[] } | undefined {
  const words = new Uint32Array(4);
  const family = parseAddress(text, words);
  if (family === 0) return undefined;
  const used = [...words.slice(0, family === 4 ? 1 : 4)];
  return { family, bytes: used.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255]) };
}

/**
 * Returns the result of ipaddr.js under our rules. The intended differences, one line each: ipaddr.js accepts zone ids, octal,
 * hexadecimal and short IPv4 forms, leading zeros, and more than four digits a group, which we refuse; and it reads the
 * IPv4-compatible `::1.2.3.4` as the IPv4-mapped `::ffff:1.2.3.4`, where RFC 4291 keeps the two apart.
 */
function theirs(text: string): { family: number; bytes: number[] } | undefined {
  if (text.includes('%')) return undefined;
  const tail = text.slice(text.lastIndexOf(':') + 1);
  if (tail.includes('.') && !/^(0|[1-9]\d{0,2})(\.(0|[1-9]\d{0,2})){3}$/.test(tail)) return undefined;
  if (!text.includes(':')) {
    if (!ipaddr.IPv4.isValidFourPartDecimal(text) || tail !== text || !tail.includes('.')) return undefined;
    return { family: 4, bytes: ipaddr.IPv4.parse(text).toByteArray() };
  }
  if (text.split(':').some((group) => !group.includes('.') && group.length > 4)) return undefined;
  if (!ipaddr.IPv6.isValid(text)) return undefined;
  if (/^::[\d.]+$/.test(text) && tail.includes('.')) {
    return { family: 6, bytes: [...Array(12).fill(0), ...ipaddr.IPv4.parse(tail).toByteArray()] };
  }
  const address = ipaddr.IPv6.parse(text);
  if (address.isIPv4MappedAddress()) return { family: 4, bytes: address.toIPv4Address().toByteArray() };
  return { family: 6, bytes: address.toByteArray() };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const ipv4Text = fc.ipV4();
const ipv6Text = fc.ipV6();
const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
const mapped = fc.ipV4().map((text) => `::ffff:${text}`);
/** Address text in which one to three relevant characters were inserted, removed or replaced. */
const mutated = fc
  .tuple(
    fc.oneof(ipv4Text, ipv6Text, mapped),
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'0123456789abcdefABCDEF.:%/ [g-'), fc.integer({ min: 0, max: 2 })), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([text, changes]) =>
    changes.reduce((changed, [place, character, kind]) => {
      const at = place % (changed.length + 1);
      return changed.slice(0, at) + (kind === 1 ? '' : character) + changed.slice(kind === 0 ? at : at + 1);
    }, text),
  );

describe('parseAddress', () => {
  it.each([ipv4Text, ipv6Text, mapped])('agrees with ipaddr.js on addresses', (arbitrary) => {
    fc.assert(
      fc.property(arbitrary, (text) => {
        const parsed = ours(text);
        return parsed !== undefined && same(parsed, theirs(text));
      }),
      { numRuns: RUNS },
    );
  });

  it('agrees with ipaddr.js on mutated text', () => {
    let accepted = 0;
    fc.assert(
      fc.property(mutated, (text) => {
        const parsed = ours(text);
        if (parsed !== undefined) accepted++;
        return same(parsed, theirs(text));
      }),
      { numRuns: 5 * RUNS },
    );
    // Otherwise the property would not test accepted text.
    expect(accepted).toBeGreaterThan(RUNS / 10);
  });

  it.each([
    ['0.0.0.0', [0, 0, 0, 0]],
    ['255.255.255.255', [255, 255, 255, 255]],
    ['::ffff:1.2.3.4', [1, 2, 3, 4]],
    ['0:0:0:0:0:FFFF:0102:0304', [1, 2, 3, 4]],
    ['::', Array(16).fill(0)],
    ['::1', [...Array(15).fill(0), 1]],
    ['1::', [0, 1, ...Array(14).fill(0)]],
    ['1:2:3:4:5:6:7::', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ['::2:3:4:5:6:7:8', [0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ['1:2:3:4:5:6:1.2.3.4', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4]],
    ['1::1.2.3.4', [0, 1, ...Array(10).fill(0), 1, 2, 3, 4]],
    ['::1.2.3.4', [...Array(12).fill(0), 1, 2, 3, 4]],
    ['1:2:3:4:5::1.2.3.4', [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0, 1, 2, 3, 4]],
  ])('accepts %s', (text, bytes) => {
    expect(ours(text)?.bytes).toEqual(bytes);
  });

  it.each(NOT_ADDRESSES)('refuses %j', (text) => {
    expect(ours(text)).toBeUndefined();
  });
});

describe('formats', () => {
  const toWords = (eight: number[]): number[] => [0, 2, 4, 6].map((i) => ((eight[i]! << 16) | eight[i + 1]!) >>> 0);

  it('writes IPv6 in full and short (RFC 5952) as ipaddr.js does', () => {
    const sparse = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
      minLength: 8,
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.oneof(groups, sparse), (eight) => {
        const [w0, w1, w2, w3] = toWords(eight) as [number, number, number, number];
        const address = new ipaddr.IPv6(eight);
        const full = eight.map((group) => group.toString(16).padStart(4, '0')).join(':');
        // ipaddr.js writes the mapped block with a dotted-decimal tail; it does not occur in our IPv6 ranges.
        const short = address.isIPv4MappedAddress() || formatIPv6(w0, w1, w2, w3) === address.toRFC5952String();
        return short && formatIPv6Full(Uint32Array.of(w0, w1, w2, w3)) === full;
      }),
      { numRuns: RUNS },
    );
  });

  it('formats every address so that it is parsed to the same address', () => {
    const words = new Uint32Array(4);
    fc.assert(
      fc.property(fc.oneof(ipv4Text, ipv6Text), (text) => {
        const family = parseAddress(text, words);
        const before = words.slice();
        expect(parseAddress(formatAddress(family as 4 | 6, words), words)).toBe(family);
        expect(words).toEqual(before);
      }),
    );
    expect(formatIPv4(0xc0000201)).toBe('192.0.2.1');
  });
});
