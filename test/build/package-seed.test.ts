/** Builds offline in an installed package, which has no copies of the sources: the seed becomes the release. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { packRelease } from '../../pipeline/compact-release.js';
import { Container } from '../../src/compact/container.js';
import { releaseDir } from '../../src/database/release.js';
import { openSeed, readSeed } from '../../src/database/seed.js';
import { verifyRelease } from '../../src/database/verify.js';
import { seedRelease, UNAVAILABLE } from '../support/built-release.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { buildOnce, madeUpWorld, rowsText, writeSources } from '../support/sources.js';

let sourcesFile: string;
giveFolders();
beforeEach(() => {
  sourcesFile = writeSources(dir, {}, { sources: UNAVAILABLE });
});

const build = (options: Parameters<typeof buildOnce>[2] = {}) =>
  buildOnce(dataDir, sourcesFile, { seed: openSeed, brief: true, ...options });

it('publishes the seed, says so once, and leaves it the next time', { timeout: 180_000 }, async () => {
  const { id } = readSeed().manifest;
  const { dataDir: built, outcome: first } = await seedRelease();
  cpSync(built, dataDir, { recursive: true, verbatimSymlinks: true });
  expect(first, first.message).toMatchObject({ outcome: 'published', exit: 0, id });
  expect(first.notes.filter((note) => note.includes('comes with ipatlas'))).toEqual([
    expect.stringMatching(/^offline, without copies of the sources: publishing the database .* days? old/),
  ]);
  expect(first.notes.join('\n')).not.toContain('not-installed');
  const release = releaseDir(dataDir);
  const { manifest } = verifyRelease(release);
  expect({ ...manifest, outputs: [] }).toEqual({ ...readSeed().manifest, outputs: [] });
  expect(readFileSync(join(release, 'ranges.ipr')).equals(openSeed().file.bytes)).toBe(true);
  // The mirror has its layers, so that it is packed again to the same sections.
  const again = new Container(packRelease(release), 'again');
  for (const section of ['sources4', 'sources6', 'confidence4', 'country6']) {
    expect(Buffer.from(readSeed().compact.container.section(section)).equals(again.section(section)), section).toBe(
      true,
    );
  }
  expect(await build()).toMatchObject({ outcome: 'unchanged', id });
});

it.each([
  ['with a list of sources of the user', { seed: undefined }],
  ['as of another day', { asOf: '2026-01-01' }],
])('fails %s', async (_, options) => {
  const { outcome, exit, message } = await build(options);
  expect([outcome, exit]).toEqual(['E_FETCH', 6]);
  expect(message).toContain('not-installed');
});

it('leaves another release as it is', async () => {
  writeFileSync(join(dir, 'living.csv'), rowsText(madeUpWorld()).join('\n'));
  const { id } = await build({ seed: undefined });
  rmSync(join(dir, 'living.csv'));
  rmSync(join(dataDir, 'cache'), { recursive: true });
  expect(await build()).toMatchObject({ outcome: 'E_FETCH', exit: 6 });
  expect(releaseDir(dataDir).endsWith(id!)).toBe(true);
});
