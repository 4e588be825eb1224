/** The history of a repository on a node, against full copies of every release of both. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { dayOf } from '../../src/day.js';
import { openArchive } from '../../src/history/archive.js';
import { PACK_LIST_FILE } from '../../src/history/pack.js';
import { archiveProblems } from '../../src/history/verify.js';
import { randomFrom } from '../support/seed.js';
import { temporaryDir } from '../support/temporary.js';
import { answersAt, pulledNightsAgainstCopies } from './support.js';

let dirs: [origin: string, node: string];
beforeEach(() => {
  dirs = [temporaryDir(), temporaryDir()];
});
afterEach(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true });
});

it.each([3, 257])(
  'a node answers every day as full copies do, with its own ones from its first on (%d)',
  async (seed) => {
    for await (const [day, answers, copy] of pulledNightsAgainstCopies(...dirs, 25, randomFrom(seed))) {
      expect([day, answers]).toEqual([day, copy]);
    }
  },
);

it('a list of packs that is lost or damaged is noticed, and no pack counts', async () => {
  const [, node] = dirs;
  const days: string[] = [];
  for await (const [day, answers] of pulledNightsAgainstCopies(...dirs, 25, randomFrom(3))) {
    if (answers !== undefined) days.push(day);
  }
  const own = openArchive(node).entries.filter(({ origin }) => origin === 'own');
  const early = days.filter((day) => day < dayOf(own[0]!.time));
  expect(early).not.toEqual([]);
  expect(archiveProblems(openArchive(node))).toEqual([]);
  const list = join(node, 'history', PACK_LIST_FILE);
  for (const content of [undefined, '["2026-01.pack', '{"2026-01.pack":1}', '["2026-13.pack"]']) {
    if (content === undefined) rmSync(list);
    else writeFileSync(list, content);
    const archive = openArchive(node);
    expect(archiveProblems(archive)).toEqual([expect.stringContaining(list)]);
    expect(archive.entries.map(({ file }) => file)).toEqual(own.map(({ file }) => file));
    for (const day of early) expect([day, answersAt(node, day)]).toEqual([day, undefined]);
  }
});
