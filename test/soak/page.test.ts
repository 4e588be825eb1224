/** The page in a real browser with a million lines: time, memory, how long it is unresponsive, and the results of `ipatlas enrich`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch, openPage } from '../page/chromium.js';
import { ipatlas } from '../support/cli.js';
import { temporaryDir } from '../support/release.js';
import { type RunningService, startService } from '../support/service.js';

const LINES = Math.ceil(1_000_000 * Math.min(1, Number(process.env.SOAK_SCALE ?? 1)));

/** Longest task of the page, in milliseconds of processor time: how long it waits for a busy machine does not count. */
const LONGEST_TASK_MS = 100;

/** Returns the tasks of the pages in a trace of Chromium, in milliseconds: what they took, and of the processor. */
function tasksIn(trace: Buffer): { wall: number; own: number }[] {
  type Event = {
    ph: string;
    name: string;
    pid: number;
    tid: number;
    dur?: number;
    tdur?: number;
    args: { name?: string };
  };
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: Event[] };
  const threadOf = ({ pid, tid }: Event): string => `${pid}:${tid}`;
  const main = new Set(traceEvents.filter(({ args }) => args.name === 'CrRendererMain').map(threadOf));
  return traceEvents
    .filter((event) => event.name === 'RunTask' && main.has(threadOf(event)))
    .map(({ dur = 0, tdur = 0 }) => ({ wall: dur / 1_000, own: tdur / 1_000 }));
}

const folder = temporaryDir();
let server: RunningService;
beforeAll(async () => {
  // It answers from the seed: the ranges of the whole world.
  server = await startService(join(folder, 'data'), {}, 'without-release');
});
afterAll(async () => {
  await server.stop();
});

it('looks up a million lines as `ipatlas enrich` does, and stays responsive', async () => {
  const browser = await launch();
  try {
    const { page, problems } = await openPage(browser);
    await page.goto(server.url);
    await page.waitForSelector('#answer-map svg');
    // By its path: the test's tool would decode a buffer within the page.
    const list = join(folder, 'list.txt');
    const address = (n: number): string => {
      const bits = (n * 2_654_435_761) % 2 ** 32;
      if (n % 5 === 4) return `2a0${n % 8}:${(bits >>> 16).toString(16)}:${(bits & 0xffff).toString(16)}::${n % 10}`;
      return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
    };
    writeFileSync(list, `${Array.from({ length: LINES }, (_, n) => address(n)).join('\n')}\n`);
    await browser.startTracing(page, { categories: ['disabled-by-default-devtools.timeline'] });
    const start = performance.now();
    await page.setInputFiles('#file', list);
    await page.locator('#status', { hasText: /^Done/ }).waitFor({ timeout: 300_000 });
    const seconds = (performance.now() - start) / 1_000;
    await page.locator('.row-line', { hasText: address(0) }).waitFor();
    // Scrolls and sorts, too.
    await page.focus('.scroller');
    await page.keyboard.press('End');
    await page.locator('.row-line', { hasText: address(LINES - 1) }).waitFor();
    await page.click('.row-head .c-country button');
    await page.locator('.row-line', { hasText: 'Afghanistan' }).first().waitFor();
    await page.click('.row-head .c-line button');
    await page
      .locator('.row-line', { hasText: address(0) })
      .first()
      .waitFor();
    const memory = await page.evaluate(() => {
      const { memory } = performance as unknown as { memory: { usedJSHeapSize: number } };
      return memory.usedJSHeapSize / 1e6;
    });
    const tasks = tasksIn(await browser.stopTracing());
    const [wall, longest] = [Math.max(...tasks.map(({ wall }) => wall)), Math.max(...tasks.map(({ own }) => own))];
    console.log(
      `${LINES} lines: ${seconds.toFixed(1)} s, longest task ${wall.toFixed(0)} ms (${longest.toFixed(0)} of the processor), page's heap ${memory.toFixed(0)} MB`,
    );
    const [download] = await Promise.all([page.waitForEvent('download', { timeout: 120_000 }), page.click('#jsonl')]);
    const fromPage = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\n');
    const enriched = await ipatlas(['enrich', '--seed', '--format', 'list', list]);
    const fromEnrich = enriched.stdout.trimEnd().split('\n');
    expect([fromPage.length, fromEnrich.length]).toEqual([LINES, LINES]);
    for (const [index, line] of fromEnrich.entries()) {
      const { text, country, country_code, is_eu } = JSON.parse(fromPage[index]!);
      const same = [text, country ?? '', country_code ?? '', is_eu].join('\t');
      if (same !== line) expect([index, same]).toEqual([index, line]);
    }
    expect(tasks.length).toBeGreaterThan(100);
    expect(longest).toBeLessThan(LONGEST_TASK_MS);
    // The same text pasted has the same rows; it comes as a file, because a test's tool could not pass it in one task.
    const before = await page.textContent('#figures');
    await page.evaluate(() => {
      document.querySelector('#results')!.setAttribute('hidden', '');
      document.body.append(Object.assign(document.createElement('input'), { type: 'file', id: 'again' }));
    });
    await page.setInputFiles('#again', list);
    await page.evaluate(() => {
      const lines = document.querySelector<HTMLInputElement>('#again')!.files![0]!;
      void lines.text().then((text) => {
        const data = new DataTransfer();
        data.setData('text/plain', text);
        const paste = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
        document.querySelector('#text')!.dispatchEvent(paste);
      });
    });
    await page.locator('#source', { hasText: /^Pasted text .* lines$/ }).waitFor({ timeout: 300_000 });
    expect(await page.textContent('#figures')).toBe(before);
    expect(problems).toEqual([]);
  } finally {
    await browser.close();
  }
});
