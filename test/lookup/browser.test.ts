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
  it('gives the results of the SQLite mirror', async () => {
    const list = [...boundaries(releaseDir((await seedRelease()).dataDir), 200)].join('\n');
    const { count, wrong, problems } = await checkInChromium(packageFile('dist/lookup'), 'index.js', list);
    expect({ wrong, problems }).toEqual({ wrong: [], problems: [] });
    expect(count).toBeGreaterThan(6_000);
  });
});
