/** The block of an address, found by trying every prefix length on the blocks that a release was made of. Slow and simple. */
import ipaddr from 'ipaddr.js';
import type { Block } from './release.js';

/** An address or a bound, and its family. */
interface Place {
  bits: 32 | 128;
  value: bigint;
}

function placeOf(text: string): Place {
  const address = ipaddr.process(text);
  const bytes = address.toByteArray();
  return { bits: bytes.length === 4 ? 32 : 128, value: BigInt(`0x${Buffer.from(bytes).toString('hex')}`) };
}

function textOf({ bits, value }: Place, prefix: number): string {
  const bytes = Buffer.from(value.toString(16).padStart(bits / 4, '0'), 'hex');
  const address = ipaddr.fromByteArray([...bytes]);
  return `${address.kind() === 'ipv6' ? (address as ipaddr.IPv6).toRFC5952String() : address.toString()}/${prefix}`;
}

/** A block of the release: its first and last address, and what is asked for of its record. */
interface Part {
  bits: number;
  first: bigint;
  last: bigint;
  answer: string;
  scheme: string | undefined;
}

/** Where the schemes have the IPv4 address, in bits from the first one. */
const OFFSETS: Record<string, number | undefined> = { '6to4': 16, nat64: 96 };

/**
 * Returns a function that finds the block of an address; it returns null for Teredo.
 *
 * @param blocks as `publishBlocks` takes them: the narrowest counts, of equal ones the last
 * @param answerOf returns what is asked for of a record, as text; `undefined` is what no block has
 */
export function blockOracle(blocks: readonly Block[], answerOf: (record: Block[1] | undefined) => string) {
  const parts = blocks.map(([cidr, record]): Part => {
    const [address, length] = cidr.split('/') as [string, string];
    const { bits, value: first } = placeOf(address);
    const last = first | ((1n << BigInt(bits - Number(length))) - 1n);
    return {
      bits,
      first,
      last,
      answer: answerOf(record),
      scheme: record.kind === 'embedded' ? record.scheme : undefined,
    };
  });
  // The narrowest first, and of equal ones the last.
  const sorted = parts
    .reverse()
    .sort((a, b) => Number(a.last - a.first - (b.last - b.first) > 0n) - Number(a.last - a.first < b.last - b.first));
  const partAt = (bits: number, address: bigint): Part | undefined =>
    sorted.find((part) => part.bits === bits && part.first <= address && address <= part.last);
  const keyAt = (bits: number, address: bigint): string => {
    const part = partAt(bits, address);
    return part === undefined ? ` ${answerOf(undefined)}` : `${part.scheme ?? ''} ${part.answer}`;
  };
  /** Where answers may change, with the answers from there on. */
  const boundsOf = (bits: number): [bound: bigint, key: string][] =>
    parts
      .filter((part) => part.bits === bits)
      .flatMap(({ first, last }) => [first, last + 1n])
      .map((bound) => [bound, keyAt(bits, bound)]);
  const bounds = { 32: boundsOf(32), 128: boundsOf(128) };

  function prefixOf({ bits, value }: Place): number {
    const own = keyAt(bits, value);
    for (let prefix = 0; ; prefix++) {
      const host = (1n << BigInt(bits - prefix)) - 1n;
      const first = value & ~host;
      const inside = bounds[bits].filter(([bound]) => bound > first && bound <= (first | host));
      if (keyAt(bits, first) === own && inside.every(([, key]) => key === own)) return prefix;
    }
  }

  return (text: string): string | null => {
    const place = placeOf(text);
    const { bits, value } = place;
    const scheme = partAt(bits, value)?.scheme;
    if (scheme === 'teredo') return null;
    let prefix = prefixOf(place);
    const offset = OFFSETS[scheme ?? ''];
    if (offset !== undefined) {
      const embedded = (value >> BigInt(96 - offset)) & 0xffff_ffffn;
      prefix = Math.max(prefix, offset + prefixOf({ bits: 32, value: embedded }));
    }
    return textOf({ bits, value: value & ~((1n << BigInt(bits - prefix)) - 1n) }, prefix);
  };
}
