/** The history of a repository on a node, against full copies of every release of both. */
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { randomFrom } from '../support/seed.js';
import { dataDirForHistory, pulledNightsAgainstCopies } from './support.js';

let dirs: [origin: string, node: string];
beforeEach(() => {
  dirs = [dataDirForHistory(), dataDirForHistory()];
});
afterEach(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true });
});

it.each([1, 2, 3, 4])(
  'a node answers every day as full copies do, with its own ones from its first on (%d)',
  async (seed) => {
    for await (const [day, answers, copy] of pulledNightsAgainstCopies(...dirs, 25, randomFrom(seed))) {
      expect([day, answers]).toEqual([day, copy]);
    }
  },
);
