import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import { createMessageEnricher } from '../../src/enrich/block-enricher.js';
import { parseFields } from '../../src/enrich/options.js';
import { OutputMemory } from '../../src/enrich/output-memory.js';
import { ENRICH_SPARE_BYTES } from '../../src/limits.js';
import { smallRelease } from '../support/release.js';

const KILOBYTE = 1024;

describe('memory of outputs', () => {
  it('is kept up to a limit, the newest first', () => {
    const memory = new OutputMemory();
    const all = Array.from({ length: 20 }, () => memory.take(ENRICH_SPARE_BYTES / 16));
    for (const one of all) memory.give(one);
    const taken = Array.from({ length: 20 }, () => memory.take(ENRICH_SPARE_BYTES / 16).buffer);
    const kept = new Set(all.map(({ buffer }) => buffer).slice(-16));
    expect(taken.filter((buffer) => kept.has(buffer))).toHaveLength(16);
    expect(taken.slice(0, 16).filter((buffer) => kept.has(buffer))).toHaveLength(16);
    memory.give(memory.take(ENRICH_SPARE_BYTES + 1));
    expect(memory.take(ENRICH_SPARE_BYTES + 1)).toHaveLength(ENRICH_SPARE_BYTES + 16 * KILOBYTE);
  });
});

describe('an enricher of messages', () => {
  let dataDir: string;
  let database: Database;

  beforeAll(async () => {
    dataDir = await smallRelease();
    database = openDatabase(dataDir);
  });
  afterAll(() => {
    database.close();
  });

  const linesOf = (address: string, count: number): Buffer => Buffer.from(`{"ip":"${address}"}\n`.repeat(count));

  it('overwrites an output only after it was given back', () => {
    const enricher = createMessageEnricher(database, {
      fields: parseFields([]),
      add: ['country_code'],
      onInvalid: 'keep',
    });
    // From the second message on, the size of the output is known.
    enricher.enrichBlock(linesOf('8.8.8.8', 10_000));
    const kept = enricher.enrichBlock(linesOf('8.8.8.8', 10_000));
    const copy = Buffer.from(kept);
    const given = enricher.enrichBlock(linesOf('8.8.4.4', 10_000));
    const { buffer } = given;
    enricher.recycle(given);
    const next = enricher.enrichBlock(linesOf('1.1.1.1', 10_000));
    expect(next.buffer).toBe(buffer);
    expect(enricher.enrichBlock(linesOf('1.1.1.1', 10_000)).buffer).not.toBe(buffer);
    expect(copy.equals(kept)).toBe(true);
    expect(Buffer.from(next).toString()).toMatch(/^(\{"ip":"1\.1\.1\.1".*\n){10000}$/);
  });
});
