/** The release of the installed packages, compared with the table that decides, and with its mirror. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { randomWords } from '../../bench/measure.js';
import { CSV_FILES } from '../../bench/paths.js';
import { type Database, openDatabase } from '../../src/database/database.js';
import { builtRelease } from '../support/built-release.js';
import { numberOf, specialBlocks } from '../support/networks.js';

const RANDOM = 20_000;
/** A sample; bench/agreement.js compares all rows with another reader. */
const EVERY_ROW = 50;

let engines: Database[];
beforeAll(async () => {
  const dataDir = await builtRelease();
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
