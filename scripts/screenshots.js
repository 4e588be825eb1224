/**
 * Takes pictures of the pages in every state, at 390 and 1,280 pixels, light and dark:
 *
 *     node scripts/screenshots.js FOLDER [NAME…]
 *
 * With names, only those states. The compiled server takes the visitor for one of the RIPE NCC, and answers from the seed; or from
 * the release in the data directory IPATLAS_DATA, which has networks and is built without network if it is not given.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const [folder, ...names] = process.argv.slice(2);
if (folder === undefined) {
  console.error('usage: node scripts/screenshots.js FOLDER [NAME…]');
  process.exit(2);
}

const START = fileURLToPath(new URL('../dist/src/cli/start.cjs', import.meta.url));
const VISITOR = '193.0.6.139';

/** Starts a server; resolves to its URL. */
async function serve(dataDir, ...flags) {
  const args = [
    'serve',
    '--data',
    dataDir,
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--trust-proxy',
    '127.0.0.1',
    ...flags,
  ];
  const child = spawn(process.execPath, [START, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface(child.stderr)) {
    const { msg, url } = JSON.parse(line);
    if (msg === 'listening') return { child, url };
  }
  throw new Error('the server ended');
}

/** A log with addresses of many countries, some of them not public, and lines without any. */
function log(lines) {
  const text = [];
  for (let i = 0; i < lines; i++) {
    const ip =
      i % 11 === 3
        ? `2a0${i % 6}:${((i * 7919) % 65_536).toString(16)}::${(i % 4096).toString(16)}`
        : `${(i * 37) % 223}.${(i * 13) % 256}.${i % 256}.9`;
    text.push(i % 50 === 7 ? 'not-an-address' : i % 97 === 5 ? 'a line of words' : ip);
  }
  return text.join('\n');
}

const lookUp = async (page, ip) => {
  await page.fill('#ip', ip);
  await page.press('#ip', 'Enter');
};
const answered = (page, text) => page.locator('#answer', { hasText: text }).waitFor();
const runBatch = async (page, text) => {
  await page.setInputFiles('#file', { name: 'access.log', mimeType: 'text/plain', buffer: Buffer.from(text) });
  if (await page.isEnabled('#start')) await page.click('#start');
};
const told = (page, text) => page.locator('#status', { hasText: text }).waitFor();
/** Does several things in turn. */
const steps =
  (...acts) =>
  async (page) => {
    for (const act of acts) await act(page);
  };
const settled = (page) => page.waitForTimeout(300);
const tooMany = { status: 429, headers: { 'retry-after': '37' }, json: { error: 'Rate limit exceeded' } };

/** What each picture shows, by its name: the server, the path, and what is done before the picture. */
const STATES = {
  own: { act: settled },
  home: { visitor: '127.0.0.1', act: settled },
  fresh: {
    // The data of a clone is old; this is how new data looks.
    act: (page) =>
      page.evaluate(() => {
        const fact = document.querySelector('.facts .warning');
        fact.className = '';
        fact.textContent = 'Data of 2026-11-22, 1 day old';
      }),
  },
  member: {
    act: steps(
      (page) => lookUp(page, '80.67.169.12'),
      (page) => answered(page, 'France'),
    ),
  },
  'long-name': {
    act: steps(
      (page) => lookUp(page, '41.78.229.53'),
      (page) => answered(page, 'South Georgia'),
    ),
  },
  'no-country': {
    act: steps(
      (page) => lookUp(page, '10.0.0.1'),
      (page) => answered(page, 'No country'),
    ),
  },
  invalid: {
    act: steps(
      (page) => lookUp(page, '256.1.1.1:443'),
      (page) => answered(page, 'Not an IP'),
    ),
  },
  pending: {
    act: async (page) => {
      await page.route('**/api/batch*', () => {});
      await lookUp(page, '8.8.8.8');
      await answered(page, 'Looking up');
    },
  },
  offline: {
    act: async (page) => {
      await page.route('**/api/batch*', (route) => route.abort());
      await lookUp(page, '8.8.8.8');
      await answered(page, 'Offline');
    },
  },
  'rate-used-up': {
    act: async (page) => {
      await page.route('**/api/batch*', (route) => route.fulfill(tooMany));
      await lookUp(page, '8.8.8.8');
      await answered(page, 'Too many');
    },
  },
  release: { server: 'release', act: settled },
  'past-day': {
    server: 'release',
    act: steps(
      (page) => page.fill('#at', '2020-01-31'),
      (page) => lookUp(page, '8.8.8.8'),
      (page) => answered(page, 'No answer'),
    ),
  },
  history: {
    server: 'release',
    act: async (page) => {
      const period = (from, to, country, is_eu) => ({ from, to, country, is_eu });
      const periods = [
        period('2024-03-11', '2024-08-02', 'Germany', true),
        { from: '2024-08-03', to: '2024-08-05', error: 'not kept' },
        period('2024-08-06', '2025-12-31', 'United Kingdom', false),
        period('2026-01-01', null, 'Netherlands', true),
      ];
      await page.route('**/api/history/*', (route) => route.fulfill({ json: { ip: VISITOR, periods } }));
      await page.click('[data-history]');
      await page.waitForSelector('.history li');
    },
  },
  'batch-networks': {
    server: 'release',
    act: async (page) => {
      await page.check('#networks');
      await runBatch(page, log(20_000));
      await told(page, 'Done');
      await settled(page);
    },
  },
  'no-database': { server: 'empty' },
  'key-needed': { server: 'keyed' },
  'no-script': { options: { javaScriptEnabled: false } },
  batch: {
    act: steps(
      (page) => runBatch(page, log(20_000)),
      (page) => told(page, 'Done'),
      (page) => settled(page),
    ),
  },
  'batch-filtered': {
    act: async (page) => {
      await runBatch(page, log(20_000));
      await told(page, 'Done');
      await page.click('#counts button');
      await page.click('.row-head .c-address button');
      await settled(page);
    },
  },
  'batch-running': {
    server: 'private',
    act: async (page) => {
      await page.route('**/api/batch*', () => {});
      await runBatch(page, log(5_000));
      await settled(page);
    },
  },
  'batch-waiting': {
    server: 'private',
    act: async (page) => {
      let count = 0;
      await page.route('**/api/batch*', (route) => (++count > 2 ? route.fulfill(tooMany) : route.continue()));
      await runBatch(page, log(5_000));
      await told(page, 'used up');
    },
  },
  'batch-failed': {
    server: 'private',
    act: async (page) => {
      let count = 0;
      await page.route('**/api/batch*', (route) => (++count > 2 ? route.abort() : route.continue()));
      await runBatch(page, log(5_000));
      await told(page, 'cannot be reached');
      await settled(page);
    },
  },
  'batch-not-text': {
    act: steps(
      (page) => runBatch(page, '\x7fELF\0\0\x01'),
      (page) => told(page, 'not a text'),
    ),
  },
  print: {
    act: async (page) => {
      await runBatch(page, log(60));
      await told(page, 'Done');
      await settled(page);
      await page.emulateMedia({ media: 'print' });
      await page.evaluate(() => globalThis.dispatchEvent(new Event('beforeprint')));
    },
  },
  ...Object.fromEntries(
    ['de', 'pl', 'ja'].map((locale) => [
      `language-${locale}`,
      {
        options: { locale },
        act: steps(
          (page) => lookUp(page, '80.67.169.12'),
          (page) => answered(page, '80.67.169.12'),
          (page) => runBatch(page, log(20_000)),
          (page) => told(page, 'Done'),
          (page) => page.hover('#batch-map [data-country=CN]', { force: true }),
          (page) => settled(page),
        ),
      },
    ]),
  ),
  developers: { path: 'developers' },
  'key-made': {
    path: 'developers',
    act: steps(
      (page) => page.click('#make-key'),
      (page) => page.waitForSelector('#new-key:not([hidden])'),
    ),
  },
  'key-revoke': {
    path: 'developers',
    act: async (page) => {
      await page.fill('#key-input', 'ipa_x');
      await page.click('#revoke-key');
      await page.waitForSelector('dialog[open]');
    },
  },
  'key-refused': {
    path: 'developers',
    act: async (page) => {
      const refusal = { status: 429, headers: { 'retry-after': '2900' }, json: { error: 'Too many keys were made' } };
      await page.route('**/api/keys', (route) => route.fulfill(refusal));
      await page.click('#make-key');
      await page.locator('#key-status', { hasText: 'Too many' }).waitFor();
    },
  },
  data: { path: 'data' },
  docs: { path: 'docs', act: (page) => page.waitForTimeout(1_000) },
};

mkdirSync(folder, { recursive: true });
const dataDir = mkdtempSync(join(tmpdir(), 'ipatlas-'));
const isWanted = (name) => names.length === 0 || names.includes(name);
/** Returns a data directory with a release. */
function releaseDir() {
  const dir = process.env.IPATLAS_DATA ?? join(dataDir, 'release');
  if (process.env.IPATLAS_DATA === undefined)
    execFileSync(process.execPath, [START, 'build', '--data', dir, '--offline'], { stdio: ['ignore', 'ignore', 2] });
  return dir;
}
const servers = {
  main: await serve(dataDir, '--seed', '--sign-up', 'open', '--keyless'),
  private: await serve(dataDir, '--seed', '--no-public-db', '--keyless'),
  empty: await serve(dataDir),
  keyed: await serve(dataDir, '--seed', '--no-keyless'),
  ...(Object.entries(STATES).some(([name, { server }]) => server === 'release' && isWanted(name)) && {
    release: await serve(releaseDir(), '--keyless'),
  }),
};
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  for (const [name, { server = 'main', path = '', visitor = VISITOR, act, options }] of Object.entries(STATES)) {
    if (!isWanted(name)) continue;
    for (const width of [390, 1280]) {
      for (const colorScheme of ['light', 'dark']) {
        const viewport = { width, height: width === 390 ? 844 : 900 };
        const extraHTTPHeaders = { 'x-forwarded-for': visitor };
        const context = await browser.newContext({ colorScheme, viewport, extraHTTPHeaders, ...options });
        const page = await context.newPage();
        await page.goto(`${servers[server].url}/${path}`);
        if (options?.javaScriptEnabled !== false) await page.waitForLoadState('networkidle');
        try {
          await act?.(page);
        } catch (error) {
          console.error(`${name}: ${error.message}`);
        }
        await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        await context.close();
      }
    }
  }
} finally {
  await browser.close();
  for (const { child } of Object.values(servers)) child.kill();
  rmSync(dataDir, { recursive: true });
}
