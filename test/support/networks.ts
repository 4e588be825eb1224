/** Networks for tests: blocks, and a table of announcements that is read without our code. */
import { readFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { loadReference } from '../../pipeline/config/reference.js';
import { mergeNetworks } from '../../pipeline/merging/network-merger.js';
import type { IngestedNetworks } from '../../pipeline/stage.js';
import { packageFile } from '../../src/package-root.js';
import { parseCidr } from '../../src/range/cidr.js';
import { RangeBuilder } from '../../src/range/columns.js';

/** A block, the AS number that announces it, and the name of the network. */
export type NetworkBlock = [cidr: string, asn: number, name: string];

/** Networks of the small world, some across the borders of its countries. */
export const SMALL_NETWORKS: NetworkBlock[] = [
  ['8.0.0.0/9', 3356, 'Level 3 Parent, LLC'],
  ['8.8.8.0/24', 15169, 'Google LLC'],
  ['193.0.0.0/21', 3333, 'RIPE NCC'],
  ['80.0.0.0/7', 64496, 'Both "sides", Ltd.'],
  ['90.0.0.0/16', 4294967295, ''],
  ['2001:4860::/32', 15169, 'Google LLC'],
  ['2a00:1::/47', 64496, 'Both "sides", Ltd.'],
];

/** Returns the rows of blocks as a source has them. */
export function ingestedNetworks(blocks: readonly NetworkBlock[]): IngestedNetworks {
  const builders = { 4: new RangeBuilder(4), 6: new RangeBuilder(6) };
  const index = new Map<number, number>();
  const names: string[] = [];
  for (const [, asn, name] of blocks) if (!index.has(asn)) index.set(asn, names.push(name) - 1);
  for (const [cidr, asn] of blocks) {
    const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
    const block = parseCidr(cidr, first, last);
    if (block === undefined) throw new Error(`not a block: ${cidr}`);
    builders[block.family].add(first, last, 0, index.get(asn)!);
  }
  return { v4: builders[4].finish(), v6: builders[6].finish(), asns: [...index.keys()], names };
}

/** Merges blocks as a build does. */
export function networksOf(blocks: readonly NetworkBlock[]) {
  return mergeNetworks([ingestedNetworks(blocks)], loadReference());
}

/** A row of a table: the addresses as text and as numbers. */
export interface TableRow {
  first: string;
  last: string;
  from: bigint;
  to: bigint;
  asn: number;
  name: string;
}

/** Returns an address as a number, with code of its own. */
export function numberOf(text: string): bigint {
  if (!isIPv6(text)) return BigInt(text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0));
  const [head = '', tail] = text.split('::');
  const groups = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const [start, end] = [groups(head), groups(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - start.length - end.length;
  const hex = [...start, ...Array<string>(zeros).fill('0'), ...end].map((group) => group.padStart(4, '0'));
  return BigInt(`0x${hex.join('')}`);
}

/** Reads the lines of a table of the package @ip-location-db/asn; {@link tableRow} parses one. */
export function tableLines(family: 4 | 6): string[] {
  const path = packageFile(`node_modules/@ip-location-db/asn/asn-ipv${family}.csv`);
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** Parses a line of a table: first, last, AS number, and a name, in quotes if it has a comma. */
export function tableRow(line: string): TableRow {
  const [, first, last, asn, name] = /^([^,]+),([^,]+),(\d+),(.*)$/.exec(line)!;
  const unquoted = name!.startsWith('"') ? name!.slice(1, -1).replaceAll('""', '"') : name!;
  return {
    first: first!,
    last: last!,
    from: numberOf(first!),
    to: numberOf(last!),
    asn: Number(asn),
    name: unquoted.trim().replace(/\s+/g, ' '),
  };
}

/** The blocks in which a table does not decide: special-purpose ones, and those whose addresses embed an IPv4 address. */
export function specialBlocks(): BlockList {
  const list = new BlockList();
  for (const { block, family } of loadReference().special) {
    const [address, prefix] = block.split('/') as [string, string];
    list.addSubnet(address, Number(prefix), family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}
