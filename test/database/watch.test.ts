import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import { releaseDir } from '../../src/database/release.js';
import { type Block, country, publishBlocks, temporaryDir } from '../support/release.js';

const world = (code: string): Block[] => [['8.0.0.0/8', country(code, `Country ${code}`)]];
let dataDir: string;
beforeEach(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, world('AA'));
});
afterEach(() => {
  vi.restoreAllMocks();
});

const found = (database: Database): string | null => database.lookup('8.8.8.8')!.country_code;

describe.each(['binary', 'sqlite'] as const)('a database that follows releases (%s)', (engine) => {
  it('uses a release that is published later, and gives results all the time', async () => {
    using database = openDatabase(dataDir, { engine, watch: true });
    const other = openDatabase(dataDir, { engine });
    expect(found(database)).toBe('AA');
    const id = await publishBlocks(dataDir, world('BB'));
    await expect.poll(() => found(database)).toBe('BB');
    expect([database.manifest.id, database.dir]).toEqual([id, releaseDir(dataDir)]);
    expect(found(other)).toBe('AA');
    other.close();
  });

  it('keeps its release if the next one is damaged, reports it once, and uses the one after', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    using database = openDatabase(dataDir, { engine, watch: true });
    const copy = temporaryDir();
    const id = await publishBlocks(copy, world('BB'));
    const damaged = join(dataDir, 'releases', id);
    renameSync(join(copy, 'releases', id), damaged);
    rmSync(copy, { recursive: true });
    for (const name of ['ranges.ipr', 'ranges.sqlite']) writeFileSync(join(damaged, name), 'damaged');
    symlinkSync(join('releases', id), join(dataDir, 'current.new'));
    renameSync(join(dataDir, 'current.new'), join(dataDir, 'current'));
    await expect.poll(() => warn.mock.calls.length).toBe(1);
    expect(warn.mock.calls[0]![0]).toMatch(/the current release of .* is not used: .*manifest/);
    expect(found(database)).toBe('AA');
    await publishBlocks(dataDir, world('CC'));
    await expect.poll(() => found(database)).toBe('CC');
    expect(warn).toHaveBeenCalledTimes(1);
  });
});

describe('watch', () => {
  it('survives a data directory that temporarily has no current release', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    using database = openDatabase(dataDir, { watch: true });
    const link = join(dataDir, 'current');
    renameSync(link, `${link}.away`);
    await expect.poll(() => warn.mock.calls.length).toBe(1);
    expect(found(database)).toBe('AA');
    rmSync(`${link}.away`);
    await publishBlocks(dataDir, world('BB'));
    await expect.poll(() => found(database)).toBe('BB');
  });

  it('stops at close', () => {
    vi.useFakeTimers();
    try {
      const database = openDatabase(dataDir, { watch: true });
      expect(vi.getTimerCount()).toBe(1);
      database.close();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('requires a data directory', () => {
    expect(() => openDatabase(releaseDir(dataDir), { watch: true })).toThrow(
      expect.objectContaining({ code: 'E_USAGE' }),
    );
  });
});

describe('Symbol.dispose', () => {
  it('closes the database', () => {
    const close = vi.fn();
    {
      using database = openDatabase(dataDir);
      database.close = close;
    }
    expect(close).toHaveBeenCalledOnce();
  });
});
