/** What is made of the published files of a source, compared with independent readers of its MMDB twin. */
import { readFileSync, rmSync } from 'node:fs';
import maxmind from 'maxmind';
import { type CountryResponse, Reader } from 'mmdb-lib';
import { beforeAll, describe, expect, it } from 'vitest';
import { CSV_FILES, MMDB } from '../../bench/paths.js';
import { readSource } from '../../pipeline/source-formats/read-source.js';
import type { IngestedSource } from '../../pipeline/stage.js';
import { formatAddress } from '../../src/address/format.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import { openDatabase } from '../../src/database/database.js';
import type { BoundedRanges, MergedRanges } from '../../src/range/columns.js';
import { mergeRanges } from '../../src/range/merge.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { randomWords } from '../export/support.js';
import { codeAt, inputOf } from '../pipeline/ingest-helper.js';
import { ipatlas } from '../support/in-process.js';
import { compareWithTwin } from '../support/mmdb-twin.js';
import { temporaryDir } from '../support/release.js';

/** The files of the source in CSV, IPv4 and IPv6. */
const FILES = CSV_FILES.slice(0, 2);

it('a release agrees with maxmind, except for documented rules', async () => {
  const dataDir = temporaryDir();
  // This source alone has Australia for some sentinels, so a build from it is refused without --force.
  const built = await ipatlas(['build', '--offline', '--only', 'user-country', '--force', '--data', dataDir]);
  expect(built).toMatchObject({ code: 0 });
  const database = openDatabase(dataDir);
  const result = compareWithTwin({
    database,
    file: openRangeFile(`${database.dir}/ranges.ipr`),
    twin: await maxmind.open(MMDB),
    csvFiles: FILES,
    random: 20_000,
    everyRow: 10,
  });
  database.close();
  rmSync(dataDir, { recursive: true });
  expect(result.unexplained).toEqual([]);
  expect(result.compared).toBeGreaterThan(300_000);
  // The rules must explain few addresses only.
  const explained = Object.values(result.explained).reduce((sum, count) => sum + count, 0);
  expect(explained / result.compared).toBeLessThan(0.001);
});

describe('a published MMDB file, compared with the CSV files of the same data', () => {
  let source: IngestedSource;
  beforeAll(async () => {
    const files = [{ name: 'country.mmdb', path: MMDB, bytes: 0, sha256: '' }];
    source = (await readSource(inputOf('mmdb', files), () => {})).ingested;
  });

  it('gives the same results as mmdb-lib', () => {
    const reader = new Reader<CountryResponse & { country_code: string }>(readFileSync(MMDB));
    const random = randomWords(7);
    const address = new Uint32Array(4);
    for (const rows of [source.v4, source.v6]) {
      const words = addressWords(rows.family);
      for (let i = 0; i < 10_000; i++) {
        const range = random() % rows.count;
        const column = i % 2 === 0 ? rows.first : rows.last;
        address.set(column.subarray(range * words, (range + 1) * words));
        address[words - 1] = (address[words - 1]! + (random() % 3) - 1) >>> 0;
        const text = formatAddress(rows.family, address);
        const expected = reader.get(text)?.country_code ?? '';
        const got = codeAt(rows, source.codes, address);
        if (got !== expected) expect([text, got]).toEqual([text, expected]);
      }
    }
  });

  it('has the ranges of the CSV files, except for overlapping rows', async () => {
    const files = FILES.map((path) => ({ name: path, path, bytes: 0, sha256: '' }));
    const { ingested: csv } = await readSource(inputOf('ip-location-db', files), () => {});
    for (const family of ['v4', 'v6'] as const) {
      const [ours, theirs] = [laid(source[family]), laid(csv[family])];
      const differing = differences(ours, source.codes, theirs, csv.codes);
      // The publisher's two writers prefer different rows if two overlap: a handful of 300 thousand.
      expect(differing.length).toBeLessThan(200);
      for (const place of differing) expect(rowsAt(csv[family], place)).toBeGreaterThan(1);
      expect(ours.count).toBeGreaterThan(200_000);
    }
  });
});

/** Rows as a partition of the address space; value 0 is "no row", n + 1 the code n. */
function laid(rows: BoundedRanges): MergedRanges {
  const { family, count, first, last, value } = rows;
  return mergeRanges({
    family,
    count,
    first,
    last,
    value: value.map((index) => index + 1),
    layer: new Uint8Array(count),
  });
}

/** Returns the first addresses of the runs in which two partitions differ. */
function differences(a: MergedRanges, codesA: string[], b: MergedRanges, codesB: string[]): Uint32Array[] {
  const words = addressWords(a.family);
  const places: Uint32Array[] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const order = compareAddresses(a.first, i, b.first, j, words);
    const [from, at] = order >= 0 ? [a, i] : [b, j];
    const codeA = codesA[a.value[i]! - 1] ?? '';
    const codeB = codesB[b.value[j]! - 1] ?? '';
    if (codeA !== codeB) places.push(from.first.slice(at * words, (at + 1) * words));
    if (i + 1 === a.count && j + 1 === b.count) return places;
    const next =
      i + 1 === a.count ? 1 : j + 1 === b.count ? -1 : compareAddresses(a.first, i + 1, b.first, j + 1, words);
    if (next <= 0) i++;
    if (next >= 0) j++;
  }
}

/** Counts the rows that cover an address. */
function rowsAt({ count, family, first, last }: BoundedRanges, address: Uint32Array): number {
  const words = addressWords(family);
  let found = 0;
  for (let i = 0; i < count; i++) {
    if (compareAddresses(first, i, address, 0, words) <= 0 && compareAddresses(last, i, address, 0, words) >= 0)
      found++;
  }
  return found;
}
