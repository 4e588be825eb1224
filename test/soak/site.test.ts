/** The documentation's site in a real browser: accessibility of every page, the live lookup, nothing from elsewhere. `make soak` builds it. */
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packageFile } from '../../src/package-root.js';
import { launch, openPage, violations } from '../page/chromium.js';

const DIST = packageFile('site/dist');
const BASE = '/ipatlas/';
const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

const pages = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
let server: Server;
let origin: string;
let browser: Browser;
beforeAll(async () => {
  server = createServer((request, response) => {
    const path = join(DIST, decodeURI(new URL(request.url!, 'http://x').pathname).slice(BASE.length));
    if (!existsSync(path)) response.writeHead(404).end();
    else response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream').end(readFileSync(path));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  server.close();
  server.closeAllConnections();
});

it('has no accessibility findings, light and dark, and loads nothing from elsewhere', async () => {
  const shots = process.env.SCREENSHOTS;
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, requests } = await openPage(browser, { colorScheme });
    for (const name of pages) {
      await page.goto(`${origin}${BASE}${name}`);
      for (const violation of await violations(page)) found.push(`${name}, ${colorScheme}: ${violation}`);
      if (shots !== undefined && !name.includes('/'))
        await page.screenshot({ path: join(shots, `site-${name.replace('.html', '')}-${colorScheme}.png`) });
    }
    expect(new Set(requests.filter((url) => url.startsWith('http')).map((url) => new URL(url).origin))).toEqual(
      new Set([origin]),
    );
    await page.context().close();
  }
  expect(found).toEqual([]);
});

it('looks up addresses on the landing page', async () => {
  const { page, problems } = await openPage(browser);
  await page.goto(`${origin}${BASE}index.html`);
  for (const [ip, answer] of [
    ['193.0.6.139', /Netherlands.*in the European Union.*data of/s],
    ['10.0.0.1', /No country \(private\)/],
    ['x', /x is not an IP address/],
  ] as const) {
    await page.fill('#live-ip', ip);
    await page.click('.live button');
    await page.locator('.live-answer', { hasText: answer }).waitFor();
  }
  expect(problems).toEqual([]);
  await page.context().close();
});
