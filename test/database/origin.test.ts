/** Where the database comes from: a release or the seed. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { dataPlace, findDatabase, openRanges } from '../../src/database/origin.js';
import { REFUSED_DIR } from '../../src/database/release.js';
import { seedPath } from '../../src/database/seed.js';
import { createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { RELEASE_POLL_MS } from '../../src/limits.js';
import { country, publishBlocks, temporaryDir } from '../support/release.js';

/** An empty directory; the default data directory is `ipatlas` in it, because the tests run where there is no `data`. */
let home: string;
let dir: string;
const cwd = process.cwd();
beforeEach(() => {
  home = temporaryDir();
  dir = join(home, 'ipatlas');
  process.chdir(home);
  vi.stubEnv('XDG_DATA_HOME', home);
  vi.stubEnv('IPATLAS_DATA', undefined);
});
afterEach(() => {
  process.chdir(cwd);
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

const ID = '2026-01-01-000000000000';
const publish = (code: string) => publishBlocks(dir, [['8.0.0.0/8', country(code, `Country ${code}`)]]);

/** What a data directory has. */
const CONTENTS: Record<string, () => unknown> = {
  'does not exist': () => {},
  'is empty': () => mkdirSync(dir),
  'has keys and a cache': () => {
    mkdirSync(join(dir, 'cache'), { recursive: true });
    writeFileSync(join(dir, 'keys.sqlite'), '');
  },
  'has a release that the gates refused': () => mkdirSync(join(dir, 'releases', REFUSED_DIR, ID), { recursive: true }),
  'has a release': () => publish('AA'),
  'had a release that is gone': () => {
    mkdirSync(dir);
    symlinkSync(join('releases', ID), join(dir, 'current'));
  },
  'has a release that is not current': () => mkdirSync(join(dir, 'releases', ID), { recursive: true }),
};

type Outcome = 'seed' | 'release' | 'E_NO_DATABASE';

/** One row for each content: by default, named with --data, named with IPATLAS_DATA, and with --seed. */
const TABLE: Record<string, Outcome[]> = {
  'does not exist': ['seed', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
  'is empty': ['seed', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
  'has keys and a cache': ['seed', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
  'has a release that the gates refused': ['seed', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
  'has a release': ['release', 'release', 'release', 'seed'],
  'had a release that is gone': ['E_NO_DATABASE', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
  'has a release that is not current': ['E_NO_DATABASE', 'E_NO_DATABASE', 'E_NO_DATABASE', 'seed'],
};

function outcomeOf(find: () => string): string {
  try {
    const found = find();
    if (found === seedPath()) return 'seed';
    return found === realpathSync(join(dir, 'current')) ? 'release' : found;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('the database of a data directory that', () => {
  it.each(Object.entries(TABLE))('%s', async (content, expected) => {
    await CONTENTS[content]!();
    const places = [
      dataPlace(undefined),
      dataPlace(dir),
      dataPlace(undefined, false, { IPATLAS_DATA: dir }),
      dataPlace(dir, true),
    ];
    expect(places.map((place) => outcomeOf(() => findDatabase(place)))).toEqual(expected);
  });

  it('is damaged is an error, and not the seed', async () => {
    await publish('AA');
    writeFileSync(join(dir, 'current', 'ranges.ipr'), 'damaged');
    expect(() => openRanges(findDatabase(dataPlace(undefined)))).toThrow(
      expect.objectContaining({ code: 'E_DAMAGED' }),
    );
  });
});

describe('openDatabase', () => {
  it('opens the seed without a directory, and says so', () => {
    using database = openDatabase();
    expect(database.lookup('193.0.6.139')).toMatchObject({ country_code: 'NL', is_eu: true });
    expect([database.isSeed, database.dir]).toEqual([true, seedPath()]);
    expect(database.manifest.data_date).toMatch(/^20\d\d-\d\d-\d\d$/);
    const enriched = createBlockEnricher(database).enrichBlock(Buffer.from('{"ip":"193.0.6.139"}'));
    expect(Buffer.from(enriched).toString()).toContain('"country_code":"NL"');
  });

  it('opens the seed for a named directory only if it is asked to', async () => {
    expect(() => openDatabase(dir)).toThrow(expect.objectContaining({ code: 'E_NO_DATABASE' }));
    await publish('AA');
    using release = openDatabase();
    using seed = openDatabase(dir, { seed: true });
    expect([release.isSeed, seed.isSeed]).toEqual([false, true]);
  });

  it('has the confidence of the seed, but no mirror', () => {
    using database = openDatabase(undefined, { confidence: true });
    expect(database.lookupWithReason('193.0.6.139')!.confidence).toBe(100);
    expect(() => openDatabase(undefined, { engine: 'sqlite' })).toThrow(
      expect.objectContaining({ code: 'E_NO_DATABASE', message: expect.stringMatching(/build --offline/) }),
    );
  });

  it('follows the first release', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const warn = vi.spyOn(process, 'emitWarning');
    using database = openDatabase(undefined, { watch: true });
    vi.advanceTimersByTime(3 * RELEASE_POLL_MS);
    expect([database.isSeed, warn.mock.calls]).toEqual([true, []]);
    await publish('AA');
    vi.advanceTimersByTime(RELEASE_POLL_MS);
    expect([database.isSeed, database.lookup('8.8.8.8')!.country_code]).toEqual([false, 'AA']);
    warn.mockRestore();
  });
});
