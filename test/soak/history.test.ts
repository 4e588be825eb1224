/** The archive over hundreds of nights. */
import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { dataDirForHistory, nightsAgainstCopies } from '../history/support.js';
import { randomFrom, rounds, SEED } from '../support/seed.js';

it('answers every day of hundreds of nights, with every address of the tiny spaces, as full copies do', () => {
  const dataDir = dataDirForHistory();
  try {
    for (const [day, answers, copy] of nightsAgainstCopies(dataDir, rounds(800), randomFrom(SEED))) {
      expect([day, answers]).toEqual([day, copy]);
    }
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
