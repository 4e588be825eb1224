/** The compact form under a million changes, and the seed, which has it, against the pipeline. */
import { expect, it } from 'vitest';
import { packRelease } from '../../pipeline/compact-release.js';
import { Container, writeContainer } from '../../src/compact/container.js';
import { aboutSection } from '../../src/compact/countries.js';
import { fileSections } from '../../src/compact/range-file.js';
import { manifestOf } from '../../src/database/compact.js';
import { readManifest, releaseDir } from '../../src/database/release.js';
import { readSeed } from '../../src/database/seed.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { COUNTRIES } from '../../src/rangefile/partitions.js';
import { decodeRangeFile } from '../../src/rangefile/reader.js';
import { encodeRangeFile } from '../../src/rangefile/writer.js';
import { seedSourcesRelease } from '../support/built-release.js';
import { compactOutcome, reseal } from '../support/compact.js';
import { partitionOf, reason, SMALL_WORLD } from '../support/release.js';
import { randomFrom, rounds, SEED } from '../support/seed.js';

function smallWorld(): Uint8Array {
  const records: RangeRecord[] = [reason('unallocated')];
  const [v4, v6] = [partitionOf(4, SMALL_WORLD, records), partitionOf(6, SMALL_WORLD, records)];
  const column = (count: number) => Uint8Array.from({ length: count }, (_, range) => range % 101);
  const confidence = { v4: column(v4.count), v6: column(v6.count) };
  const file = decodeRangeFile(encodeRangeFile({ asOf: '2026-01-01', v4, v6, records, confidence }), 'x');
  const about = { release: 'r', as_of: '2026-01-01', licenses: [], attribution: [] };
  return writeContainer(new Map([aboutSection(about), ...fileSections(COUNTRIES, file, true)]));
}

it('is E_DAMAGED or another valid release after a million random changes below the checksums, in little memory', () => {
  const original = smallWorld();
  const random = randomFrom(SEED);
  const upTo = (end: number): number => Math.floor(random() * end);
  const outcomes = { valid: 0, damaged: 0 };
  const runs = rounds(1_000_000);
  let most = 0;
  const before = process.memoryUsage().arrayBuffers;
  for (let run = 0; run < runs; run++) {
    const bytes = original.slice(0, upTo(4) === 0 ? upTo(original.length) : original.length);
    for (let change = upTo(5); change >= 0 && bytes.length > 0; change--) bytes[upTo(bytes.length)] = upTo(256);
    if (bytes.length > 24) {
      // Half of the truncated files say their size, so that the checks after that of the size are reached.
      if (upTo(2) === 0) new DataView(bytes.buffer).setUint32(16, bytes.length, true);
      reseal(bytes);
    }
    outcomes[compactOutcome(bytes)]++;
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(outcomes.damaged).toBeGreaterThan(runs / 10);
  expect(outcomes.valid).toBeGreaterThan(0);
  // Arrays for the ranges that a few kilobytes can have, the indexes of the range file, and what waits to be collected.
  expect(most).toBeLessThan(2 ** 28);
});

it('of the seed has the sections that the pipeline makes of the same packages now, byte for byte', async () => {
  const built = releaseDir(await seedSourcesRelease());
  const { compact, path } = readSeed();
  const fresh = new Container(packRelease(built), 'fresh');
  for (const section of ['country', 'country4', 'country6', 'confidence4', 'confidence6', 'sources4', 'sources6']) {
    expect(Buffer.from(compact.container.section(section)).equals(fresh.section(section)), section).toBe(true);
  }
  const { inputs, counts, outputs } = manifestOf(compact, path);
  const now = readManifest(built);
  expect({ inputs, counts }).toEqual({ inputs: now.inputs, counts: now.counts });
  expect(outputs[0]!.bytes).toBe(now.outputs[0]!.bytes);
  // No path of the machine that made it, and no account.
  expect(JSON.stringify(manifestOf(compact, path))).not.toMatch(/\/(home|root|tmp|work)\/|"forced"/);
});
