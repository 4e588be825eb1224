/** What the server answers for people: the page, its files, the documentation, the attribution. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { dataHtml } from '../../src/api/page/data-html.js';
import { lookupHtml, pageText } from '../../src/api/page/lookup-html.js';
import { contentSecurityPolicy, wantsHtml } from '../../src/api/page/page.js';
import { readManifest, releaseDir } from '../../src/database/release.js';
import { escapeHtml, html } from '../../src/html.js';
import { PAGE_RATE } from '../../src/limits.js';
import { packageFile } from '../../src/package-root.js';
import { type AppChanges, testApp } from '../support/api.js';
import { smallRelease } from '../support/release.js';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

const dataDir = await smallRelease();
const manifest = readManifest(releaseDir(dataDir));

async function get(
  url: string,
  headers: Record<string, string> = HTML,
  changes: AppChanges = {},
  remoteAddress = '8.8.4.4',
) {
  const app = testApp(dataDir, changes);
  const response = await app.inject({ url, headers, remoteAddress });
  await app.close();
  return response;
}

describe('GET /docs', () => {
  it('has its texts with code where they have backticks', async () => {
    const { body } = await get('/docs');
    expect(body).toContain('(<code>asn</code>, <code>as_name</code>)');
    expect(body.replaceAll(/<pre[\s\S]*?<\/pre>/g, '')).not.toContain('`');
  });
});

describe('GET /', () => {
  it('is HTML with the address, the release and its age, for clients that ask for HTML', async () => {
    const response = await get('/');
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(response.body).toContain('8.8.4.4</code>');
    expect(response.body).toContain('<p class="country">United States</p>');
    expect(response.body).toMatch(/2026-01-01, \d+ days old/);
    expect((await get('/data')).body).toContain(manifest.id);
  });

  it.each([
    [undefined, 'United States'],
    ['de-DE,de;q=0.9,en;q=0.8', '<bdi lang="de-DE">Vereinigte Staaten</bdi>'],
    ['en;q=0.5, pl', '<bdi lang="pl">Stany Zjednoczone</bdi>'],
    ['tlh, ja;q=0.9', '<bdi lang="ja">アメリカ合衆国</bdi>'],
    ['en-GB, de', 'United States'],
    ['de;q=0, *;q=0.1, x y;q=z, ../../de', 'United States'],
  ])('names countries in the language that the client accepts: %j', async (accepted, name) => {
    const headers = accepted === undefined ? HTML : { ...HTML, 'accept-language': accepted };
    for (const url of ['/', '/?ip=8.8.8.8']) {
      const { body, headers: sent } = await get(url, headers);
      expect(body).toContain(`<p class="country">${name}</p>`);
      expect([sent.vary, sent['cache-control']]).toEqual(['accept, accept-language', 'no-store']);
    }
  });

  it('is an example at home, marked as such, with the own address as a line below', async () => {
    const { body } = await get('/', HTML, {}, '127.0.0.1');
    expect(body).toContain('<p class="eyebrow">Example: this address is in</p>\n<p class="country">Netherlands</p>');
    expect(body).toContain('data-code="NL"');
    expect(body).toContain('<dt>Your address</dt><dd><code>127.0.0.1</code> no country');
    expect((await get('/?ip=127.0.0.1', HTML, {}, '127.0.0.1')).body).not.toContain('Example');
  });

  it.each<[Record<string, string>]>([[{}], [{ accept: '*/*' }], [{ accept: 'application/json' }]])(
    'is plain text with the usage, the release and its age, for %j',
    async (headers) => {
      const { statusCode, headers: sent, body } = await get('/', { ...headers, host: 'localhost:8080' });
      expect([statusCode, sent['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
      expect(body).toContain(manifest.id);
      expect(body).toMatch(/2026-01-01 \(\d+ days old: about [\d.]+ % of IPv4 addresses have changed country since\)/);
      expect(body).toContain("curl -H 'X-API-Key: <API_KEY>' http://localhost:8080/api/lookup/8.8.8.8");
    },
  );

  it('names the base address that is configured', async () => {
    const changes = { baseUrls: { default: 'https://ip.example/api/' } };
    for (const [path, headers] of [
      ['/', {}],
      ['/developers', HTML],
    ] as const)
      expect((await get(path, headers, changes)).body).toContain('https://ip.example/api/lookup/');
  });

  it('looks up an address of the form without JavaScript', async () => {
    const response = await get('/?ip=193.0.0.1');
    expect(response.statusCode).toBe(200);
    expect(response.body).toContain('<p class="country">Netherlands</p>');
    expect(response.body).toContain('value="193.0.0.1"');
  });

  it.each([
    ['/?ip=%22%3E%3Cscript%3Ealert(1)%3C/script%3E', '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;'],
    ['/?ip=', 'value=""'],
    ['/?ip=256.1.1.1', 'value="256.1.1.1"'],
  ])('says that %s is not an address, and escapes it', async (url, expected) => {
    const response = await get(url);
    expect([response.statusCode, response.body.includes('<script>alert')]).toEqual([400, false]);
    expect(response.body).toContain('Not an IP address');
    expect(response.body).toContain(expected);
  });

  it('limits the lookups of one network', async () => {
    const app = testApp(dataDir);
    const ask = (remoteAddress: string) => app.inject({ url: '/?ip=8.8.8.8', headers: HTML, remoteAddress });
    const { pageKeys } = await usedUp(app, '2a00:1:2:3::1');
    expect(pageKeys).toBe(true);
    const refused = await ask('2a00:1:2:3:ffff::9');
    expect([refused.statusCode, refused.headers['retry-after'] !== undefined]).toEqual([429, true]);
    expect(refused.body).toContain('Too many lookups');
    expect((await ask('2a00:1:2:4::1')).statusCode).toBe(200);
    await app.close();
  });

  it('works without a release', async () => {
    const response = await get('/?ip=8.8.8.8', HTML, { release: () => undefined });
    expect([response.statusCode, response.body.includes('No database yet')]).toEqual([200, true]);
    expect((await get('/', {}, { release: () => undefined })).body).toContain('Database: not loaded');
  });

  it('answers HEAD without a body, and OPTIONS and other methods by the table of routes', async () => {
    const app = testApp(dataDir);
    const head = await app.inject({ method: 'HEAD', url: '/', headers: HTML });
    expect([head.statusCode, head.body, Number(head.headers['content-length']) > 1000]).toEqual([200, '', true]);
    const post = await app.inject({ method: 'POST', url: '/' });
    expect([post.statusCode, post.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    await app.close();
  });

  it('has a policy without unsafe-inline and without other origins, no cookie, and is not stored or shared', async () => {
    for (const url of ['/', '/developers', '/data', '/docs']) {
      const { headers, body } = await get(url);
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect([headers['set-cookie'], headers['access-control-allow-origin'], headers['cache-control']]).toEqual([
        undefined,
        undefined,
        'no-store',
      ]);
      expect(body).not.toMatch(/ style=| on[a-z]+=|<script(?![^>]* src=)|(src|href)="(https?:)?\/\//);
    }
  });

  it('allows requests to the single-stack servers that are configured', () => {
    expect(contentSecurityPolicy(['https://ipv4.example'])).toContain("connect-src 'self' https://ipv4.example;");
  });
});

/** Uses up the rate of a visitor. */
async function usedUp(app: ReturnType<typeof testApp>, remoteAddress: string) {
  const key = (await app.inject({ url: '/page/key', remoteAddress })).json() as { key: string };
  const headers = { 'x-api-key': key.key, origin: 'http://localhost:80' };
  for (let left = PAGE_RATE; left > 0; left -= 1_000) {
    const payload = Array.from({ length: Math.min(1_000, left) }, () => '8.8.8.8');
    const { statusCode } = await app.inject({ method: 'POST', url: '/api/batch', headers, payload, remoteAddress });
    if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
  }
  return { pageKeys: true };
}

describe('the files of the page', () => {
  const folder = () => readdirSync(packageFile('dist/page/assets'))[0]!;

  it('have the policy of the page', async () => {
    for (const name of ['page.css', 'worker.js', 'icon.svg']) {
      const url = `/page/${folder()}/${name}`;
      const { statusCode, headers } = await get(url);
      expect([statusCode, headers['content-security-policy']]).toEqual([
        200,
        expect.stringMatching(/^default-src 'none'/),
      ]);
    }
  });

  const names = () =>
    readdirSync(packageFile(`dist/page/assets/${folder()}`), { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(packageFile(join('dist/page/assets', folder(), name))).isFile(),
    );

  it('are small, compressed: those of a visit, with the map; those of the first batch; and what reads JSON documents', () => {
    const sizes = names().map(
      (name) => [name, statSync(packageFile(join('dist/page/assets', folder(), name))).size] as const,
    );
    const bytes = (pattern: RegExp): number =>
      sizes.reduce((sum, [name, size]) => sum + (pattern.test(name) ? size : 0), 0);
    expect(sizes.length).toBeGreaterThan(6);
    expect(bytes(/^(?!worker|kernel|document)/)).toBeLessThan(40_000);
    expect(bytes(/^(worker|kernel)\./)).toBeLessThan(74_000);
    expect(bytes(/./)).toBeLessThan(120_000);
  });

  it('are sent compressed, to be kept forever', async () => {
    for (const name of names().map((path) => path.replace(/\.gz$/, ''))) {
      const response = await get(`/page/${folder()}/${name}`, { 'accept-encoding': 'deflate, gzip, br' });
      expect([name, response.statusCode, response.headers['content-encoding']]).toEqual([name, 200, 'gzip']);
      expect(response.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(response.headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it.each([
    [undefined, undefined],
    ['gzip', 'gzip'],
    ['br;q=0, GZIP;q=0.5', 'gzip'],
    ['identity, deflate', undefined],
    ['brotli', undefined],
  ])('are sent for accept-encoding %s as %s', async (accepted, encoding) => {
    const url = `/page/${folder()}/page.css`;
    const { headers, rawPayload } = await get(url, accepted === undefined ? {} : { 'accept-encoding': accepted });
    expect([headers['content-encoding'], headers.vary]).toEqual([encoding, 'accept-encoding']);
    const css = encoding === 'gzip' ? gunzipSync(rawPayload) : rawPayload;
    expect(css.equals(readFileSync(packageFile('src/page/page.css')))).toBe(true);
  });

  it.each([
    '/page/',
    '/page/nothing.js',
    '/page/../package.json',
    '/page/%2e%2e/%2e%2e/package.json',
    `/page/${readdirSync(packageFile('dist/page/assets'))[0]!}`,
    `/page/${readdirSync(packageFile('dist/page/assets'))[0]!}/page.css.gz`,
  ])('do not include %s', async (url) => {
    const response = await get(url);
    expect([response.statusCode, response.json()]).toEqual([404, { error: 'Not found' }]);
  });
});

describe('GET /attribution', () => {
  const inputs = [
    {
      id: 'a',
      version: '1',
      license: 'CC-BY-4.0',
      attribution: 'By <b>A</b>, https://a.example/x.',
      data_date: '2025-12-31',
      data_date_evidence: 'file name',
      rows: 1,
      rejected: 0,
      format: 'csv',
      files: [],
    },
  ];

  it('has the sources of the release with licenses and dates', async () => {
    const served = { id: manifest.id, database: { manifest: { ...manifest, inputs } }, headers: () => [] };
    const response = await get('/attribution', {}, { release: () => served as never });
    expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    const source = {
      id: 'a',
      version: '1',
      license: 'CC-BY-4.0',
      attribution: 'By <b>A</b>, https://a.example/x.',
      data_date: '2025-12-31',
      data_date_evidence: 'file name',
    };
    expect(response.json()).toEqual({ release: manifest.id, as_of: '2026-01-01', sources: [source] });
    const openApi = (await get('/openapi.json', {}, { release: () => served as never })).json();
    expect(openApi.info['x-attribution'].sources).toEqual([source]);
    expect(openApi.info.description).toContain('- a, CC-BY-4.0: By b A /b , https://a.example/x.');
  });

  it('is on the page, escaped and with links', () => {
    const content = { baseUrl: 'http://x', isSeed: false, changeRate: undefined, manifest: { ...manifest, inputs } };
    const all = { ...content, lang: 'en', assets: 'page/1', signUp: false, publicDb: false, keyless: true };
    const none = { own: undefined, example: undefined, lookup: undefined, ipv4Url: undefined, ipv6Url: undefined };
    const page = dataHtml(all);
    for (const text of [page, lookupHtml({ ...all, ...none })])
      expect(text).toContain('By &lt;b&gt;A&lt;/b&gt;, <a href="https://a.example/x">https://a.example/x</a>.');
    expect(page).toContain('2025-12-31 (file name)');
    expect(pageText(content)).toContain(manifest.id);
  });

  it('is 503 without a release', async () => {
    expect((await get('/attribution', {}, { release: () => undefined })).statusCode).toBe(503);
  });
});

describe('HTML', () => {
  it('escapes what is put into it, unless it is HTML', () => {
    expect(html`<a href="${'"\'<>&'}">${html`<b>${1}</b>`}${undefined}${[html`x`, html`y`]}</a>`.text).toBe(
      '<a href="&quot;&#39;&lt;&gt;&amp;"><b>1</b>xy</a>',
    );
    expect(escapeHtml('a')).toBe('a');
  });

  it.each([
    ['text/html', true],
    ['application/xhtml+xml', true],
    ['*/*', false],
    ['text/plain', false],
    [undefined, false],
  ])('is wanted by a client that accepts %s: %s', (accept, expected) => {
    expect(wantsHtml(accept)).toBe(expected);
  });
});
