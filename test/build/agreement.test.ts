import { rmSync } from 'node:fs';
import maxmind from 'maxmind';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { randomWords } from '../../bench/measure.js';
import { CSV_FILES, MMDB } from '../../bench/paths.js';
import { openDatabase } from '../../src/database/database.js';
import { openRangeFile } from '../../src/rangefile/reader.js';
import { ipatlas } from '../support/in-process.js';
import { compareWithTwin } from '../support/mmdb-twin.js';
import { temporaryDir } from '../support/release.js';

// A sample; `node bench/run.js agreement` compares a million addresses a family and both ends of every row.
const RANDOM = 20_000;
const EVERY_ROW = 100;

let dataDir: string;
beforeAll(async () => {
  dataDir = temporaryDir();
  // This source alone has Australia for some sentinels, so a build from it is refused without --force.
  const built = await ipatlas(['build', '--offline', '--only', 'user-country', '--force', '--data', dataDir]);
  expect(built).toMatchObject({ code: 0 });
});
afterAll(() => rmSync(dataDir, { recursive: true }));

it('the release agrees with an independent reader of the same data, except for documented rules', async () => {
  const database = openDatabase(dataDir);
  const result = compareWithTwin({
    database,
    file: openRangeFile(`${database.dir}/ranges.ipr`),
    twin: await maxmind.open(MMDB),
    csvFiles: CSV_FILES.slice(0, 2),
    random: RANDOM,
    everyRow: EVERY_ROW,
  });
  expect(result.unexplained).toEqual([]);
  expect(result.compared).toBeGreaterThan(60_000);
  // The rules must explain few addresses only.
  const explained = Object.values(result.explained).reduce((sum, count) => sum + count, 0);
  expect(explained / result.compared).toBeLessThan(0.001);
});

it('the range file and the mirror give the same results', () => {
  const engines = (['binary', 'sqlite'] as const).map((engine) => openDatabase(dataDir, { engine }));
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
  for (const database of engines) database.close();
});
