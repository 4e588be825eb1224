/** A real browser for tests. */
import { spawnSync } from 'node:child_process';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const EXECUTABLE = '/usr/bin/chromium';

export const SKIPPED = `SKIPPED: ${EXECUTABLE} is not installed (scripts/ci-packages.sh installs it); the page is NOT tested`;

/** Hosts that have one family of addresses. A Content-Security-Policy cannot name an IPv6 address. */
const HOSTS = 'MAP ipv4.test 127.0.0.1, MAP ipv6.test [::1]';

// Root must run without the sandbox; the only pages are those of the tests.
const ARGUMENTS = ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${HOSTS}`];

export function hasChromium(): boolean {
  return spawnSync(EXECUTABLE, ['--version']).status === 0;
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: EXECUTABLE, args: [...ARGUMENTS] });
}

/** A page with everything that went wrong on it. */
export interface WatchedPage {
  page: Page;
  /** Messages of the console of level error or warning, uncaught errors, and refusals by the Content-Security-Policy. */
  problems: string[];
  /** URLs of all requests. */
  requests: string[];
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(60_000); // a busy machine may need longer than the default of 30 s
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (sent) => requests.push(sent.url()));
  return { page, problems, requests };
}

/** Returns the violations that axe-core finds, one line each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe };
    // What passes is not collected: a map has hundreds of shapes.
    const results = await loaded.run({ resultTypes: ['violations'] });
    return results.violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`,
    );
  });
}
