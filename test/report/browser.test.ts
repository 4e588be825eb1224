/** The page of a report in a real browser. Screenshots are written to the folder that SCREENSHOTS names, if any. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { releaseDir } from '../../src/database/release.js';
import { describeRelease } from '../../src/report/release-report.js';
import { reportPage } from '../../src/report/report-page.js';
import { hasChromium, launch, openPage, SKIPPED, violations } from '../page/chromium.js';
import { temporaryDir } from '../support/release.js';
import { buildOnce, madeUpWorld, rowsText, writeSources } from '../support/sources.js';

if (!hasChromium()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

describe.skipIf(!hasChromium())('the page of a report', () => {
  let dir: string;
  let url: string;
  let browser: Browser;
  beforeAll(async () => {
    dir = temporaryDir();
    const dataDir = join(dir, 'data');
    const world = madeUpWorld();
    const evil = '</style><script>alert(1)</script><img src="http://127.0.0.1:9/x"> \u202eevil';
    const build = async (rows: typeof world, license: string) => {
      const path = writeSources(dir, { world: rowsText(rows) });
      const file = JSON.parse(readFileSync(path, 'utf8'));
      file.sources[0].license = license;
      writeFileSync(path, JSON.stringify(file));
      return buildOnce(dataDir, path, { force: true });
    };
    await build(world, 'CC0-1.0');
    // Refused by gates, and published by force: the page has the reasons, too.
    await build(
      world.map((row) => (row.first.startsWith('150.') ? { ...row, code: 'DE' } : row)),
      evil,
    );
    const path = join(dir, 'report.html');
    writeFileSync(path, reportPage(describeRelease(dataDir, releaseDir(dataDir))));
    url = pathToFileURL(path).href;
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
  });

  // Colors and widths do not depend on each other.
  it.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)('is readable and makes no request: %s, %d px', async (colorScheme, width) => {
    // axe-core is a script, which the policy of the page forbids.
    const { page, problems, requests } = await openPage(browser, {
      ...{ colorScheme, viewport: { width, height: 900 }, bypassCSP: true },
    });
    await page.goto(url);
    expect(await page.locator('svg.world [data-country]').count()).toBe(250);
    expect(await page.locator('.alert li').count()).toBeGreaterThan(0);
    const dimension = (name: string) => page.evaluate(`document.documentElement.${name}`);
    expect(await dimension('scrollWidth')).toBe(width);
    const fill = (code: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('[data-country=${code}]')).fill`);
    expect(await fill('DE')).not.toBe(await fill('AQ'));
    expect(await violations(page)).toEqual([]);
    expect(problems).toEqual([]);
    expect(requests.filter((each) => each !== url && !each.startsWith('data:'))).toEqual([]);
    const shots = process.env.SCREENSHOTS;
    if (shots !== undefined)
      await page.screenshot({ path: join(shots, `report-${colorScheme}-${width}.png`), fullPage: true });
    await page.context().close();
  });

  it('runs no script, and loads nothing that its text names, under its own policy', async () => {
    const { page, problems } = await openPage(browser);
    const failures: string[] = [];
    page.on('requestfailed', (sent) => failures.push(`${sent.url()} ${sent.failure()?.errorText}`));
    const path = join(dir, 'with-script.html');
    const inserted = '<script>document.title = "run"</script><img src="http://127.0.0.1:9/x" alt=""></main>';
    writeFileSync(path, readFileSync(fileURLToPath(url), 'utf8').replace('</main>', inserted));
    await page.goto(pathToFileURL(path).href);
    expect(await page.title()).toMatch(/^ipatlas release/);
    expect(problems.filter((problem) => problem.includes('Content Security Policy'))).toHaveLength(2);
    expect(failures).toEqual(['http://127.0.0.1:9/x csp']);
    await page.context().close();
  });
});
