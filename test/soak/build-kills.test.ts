/** Builds of real sources that are killed at random moments. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { verifyRelease } from '../../src/database/verify.js';
import { finished, ipatlas, start } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';
import { randomFrom, rounds } from '../support/seed.js';

let dataDir: string;
beforeEach(() => {
  dataDir = temporaryDir();
});

const build = (...args: string[]) => ['build', '--offline', '--only', 'rir-delegations', '--data', dataDir, ...args];

describe('builds that are interrupted', () => {
  it('leave a whole current release when killed at random moments, and the next build succeeds', async () => {
    const random = randomFrom();
    const wanted = rounds(60);
    expect((await ipatlas(build('--as-of', '2026-01-01'))).code).toBe(0);
    const begin = performance.now();
    expect((await ipatlas(build('--as-of', '2026-01-02'))).code).toBe(0);
    const duration = performance.now() - begin;
    let killed = 0;
    for (let round = 0; round < wanted; round++) {
      const asOf = new Date(Date.UTC(2026, 1, 1 + round)).toISOString().slice(0, 10);
      const child = start(build('--as-of', asOf));
      const end = finished(child);
      const timer = setTimeout(() => child.kill('SIGKILL'), random() * duration);
      if ((await end).signal === 'SIGKILL') killed++;
      clearTimeout(timer);
      verifyRelease(join(dataDir, 'current'));
    }
    // Otherwise the test shows nothing.
    expect(killed).toBeGreaterThan(wanted / 4);
    expect((await ipatlas(build('--as-of', '2027-03-01'))).code).toBe(0);
    expect(openDatabase(dataDir).manifest.as_of).toBe('2027-03-01');
    expect(readdirSync(dataDir)).not.toContain('tmp');
  });
});
