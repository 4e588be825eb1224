/** The package @ipatlas/lookup in a real browser, as it is. Every boundary, other runtimes and bundlers: make soak. */
import { describe, expect, it } from 'vitest';
import { releaseDir } from '../../src/database/release.js';
import { packageFile } from '../../src/package-root.js';
import { hasChromium, SKIPPED } from '../page/chromium.js';
import { boundaries } from '../support/boundaries.js';
import { seedRelease } from '../support/built-release.js';
import { checkInChromium } from '../support/chromium-lookups.js';

if (!hasChromium()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

describe.skipIf(!hasChromium())('@ipatlas/lookup in Chromium', () => {
  it('gives the results of the SQLite mirror; of another origin, transfers and opens a file once', async () => {
    const list = [...boundaries(releaseDir((await seedRelease()).dataDir), 200)].join('\n');
    const { count, wrong, shared, asked, problems } = await checkInChromium(
      packageFile('dist/lookup'),
      'index.js',
      list,
    );
    expect({ wrong, problems }).toEqual({ wrong: [], problems: [] });
    expect([shared, ...asked]).toEqual([true, 'GET false', 'GET true']);
    expect(count).toBeGreaterThan(6_000);
  });
});
