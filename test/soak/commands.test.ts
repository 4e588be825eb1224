/** A source whose command never stops writing. test/build/after.test.ts, a part of `make soak`, kills steps after a publication. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MAX_DOWNLOAD_BYTES } from '../../src/limits.js';
import { atlasError, runFetch, source } from '../pipeline/fetch-support.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';

giveFolders();

it('ends a command that writes 2 GB, and keeps nothing of it in memory or on the disk', async () => {
  mkdirSync(dataDir);
  const command = ['head', '-c', '2147483648', '/dev/zero'];
  const before = process.memoryUsage().rss;
  const error = await atlasError(
    runFetch([source({ kind: 'command', command, file: 'a.csv', files: [], baseDir: dir, timeout: '5m' })], dataDir),
  );
  expect(error.message).toContain(`it wrote more than ${MAX_DOWNLOAD_BYTES} bytes`);
  expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
  expect(readdirSync(join(dataDir, 'tmp', 'work'))).toEqual([]);
});
