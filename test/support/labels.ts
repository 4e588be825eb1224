/** Labels for tests: random rows of both families that overlap, and what they say of an address, by linear scan. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadReference } from '../../pipeline/config/reference.js';
import { mergeLabels } from '../../pipeline/merging/label-merger.js';
import { parseCidr } from '../../src/range/cidr.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { writeSources } from './sources.js';

/** A block and its labels. */
export type LabelBlock = [cidr: string, labels: Record<string, string | null>];

/** Labels in the small world, also of private space. */
export const SMALL_LABELS: LabelBlock[] = [
  ['10.0.0.0/8', { site: 'Berlin', owner: null }],
  ['10.1.0.0/16', { site: 'Köln "Süd", 2', owner: 'IT=ops' }],
  ['8.8.8.0/23', { site: 'cloud', owner: 'a\\b' }],
  ['2a00:1::/48', { site: 'Lab | 7; x', owner: 'IT=ops' }],
];

/** Merges blocks as a build does; undefined if there are none. */
export function labelsOf(blocks: readonly LabelBlock[]) {
  if (blocks.length === 0) return undefined;
  const columns = Object.keys(blocks[0]![1]);
  const builders = { 4: new RangeBuilder(4), 6: new RangeBuilder(6) };
  blocks.forEach(([cidr], index) => {
    const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
    builders[parseCidr(cidr, first, last)!.family].add(first, last, 0, index);
  });
  const values = blocks.map(([, labels]) => columns.map((column) => labels[column]!));
  const table = { columns, values, v4: builders[4].finish(), v6: builders[6].finish() };
  const files = [{ name: 'labels.csv', bytes: 0, sha256: '0'.repeat(64) }];
  const inputs = { columns, rows: blocks.length, date: '2026-01-01', files };
  return { merged: mergeLabels([table], loadReference()), inputs };
}

/** A row: the range as numbers and as text, and its values by column; null for an empty cell. */
export interface TwinRow {
  family: 4 | 6;
  first: bigint;
  last: bigint;
  text: string;
  values: Record<string, string | null>;
}

/** A file of labels. */
export interface TwinFile {
  name: string;
  columns: string[];
  rows: TwinRow[];
}

/** Returns an address as text: IPv6 in eight groups. */
export function textOf(family: 4 | 6, address: bigint): string {
  const count = family === 4 ? 4 : 8;
  const bits = family === 4 ? 8n : 16n;
  const parts = Array.from(
    { length: count },
    (_, i) => (address >> (bits * BigInt(count - 1 - i))) & ((1n << bits) - 1n),
  );
  return parts.map((part) => part.toString(family === 4 ? 10 : 16)).join(family === 4 ? '.' : ':');
}

/** The places around which rows are, so that they overlap: also in private space and in addresses with an IPv4 address inside. */
const PLACES: Record<4 | 6, bigint[]> = {
  4: [0x0a000000n, 0x08080800n, 0xc0000200n],
  6: [0x20010db8n << 96n, 0x20020a00n << 96n, 0x0064ff9bn << 96n, 0xfd00n << 112n],
};

/** Makes random rows; `below` returns a whole number below another one. */
export function randomRows(below: (end: number) => number, count: number, columns: readonly string[]): TwinRow[] {
  return Array.from({ length: count }, () => {
    const family = below(2) === 0 ? 4 : 6;
    const bits = family === 4 ? 32 : 128;
    const place = PLACES[family][below(PLACES[family].length)]! + BigInt(below(2 ** 24));
    const values = Object.fromEntries(columns.map((name) => [name, below(4) === 0 ? null : `${name} ${below(5)}`]));
    if (below(3) === 0) {
      const last = place + BigInt(below(2 ** 20));
      return { family, first: place, last, text: `${textOf(family, place)}-${textOf(family, last)}`, values };
    }
    const prefix = bits - below(below(4) === 0 ? 29 : 25);
    const host = (1n << BigInt(bits - prefix)) - 1n;
    const first = place & ~host;
    return { family, first, last: first | host, text: `${textOf(family, first)}/${prefix}`, values };
  });
}

/** Writes files of labels, countries, and the sources file; returns its path. */
export function writeLabelSources(dir: string, files: readonly TwinFile[]): string {
  for (const { name, columns, rows } of files) {
    const lines = rows.map(({ text, values }) => [text, ...columns.map((column) => values[column] ?? '')].join());
    writeFileSync(join(dir, name), `${[['range', ...columns].join(), ...lines].join('\n')}\n`);
  }
  const countries = ['0.0.0.0,223.255.255.255,US', '2000::,3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff,US'];
  const labels = files.map(({ name }) => name);
  return writeSources(dir, { countries }, { labels, gates: { maxWrongSentinels: 999 } });
}

/** The prefixes whose addresses have an IPv4 address inside: first address, bits, and how far that is from the end; Teredo inverts it. */
const EMBEDDING: [first: bigint, prefix: number, shift: bigint, inverted: boolean][] = [
  [0x2002n << 112n, 16, 80n, false],
  [0x0064ff9bn << 96n, 96, 0n, false],
  [0x20010000n << 96n, 32, 0n, true],
];

/** Returns the labels of an address by linear scan: for each column the narrowest row of the files with it, then the later one. */
export function scan(files: readonly TwinFile[], family: 4 | 6, address: bigint): Record<string, string | null> {
  const columns = new Set(files.flatMap((file) => file.columns));
  const inside = EMBEDDING.find(([first, prefix]) => family === 6 && (first ^ address) >> BigInt(128 - prefix) === 0n);
  if (inside !== undefined) {
    const [, , shift, inverted] = inside;
    const ipv4 = (address >> shift) & 0xffffffffn;
    return scan(files, 4, inverted ? ipv4 ^ 0xffffffffn : ipv4);
  }
  const covers = (row: TwinRow): boolean => row.family === family && row.first <= address && row.last >= address;
  const result: Record<string, string | null> = {};
  for (const column of columns) {
    let best: TwinRow | undefined;
    for (const file of files) {
      if (!file.columns.includes(column)) continue;
      for (const row of file.rows) {
        if (covers(row) && (best === undefined || row.last - row.first <= best.last - best.first)) best = row;
      }
    }
    result[column] = best?.values[column] ?? null;
  }
  return result;
}
