/** Seeds: how newer data replaces them, and what happens if that data becomes unavailable. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { releaseAge } from '../../src/database/age.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, madeUpWorld, manifestOf, rowsText } from '../support/sources.js';

let dir: string;
let dataDir: string;
let sourcesFile: string;

const WORLD = madeUpWorld();
/** Other data, which differs by 6 % of the IPv4 addresses: too much for a night. */
const OTHER = WORLD.map((row, index) =>
  row.last.endsWith('.255.255') && index % 17 === 1 && !['MT', 'CY'].includes(row.code)
    ? { ...row, code: row.code === 'DE' ? 'FR' : 'DE' }
    : row,
);

/** Writes the files of the two places; undefined for a missing file. */
function write(living: readonly string[] | undefined): void {
  if (living === undefined) rmSync(join(dir, 'living.csv'), { force: true });
  else writeFileSync(join(dir, 'living.csv'), living.join('\n'));
}

beforeEach(() => {
  dir = temporaryDir();
  dataDir = join(dir, 'data');
  sourcesFile = join(dir, 'sources.json');
  writeFileSync(join(dir, 'seed.csv'), rowsText(WORLD).join('\n'));
  const fetch = [{ file: 'living.csv' }, { file: 'seed.csv', seed: 'no longer updated', license: 'seed license' }];
  const source = { id: 'world', license: 'living license', fetch, format: 'ip-location-db' };
  writeFileSync(sourcesFile, JSON.stringify({ sources: [source] }));
});

describe('a seed', () => {
  it('is marked as a seed in the manifest', async () => {
    const { outcome, notes } = await buildOnce(dataDir, sourcesFile);
    expect(outcome).toBe('published');
    expect(manifestOf(dataDir).inputs).toMatchObject([{ seed: 'no longer updated', license: 'seed license' }]);
    expect(notes.join('\n')).toContain('world: only a seed for the first build: no longer updated');
  });

  it('is replaced by newer data with the limits of a change of sources', async () => {
    await buildOnce(dataDir, sourcesFile);
    write(rowsText(OTHER));
    const { outcome, notes } = await buildOnce(dataDir, sourcesFile);
    expect(outcome).toBe('published');
    const limits = 'the limits are those of a change of sources: source world is from another location';
    expect(notes.join('\n')).toContain(limits);
    expect(manifestOf(dataDir).inputs[0]).toMatchObject({ license: 'living license' });
    expect(manifestOf(dataDir).inputs[0]!.seed).toBeUndefined();
  });

  it('never replaces data that is not a seed', async () => {
    write(rowsText(WORLD));
    const { id } = await buildOnce(dataDir, sourcesFile);
    write(undefined);
    const { outcome, message } = await buildOnce(dataDir, sourcesFile);
    expect(outcome).toBe('E_REFUSED');
    expect(message).toMatch(/source world can only be had from its seed/);
    expect(manifestOf(dataDir).id).toBe(id);
  });
});

it('the age of the data is that of the oldest source with a twentieth of the addresses', async () => {
  const rir = (day: string, rows: string[]): string =>
    [
      `2|ripencc|1|${rows.length}|19830101|${day}|+0000`,
      ...rows.map((row) => `ripencc|${row}|20000101|allocated`),
    ].join('\n');
  writeFileSync(join(dir, 'new'), rir('20260301', ['DE|ipv4|80.0.0.0|16777216']));
  writeFileSync(join(dir, 'old'), rir('20250101', ['FR|ipv4|81.0.0.0|1048576', 'FR|ipv4|90.0.0.0|65536']));
  const list = (ids: string[]) =>
    ids.map((id) => ({ id, license: 'x', fetch: { file: id }, format: 'rir-delegated-extended' }));
  const dateOf = async (): Promise<string | undefined> => {
    writeFileSync(sourcesFile, JSON.stringify({ sources: list(['new', 'old']) }));
    await buildOnce(dataDir, sourcesFile, { force: true });
    return manifestOf(dataDir).data_date;
  };
  expect(await dateOf()).toBe('2025-01-01');
  expect(manifestOf(dataDir).inputs).toMatchObject([
    { data_date: '2026-03-01', data_date_evidence: 'date in the file' },
    { data_date: '2025-01-01' },
  ]);
  expect(releaseAge(manifestOf(dataDir), Date.UTC(2025, 0, 2))).toBe(86_400);
  writeFileSync(join(dir, 'old'), rir('20250101', ['FR|ipv4|90.0.0.0|65536']));
  expect(await dateOf()).toBe('2026-03-01');
});
