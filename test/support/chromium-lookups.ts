/** Runs a build of @ipatlas/lookup in Chromium. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageFile } from '../../src/package-root.js';
import { launch, openPage } from '../page/chromium.js';

const CHECK = fileURLToPath(new URL('check-lookups.js', import.meta.url));

/**
 * Serves a folder, imports a module from it that exports `load`, and compares its lookups with a list of `boundaries`. It also
 * loads the data of the package twice from another origin, as `serve` sends it.
 *
 * @param entry path of the module in the folder
 * @returns `shared`: whether that was one database; `asked`: the requests for it
 */
export async function checkInChromium(
  folder: string,
  entry: string,
  list: string,
): Promise<{ count: number; wrong: string[]; shared: boolean; asked: string[]; problems: string[] }> {
  const asked: string[] = [];
  const data = readFileSync(packageFile('dist/lookup/data.js'), 'utf8').split("'")[1]!;
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (path === '/' || path === '/favicon.ico') {
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>lookups</title>');
    } else if (path === '/boundaries.txt') {
      response.end(list);
    } else if (path === '/country.ipc') {
      const { method, headers } = request;
      const etag = '"1"';
      const isKnown = headers['if-none-match'] === etag;
      asked.push(`${method} ${isKnown}`);
      response.setHeader('Access-Control-Allow-Origin', '*').setHeader('Access-Control-Expose-Headers', 'ETag');
      response.setHeader('Cache-Control', 'public, no-cache').setHeader('ETag', etag);
      response.writeHead(isKnown ? 304 : 200).end(isKnown ? undefined : Buffer.from(data, 'base64'));
    } else {
      const content = readFileSync(path === '/check-lookups.js' ? CHECK : join(folder, path));
      response.setHeader('Content-Type', 'text/javascript').end(content);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const browser = await launch();
  try {
    const { page, problems } = await openPage(browser);
    const { port } = server.address() as { port: number };
    await page.goto(`http://127.0.0.1:${port}/`);
    // As text: vitest rewrites the imports of functions.
    const script = `Promise.all([
      import('/${entry}'), import('/check-lookups.js'), fetch('/boundaries.txt').then((response) => response.text()),
    ]).then(async ([{ load }, { checkLookups }, list]) => {
      const url = 'http://localhost:${port}/country.ipc';
      return { ...checkLookups(await load(), list), shared: (await load(url)) === (await load(url)) };
    })`;
    const result = (await page.evaluate(script)) as { count: number; wrong: string[]; shared: boolean };
    return { ...result, asked, problems };
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}
