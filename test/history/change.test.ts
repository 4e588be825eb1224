/** How fast the countries of addresses change, as the own history of a data directory says. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { pageText } from '../../src/api/page/lookup-html.js';
import { ServedRelease } from '../../src/api/releases/served-release.js';
import { changeRate } from '../../src/database/age.js';
import { openDatabase } from '../../src/database/database.js';
import { releaseDir } from '../../src/database/release.js';
import { openArchive } from '../../src/history/archive.js';
import { importEntry } from '../../src/history/write.js';
import { describeRelease } from '../../src/report/release-report.js';
import { ipatlas } from '../support/in-process.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';
import { answersOfWorld, EMPTY_WORLD } from './support.js';

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 0, 1, 12);
const [AA, BB] = ['AA', 'BB'].map((code) => country(code, `Country ${code}`)) as [Block[1], Block[1]];
const BLOCKS: Block[] = [['80.0.0.0/8', AA]];
// An address in 256 gets another country; as many lose theirs, and others get their first one.
const LATER: Block[] = [...BLOCKS, ['80.7.0.0/16', BB], ['90.0.0.0/8', BB]];

let dataDir: string;
beforeEach(() => {
  dataDir = temporaryDir();
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function publishAfter(days: number, blocks: Block[]): Promise<string> {
  vi.setSystemTime(START + days * DAY_MS);
  await publishBlocks(dataDir, blocks, new Date().toISOString().slice(0, 10), 730);
  return releaseDir(dataDir);
}

it('is measured at a publication, against what was published here 60 days ago or earlier', async () => {
  // What somebody imported is no history of this machine's sources.
  importEntry(openArchive(dataDir), { day: '2025-01-01', name: 'table', answers: answersOfWorld(EMPTY_WORLD) });
  const first = await publishAfter(0, BLOCKS);
  const constant = changeRate(first);
  expect(constant).toBe(0.000189);
  expect(existsSync(join(await publishAfter(59, LATER), 'change.json'))).toBe(false);
  const dir = await publishAfter(100, LATER);
  const rate = 1 / 256 / 100 ** 0.77;
  expect(changeRate(dir)).toBeCloseTo(rate, 15);
  expect(changeRate(first)).toBe(constant);

  // A hundred days later, as much is said to have changed; nothing opens the archive for that.
  vi.setSystemTime(START + 200 * DAY_MS);
  rmSync(join(dataDir, 'history'), { recursive: true });
  const text = '100 days old: about 0.39 % of IPv4 addresses have changed country since';
  const { stdout, stderr } = await ipatlas(['info', '--data', dataDir]);
  expect(stdout).toContain(text);
  expect(stderr).toContain('more than 35; about 0.39 % of');
  expect(describeRelease(dataDir, dir).age).toBe(text);
  using database = openDatabase(dataDir);
  const served = new ServedRelease(database);
  const content = { baseUrl: 'http://x', isSeed: false, manifest: database.manifest, changeRate: served.changeRate };
  expect(pageText(content)).toContain(text);

  for (const content of ['', 'null', '{}', '{"from":"2026-01-01","to":"2026-02-01","share":0.1}', '{"share":2}']) {
    writeFileSync(join(dir, 'change.json'), content);
    expect(changeRate(dir)).toBe(constant);
  }
});

it('does not hold up a publication if the base is damaged', async () => {
  await publishAfter(0, BLOCKS);
  writeFileSync(openArchive(dataDir).entries[0]!.path, 'damaged');
  const dir = await publishAfter(100, LATER);
  expect(existsSync(join(dir, 'change.json'))).toBe(false);
  expect((await ipatlas(['verify', '--data', dataDir])).code).toBe(5);
});
