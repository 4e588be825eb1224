/** Sources with several locations, files, dates in addresses, checksums, and a seed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { HttpsLocation } from '../../pipeline/config/sources.js';
import { fillDate } from '../../pipeline/config/url.js';
import { dateInName } from '../../pipeline/fetching/data-date.js';
import { parseChecksum } from '../../pipeline/fetching/https.js';
import { atlasError, runFetch, scratchDir, serve, source, textsOf } from './fetch-support.js';

/** A server with these files; it counts requests by path. */
async function files(content: Record<string, string | Buffer | undefined>, headers: http.OutgoingHttpHeaders = {}) {
  const { url, requests } = await serve((request, response) => {
    const body = content[request.url!];
    response.writeHead(body === undefined ? 404 : 200, body === undefined ? {} : headers).end(body);
  });
  return { url, content, paths: () => requests.map((request) => request.url) };
}

const location = (urls: string[], more: Partial<HttpsLocation> = {}): HttpsLocation => ({
  kind: 'https',
  urls,
  files: [],
  ...more,
});
const hash = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');
const LIMITS = { limits: { retries: 0 } };

describe('locations', () => {
  it('are tried in order; format, license and attribution are those of the location', async () => {
    const { url } = await files({ '/b': 'b' });
    const second = location([`${url}/b`], { format: 'dbip-lite', license: 'X', attribution: 'Y' });
    const { output, notes } = await runFetch([source([location([`${url}/a`]), second])], scratchDir());
    expect(textsOf(output[0])).toEqual({ b: 'b' });
    expect(output[0]?.source).toMatchObject({ format: 'dbip-lite', license: 'X', attribution: 'Y' });
    expect(notes[0]).toMatch(/^test: cannot get http.*\/a: the server answered 404/);
  });

  it('name the reason of each if none has the source', async () => {
    const { url } = await files({});
    const error = await atlasError(runFetch([source([location([`${url}/a`]), location([`${url}/b`])])], scratchDir()));
    expect(error.message).toMatch(/^source "test": cannot get \S+\/a: .*404.*; cannot get \S+\/b: .*404/);
  });

  it('have their own copies in the cache: a location that fails for a while does not go back to the next', async () => {
    const { url, content } = await files({ '/a': 'living', '/b': 'other' });
    const dataDir = scratchDir();
    const both = source([location([`${url}/a`]), location([`${url}/b`])]);
    expect(textsOf((await runFetch([both], dataDir)).output[0])).toEqual({ a: 'living' });
    content['/a'] = undefined;
    const { output, notes } = await runFetch([both], dataDir);
    expect(textsOf(output[0])).toEqual({ a: 'living' });
    expect(notes[0]).toMatch(/404.*; using the copy fetched on \d{4}-\d\d-\d\d/);
  });

  it('may be missing if the source is optional, which is reported', async () => {
    const { url } = await files({ '/a': 'a' });
    const sources = [source(location([`${url}/a`])), source(location([`${url}/b`]), 'extra', true)];
    const { output, missing, notes, counts } = await runFetch(sources, scratchDir());
    expect(output.map(({ id }) => id)).toEqual(['test']);
    expect(missing).toMatchObject([{ id: 'extra', reason: expect.stringContaining('404') }]);
    expect(notes.at(-1)).toMatch(/source "extra".*It is optional, so the build continues without it/);
    expect(counts).toMatchObject({ sources: 1, missing: 1 });
    expect((await atlasError(runFetch([sources[1]!], scratchDir()))).code).toBe('E_FETCH');
  });
});

describe('several downloads', () => {
  it('are one source; those that are unchanged are not downloaded again', async () => {
    const seen: (string | undefined)[] = [];
    const versions: Record<string, string> = { '/a': '1', '/b': '1' };
    const { url } = await serve((request, response) => {
      const etag = `"${versions[request.url!]}"`;
      seen.push(request.headers['if-none-match']);
      const isSame = request.headers['if-none-match'] === etag;
      response.writeHead(isSame ? 304 : 200, { etag }).end(isSame ? '' : `${request.url}${etag}`);
    });
    const dataDir = scratchDir();
    const both = source(location([`${url}/a`, `${url}/b`]));
    expect((await runFetch([both], dataDir)).output[0]).toMatchObject({ from: 'network', version: '1 1' });
    versions['/b'] = '2';
    const { output } = await runFetch([both], dataDir);
    expect(output[0]).toMatchObject({ from: 'network', version: '1 2' });
    expect(textsOf(output[0])).toEqual({ a: '/a"1"', b: '/b"2"' });
    expect(seen).toEqual([undefined, undefined, '"1"', '"1"']);
    expect((await runFetch([both], dataDir)).output[0]).toMatchObject({ from: 'cache', version: '1 2' });
    expect((await runFetch([both], dataDir, { offline: true })).output[0]).toMatchObject({ version: '1 2' });
  });

  it('all fail if one does', async () => {
    const { url } = await files({ '/a': 'a' });
    await atlasError(runFetch([source(location([`${url}/a`, `${url}/b`]))], scratchDir()));
  });
});

describe('a date in the address', () => {
  const dated = (url: string) => source(location([`${url}/lite-\${date:YYYY-MM}.csv.gz`]));

  it('is that of the build, or the month before as long as there is no file', async () => {
    const { url, content, paths } = await files({ '/lite-2025-12.csv.gz': gzipSync('december') });
    const dataDir = scratchDir();
    const fetch = async (asOf: string) => (await runFetch([dated(url)], dataDir, { asOf })).output[0];
    const first = await fetch('2026-01-01');
    expect(textsOf(first)).toEqual({ 'lite-2025-12.csv': 'december' });
    expect(first?.dataDate).toEqual({ date: '2025-12-01', evidence: 'name of the release' });
    content['/lite-2026-01.csv.gz'] = gzipSync('january');
    expect(textsOf(await fetch('2026-01-31'))).toEqual({ 'lite-2026-01.csv': 'january' });
    // Two months later neither file exists: the copy in the cache stays.
    expect(textsOf(await fetch('2026-03-31'))).toEqual({ 'lite-2026-01.csv': 'january' });
    expect(paths()).toEqual(
      ['2026-01', '2025-12', '2026-01', '2026-03', '2026-02'].map((month) => `/lite-${month}.csv.gz`),
    );
  });

  it.each([
    [`a-\${date:YYYY-MM}`, '2026-03-31', 1, 'a-2026-02', '2026-02-01'],
    [`a-\${date:YYYY-MM}`, '2026-01-31', 1, 'a-2025-12', '2025-12-01'],
    [`\${date:YYYY-MM-DD}/a`, '2024-03-01', 1, '2024-02-29/a', '2024-02-29'],
    [`a-\${monday:YYYYMMDD}`, '2026-11-22', 0, 'a-20261116', '2026-11-16'],
    [`a-\${monday:YYYYMMDD}`, '2026-11-23', 0, 'a-20261123', '2026-11-23'],
    [`a-\${monday:YYYYMMDD}`, '2026-01-01', 1, 'a-20251222', '2025-12-22'],
    ['a', '2024-03-01', 0, 'a', undefined],
  ])('%s on %s, %i periods back', (template, day, back, address, date) => {
    expect(fillDate(template, day, back)).toEqual({ address, date });
  });
});

describe('checksums', () => {
  it.each(['sha256', 'md5'])('%s next to the file is checked', async (algorithm) => {
    const { url, content } = await files({ '/a.csv': 'text', '/a.csv.sum': `${hash(algorithm, 'text')}  a.csv\n` });
    const checked = source(location([`${url}/a.csv`], { checksum: `\${url}.sum` }));
    expect(textsOf((await runFetch([checked], scratchDir())).output[0])).toEqual({ 'a.csv': 'text' });
    content['/a.csv'] = 'cut';
    const error = await atlasError(runFetch([checked], scratchDir()));
    expect(error.message).toMatch(new RegExp(`its ${algorithm} is [0-9a-f]+, but its publisher says`));
    content['/a.csv.sum'] = undefined;
    expect((await atlasError(runFetch([checked], scratchDir()))).message).toMatch(/its checksum cannot be downloaded/);
  });

  it('that are wrong keep the copy in the cache in use', async () => {
    const { url, content } = await files({ '/a': 'good', '/sums/a.md5': hash('md5', 'good') });
    const dataDir = scratchDir();
    const checked = source(location([`${url}/a`], { checksum: `${url}/sums/\${file}.md5` }));
    await runFetch([checked], dataDir);
    content['/a'] = 'truncat';
    expect(textsOf((await runFetch([checked], dataDir)).output[0])).toEqual({ a: 'good' });
  });

  const A = 'a'.repeat(64);
  const B = 'b'.repeat(32);
  it.each([
    [`${A}\n`, { algorithm: 'sha256', hash: A }],
    [`${A}  x.csv\n`, { algorithm: 'sha256', hash: A }],
    [`MD5 (x.csv) = ${B.toUpperCase()}\n`, { algorithm: 'md5', hash: B }],
    [`${'c'.repeat(32)}  y.csv\r\n${B} *dir/x.csv\r\n`, { algorithm: 'md5', hash: B }],
  ])('%j', (text, checksum) => {
    expect(parseChecksum(text, 'x.csv')).toEqual(checksum);
  });

  it.each(['', 'x', `${A}${A}  x.csv`, `${A}  y.csv\n${A}  z.csv`])('%j has no checksum of x.csv', (text) => {
    expect(() => parseChecksum(text, 'x.csv')).toThrow(/has no SHA-256 or MD5 of x\.csv/);
  });
});

describe('the date of the data', () => {
  const dateOf = async (content: string, headers: http.OutgoingHttpHeaders = {}) => {
    const { url } = await files({ '/a': content }, headers);
    return (await runFetch([source(location([`${url}/a`]))], scratchDir())).output[0]?.dataDate;
  };
  const modified = { 'last-modified': 'Thu, 05 Feb 2026 23:59:00 GMT' };

  it.each([
    ['2|ripencc|20260301|10|19830705|20260228|+0100\n', {}, '2026-02-28', 'date in the file'],
    ['{"syncToken":"1","createDate":"2026-01-15-20-03-03"}', modified, '2026-01-15', 'date in the file'],
    ['{"creationTime":"2026-01-16T01:02:03.4"}', {}, '2026-01-16', 'date in the file'],
    ['{"last_updated_timestamp":"2026-01-17T01:02:03.4"}', {}, '2026-01-17', 'date in the file'],
    ['1.0.0.0,1.0.0.255,AU', modified, '2026-02-05', 'Last-Modified'],
  ])('comes from the best evidence: %j', async (content, headers, date, evidence) => {
    expect(await dateOf(content, headers)).toEqual({ date, evidence });
  });

  it('is not known without evidence', async () => {
    expect(await dateOf('1.0.0.0,1.0.0.255,AU')).toBeUndefined();
    expect(await dateOf('2|ripencc|1|10|19830705|20260231|+0100\n')).toBeUndefined();
  });

  it.each([
    ['2.3.2026061719', '2026-06-17'],
    ['2026.01.02', '2026-01-02'],
    ['12.20260102.1', '2026-01-02'],
    ['1.2.3', undefined],
    ['202613010000', undefined],
  ])('of version %s: %s', (version, date) => {
    expect(dateInName(version)).toBe(date);
  });
});

describe('a seed', () => {
  const seed = { kind: 'npm' as const, spec: 'seed@latest', files: ['a.csv'], seed: 'it is old' };

  it('is taken from node_modules, and is reported', async () => {
    const packageRoot = scratchDir();
    const directory = path.join(packageRoot, 'node_modules', 'seed');
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, 'package.json'), '{"version":"1.20260102.0"}');
    writeFileSync(path.join(directory, 'a.csv'), 'seed');
    const { url, content } = await files({});
    const both = source([location([`${url}/a.csv`]), seed]);
    const dataDir = scratchDir();
    const options = { packageRoot, ...LIMITS };
    const { output, notes } = await runFetch([both], dataDir, options);
    expect(output[0]).toMatchObject({ from: 'bundled', seed: 'it is old', version: '1.20260102.0' });
    expect(output[0]?.dataDate).toEqual({ date: '2026-01-02', evidence: 'name of the release' });
    expect(notes.at(-1)).toBe('test: only a seed for the first build: it is old');
    content['/a.csv'] = 'living';
    expect((await runFetch([both], dataDir, options)).output[0]).toMatchObject({ from: 'network', seed: undefined });
    expect((await runFetch([both], dataDir, { ...options, offline: true })).output[0]?.seed).toBeUndefined();
  });
});

describe('errors and secrets', () => {
  it('a named pipe is refused and not waited for', async () => {
    const baseDir = scratchDir();
    execFileSync('mkfifo', [path.join(baseDir, 'pipe.csv')]);
    const pipe = source({ kind: 'file', pattern: 'pipe.csv', baseDir, files: [] });
    expect((await atlasError(runFetch([pipe], scratchDir()))).message).toMatch(/pipe\.csv is not a regular file/);
  });

  it('a password is in no message, also after a redirect to the same server', async () => {
    const { url } = await serve((request, response) => {
      if (request.url === '/a') response.writeHead(302, { location: `${url.replace('//', '//me:s3cret@')}/b` }).end();
      else response.writeHead(404).end();
    });
    const withPassword = source(location([`${url.replace('//', '//you:hidden@')}/a`]));
    const dataDir = scratchDir();
    const error = await atlasError(runFetch([withPassword], dataDir));
    expect(error.message).toMatch(/cannot get http:\/\/\*\*\*@127\.0\.0\.1:\d+\/a: the server answered 404/);
    expect(`${error.message}${error.stack}`).not.toMatch(/s3cret|hidden/);
  });

  it('a password is not in the note about an older period, nor in the cache', async () => {
    const { url } = await files({ '/2025-12.csv': 'december' }, { etag: '"v1"' });
    const dataDir = scratchDir();
    const address = `${url.replace('//', '//me:s3cret@')}/\${date:YYYY-MM}.csv`;
    const { notes } = await runFetch([source(location([address]))], dataDir);
    expect(notes[0]).toMatch(/\/\/\*\*\*@127\.0\.0\.1:\d+\/2026-01\.csv does not exist yet; trying the period before/);
    const written = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(path.join(parentPath, name), 'utf8'));
    expect(written.length).toBeGreaterThan(1);
    expect(`${notes}${written}`).not.toContain('s3cret');
  });

  it('a variable that is not set is an error of the configuration, and its message has no password', async () => {
    const address = `https://me:s3cret@h.invalid/\${UNSET_NAME}`;
    const error = await atlasError(runFetch([source(location([address]))], scratchDir(), { env: {} }));
    expect(error).toMatchObject({ code: 'E_CONFIG' });
    expect(error.message).toMatch(/the environment variable UNSET_NAME is not set; https:\/\/\*\*\*@h\.invalid/);
    expect(error.message).not.toContain('s3cret');
  });
});
