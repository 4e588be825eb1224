/** The pages in a real browser: few loads of a page, many checks on each. What is long is in test/soak. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createKey, listKeys } from '../../src/api/keys/key-store.js';
import { releaseDir } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { openArchive } from '../../src/history/archive.js';
import { answersOf, importEntry } from '../../src/history/write.js';
import { packageFile } from '../../src/package-root.js';
import { SMALL_NETWORKS } from '../support/networks.js';
import { freePort } from '../support/ports.js';
import { country, publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';
import { until } from '../support/serve.js';
import { type RunningService, startService } from '../support/service.js';
import { hasChromium, launch, openPage, SKIPPED, violations, type WatchedPage } from './chromium.js';

if (!hasChromium()) it(SKIPPED, ({ skip }) => skip(SKIPPED));

/** The most that the page may load before the map, in bytes as they are sent. */
const FIRST_VISIT_BYTES = 60_000;
const MOST_LAYOUT_SHIFT = 0.02;

/** The first `count` addresses of a list that goes through countries, IPv6, private addresses. */
function addresses(count: number): string[] {
  const blocks = ['8.1', '80.2', '81.3', '90.0', '10.4', '193.0'];
  return Array.from({ length: count }, (_, index) => {
    if (index % 7 === 6) return `2a00:${(index & 0xffff).toString(16)}::${index.toString(16)}`;
    return `${blocks[index % 6]}.${index % 6 === 5 ? index & 7 : (index >> 8) & 255}.${index & 255}`;
  });
}

describe.skipIf(!hasChromium())('the pages', () => {
  let dataDir: string;
  let browser: Browser;
  /** Visitors can make keys, and their browsers load the database. */
  let server: RunningService;
  /** Browsers have to ask; and it has other names with one family of addresses each. */
  let asked: RunningService;
  let opened: WatchedPage[];
  beforeAll(async () => {
    dataDir = temporaryDir();
    // The history: another world on a past day, and this one today.
    await publishBlocks(dataDir, [['8.0.0.0/8', country('DE', 'Germany')]]);
    const answers = answersOf(openReleaseRanges(releaseDir(dataDir)).file);
    await publishBlocks(dataDir, SMALL_WORLD, undefined, 730, SMALL_NETWORKS);
    importEntry(openArchive(dataDir), { day: '2025-06-01', name: 'table', answers });
    const port = await freePort();
    const families = { 'ipv4-url': `http://ipv4.test:${port}`, 'ipv6-url': `http://ipv6.test:${port}/api/` };
    [browser, server, asked] = await Promise.all([
      launch(),
      startService(dataDir, { 'sign-up': 'open' }),
      startService(dataDir, { port: String(port), 'no-public-db': true, ...families }),
    ]);
  });
  afterAll(async () => {
    await browser.close();
    await Promise.all([server.stop(), asked.stop()]);
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
    await watched.page.addInitScript(() => {
      Object.assign(globalThis, { shift: 0 });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean })[])
          if (!entry.hadRecentInput) (globalThis as unknown as { shift: number }).shift += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await watched.page.goto(url);
    return watched;
  };
  const shiftOf = (page: Page): Promise<number> =>
    page.evaluate(() => (globalThis as unknown as { shift: number }).shift);
  const says = (page: Page, selector: string, text: RegExp): Promise<void> =>
    page.locator(selector, { hasText: text }).waitFor();
  const withMap = (page: Page): Promise<unknown> => page.waitForSelector('#answer-map svg');
  const useFile = async (page: Page, name: string, content: string | Buffer): Promise<string> => {
    // By its path: the test's tool would decode a buffer within the page.
    const path = join(dataDir, name);
    writeFileSync(path, content);
    await page.setInputFiles('#file', path);
    return path;
  };
  /**
   * Returns a list that grows with each change of the page: what an element says, and how many timers it has. What is shown for a
   * second may be gone before a test asks for it.
   */
  const recorded = (page: Page, selector: string) =>
    page.evaluateHandle((selector) => {
      const said: [text: string, timers: number][] = [];
      new MutationObserver(() => {
        const element = document.querySelector(selector)!;
        said.push([element.textContent!, element.querySelectorAll('[role=timer]').length]);
      }).observe(document.body, { childList: true, characterData: true, subtree: true });
      return said;
    }, selector);
  const lookUp = async (page: Page, ip: string, text: RegExp): Promise<void> => {
    await page.fill('#ip', ip);
    await page.press('#ip', 'Enter');
    await says(page, '#answer', text);
  };
  const rowsOf = (page: Page): Promise<string[]> =>
    page.$$eval('.row-line', (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent).join('|')));
  const hasRows = async (page: Page, expected: string[]): Promise<void> => {
    await until(async () => JSON.stringify(await rowsOf(page)) === JSON.stringify(expected), 'the rows').catch(
      async () => expect(await rowsOf(page)).toEqual(expected),
    );
  };
  const countsOf = (page: Page): Promise<string[]> =>
    page.$$eval('#counts tbody tr', (rows) =>
      rows.map((row) => [...row.children].map((cell) => cell.textContent).join('|')),
    );
  const downloadOf = async (page: Page, button: string): Promise<string> => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
    return readFileSync(await download.path(), 'utf8');
  };
  const overflowOf = (page: Page): Promise<number> =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

  it('answers at first paint, without shifts, other origins and cookies; then looks up', async () => {
    const watched = await openPage(browser, { viewport: { width: 390, height: 800 } });
    const { page, problems, requests } = watched;
    opened.push(watched);
    // The map comes late, and must move nothing.
    await page.route('**/world.svg', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await route.continue();
    });
    await page.addInitScript(() => {
      Object.assign(globalThis, { shift: 0 });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries() as (PerformanceEntry & { value: number })[])
          (globalThis as unknown as { shift: number }).shift += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await page.goto(server.url);
    expect(await page.textContent('#answer')).toMatch(/Example.*Netherlands.*193\.0\.6\.139/s);
    expect(await page.textContent('.facts .warning')).toMatch(/2026-01-01, \d+ days old: about .* have changed/);
    await withMap(page);
    expect(await shiftOf(page)).toBeLessThan(MOST_LAYOUT_SHIFT);
    const bytes = await page.evaluate(() =>
      [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .filter(({ name }) => !name.endsWith('world.svg'))
        .reduce((sum, entry) => sum + (entry as PerformanceResourceTiming).transferSize, 0),
    );
    expect([bytes > 10_000, bytes < FIRST_VISIT_BYTES]).toEqual([true, true]);
    for (const [ip, text] of [
      [
        '193.0.0.1',
        /This address is in.*Netherlands.*in the European Union.*193\.0\.0\.1.*NL.*Network193\.0\.0\.0\/21.*AS3333 RIPE NCC/s,
      ],
      ['2001:4860:4860::8888', /United States.*not in the European Union.*2001:4860:4860:0000/s],
      ['10.0.0.1', /No country.*private, reserved/s],
      ['256.1.1.1', /256\.1\.1\.1.*Not an IP address/s],
    ] as const)
      await lookUp(page, ip, text);
    expect(await page.getAttribute('#ip', 'aria-invalid')).toBe('true');
    await page.click('.try a');
    await says(page, '#answer', /United States/);
    expect(await page.getAttribute('#answer-map [data-country=US]', 'data-level')).toBe('5');
    expect(await page.getAttribute('#answer-map [data-country=NL]', 'data-level')).toBe('0');
    expect([new URL(page.url()).search, await page.getAttribute('#ip', 'aria-invalid')]).toEqual(['', null]);
    // A past day: its answer, and that it is not kept; and all days.
    await page.fill('#at', '2025-05-31');
    await lookUp(page, '8.8.8.8', /No answer.*The server answered:.*history has 2025-06-01 to/s);
    await page.fill('#at', '2025-06-01');
    await lookUp(
      page,
      '8.8.8.8',
      /On 2025-06-01, this address was in.*Germany.*in the European Union.*Network8\.0\.0\.0\/8/s,
    );
    await page.click('#answer [data-history]');
    await page.waitForSelector('.history li');
    expect(await page.$$eval('.history li', (items) => items.map(({ textContent }) => textContent))).toEqual([
      expect.stringMatching(/^since \d{4}-\d\d-\d\d United States$/),
      expect.stringMatching(/^2025-06-01 to \d{4}-\d\d-\d\d Germany, in the Union$/),
    ]);
    expect(await violations(page)).toEqual([]);
    expect(new Set(requests.map((url) => new URL(url).origin))).toEqual(new Set([server.url]));
    expect(await page.context().cookies()).toEqual([]);
    expect(problems.filter((text) => !/400/.test(text))).toEqual([]);
  });

  it('names countries in the language of the visitor: answers, history, map, rows and downloads', async () => {
    const { page, problems } = await open(server.url, { locale: 'de-AT' });
    await says(page, '#answer', /Example: this address is in.*Niederlande.*in the European Union/s);
    await withMap(page);
    await lookUp(page, '8.8.8.8', /Vereinigte Staaten/);
    await page.click('#answer [data-history]');
    await says(page, '.history', /Vereinigte Staaten.*Deutschland, in the Union/s);
    await page.fill('#text', '193.0.0.1\n2a00::1\n10.0.0.1');
    await page.click('#start');
    await says(page, '#status', /^Done/);
    await hasRows(page, [
      '1|193.0.0.1|Niederlande|yes',
      '2|2a00::1|Deutschland|yes',
      '3|10.0.0.1|no country: private|',
    ]);
    const label = (map: string) => page.getAttribute(`${map} [data-country=AT]`, 'aria-label');
    expect([await label('#answer-map'), await label('#batch-map')]).toEqual(['Österreich', 'Österreich']);
    expect(parse(await downloadOf(page, '#csv'), { columns: true })).toMatchObject([
      { country: 'Niederlande', country_code: 'NL' },
      { country: 'Deutschland', country_code: 'DE' },
      { country: '', country_code: '' },
    ]);
    expect(await violations(page)).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('never shows an old answer beside a new question: pending, offline, rate used up, no database', async () => {
    const { page } = await open();
    let answer: 'wait' | 'offline' | 'rate' | 'database' | 'key' | 'yes' = 'wait';
    let keys = 0;
    await page.route('**/page/key', (route) => {
      keys++;
      return route.continue();
    });
    await page.route('**/api/batch*', (route) => {
      if (answer === 'offline') return route.abort();
      if (answer === 'database') return route.fulfill({ status: 503, json: { error: 'Database not loaded' } });
      if (answer === 'key') {
        answer = 'yes';
        return route.fulfill({ status: 403, json: { error: 'Invalid API key' } });
      }
      if (answer === 'rate') {
        answer = 'yes';
        return route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: 'Rate limit exceeded' } });
      }
      return answer === 'yes' ? route.continue() : undefined;
    });
    await lookUp(page, '8.8.8.8', /8\.8\.8\.8.*Looking up/s);
    expect(await page.textContent('#answer')).not.toMatch(/127|Example|No country/);
    answer = 'offline';
    await lookUp(page, '193.0.0.1', /193\.0\.0\.1.*Offline/s);
    answer = 'yes';
    await page.click('#answer button:has-text("Try again")');
    await says(page, '#answer', /Netherlands/);
    answer = 'database';
    await lookUp(page, '8.8.8.8', /No database yet/);
    answer = 'rate';
    const said = await recorded(page, '#answer');
    await lookUp(page, '80.0.0.1', /Germany/);
    expect(await said.jsonValue()).toContainEqual([expect.stringMatching(/80\.0\.0\.1.*Too many lookups.*1 s/s), 1]);
    answer = 'key';
    expect(keys).toBe(1);
    await lookUp(page, '8.8.8.8', /United States/);
    expect(keys).toBe(2);
  });

  it('looks up a batch in the browser: figures, rows, filters, order, map, downloads; accessible', async () => {
    const { page, problems, requests } = await open();
    await withMap(page);
    expect(await violations(page)).toEqual([]);
    expect(await page.textContent('#batch-section')).toContain('Your addresses stay in this browser');
    const hostile = '=HYPERLINK("http://evil.example")';
    const lines = ['8.8.8.8', '8.8.8.9', '193.0.0.1', '2a00::1', '10.0.0.1', hostile, 'a line of words', ''];
    await page.fill('#text', lines.join('\n'));
    await page.click('#start');
    await says(page, '#status', /^Done: 6 addresses in 7 lines, .* s\. 1 line has no address\.$/);
    expect(await page.$$eval('#figures > div', (all) => all.map(({ textContent }) => textContent))).toEqual([
      'addresses6',
      'countries3',
      'in the Union50.0 %',
      'without a country1',
      'not an address1',
    ]);
    expect(await countsOf(page)).toEqual([
      'United States||33.3 %|2',
      'Germany||16.7 %|1',
      'Netherlands||16.7 %|1',
      'No country||16.7 %|1',
      'Not an address||16.7 %|1',
    ]);
    const all = [
      '1|8.8.8.8|United States|no',
      '2|8.8.8.9|United States|no',
      '3|193.0.0.1|Netherlands|yes',
      '4|2a00::1|Germany|yes',
      '5|10.0.0.1|no country: private|',
      `6|${hostile}|not an address|`,
    ];
    await hasRows(page, all);
    const at = (...places: number[]): string[] => places.map((place) => all[place]!);
    await page.click('.row-head .c-address button');
    await hasRows(page, at(0, 1, 4, 2, 3, 5));
    await page.click('.row-head .c-country button');
    await page.click('.row-head .c-country button');
    await hasRows(page, at(5, 4, 0, 1, 2, 3));
    expect(await page.getAttribute('.row-head .c-country', 'aria-sort')).toBe('descending');
    await page.click('.row-head .c-line button');
    await page.click('#batch-map [data-country=DE]');
    await hasRows(page, at(3));
    expect(await page.textContent('#chips [aria-pressed=true]')).toBe('Germany');
    await page.click('#counts button:text("United States")');
    await hasRows(page, at(0, 1));
    expect(await page.textContent('.downloads')).toMatch(/^2 rows: /);
    await page.click('#chips button:text("In the Union")');
    await hasRows(page, at(2, 3));
    await page.click('#chips button:text("All")');
    await hasRows(page, all);
    const levels = await page.$$eval('#batch-map [data-country]:not([data-level="0"])', (shapes) =>
      shapes.map((shape) => shape.getAttribute('aria-label')),
    );
    expect(levels.sort()).toEqual(['Germany: 1', 'Netherlands: 1', 'United States: 2']);
    expect(await page.$$eval('#batch-map .legend li', (items) => items.map((item) => item.textContent))).toEqual([
      '1',
      '2',
    ]);
    expect(await violations(page)).toEqual([]);

    const rows = parse(await downloadOf(page, '#csv'), { columns: true }) as Record<string, string>[];
    const netherlands = { country: 'Netherlands', country_code: 'NL', is_eu: 'true' };
    expect(rows).toHaveLength(6);
    expect(rows[2]).toEqual({ line: '3', text: '193.0.0.1', ip: '193.0.0.1', ...netherlands, error: '' });
    expect(rows[5]).toMatchObject({ line: '6', text: `'${hostile}`, ip: '', error: 'invalid ip' });
    const json = (await downloadOf(page, '#jsonl'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(json[3]).toMatchObject({ text: '2a00::1', ip: '2a00:0000:0000:0000:0000:0000:0000:0001' });
    expect(json[5]).toEqual({ line: 6, text: hostile, error: 'invalid ip' });
    await page.selectOption('#hiding', 'truncate');
    expect(await downloadOf(page, '#jsonl')).toMatch(/^\{"line":1,"text":"8\.8\.8\.0","ip":"8\.8\.8\.0",/);
    await page.selectOption('#hiding', '');
    // The networks are loaded when they are wanted.
    expect(requests.filter((url) => url.includes('networks'))).toEqual([]);
    await page.check('#networks');
    const announcers = ['AS15169 Google LLC', 'AS15169 Google LLC', 'AS3333 RIPE NCC', '', ''];
    const withNetworks = all.map((row, at) => (at < 5 ? `${row}|${announcers[at]}` : row));
    await hasRows(page, withNetworks);
    await page.click('.row-head .c-network button');
    await hasRows(
      page,
      [2, 0, 1, 3, 4, 5].map((place) => withNetworks[place]!),
    );
    expect(await violations(page)).toEqual([]);
    const announced = parse(await downloadOf(page, '#csv'), { columns: true }) as Record<string, string>[];
    expect(announced[0]).toMatchObject({ line: '3', asn: '3333', as_name: 'RIPE NCC', error: '' });
    await page.uncheck('#networks');
    await hasRows(page, all);
    await page.route('**/db/networks.ipc', (route) => route.abort());
    await page.check('#networks', { force: true }).catch(() => {});
    await says(page, '#status', /^The networks cannot be loaded from the server\.$/);
    expect(await page.isChecked('#networks')).toBe(false);
    problems.length = 0;
    // Nothing of it was sent.
    expect(requests.filter((url) => url.includes('/api/') || url.includes('/page/key'))).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('takes files, logs that are dropped, long texts that are pasted, UTF-16 and gzip; and refuses what is not text', async () => {
    const { page, problems } = await open();
    await useFile(page, 'a.csv', 'name,ip\na,8.8.8.8\n');
    await says(page, '#status', /^Done: 1 address in 2 lines/);
    expect(await page.textContent('#source')).toBe('a.csv · 18 B · 2 lines');
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(new File(['193.0.0.1 - - [x] "GET /"\n193.0.0.2:80 x\n'], '<img src=x onerror=alert(1)>.log'));
      document.querySelector('#batch')!.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true }));
    });
    await says(page, '#status', /^Done: 2 addresses in 2 lines/);
    expect(await page.textContent('#source')).toBe('<img src=x onerror=alert(1)>.log · 41 B · 2 lines');
    await page.evaluate((text) => {
      const data = new DataTransfer();
      data.setData('text/plain', text);
      const paste = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector('#text')!.dispatchEvent(paste);
    }, '80.0.0.1\n'.repeat(12_000));
    await says(page, '#status', /^Done: 12,000 addresses in 12,000 lines/);
    expect(await page.textContent('#source')).toBe('Pasted text · 108.0 kB · 12,000 lines');
    expect(await countsOf(page)).toEqual(['Germany||100.0 %|12,000']);
    // A table of 12,000 rows has few elements, and all can be reached.
    expect(await page.locator('.row-line').count()).toBeLessThan(60);
    await page.focus('.scroller');
    await page.keyboard.press('End');
    await says(page, '.row-line:last-child', /12,000/);
    await page.keyboard.press('Home');
    await page.keyboard.press('PageDown');
    await says(page, '.row-line:last-child', /^[23]\d/);

    await useFile(page, 'utf16.txt', Buffer.from('\ufeff193.0.0.1\r\n8.8.8.8\r\n', 'utf16le'));
    await says(page, '#status', /^Done: 2 addresses in 2 lines/);
    await useFile(page, 'access.log.gz', gzipSync('8.8.8.8 x\n8.8.8.9 y\n8.8.8.10 z\n'));
    await says(page, '#status', /^Done: 3 addresses in 3 lines/);
    const line = '193.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET /?ip=8.8.8.8 HTTP/1.1" 200 5 "-" "-"\n';
    await useFile(page, 'a.csv', 'id,ip,gw\n1,8.8.8.8,9.9.9.9\n');
    await says(page, '#status', /^Done: 1 address in 2 lines, .*Read as CSV, column ip \(also gw has .* --field ip\.$/);
    await useFile(page, 'vhost.log', `www.example.com ${line}`);
    await says(
      page,
      '#status',
      /^Done: 1 address in 1 line, .*Read as apache-vhost virtual host first; .* 2; the same with: --log apache-vhost\.$/,
    );
    await page.selectOption('#log', 'all');
    await page.click('#start');
    await says(page, '#status', /^Done: 2 addresses in 1 line, [\d.]+ s\.$/);
    await page.selectOption('#log', 'suricata');
    await useFile(page, 'eve.json', '{"src_ip":"8.8.8.8","dest_ip":"193.0.0.1","http":{"url":"/8.8.4.4"}}\n');
    await says(
      page,
      '#status',
      /^Done: 2 addresses in 1 line, .*Read as suricata EVE; addresses in src_ip and dest_ip; the same with: --log suricata\.$/,
    );
    await page.selectOption('#log', 'cloudtrail');
    await useFile(page, 'trail.json', '{"Records":\n[{"sourceIPAddress":"8.8.8.8"},\n{"sourceIPAddress":"::"}]}');
    await says(page, '#status', /^Done: 2 addresses in 3 lines, .*Read as cloudtrail/);
    expect(await violations(page)).toEqual([]);
    await page.selectOption('#log', '');
    await useFile(page, 'truncated.gz', gzipSync(addresses(5_000).join('\n')).subarray(0, 3_000));
    await says(page, '#status', /^The gzip file is damaged\./);
    await useFile(page, 'program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 3, 0xff]));
    await says(page, '#status', /^This is not a text file\./);
    await useFile(page, 'empty', '');
    await says(page, '#status', /^There is no address in this text\./);
    await useFile(page, 'line', Buffer.concat([Buffer.alloc(3_000_000, 'x.1:'), Buffer.from('\n8.8.8.8\n')]));
    await says(page, '#status', /^Done: 1 address in 2 lines, .*1 line has no address\./);
    const script = '<script>window.hacked=1</script>';
    await useFile(page, 'script.csv', `${script}\n"${script}",8.8.8.8\n`);
    await says(page, '#status', /^Done: 2 addresses/);
    await says(page, '.row-line', /hacked/);
    expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
    expect(problems).toEqual([]);
  });

  it('asks the server where browsers must not load the database: progress, cancel, failures, the rate', async () => {
    const { page } = await open(asked.url);
    expect(await page.textContent('#batch-section')).toContain('only the addresses in it are sent');
    let count = 0;
    let act: (count: number) => 'pass' | 'hold' | 'fail' | 'limit' = () => 'hold';
    await page.route('**/api/batch*', (route) => {
      const action = act(++count);
      if (action === 'fail') return route.abort();
      if (action === 'limit')
        return route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: 'Rate limit exceeded' } });
      return action === 'pass' ? route.continue() : undefined;
    });
    act = (number) => (number > 2 ? 'hold' : 'pass');
    await useFile(page, 'list.txt', addresses(4_000).join('\n'));
    await says(page, '#source', /^list\.txt · [\d.]+ kB$/);
    await page.click('#start');
    await until(() => count === 3, 'a third request');
    expect([await page.isDisabled('#start'), await page.isVisible('#cancel')]).toEqual([true, true]);
    await page.click('#cancel');
    await says(page, '#status', /^Canceled\. 2,000 of 4,000 addresses looked up\./);
    act = (number) => (number === 5 ? 'fail' : 'pass');
    await page.click('#start:text("Continue")');
    await says(page, '#status', /^The server cannot be reached\. 3,000 of 4,000/);
    expect((await downloadOf(page, '#jsonl')).trim().split('\n')).toHaveLength(3_000);
    act = (number) => (number === 6 ? 'limit' : 'pass');
    const said = await recorded(page, '#status');
    await page.click('#start:text("Continue")');
    await says(page, '#status', /^Done: 4,000 addresses/);
    const usedUp = expect.stringMatching(/^The rate is used up\. It goes on in 1 s/);
    expect(await said.jsonValue()).toContainEqual([usedUp, expect.any(Number)]);
    expect(count).toBe(7);
    expect(JSON.parse((await downloadOf(page, '#jsonl')).split('\n')[5]!)).toMatchObject({
      text: '193.0.5.5',
      country_code: 'NL',
    });
  });

  it('ends with a message whatever goes wrong, and starts again: a changed file, no worker script, no database', async () => {
    const { page } = await open(asked.url);
    const canStart = async () => [await page.isEnabled('#start'), await page.isVisible('#cancel')];
    const path = await useFile(page, 'log.txt', '8.8.8.8\n');
    await says(page, '#source', /^log\.txt/);
    writeFileSync(path, '193.0.0.1\n8.8.8.8\n');
    await page.click('#start');
    await says(page, '#status', /^The file cannot be read; it may have changed\. Choose it again\./);
    expect(await canStart()).toEqual([true, false]);
    await page.setInputFiles('#file', path);
    await page.click('#start');
    await says(page, '#status', /^Done: 2 addresses/);

    const { page: local } = await open();
    await local.route('**/worker.js', (route) => route.abort());
    await local.fill('#text', '8.8.8.8');
    await local.click('#start');
    await says(local, '#status', /^A part of this page cannot be loaded from the server\.$/);
    expect(await local.isEnabled('#start')).toBe(true);
    await local.unroute('**/worker.js');
    // A database that never comes can be canceled.
    await local.route('**/db/country.ipc', () => {});
    await local.click('#start');
    await local.click('#cancel');
    await says(local, '#status', /^Canceled\./);
    await local.unroute('**/db/country.ipc');
    await local.click('#start');
    await says(local, '#status', /^Done: 1 address/);
  });

  it('shows both addresses if there are servers for each family', async () => {
    const { page, problems } = await open(asked.url.replace('127.0.0.1', 'localhost'), {
      viewport: { width: 1280, height: 1400 },
    });
    await withMap(page);
    await says(page, '#own-ipv4', /127\.0\.0\.1/);
    await says(page, '#own-ipv6', /0000:0000:0000:0000:0000:0000:0000:0001/);
    expect(await shiftOf(page)).toBeLessThan(MOST_LAYOUT_SHIFT);
    expect(problems).toEqual([]);
  });

  it('makes a key that is shown once, shows its rate, asks before it revokes it, and copies examples', async () => {
    const { page, problems } = await open(`${server.url}/developers`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const example = `curl -H 'X-API-Key: <API_KEY>' \\\n  ${server.url}/api/lookup/8.8.8.8`;
    await page.click('[data-copy=curl]');
    await page.waitForSelector('[data-copy=curl]:has-text("copied")');
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(example);
    await page.click('#make-key');
    await page.waitForSelector('#new-key:not([hidden])');
    const key = (await page.textContent('#key-text'))!;
    expect(key).toMatch(/^ipa_/);
    for (const id of ['curl', 'curl-batch', 'client']) expect(await page.textContent(`#${id}`)).toContain(key);
    const headers = { 'x-api-key': key };
    expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(200);
    expect(listKeys(dataDir).filter(({ self_issued }) => self_issued)).toHaveLength(1);
    await page.click('#key-form button[type=submit]');
    await says(page, '#key-status', /60,000 addresses a minute, 59,999/);
    expect(await violations(page)).toEqual([]);
    await page.click('#revoke-key');
    await page.click('dialog button[value=keep]');
    expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(200);
    await page.click('#revoke-key');
    expect(await violations(page)).toEqual([]);
    await page.click('dialog button[value=revoke]');
    await says(page, '#key-status', /^The key is revoked\.$/);
    expect((await fetch(`${server.url}/api/lookup/8.8.8.8`, { headers })).status).toBe(403);
    expect(await page.textContent('body')).not.toContain(key);
    expect(await page.textContent('#curl')).toBe(example);
    const refusal = { status: 429, headers: { 'retry-after': '2900' }, json: { error: 'Too many keys were made' } };
    await page.route('**/api/keys', (route) => route.fulfill(refusal));
    await page.click('#make-key');
    await says(page, '#key-status', /^Too many keys were made from your network\. Try again in 49 minutes\.$/);
    expect(problems.filter((text) => !/429/.test(text))).toEqual([]);
  });

  it('can be used by keyboard only', async () => {
    const { page } = await open();
    await withMap(page);
    const focused = () => page.evaluate(() => document.activeElement?.id ?? '');
    const tabTo = async (id: string): Promise<void> => {
      for (let i = 0; i < 40; i++) {
        if ((await focused()) === id) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`Tab does not reach #${id}`);
    };
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('main');
    await tabTo('ip');
    await page.keyboard.type('193.0.0.1');
    await page.keyboard.press('Enter');
    await says(page, '#answer', /Netherlands/);
    await tabTo('text');
    await page.keyboard.type('8.8.8.8\n193.0.0.1\n8.8.8.9');
    await tabTo('file');
    await tabTo('start');
    await page.keyboard.press('Enter');
    await says(page, '#status', /^Done/);
    await tabTo('csv');
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
    expect(download.suggestedFilename()).toBe('ipatlas.csv');
    const tag = () => page.evaluate(() => document.activeElement?.tagName);
    for (let i = 0; i < 12 && (await tag()) !== 'path'; i++) await page.keyboard.press('Tab');
    const label = () => page.textContent('#batch-map .map-label');
    expect(await label()).toBe('United States: 2');
    await page.keyboard.press('ArrowRight');
    expect(await label()).toBe('Netherlands: 1');
    await page.keyboard.press('Enter');
    await hasRows(page, ['2|193.0.0.1|Netherlands|yes']);
    await page.keyboard.press('ArrowRight');
    expect(await label()).toBe('Afghanistan');
    await page.keyboard.press('Home');
    expect(await label()).toBe('United States: 2');
    // One Tab leaves the countries.
    await page.keyboard.press('Tab');
    expect(await tag()).toBe('BUTTON');
    // The map names the country under the pointer, dots for small ones included, and zooms to them.
    const box = async () => (await page.locator('#batch-map [data-country=VA]').boundingBox())!.width;
    const small = await box();
    await page.click('#batch-map button:text("Europe")');
    await page.hover('#batch-map [data-country=VA]');
    expect([await label(), (await box()) > 2 * small]).toEqual(['Vatican City', true]);
    await page.click('#batch-map button:text("World")');
    await expect.poll(box).toBeCloseTo(small, 0);
    const codes = await page.$$eval('#batch-map [data-country]', (shapes) =>
      shapes.map((shape) => shape.getAttribute('data-country')),
    );
    const table = readFileSync(packageFile('data/reference/countries.csv'), 'utf8');
    const rows = parse(table, { comment: '#', columns: true }) as { code: string }[];
    expect(new Set(codes)).toEqual(new Set(rows.map(({ code }) => code)));
  });

  it('works without JavaScript: own address, the form, keys of one’s own, the data', async () => {
    const { page, problems } = await open(server.url, { javaScriptEnabled: false });
    expect(await page.textContent('.families')).toContain('127.0.0.1');
    expect(await page.textContent('noscript p')).toContain('part of the URL');
    await page.fill('#ip', '193.0.0.1');
    await page.press('#ip', 'Enter');
    await page.waitForURL('**/?ip=193.0.0.1&at=');
    expect(await page.textContent('#answer')).toMatch(/Netherlands.*Announced byAS3333 RIPE NCC/s);
    expect(await page.isVisible('[data-history]')).toBe(false);
    await page.fill('#ip', '8.8.8.8');
    await page.fill('#at', '2025-06-01');
    await page.press('#ip', 'Enter');
    await page.waitForURL('**/?ip=8.8.8.8&at=2025-06-01');
    expect(await page.textContent('#answer')).toMatch(/On 2025-06-01, this address was in.*Germany/s);
    expect([await page.isVisible('#batch'), await page.isVisible('#answer-map img')]).toEqual([false, true]);
    await page.click('nav >> text=API and keys');
    expect([await page.isVisible('#make-key'), await page.isVisible('#curl')]).toEqual([false, true]);
    await page.click('nav >> text=Data');
    expect(await page.textContent('main')).toContain('European Union as of2026-01-01');
    expect(problems).toEqual([]);
  });

  // Colors and widths do not depend on each other.
  it('is accessible and fits in 320 px, dark, and in 2,560 px', async () => {
    const { page, problems } = await open(server.url, { colorScheme: 'dark', viewport: { width: 320, height: 700 } });
    await withMap(page);
    await lookUp(page, '193.0.0.1', /Netherlands/);
    await useFile(page, 'list.txt', `${addresses(900).join('\n')}\nx\n2a00:1111:2222:3333:4444:5555:6666:7777\n`);
    await says(page, '#status', /^Done/);
    await says(page, '.row-line:first-child', /United States/);
    expect(await violations(page)).toEqual([]);
    expect(await overflowOf(page)).toBe(0);
    // The longest address can be read as a whole.
    await page.focus('.scroller');
    await page.keyboard.press('End');
    const cell = page.locator('.row-line:last-child .c-address');
    expect(await cell.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)).toBe(true);
    await page.setViewportSize({ width: 2560, height: 1300 });
    expect(await overflowOf(page)).toBe(0);
    for (const path of ['developers', 'data', 'docs']) {
      await page.setViewportSize({ width: 320, height: 700 });
      await page.goto(`${server.url}/${path}`);
      expect([path, await violations(page), await overflowOf(page)]).toEqual([path, [], 0]);
    }
    expect(problems).toEqual([]);
  });

  it('accepts a key for browsers in pages of its origin, and refuses it readably in others', async () => {
    const shop = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<!DOCTYPE html><title>shop</title>');
    });
    await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
    const key = createKey(dataDir, { origins: [origin] }).key;
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
    try {
      const { page } = await open(origin);
      await until(async () => (await ask(page))[0]![0] === 200, 'a key that works');
      expect(await ask(page)).toEqual([
        [200, undefined],
        [200, undefined],
      ]);
      await page.goto(origin.replace('127.0.0.1', 'localhost'));
      const refused = [403, 'The API key must not be used from this origin'];
      expect(await ask(page)).toEqual([refused, refused]);
    } finally {
      shop.closeAllConnections();
      shop.close();
    }
  });
});
