/** A release for all tests of a file: published before them, and removed after them. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import type { LabelBlock } from './labels.js';
import type { NetworkBlock } from './networks.js';
import { type Block, publishBlocks, SMALL_WORLD, temporaryDir } from './release.js';

/** Its members are set when the tests run, not before. */
export interface OpenRelease {
  dataDir: string;
  database: Database;
  file: RangeFile;
}

/** Publishes blocks as a release, by hooks of the test file that calls this. */
export function releaseForTests(
  blocks: Block[] = SMALL_WORLD,
  networks: readonly NetworkBlock[] = [],
  labels: readonly LabelBlock[] = [],
): OpenRelease {
  const release = {} as OpenRelease;
  beforeAll(async () => {
    release.dataDir = temporaryDir();
    await publishBlocks(release.dataDir, blocks, undefined, 0, networks, labels);
    release.database = openDatabase(release.dataDir);
    release.file = openRangeFile(join(release.database.dir, RANGE_FILE));
  });
  afterAll(() => {
    release.database.close();
    rmSync(release.dataDir, { recursive: true });
  });
  return release;
}
