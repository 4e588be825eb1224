/** Runs a build of @ipatlas/lookup in Chromium. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, openPage } from '../page/chromium.js';

const CHECK = fileURLToPath(new URL('check-lookups.js', import.meta.url));

/**
 * Serves a folder, imports a module from it that exports `load`, and compares its lookups with a list of `boundaries`.
 *
 * @param entry path of the module in the folder
 */
export async function checkInChromium(
  folder: string,
  entry: string,
  list: string,
): Promise<{ count: number; wrong: string[]; problems: string[] }> {
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (path === '/' || path === '/favicon.ico') {
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>lookups</title>');
    } else if (path === '/boundaries.txt') {
      response.end(list);
    } else {
      const content = readFileSync(path === '/check-lookups.js' ? CHECK : join(folder, path));
      response.setHeader('Content-Type', 'text/javascript').end(content);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const browser = await launch();
  try {
    const { page, problems } = await openPage(browser);
    await page.goto(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
    // As text: vitest rewrites the imports of functions.
    const script = `Promise.all([
      import('/${entry}'), import('/check-lookups.js'), fetch('/boundaries.txt').then((response) => response.text()),
    ]).then(async ([{ load }, { checkLookups }, list]) => checkLookups(await load(), list))`;
    const result = (await page.evaluate(script)) as { count: number; wrong: string[] };
    return { ...result, problems };
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}
