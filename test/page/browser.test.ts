/** The page in a real browser. Screenshots are written to a temporary folder, or to the one that SCREENSHOTS names. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createKey, listKeys } from '../../src/api/keys/key-store.js';
import { packageFile } from '../../src/package-root.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { type ServeProcess, serve, until } from '../support/serve.js';
import { hasChromium, launch, openPage, SKIPPED, SlowProxy, violations, type WatchedPage } from './chromium.js';

if (!hasChromium()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

/** The first `count` addresses of a list that goes through countries, IPv6, private addresses. */
function addresses(count: number): string[] {
  const blocks = ['8.1', '80.2', '81.3', '90.0', '10.4', '193.0'];
  return Array.from({ length: count }, (_, index) => {
    if (index % 7 === 6) return `2a00:${(index & 0xffff).toString(16)}::${index.toString(16)}`;
    return `${blocks[index % 6]}.${index % 6 === 5 ? index & 7 : (index >> 8) & 255}.${index & 255}`;
  });
}

describe.skipIf(!hasChromium())('the page', () => {
  let dataDir: string;
  let shots: string;
  let browser: Browser;
  let server: ServeProcess;
  let opened: WatchedPage[];
  beforeAll(async () => {
    dataDir = temporaryDir();
    shots = process.env.SCREENSHOTS ?? join(dataDir, 'screenshots');
    mkdirSync(shots, { recursive: true });
    await publishBlocks(dataDir, SMALL_WORLD);
    browser = await launch();
    server = await serve(dataDir, '--sign-up', 'open');
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(() => {
    opened = [];
  });
  afterEach(async () => {
    for (const { page } of opened) await page.context().close();
  });

  const open = async (url = server.url, options: Parameters<typeof openPage>[1] = {}): Promise<WatchedPage> => {
    const watched = await openPage(browser, options);
    opened.push(watched);
    await watched.page.goto(url);
    return watched;
  };
  const withMap = async (page: Page): Promise<void> => {
    await page.waitForSelector('#map svg');
  };
  const statusOf = (page: Page, text: RegExp): Promise<unknown> =>
    page.waitForFunction(
      ([source]) => new RegExp(source!).test(document.querySelector('#status')?.textContent ?? ''),
      [text.source],
    );
  const runBatch = async (page: Page, text: string): Promise<void> => {
    await page.fill('#text', text);
    await page.click('#start');
    await statusOf(page, /^Done/);
  };
  /** Chooses a file with some addresses. */
  const useList = async (page: Page, count: number): Promise<void> => {
    // By its path: the test's tool would decode a buffer within the page.
    const path = join(dataDir, `list-${count}.txt`);
    writeFileSync(path, `${addresses(count).join('\n')}\n`);
    await page.setInputFiles('#file', path);
  };
  const rowsOf = (page: Page): Promise<string[]> =>
    page.$$eval('#counts tbody tr', (rows) =>
      rows.map((row) => [...row.children].map((cell) => cell.textContent).join('|')),
    );
  const downloadOf = async (page: Page, button: string): Promise<string> => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
    return readFileSync(await download.path(), 'utf8');
  };

  it('shows the own address, the release and the age of its data, and requests nothing from other hosts', async () => {
    const { page, problems, requests } = await open();
    await withMap(page);
    expect(await page.textContent('#own')).toContain('127.0.0.1');
    expect(await page.textContent('main')).toMatch(/2026-01-01, \d+ days old/);
    await page.fill('#ip', '8.8.8.8');
    await page.click('#lookup button');
    await page.waitForSelector('#answer dl');
    await runBatch(page, '8.8.8.8');
    const origins = new Set(requests.map((url) => new URL(url).origin));
    expect([...origins]).toEqual([server.url]);
    expect(await page.context().cookies()).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('looks up an address, and reports text that is not one', async () => {
    const { page, problems } = await open();
    await withMap(page);
    for (const [ip, text] of [
      ['193.0.0.1', /Netherlands NL.*European Unionyes/s],
      ['2001:4860:4860::8888', /2001:4860:4860:0000.*United States US.*European Unionno/s],
      ['10.0.0.1', /no country/],
      ['256.1.1.1', /This is not an IP address\./],
    ] as const) {
      await page.fill('#ip', ip);
      await page.press('#ip', 'Enter');
      await page.waitForFunction(
        ([source]) => new RegExp(source!, 's').test(document.querySelector('#answer')?.textContent ?? ''),
        [text.source],
      );
    }
    // The last result is on the map.
    expect(await page.getAttribute('[data-country=NL]', 'data-level')).toBe('0');
    expect(new URL(page.url()).search).toBe('');
    expect(problems).toEqual([]);
  });

  it('counts a pasted list by country, draws it on the map, and offers it as CSV and JSON lines', async () => {
    const { page, problems } = await open();
    await withMap(page);
    const hostile = '=HYPERLINK("http://evil.example")';
    const lines = ['8.8.8.8', '8.8.8.9', '193.0.0.1', '2a00::1', '10.0.0.1', hostile, 'a line of words', ''];
    await runBatch(page, lines.join('\n'));
    expect(await page.textContent('#status')).toMatch(/6 of 6 looked up\. 1 lines have no address\./);
    expect(await rowsOf(page)).toEqual([
      'United States|US|no|2|33.3%|',
      'Germany|DE|yes|1|16.7%|',
      'Netherlands|NL|yes|1|16.7%|',
      'No country|||1|16.7%|',
      'Not an address|||1|16.7%|',
    ]);
    expect(await page.textContent('#share')).toBe('In the European Union: 2 of 4 addresses with a country, 50.0%.');
    const levels = await page.$$eval('#map [data-country]', (shapes) =>
      shapes
        .filter((shape) => shape.getAttribute('data-level') !== '0')
        .map((shape) => shape.getAttribute('aria-label')),
    );
    expect(levels.sort()).toEqual(['Germany: 1', 'Netherlands: 1', 'United States: 2']);
    expect(await page.$$eval('#legend li', (items) => items.map((item) => item.textContent))).toEqual(['1', '2']);

    const rows = parse(await downloadOf(page, '#csv'), { columns: true }) as Record<string, string>[];
    expect(rows).toHaveLength(6);
    expect(rows[2]).toEqual({ line: '3', ip: '193.0.0.1', country: 'Netherlands', country_code: 'NL', is_eu: 'true' });
    expect(rows[5]).toEqual({ line: '6', ip: `'${hostile}`, country: '', country_code: '', is_eu: '' });
    const json = (await downloadOf(page, '#jsonl'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(json[4]).toEqual({ line: 5, ip: '10.0.0.1', country: null, country_code: null, is_eu: false });
    expect(json[5]).toEqual({ line: 6, ip: hostile, error: 'invalid ip' });
    expect(problems).toEqual([]);
  });

  it('takes a CSV file, a log that is dropped, and a long text that is pasted', async () => {
    const { page } = await open();
    await page.setInputFiles('#file', {
      name: 'a.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('name,ip\na,8.8.8.8\n'),
    });
    expect(await page.textContent('#source')).toBe('a.csv');
    await page.click('#start');
    await statusOf(page, /^Done/);
    expect(await rowsOf(page)).toEqual(['United States|US|no|1|100.0%|']);

    await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(new File(['193.0.0.1 - - [x] "GET /"\n193.0.0.2:80 x\n'], '<img src=x onerror=alert(1)>.log'));
      document.querySelector('#batch')!.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true }));
    });
    expect(await page.textContent('#source')).toBe('<img src=x onerror=alert(1)>.log');
    await page.click('#start');
    await statusOf(page, /^Done\. 2 of 2/);
    expect(await rowsOf(page)).toEqual(['Netherlands|NL|yes|2|100.0%|']);

    await page.evaluate((text) => {
      const data = new DataTransfer();
      data.setData('text/plain', text);
      const paste = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector('#text')!.dispatchEvent(paste);
    }, '80.0.0.1\n'.repeat(12_000));
    expect(await page.textContent('#source')).toBe('pasted text');
    await page.click('#start');
    await statusOf(page, /^Done\. 12,000 of 12,000/);
    expect(await rowsOf(page)).toEqual(['Germany|DE|yes|12,000|100.0%|']);
  });

  it('refuses files that are not text, and stays usable with hostile ones', async () => {
    const { page, problems } = await open();
    const use = async (name: string, buffer: Buffer): Promise<void> => {
      const path = join(dataDir, name);
      writeFileSync(path, buffer);
      await page.setInputFiles('#file', path);
      await page.click('#start');
    };
    await use('program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 3, 0xff]));
    await statusOf(page, /^This is not a text file\./);
    await use('empty', Buffer.from(''));
    await statusOf(page, /^There is no address in this text\./);
    await use('line', Buffer.concat([Buffer.alloc(10_000_000, 'x.1:'), Buffer.from('\n8.8.8.8\n')]));
    await statusOf(page, /^Done\. 1 of 1 looked up\. 1 lines have no address\./);
    const script = '<script>window.hacked=1</script>';
    await use('script.csv', Buffer.from(`${script}\n"${script}",8.8.8.8\n\ud83d\n`));
    await statusOf(page, /^Done/);
    expect(await page.evaluate(() => 'hacked' in window)).toBe(false);
    expect(parse(await downloadOf(page, '#csv'), { columns: true })[0]).toMatchObject({ line: '1', ip: script });
    expect(problems).toEqual([]);
  });

  describe('through a proxy', () => {
    let proxy: SlowProxy;
    let url: string;
    beforeEach(async () => {
      proxy = new SlowProxy(server.port);
      url = await proxy.start();
    });
    afterEach(() => proxy.stop());

    it('shows progress on a slow server, cancels, and continues', async () => {
      const { page } = await open(url);
      proxy.delay = 300;
      await useList(page, 4_000);
      await page.click('#start');
      await page.waitForFunction(() => {
        const progress = document.querySelector<HTMLProgressElement>('#progress')!;
        return progress.value > 0.2 && progress.value < 1;
      });
      expect(await page.isDisabled('#start')).toBe(true);
      await page.click('#cancel');
      await statusOf(page, /^Canceled\. [1-3],000 of 4,000 looked up\./);
      const done = proxy.batches;
      proxy.delay = 0;
      await page.click('#start');
      await statusOf(page, /^Done\. 4,000 of 4,000/);
      // What was done is not asked for again.
      expect(proxy.batches - done).toBeLessThanOrEqual(3);
    });

    it('keeps its results if the server stops in the middle, and continues when it is back', async () => {
      const { page } = await open(url);
      proxy.onBatch = (count) => {
        if (count === 3) proxy.isDown = true;
      };
      await useList(page, 5_000);
      await page.click('#start');
      await statusOf(page, /^The server cannot be reached\. 2,000 of 5,000 looked up\./);
      expect((await downloadOf(page, '#jsonl')).trim().split('\n')).toHaveLength(2_000);
      await page.fill('#ip', '8.8.8.8');
      await page.click('#lookup button');
      await page.waitForSelector('#answer .problem');
      proxy.isDown = false;
      expect(await page.textContent('#start')).toBe('Continue');
      await page.click('#start');
      await statusOf(page, /^Done\. 5,000 of 5,000/);
      expect((await downloadOf(page, '#jsonl')).trim().split('\n')).toHaveLength(5_000);
    });
  });

  it('gets another key when its key is no longer valid, and waits when the rate is used up', async () => {
    const limited = await serve(dataDir, '--rate', '1500');
    const { port } = limited;
    try {
      const { page } = await open(limited.url);
      await runBatch(page, addresses(400).join('\n'));
      await limited.stop();
      // Another process has another secret.
      const again = await serve(dataDir, '--rate', '1500', '--port', String(port));
      try {
        await runBatch(page, addresses(100).join('\n'));
        await useList(page, 3_000);
        await page.click('#start');
        await statusOf(page, /^The rate is used up\. It goes on in \d+ s\. 1,000 of 3,000/);
        await page.click('#cancel');
        await statusOf(page, /^Canceled\. 1,000 of 3,000/);
      } finally {
        await again.stop();
      }
    } finally {
      await limited.stop();
    }
  });

  it('shows both addresses if there are servers for each family', async () => {
    const free = createServer().listen(0);
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const ipv4 = `http://ipv4.test:${port}`;
    const ipv6 = `http://ipv6.test:${port}/api/`;
    const both = await serve(dataDir, '--port', String(port), '--ipv4-url', ipv4, '--ipv6-url', ipv6);
    try {
      const { page, problems } = await open(`http://localhost:${port}`);
      await page.waitForSelector('#own-ipv4 dl');
      await page.waitForSelector('#own-ipv6 dl');
      expect(await page.textContent('#own-ipv4')).toContain('127.0.0.1');
      expect(await page.textContent('#own-ipv6')).toContain('0000:0000:0000:0000:0000:0000:0000:0001');
      expect(problems).toEqual([]);
    } finally {
      await both.stop();
    }
  });

  it('makes a key that is shown once, shows its rate, and revokes it', async () => {
    const { page, problems } = await open();
    await page.click('#make-key');
    await page.waitForSelector('#new-key:not([hidden])');
    const key = (await page.textContent('#key-text'))!;
    expect(key).toMatch(/^ipa_/);
    expect(await page.textContent('#curl')).toContain(key);
    const headers = { 'x-api-key': key };
    expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(200);
    expect(listKeys(dataDir).filter(({ self_issued }) => self_issued)).toHaveLength(1);
    await page.click('#key-form button[type=submit]');
    await page.waitForFunction(() =>
      /60,000 addresses a minute, 59,999/.test(document.querySelector('#key-status')!.textContent!),
    );
    await page.click('#revoke-key');
    await page.waitForFunction(() => document.querySelector('#key-status')!.textContent === 'The key is revoked.');
    expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(403);
    expect(problems).toEqual([]);
    await page.reload();
    expect(await page.textContent('body')).not.toContain(key);
  });

  it('copies the examples', async () => {
    const { page } = await open(server.url, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.click('[data-copy=curl]');
    await page.waitForFunction(() => document.querySelector('[data-copy=curl]')!.textContent === 'Copied');
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toBe(`curl -H 'X-API-Key: <API_KEY>' ${server.url}/api/lookup/8.8.8.8`);
  });

  it('can be used by keyboard only', async () => {
    const { page } = await open();
    await withMap(page);
    const focused = () => page.evaluate(() => document.activeElement?.id ?? '');
    const tabTo = async (id: string): Promise<void> => {
      for (let i = 0; i < 30; i++) {
        if ((await focused()) === id) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`Tab does not reach #${id}`);
    };
    await tabTo('ip');
    await page.keyboard.type('193.0.0.1');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#answer dl');
    await tabTo('text');
    await page.keyboard.type('8.8.8.8\n193.0.0.1\n8.8.8.9');
    await tabTo('file');
    await tabTo('start');
    await page.keyboard.press('Enter');
    await statusOf(page, /^Done/);
    await tabTo('csv');
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
    expect(download.suggestedFilename()).toBe('ipatlas.csv');
    for (let i = 0; i < 6 && (await page.evaluate(() => document.activeElement?.tagName)) !== 'path'; i++)
      await page.keyboard.press('Tab');
    const label = () => page.textContent('#map-label');
    expect(await label()).toBe('United States: 2');
    await page.keyboard.press('ArrowRight');
    expect(await label()).toBe('Netherlands: 1');
    await page.keyboard.press('ArrowRight');
    expect(await label()).toBe('Afghanistan');
    await page.keyboard.press('Home');
    expect(await label()).toBe('United States: 2');
    // One Tab leaves the map.
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('make-key');
  });

  it('names the country under the pointer, dots for small ones included', async () => {
    const { page } = await open();
    await withMap(page);
    await runBatch(page, '80.0.0.1\n80.0.0.2');
    await page.hover('[data-country=VA]');
    expect(await page.textContent('#map-label')).toBe('Vatican City');
    await page.hover('[data-country=DE]');
    expect(await page.textContent('#map-label')).toBe('Germany: 2');
    await page.hover('h1');
    expect(await page.textContent('#map-label')).toBe('');
    const codes = await page.$$eval('#map [data-country]', (shapes) =>
      shapes.map((shape) => shape.getAttribute('data-country')),
    );
    const table = readFileSync(packageFile('data/reference/countries.csv'), 'utf8');
    const rows = parse(table, { comment: '#', columns: true }) as { code: string }[];
    expect(new Set(codes)).toEqual(new Set(rows.map(({ code }) => code)));
  });

  it('shows the own address and looks up by a plain form without JavaScript', async () => {
    const { page, problems } = await open(server.url, { javaScriptEnabled: false });
    expect(await page.textContent('#own')).toContain('127.0.0.1');
    await page.fill('#ip', '193.0.0.1');
    await page.press('#ip', 'Enter');
    await page.waitForURL('**/?ip=193.0.0.1');
    expect(await page.textContent('#answer')).toContain('Netherlands');
    expect(await page.isVisible('#batch')).toBe(false);
    expect(await page.isVisible('#make-key')).toBe(false);
    expect(await page.isVisible('noscript')).toBe(true);
    await page.screenshot({ path: join(shots, 'no-script.png'), fullPage: true });
    expect(problems).toEqual([]);
  });

  // Colors and widths do not depend on each other.
  it.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)('is accessible and fits, %s, %i px', async (colorScheme, width) => {
    const { page, problems } = await open(server.url, { colorScheme, viewport: { width, height: 800 } });
    await withMap(page);
    expect(await violations(page)).toEqual([]);
    await page.fill('#ip', '193.0.0.1');
    await page.press('#ip', 'Enter');
    await page.waitForSelector('#answer dl');
    await page.click('#make-key');
    await page.waitForFunction(() => document.querySelector('#key-status')?.textContent !== '');
    await runBatch(page, `${addresses(900).join('\n')}\nx\n`);
    expect(await violations(page)).toEqual([]);
    const overflow = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(overflow).toBe(0);
    await page.screenshot({ path: join(shots, `page-${colorScheme}-${width}.png`), fullPage: true });
    expect(problems.filter((text) => !/429/.test(text))).toEqual([]);
  });

  describe('GET /docs', () => {
    it('shows the API and sends requests from the page, under the same policy', async () => {
      const key = createKey(dataDir).key;
      const { page, problems, requests } = await open(`${server.url}/docs`);
      await page.waitForSelector('.opblock');
      expect(
        await page.$$eval('.opblock-summary-path', (paths) => paths.map((path) => path.getAttribute('data-path'))),
      ).toContain('/api/lookup/{ip}');
      await page.click('.authorize');
      await page.fill('.auth-container input', key);
      await page.click('.auth-btn-wrapper .authorize');
      await page.click('.btn-done');
      await page.click('[id^=operations-][id$=-lookup] .opblock-summary-control');
      await page.click('.try-out__btn');
      await page.fill('[placeholder=ip]', '193.0.0.1');
      // The key may not be known to the server yet.
      await until(async () => {
        await page.click('.execute');
        await page.waitForSelector('.live-responses-table .response .response-col_status');
        return (await page.textContent('.live-responses-table .response .response-col_status'))?.startsWith('200');
      }, 'a response with status 200');
      expect(await page.textContent('.live-responses-table .response .response-col_description')).toContain(
        'Netherlands',
      );
      expect(new Set(requests.filter((url) => !url.startsWith('data:')).map((url) => new URL(url).origin))).toEqual(
        new Set([server.url]),
      );
      await page.screenshot({ path: join(shots, 'docs.png') });
      expect(problems.filter((text) => /Content Security Policy/.test(text))).toEqual([]);
    });
  });

  describe('a key for browsers', () => {
    let shop: Server;
    let origin: string;
    beforeAll(async () => {
      shop = createServer((_request, response) => {
        response.setHeader('content-type', 'text/html');
        response.end('<!DOCTYPE html><title>shop</title>');
      });
      await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
      origin = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
    });
    afterAll(() => {
      shop.closeAllConnections();
      shop.close();
    });

    it('works in pages of its origin, and is refused readably in others', async () => {
      const key = createKey(dataDir, { origins: [origin] }).key;
      const other = origin.replace('127.0.0.1', 'localhost');
      const ask = async (page: Page) =>
        page.evaluate(
          async ([url, secret]) => {
            const answers = [];
            for (const init of [{}, { method: 'POST', body: '["8.8.8.8"]' }]) {
              const path = 'body' in init ? '/api/batch' : '/api/lookup/8.8.8.8';
              const headers = { 'X-API-Key': secret!, 'Content-Type': 'application/json' };
              const response = await fetch(url + path, { ...init, headers });
              answers.push([response.status, ((await response.json()) as { error?: string }).error]);
            }
            return answers;
          },
          [server.url, key],
        );
      const { page } = await open(origin);
      await until(async () => (await ask(page))[0]![0] === 200, 'a key that works');
      expect(await ask(page)).toEqual([
        [200, undefined],
        [200, undefined],
      ]);
      const { page: otherPage } = await open(other);
      const refused = [403, 'The API key must not be used from this origin'];
      expect(await ask(otherPage)).toEqual([refused, refused]);
    });
  });
});
