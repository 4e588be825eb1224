import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { fillVariables } from '../../pipeline/config/url.js';
import type { FetchLimits } from '../../pipeline/fetching/fetch-source.js';
import { MAX_REDIRECTS, nameOfUrl, redirectTarget } from '../../pipeline/fetching/https.js';
import { atlasError, makeZip, runFetch, scratchDir, serve, source, textsOf } from './fetch-support.js';

const https = (url: string, files: string[] = []) => source({ kind: 'https', urls: [url], files });

/** Answers requests in turn with these handlers, and all further ones with the last. */
function script(...answers: http.RequestListener[]): http.RequestListener {
  let next = 0;
  return (request, response) => answers[Math.min(next++, answers.length - 1)]?.(request, response);
}

const answer =
  (status: number, body: string | Buffer = '', headers: http.OutgoingHttpHeaders = {}): http.RequestListener =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);

/** Sends a part of a body and then breaks the connection. */
const breakOff =
  (headers: http.OutgoingHttpHeaders): http.RequestListener =>
  (_request, response) => {
    response.writeHead(200, headers).write('half');
    setTimeout(() => response.destroy(), 20);
  };

/** Sends a byte every 20 ms, without end. */
const trickle: http.RequestListener = (_request, response) => {
  const timer = setInterval(() => response.write('x'), 20);
  response.on('close', () => clearInterval(timer));
};

const silent: http.RequestListener = () => {};
const dropped: http.RequestListener = (_request, response) => response.destroy();

/** The address of a port that nothing listens on. */
async function closedPort(): Promise<string> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

describe('fetch over https', () => {
  it('downloads a file, and takes its name from the address', async () => {
    const { url, requests } = await serve(answer(200, 'text', { etag: 'W/"v1"' }));
    const { output, counts } = await runFetch([https(`${url}/dir/list.csv?key=1`)], scratchDir());
    expect(output[0]).toMatchObject({ id: 'test', version: 'v1', from: 'network' });
    expect(textsOf(output[0])).toEqual({ 'list.csv': 'text' });
    expect(counts).toMatchObject({ sources: 1, files: 1, bytes: 4, network: 1, cache: 0 });
    expect(requests.map((request) => request.url)).toEqual(['/dir/list.csv?key=1']);
  });

  it.each<[string, Buffer, string[], Record<string, string>]>([
    ['gzip', gzipSync('text'), [], { 'a.csv': 'text' }],
    [
      'zip',
      makeZip([
        { name: 'in/v4.csv', content: 'four' },
        { name: 'LICENSE', content: '' },
      ]),
      ['v4.csv'],
      { 'v4.csv': 'four' },
    ],
  ])('unpacks %s', async (_what, body, files, result) => {
    const { url } = await serve(answer(200, body));
    const { output } = await runFetch([https(`${url}/a.csv.gz`, files)], scratchDir());
    expect(textsOf(output[0])).toEqual(result);
  });

  it.each<[string, http.OutgoingHttpHeaders, string, http.IncomingHttpHeaders]>([
    ['an ETag', { etag: '"v1"' }, 'v1', { 'if-none-match': '"v1"' }],
    [
      'a date',
      { 'last-modified': 'Thu, 01 Jan 2026 00:00:00 GMT' },
      '2026-01-01T00:00:00.000Z',
      { 'if-modified-since': 'Thu, 01 Jan 2026 00:00:00 GMT' },
    ],
  ])('asks with %s whether its copy is current', async (_what, headers, version, condition) => {
    const dataDir = scratchDir();
    const { url, requests } = await serve(script(answer(200, 'text', headers), answer(304), answer(200, 'new')));
    const get = async () => (await runFetch([https(`${url}/a`)], dataDir)).output[0];
    expect(await get()).toMatchObject({ version, from: 'network' });
    const again = await get();
    expect(again).toMatchObject({ version, from: 'cache' });
    expect(textsOf(again)).toEqual({ a: 'text' });
    expect(textsOf(await get())).toEqual({ a: 'new' });
    expect(requests[0]?.headers).not.toMatchObject(condition);
    expect(requests[1]?.headers).toMatchObject(condition);
  });

  it('does not send validators of a damaged copy, or of another request', async () => {
    const dataDir = scratchDir();
    const { url, requests } = await serve(answer(200, 'text', { etag: '"v1"' }));
    const { output } = await runFetch([https(`${url}/a`)], dataDir);
    writeFileSync(output[0]?.files[0]?.path ?? '', 'TEXT');
    const { output: healed, notes } = await runFetch([https(`${url}/a`)], dataDir);
    expect(textsOf(healed[0])).toEqual({ a: 'text' });
    expect(notes).toContain('test: the cached copy is damaged, so it is not used');
    await runFetch([https(`${url}/b`)], dataDir);
    expect(requests.map((request) => request.headers['if-none-match'])).toEqual([undefined, undefined, undefined]);
  });

  it('of a server that is not reached, to be brief, says one line for each source, and the error', async () => {
    const address = await closedPort();
    const notes: string[] = [];
    const sources = ['one', 'two'].map((id) => ({ ...https(`${address}/a`), id }));
    const { message } = await atlasError(runFetch(sources, scratchDir(), { brief: true, notes }));
    expect(notes.sort()).toEqual(['one', 'two'].map((id) => expect.stringMatching(`^${id}: .*trying again in`)));
    expect(message.match(/source "/g)).toHaveLength(2);
  });

  async function retriesAfter(failures: http.RequestListener[], idleTimeoutMs = 60_000): Promise<void> {
    const { url } = await serve(script(...failures, answer(200, 'text')));
    const limits = { idleTimeoutMs, backoffMs: 1000, maxBackoffMs: 3000 };
    const { output, waits, notes } = await runFetch([https(`${url}/a`)], scratchDir(), { limits });
    expect(textsOf(output[0])).toEqual({ a: 'text' });
    expect(waits).toHaveLength(failures.length);
    expect(notes.filter((note) => /^test: .*; trying again in \d+ s$/.test(note))).toHaveLength(failures.length);
  }

  it.each<[string, http.RequestListener[]]>([
    ['500', [answer(500)]],
    ['503 and a dropped connection', [answer(503), dropped]],
    ['408, 425 and 429', [answer(408), answer(425), answer(429)]],
    ['a body cut short', [breakOff({ 'content-length': '1000' })]],
    ['a chunked body cut short', [breakOff({})]],
  ])('retries after %s', (_what, failures) => retriesAfter(failures));

  it('waits longer each time, with jitter, up to a limit', async () => {
    const { url } = await serve(answer(500));
    const waits: number[] = [];
    const wait = async (milliseconds: number) => waits.push(milliseconds);
    const limits = { retries: 5, backoffMs: 1000, maxBackoffMs: 5000 };
    await atlasError(runFetch([https(`${url}/a`)], scratchDir(), { limits, wait }));
    expect(waits).toHaveLength(5);
    [1000, 2000, 4000, 5000, 5000].forEach((most, index) => {
      expect(waits[index]).toBeGreaterThanOrEqual(most / 2);
      expect(waits[index]).toBeLessThanOrEqual(most);
    });
  });

  it.each<[string, string, (wait: number | undefined) => boolean]>([
    ['seconds', '7', (wait) => wait === 7000],
    ['no time', '0', (wait) => wait === 0],
    ['a date', new Date(Date.now() + 3_600_000).toUTCString(), (wait) => wait === 9000],
    ['a date gone by', 'Thu, 01 Jan 2026 00:00:00 GMT', (wait) => wait === 0],
    ['too long', '86400', (wait) => wait === 9000],
    ['another text', 'soon', (wait) => wait !== undefined && wait >= 50 && wait <= 100],
  ])('honors Retry-After with %s', async (_what, value, isRight) => {
    const { url } = await serve(script(answer(429, '', { 'retry-after': value }), answer(200, 'text')));
    const limits = { maxRetryAfterMs: 9000, backoffMs: 100 };
    const { waits } = await runFetch([https(`${url}/a`)], scratchDir(), { limits });
    expect(waits).toHaveLength(1);
    expect(waits[0]).toSatisfy(isRight);
  });

  const few = { retries: 2 };
  async function givesUpOn(
    handler: http.RequestListener,
    limits: Partial<FetchLimits>,
    tries: number,
    reason: RegExp,
  ): Promise<void> {
    const dataDir = scratchDir();
    const { url, requests } = await serve(handler);
    const error = await atlasError(runFetch([https(`${url}/a`)], dataDir, { limits }));
    expect(error).toMatchObject({ code: 'E_FETCH' });
    expect(error.message).toMatch(reason);
    expect(error.message).toContain(`source "test": cannot get ${url}/a: `);
    expect(error.message).toMatch(/; a current release stays$/);
    expect(requests).toHaveLength(tries);
    // No part of a file and no work folder stays.
    expect(readdirSync(path.join(dataDir, 'tmp', 'work'))).toEqual([]);
    expect(readdirSync(dataDir, { recursive: true }).filter((name) => /part|evil/.test(String(name)))).toEqual([]);
  }

  it.each<[string, ...Parameters<typeof givesUpOn>]>([
    ['404', answer(404), few, 1, /the server answered 404 Not Found/],
    ['204', answer(204), few, 1, /the server answered 204/],
    ['304 unasked', answer(304), few, 1, /the server answered 304/],
    ['500 every time', answer(500), few, 3, /the server answered 500/],
    ['a dropped connection every time', dropped, few, 3, /the connection was closed too early/],
    ['a body always cut short', breakOff({ 'content-length': '1000' }), few, 3, /the connection was closed too early/],
    ['a body without end', trickle, { retries: 0, tryTimeoutMs: 200 }, 1, /the download was not done for 0\.2 s/],
    [
      'an announced body too large',
      // The body never arrives: its announced length is enough.
      (_request, response) => response.writeHead(200, { 'content-length': 101 }).flushHeaders(),
      { retries: 0, maxDownloadBytes: 100, idleTimeoutMs: 5000 },
      1,
      /larger than 100 bytes/,
    ],
    ['an endless body', trickle, { ...few, maxDownloadBytes: 3 }, 1, /larger than 3 bytes/],
    [
      'a bomb',
      answer(200, gzipSync(Buffer.alloc(9999))),
      { ...few, maxUnpackedBytes: 99 },
      1,
      /unpacks to more than 99 bytes/,
    ],
    ['a zip with ../evil', answer(200, makeZip([{ name: '../evil', content: 'x' }])), few, 1, /invalid relative path/],
  ])('gives up on %s', (_what, ...given) => givesUpOn(...given));

  async function waitsForSlowServer(): Promise<void> {
    const { url } = await serve(async (_request, response) => {
      for (let i = 0; i < 8; i++) {
        response.write('x');
        await sleep(500);
      }
      response.end();
    });
    // Silent for less than the limit, also on a busy machine, and for longer in all.
    const limits = { retries: 0, idleTimeoutMs: 3_500, tryTimeoutMs: 60_000 };
    const { output } = await runFetch([https(`${url}/a`)], scratchDir(), { limits });
    expect(textsOf(output[0])).toEqual({ a: 'xxxxxxxx' });
  }

  // At the same time, since all of them wait.
  it('retries after silence, gives up on servers that stay silent, and waits for one that is slow', async () => {
    const patience = { ...few, idleTimeoutMs: 1_000 };
    await Promise.all([
      retriesAfter([silent], 3_000),
      givesUpOn(silent, patience, 3, /the server was silent for 1 s/),
      givesUpOn((_request, response) => response.write('x'), patience, 3, /was silent for 1 s/),
      waitsForSlowServer(),
    ]);
  });

  it('gives all attempts together one deadline', async () => {
    const { url, requests } = await serve(trickle);
    const limits = { retries: 1000, backoffMs: 0, maxBackoffMs: 0, tryTimeoutMs: 60, deadlineMs: 300 };
    const error = await atlasError(runFetch([https(`${url}/a`)], scratchDir(), { limits }));
    expect(error.message).toMatch(/the download was not done for/);
    expect(requests.length).toBeLessThan(20);
  });

  it('keeps nothing of a download that no build has accepted', async () => {
    const dataDir = scratchDir();
    let text = 'good';
    const { url } = await serve((_request, response) => response.end(text));
    const run = (options = {}) => runFetch([https(`${url}/a`)], dataDir, options);
    await run();
    text = '<html>';
    expect(textsOf((await run({ accept: false })).output[0])).toEqual({ a: '<html>' });
    expect(textsOf((await run({ offline: true })).output[0])).toEqual({ a: 'good' });
  });

  it('does not retry a server whose certificate is not trusted', async () => {
    const dir = scratchDir();
    const file = (name: string): string => path.join(dir, name);
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject].concat([
        '-keyout',
        file('key.pem'),
        '-out',
        file('cert.pem'),
      ]),
      { stdio: 'pipe' },
    );
    let connections = 0;
    const server = createSecureServer({ key: readFileSync(file('key.pem')), cert: readFileSync(file('cert.pem')) });
    server.on('connection', () => connections++);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as net.AddressInfo;
      const error = await atlasError(runFetch([https(`https://127.0.0.1:${port}/a`)], dir));
      expect([error.code, error.message]).toEqual(['E_FETCH', expect.stringMatching(/self-signed certificate/)]);
      expect(connections).toBe(1);
    } finally {
      server.close();
    }
  });

  it('uses the copy in the cache when a download fails, and says how old it is', async () => {
    const dataDir = scratchDir();
    const { url } = await serve(script(answer(200, 'text', { etag: '"v1"' }), answer(404), answer(304)));
    await runFetch([https(`${url}/a`)], dataDir);
    for (const failure of ['the server answered 404 Not Found; using the copy fetched on ', undefined]) {
      const { output, notes } = await runFetch([https(`${url}/a`)], dataDir);
      expect(output[0]?.from).toBe('cache');
      expect(textsOf(output[0])).toEqual({ a: 'text' });
      if (failure === undefined) expect(notes).toEqual(['test: v1, from the cache']);
      else expect(notes[0]).toContain(failure);
    }
  });

  it('names the network error', async () => {
    const error = await atlasError(
      runFetch([https(`${await closedPort()}/a`)], scratchDir(), { limits: { retries: 0 } }),
    );
    expect(error.message).toMatch(/: connect ECONNREFUSED/);
  });

  describe('redirects', () => {
    const redirect = (location: string, status = 302) => answer(status, 'elsewhere', { location });

    it.each([301, 302, 303, 307, 308])('are followed with status %i', async (status) => {
      const { url, requests } = await serve(script(redirect('/there?x=1', status), answer(200, 'text')));
      const { output } = await runFetch([https(`${url}/a.csv`)], scratchDir());
      expect(textsOf(output[0])).toEqual({ 'a.csv': 'text' });
      expect(requests.map((request) => request.url)).toEqual(['/a.csv', '/there?x=1']);
    });

    it.each([
      [
        'to plain http elsewhere',
        'http://example.invalid/x',
        /redirected to http:\/\/example\.invalid; expected an https/,
      ],
      ['to another scheme', 'ftp://example.invalid/x', /redirected to .*; expected an https/],
      ['to no address', 'https://a b/', /redirected to an address that is not well-formed/],
      ['in a circle', '/a', new RegExp(`more than ${MAX_REDIRECTS} redirects`)],
    ])('are refused %s', async (_what, location, reason) => {
      const { url } = await serve(redirect(location));
      const error = await atlasError(runFetch([https(`${url}/a`)], scratchDir()));
      expect(error.code).toBe('E_FETCH');
      expect(error.message).toMatch(reason);
    });

    it('never lead from https to plain http, not even on this machine', () => {
      const from = new URL('https://example.invalid/a/b');
      expect(redirectTarget('../c', from).href).toBe('https://example.invalid/c');
      expect(redirectTarget('//other.invalid/c', from).href).toBe('https://other.invalid/c');
      expect(() => redirectTarget('http://127.0.0.1/c', from)).toThrow(
        /redirected to http:\/\/127\.0\.0\.1; expected an https/,
      );
    });

    it('send credentials only to the server that they are for', async () => {
      const other = await serve(answer(200, 'text'));
      const first = await serve(script(redirect('/b'), redirect(`${other.url}/c`)));
      const url = first.url.replace('//', `//me:\${SECRET}@`);
      await runFetch([https(`${url}/a`)], scratchDir(), { env: { SECRET: 'a:b@c/d' } });
      const basic = `Basic ${Buffer.from('me:a:b@c/d').toString('base64')}`;
      expect(first.requests.map(({ headers }) => headers.authorization)).toEqual([basic, basic]);
      expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    });
  });

  describe('a key in the address', () => {
    it('comes from the environment, and is in no message and not in the cache', async () => {
      const dataDir = scratchDir();
      const { url, requests } = await serve(script(answer(200, 'text'), answer(404)));
      const run = () => runFetch([https(`${url}/a?key=\${KEY}`)], dataDir, { env: { KEY: 's3cret&' } });
      const { notes } = await run();
      const second = await run();
      expect(requests[0]?.url).toBe('/a?key=s3cret%26');
      const { output } = await runFetch([https(`${url}/a?key=\${KEY}`)], dataDir, { offline: true });
      expect(second.notes[0]).toContain('the server answered 404');
      expect(`${second.notes}${notes}${JSON.stringify(output)}`).not.toContain('s3cret');
    });

    it('must be set', () => {
      expect(fillVariables(`https://h/\${A}\${B_2}`, { A: 'x', B_2: '/' })).toBe('https://h/x%2F');
      expect(() => fillVariables(`https://h/\${A}`, {})).toThrow('the environment variable A is not set');
      expect(() => fillVariables(`https://h/\${A}`, { A: '' })).toThrow('the environment variable A is not set');
    });
  });

  it.each([
    ['https://h/a/b.csv?x=/y', 'b.csv'],
    ['https://h/a/', 'a'],
    ['https://h', 'download'],
  ])('names the file of %s', (url, name) => {
    expect(nameOfUrl(url)).toBe(name);
  });
});
