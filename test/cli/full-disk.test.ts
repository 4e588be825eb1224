/** Commands that write into the data directory while its disk is full, simulated by a limit on the size of files. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { currentReleaseId, releaseIds } from '../../src/database/release.js';
import { shell } from '../support/cli.js';
import { ipatlas } from '../support/in-process.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { writeSources } from '../support/sources.js';

giveFolders();

/** Runs ipatlas with no file larger than this many kilobytes. A longer write fails with EFBIG, as setrlimit(2) says. */
function limited(kilobytes: number, args: string) {
  return shell(`ulimit -f ${kilobytes}; exec "$NODE" "$MAIN" ${args} --data "$DATA"`, { DATA: dataDir });
}

const ROWS = Array.from({ length: 256 }, (_, i) => `80.${i}.0.0,80.${i}.255.255,${i % 2 === 0 ? 'DE' : 'FR'}`);

it('a build that cannot copy a source into the cache ends with exit code 1', async () => {
  const sources = writeSources(dir, { one: ROWS });
  expect(statSync(join(dir, 'one.csv')).size).toBeGreaterThan(4096);
  const { code, stderr } = await limited(4, `build --offline --sources '${sources}'`);
  expect(stderr).toMatch(/ipatlas: cannot use the data directory [^\n]*file too large[^\n]*free space/);
  expect(code).toBe(1);
  expect(existsSync(join(dataDir, 'current'))).toBe(false);
});

it('a build that cannot write the release ends with exit code 1', async () => {
  const sources = writeSources(dir, { one: ROWS });
  const { code, stderr } = await limited(16, `build --offline --sources '${sources}'`);
  expect(stderr).toMatch(/ipatlas: the data directory [^\n]* cannot be written [^\n]*free space/);
  expect(code).toBe(1);
  expect(existsSync(join(dataDir, 'current'))).toBe(false);
});

it('a key that cannot be stored is not printed, and is exit code 1', async () => {
  mkdirSync(dataDir);
  const { code, stdout, stderr } = await limited(4, 'keys create');
  expect(stderr).toMatch(/^ipatlas: [^\n]*keys\.sqlite cannot be used: [^\n]*\n$/);
  expect([code, stdout]).toEqual([1, '']);
});

it('a rollback works, and says that it is not recorded', async () => {
  for (const rows of [ROWS, [...ROWS, '81.0.0.0,81.0.0.255,IT']]) {
    expect((await ipatlas(['build', '--sources', writeSources(dir, { one: rows }), '--data', dataDir])).code).toBe(0);
  }
  const [now, before] = releaseIds(dataDir);
  const { code, stderr } = await limited(0, 'rollback');
  expect(stderr).toContain(`release ${before} is now current instead of ${now}\nThe disk is full`);
  expect([code, currentReleaseId(dataDir)]).toEqual([0, before]);
});
