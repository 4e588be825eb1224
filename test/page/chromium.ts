/** A real browser for tests, and a proxy that makes a server slow or unreachable. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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
    const results = await loaded.run();
    return results.violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`,
    );
  });
}

/** A proxy on the IPv4 loopback address. The server behind it sees the proxy's host, as with a usual configuration. */
export class SlowProxy {
  readonly #target: number;
  readonly #server: Server;
  /** Wait in milliseconds before each request is passed on. */
  delay = 0;
  /** Whether connections are reset instead. */
  isDown = false;
  /** Requests for batches that were passed on. */
  batches = 0;
  /** Called before a batch is passed on. */
  onBatch: (count: number) => void = () => {};

  constructor(target: number) {
    this.#target = target;
    this.#server = createServer(async (incoming, outgoing) => {
      if (incoming.url === '/api/batch') this.onBatch(++this.batches);
      if (this.delay > 0) await new Promise((resolve) => setTimeout(resolve, this.delay));
      if (this.isDown) {
        incoming.socket.destroy();
        return;
      }
      const { method, url, headers } = incoming;
      const passed = request({ host: '127.0.0.1', port: this.#target, method, path: url, headers }, (response) => {
        outgoing.writeHead(response.statusCode!, response.headers);
        response.pipe(outgoing);
      });
      passed.on('error', () => outgoing.destroy());
      incoming.pipe(passed);
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
