/** When a build makes a release again, and which builds never publish one. */
import { mkdirSync, readlinkSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { publish } from '../../pipeline/stages/publish.js';
import { verifyRelease } from '../../src/database/verify.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, manifestOf, writeSources } from '../support/sources.js';

giveFolders();

const ROWS = ['80.0.0.0,80.255.255.255,DE', '81.0.0.0,81.255.255.255,FR', '2a00::,2a00::ffff,IT'];
const sources = (rows = ROWS, more: object = {}): string => writeSources(dir, { one: rows }, more);
const releaseDir = (id: string): string => join(dataDir, 'releases', id);

describe('a damaged current release', () => {
  it.each(['ranges.ipr', 'ranges.sqlite'])('is built again: %s', async (name) => {
    const { id } = await buildOnce(dataDir, sources());
    truncateSync(join(releaseDir(id!), name), 1000);
    expect(await buildOnce(dataDir, sources())).toMatchObject({
      outcome: 'published',
      id,
      notes: expect.arrayContaining([
        expect.stringContaining(`the current release ${id} is damaged and will be built`),
      ]),
    });
    expect(verifyRelease(releaseDir(id!)).manifest.id).toBe(id);
  });

  it.each(['ranges.ipr', 'ranges.sqlite', 'manifest.json'])('is built again without %s', async (name) => {
    const { id } = await buildOnce(dataDir, sources());
    rmSync(join(releaseDir(id!), name));
    expect(await buildOnce(dataDir, sources())).toMatchObject({ outcome: 'published', id });
    expect(verifyRelease(releaseDir(id!)).manifest.id).toBe(id);
  });
});

it.each([
  ['a file', (path: string) => writeFileSync(path, '')],
  ['a folder', (path: string) => mkdirSync(path)],
])('`current` as %s is moved aside', async (_kind, make) => {
  const { id } = await buildOnce(dataDir, sources());
  rmSync(join(dataDir, 'current'));
  make(join(dataDir, 'current'));
  const { outcome, notes } = await buildOnce(dataDir, sources());
  expect(outcome).toBe('published');
  expect(readlinkSync(join(dataDir, 'current'))).toBe(join('releases', id!));
  expect(notes).toContainEqual(
    expect.stringMatching(/^"current" was no symbolic link .* is now .*current\.replaced-\d+$/),
  );
  expect(await buildOnce(dataDir, sources())).toMatchObject({ outcome: 'unchanged', id });
});

it.each([
  'current/ranges.ipr',
  'current/ranges.sqlite',
  'current/manifest.json',
  'current/report.json',
  'current.new',
  'rejects.ndjson',
  'tmp',
])('a folder in place of %s is replaced', async (name) => {
  const { id } = await buildOnce(dataDir, sources());
  const path = join(dataDir, name);
  rmSync(path, { force: true });
  mkdirSync(join(path, 'inner'), { recursive: true });
  expect((await buildOnce(dataDir, sources(), { force: !name.startsWith('current/') })).outcome).toBe('published');
  expect(verifyRelease(releaseDir(id!)).manifest.id).toBe(id);
  expect(await buildOnce(dataDir, sources())).toMatchObject({ outcome: 'unchanged', id });
});

it('publish lists the files that are there, if another version of SQLite wrote other bytes for the same release', async () => {
  const { id } = await buildOnce(dataDir, sources());
  const before = manifestOf(dataDir, id);
  const again = join(dir, 'again');
  mkdirSync(again);
  const outputs = before.outputs.map((file) =>
    file.name.endsWith('.sqlite') ? { ...file, sha256: '0'.repeat(64) } : file,
  );
  writeFileSync(join(again, 'manifest.json'), JSON.stringify({ ...before, tool_version: 'other', outputs }));
  const context = { dataDir, workDir: dir, offline: true, asOf: '2026-01-01', note: () => {}, stages: [] };
  await publish({ id: id!, dir: again }, context, 5, { event: 'build', days: 0 });
  expect(manifestOf(dataDir, id)).toEqual({ ...before, tool_version: 'other' });
  expect(verifyRelease(releaseDir(id!)).manifest.tool_version).toBe('other');
});

describe('a source that names no countries', () => {
  it.each<[string, string[], RegExp]>([
    [
      'codes of three letters',
      ROWS.map((row) => `${row}U`),
      /3 of 3 rows name no country \("DEU", "FRU", "ITU"\).*three letters/,
    ],
    [
      'numbers of networks',
      ROWS.map((row, i) => row.replace(/..$/, `AS${i}`)),
      /3 of 3 rows name no country.*which column/,
    ],
    ['mostly nothing', ROWS.map((row, i) => (i === 0 ? row : row.replace(/..$/, ''))), /2 of 3 rows name no country/],
  ])('fails: %s', async (_what, rows, message) => {
    const built = await buildOnce(dataDir, sources(rows), { force: true });
    expect(built).toMatchObject({ outcome: 'E_BAD_INPUT', exit: 4 });
    expect(built.message).toMatch(message);
  });

  it('passes if half of its rows do', async () => {
    const without = ['90.0.0.0,90.0.0.255,ZZ', '90.0.1.0,90.0.1.255,', '90.0.2.0,90.0.2.255,XYZ'];
    const rows = [...ROWS, ...without];
    expect(await buildOnce(dataDir, sources(rows))).toMatchObject({ outcome: 'published' });
  });
});
