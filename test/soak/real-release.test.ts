/** The release of the installed packages, compared with the tables that decide, with its mirror, and with its compact form. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomWords } from '../../bench/measure.js';
import { CSV_FILES } from '../../bench/paths.js';
import { CompactCountries } from '../../src/compact/countries.js';
import { compactRelease } from '../../src/database/compact.js';
import { type Database, openDatabase } from '../../src/database/database.js';
import { PartitionFinder } from '../../src/database/finder.js';
import { RANGE_FILE, releaseDir } from '../../src/database/release.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import { openFile } from '../../src/rangefile/reader.js';
import { builtRelease } from '../support/built-release.js';
import { buildRangeFile } from '../support/compact.js';
import { numberOf, specialBlocks, type TableRow, tableLines, tableRow } from '../support/networks.js';

const RANDOM = 20_000;
/** Of the rows of each table; bench/agreement.js compares all rows of countries with another reader. */
const EVERY_ROW = Math.max(1, Math.round(1 / Number(process.env.SOAK_SCALE ?? 1)));

let dataDir: string;
let engines: Database[];
beforeAll(async () => {
  dataDir = await builtRelease();
  engines = (['binary', 'sqlite'] as const).map((engine) => openDatabase(dataDir, { engine }));
});
afterAll(() => {
  for (const database of engines) database.close();
});

it('has the country of each row of the registries at its ends', () => {
  const special = specialBlocks();
  const rows = readFileSync(CSV_FILES[2]!, 'utf8').trimEnd().split('\n');
  const covers = (row: string, address: bigint): boolean => {
    const [first, last] = row.split(',', 2).map(numberOf);
    return first! <= address && address <= last!;
  };
  const wrong: string[] = [];
  for (let index = 0; index < rows.length; index += EVERY_ROW) {
    const [first, last, code] = rows[index]!.split(',') as [string, string, string];
    for (const ip of [first, last]) {
      const { country_code } = engines[0]!.lookup(ip)!;
      if (country_code === code || special.check(ip)) continue;
      // A narrower row within this one is next to it.
      const near = rows.slice(Math.max(0, index - 2), index + 3).filter((row) => covers(row, numberOf(ip)));
      if (!near.some((row) => row.endsWith(`,${country_code}`))) wrong.push(`${ip}: ${country_code}, not ${code}`);
    }
  }
  expect(rows.length).toBeGreaterThan(100_000);
  expect(wrong).toEqual([]);
});

it('the range file and the mirror give the same results', () => {
  const next = randomWords(7);
  for (let i = 0; i < RANDOM; i++) {
    const bytes = new Uint8Array(i % 2 === 0 ? 4 : 16);
    for (const at of bytes.keys()) bytes[at] = next() >>> 24;
    // Half of the IPv6 addresses are in a used part of the space, a few in the prefixes with embedded IPv4 addresses.
    if (bytes.length === 16 && i % 4 === 1) bytes.set([0x2a, next() % 20]);
    if (bytes.length === 16 && i % 100 === 1)
      bytes.set(
        [
          [0x20, 2],
          [0x20, 1, 0, 0],
          [0, 0x64, 0xff, 0x9b],
        ][next() % 3]!,
      );
    const [a, b] = engines.map((database) => JSON.stringify(database.lookupBytes(bytes)));
    if (a !== b) expect(a).toBe(b);
  }
});

describe('AS numbers and names of the installed package', () => {
  it.each([4, 6] as const)('are those of the table at the boundaries of IPv%d', async (family) => {
    const file = openFile(NETWORKS, join(dataDir, 'current', NETWORKS.file));
    const finder = new PartitionFinder(file, false);
    const special = specialBlocks();
    const type = family === 4 ? 'ipv4' : 'ipv6';
    const words = new Uint32Array(4);
    const find = (address: bigint): (typeof file.records)[number] => {
      if (family === 4) finder.findIPv4(Number(address) | 0);
      else {
        for (let k = 0; k < 4; k++) words[k] = Number((address >> BigInt(96 - 32 * k)) & 0xffffffffn);
        finder.findIPv6(words);
      }
      return file.records[finder.record]!;
    };
    const lines = tableLines(family);
    const covers = ({ from, to }: TableRow, address: bigint): boolean => from <= address && address <= to;
    /** The narrowest of the rows around a row that covers an address; the rows are in order, and few overlap. */
    const expected = (index: number, address: bigint): TableRow | undefined =>
      lines
        .slice(Math.max(0, index - 2), index + 3)
        .map(tableRow)
        .filter((row) => covers(row, address))
        .sort((a, b) => Number(a.to - a.from - (b.to - b.from)))[0];
    const wrong: string[] = [];
    for (let index = 0; index < lines.length; index += EVERY_ROW) {
      const own = tableRow(lines[index]!);
      const { from, to, first, last, asn, name } = own;
      const ends = [
        [from - 1n, first],
        [from, first],
        [to, last],
        [to + 1n, last],
      ] as const;
      for (const [address, text] of ends) {
        const record = find(address);
        // Nearly always the row that ends here; looking for others takes far longer.
        if (record.kind === 'network' && record.asn === asn && record.name === name && covers(own, address)) continue;
        const row = expected(index, address);
        const agrees =
          record.kind === 'network'
            ? record.asn === row?.asn && record.name === row.name
            : record.kind === 'none' && row === undefined;
        if (agrees || special.check(text, type) || (row !== undefined && special.check(row.first, type))) continue;
        wrong.push(`${address}: ${JSON.stringify(record)}, not ${row?.asn} ${row?.name}`);
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
  });
});

it('its compact form gives the range file back, with its SHA-256', () => {
  const dir = releaseDir(dataDir);
  const manifest = JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8'));
  const compact = new CompactCountries(compactRelease(dir, ['confidence']), 'x');
  const listed = manifest.outputs.find(({ name }: { name: string }) => name === RANGE_FILE);
  expect(createHash('sha256').update(buildRangeFile(compact)).digest('hex')).toBe(listed.sha256);
  expect(compact.about).toMatchObject({ release: manifest.id, data_date: manifest.data_date });
  expect(compact.about.licenses).toContain('CC-BY-4.0');
});
