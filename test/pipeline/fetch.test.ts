/** The whole stage: local files, several sources, leftover files, and its errors. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { objectPath } from '../../pipeline/fetching/cache.js';
import { atlasError, makeZip, runFetch, scratchDir, serve, source, textsOf } from './fetch-support.js';

/** Creates a folder with files and their subfolders. */
function folder(files: Record<string, string | Buffer>): string {
  const directory = scratchDir();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), content);
  }
  return directory;
}

const file = (baseDir: string, pattern: string, files: string[] = [], id?: string) =>
  source({ kind: 'file', pattern, baseDir, files }, id);

describe('fetch from files', () => {
  const FILES = {
    'a.csv': 'a',
    'b.csv.gz': gzipSync('b'),
    'in/c.csv': 'c',
    'in/deep/d.csv': 'd',
    'odd[1].csv': 'odd',
    'lite.zip': makeZip([
      { name: 'v4.csv', content: '4' },
      { name: 'LICENSE', content: '' },
    ]),
  };

  it.each<[string, string[], Record<string, string>]>([
    ['a.csv', [], { 'a.csv': 'a' }],
    ['./in/../a.csv', [], { 'a.csv': 'a' }],
    ['b.csv.gz', [], { 'b.csv': 'b' }],
    ['lite.zip', ['*.csv'], { 'v4.csv': '4' }],
    ['?.csv*', [], { 'a.csv': 'a', 'b.csv': 'b' }],
    ['in/**/*.csv', [], { 'c.csv': 'c', 'd.csv': 'd' }],
    ['{a.csv,lite.zip}', ['*.csv'], { 'a.csv': 'a', 'v4.csv': '4' }],
    ['odd[1].csv', [], { 'odd[1].csv': 'odd' }],
  ])('takes %s %j', async (pattern, files, result) => {
    const baseDir = folder(FILES);
    const { output, counts } = await runFetch([file(baseDir, pattern, files)], scratchDir());
    expect(output[0]).toMatchObject({ from: 'file', version: '' });
    expect(textsOf(output[0])).toEqual(result);
    expect(counts).toMatchObject({ sources: 1, files: Object.keys(result).length, file: 1 });
  });

  it('takes an absolute path', async () => {
    const baseDir = folder(FILES);
    const { output } = await runFetch([file('/', path.join(baseDir, 'a.csv'))], scratchDir());
    expect(textsOf(output[0])).toEqual({ 'a.csv': 'a' });
  });

  it('reads them offline as well, and every time', async () => {
    const baseDir = folder(FILES);
    const dataDir = scratchDir();
    for (const text of ['one', 'two']) {
      writeFileSync(path.join(baseDir, 'a.csv'), text);
      const { output } = await runFetch([file(baseDir, 'a.csv')], dataDir, { offline: true });
      expect(textsOf(output[0])).toEqual({ 'a.csv': text });
      expect(output[0]?.files[0]?.path).toBe(objectPath(dataDir, output[0]?.files[0]?.sha256 ?? ''));
    }
  });

  it.each([
    ['absent.csv', /cannot get absent\.csv: no file matches, relative to \/.*; a current release stays$/],
    ['*.txt', /cannot get \*\.txt: no file matches/],
    ['in', /cannot get in: \/[^ ]+ is a directory/],
    ['lite.zip', /lite\.zip holds 2 files; name the ones you want/],
    ['*', /two files have the name|lite\.zip holds 2 files/],
  ])('refuses %s', async (pattern, message) => {
    const error = await atlasError(runFetch([file(folder(FILES), pattern)], scratchDir()));
    expect(error).toMatchObject({ code: 'E_FETCH' });
    expect(error.message).toMatch(message);
  });
});

describe('the fetch stage', () => {
  it('returns sources in their order, regardless of which is done first', async () => {
    const { url } = await serve((request, response) => {
      setTimeout(() => response.end(request.url), request.url === '/slow' ? 100 : 0);
    });
    const baseDir = folder({ 'a.csv': 'a' });
    const remote = (id: string) => source({ kind: 'https', urls: [`${url}/${id}`], files: [] }, id);
    const sources = [remote('slow'), file(baseDir, 'a.csv', [], 'local'), ...'bcdefg'.split('').map(remote)];
    const { output, counts } = await runFetch(sources, scratchDir());
    expect(output.map(({ id }) => id)).toEqual(['slow', 'local', 'b', 'c', 'd', 'e', 'f', 'g']);
    expect(output.map((fetched) => Object.values(textsOf(fetched))[0])).toEqual([
      '/slow',
      'a',
      '/b',
      '/c',
      '/d',
      '/e',
      '/f',
      '/g',
    ]);
    expect(counts).toMatchObject({ sources: 8, network: 7, file: 1 });
  });

  it('names every source that failed, in order', async () => {
    const dataDir = scratchDir();
    const { url } = await serve((request, response) => {
      response.writeHead(request.url === '/good' ? 200 : 404, { etag: '"1"' }).end('text');
    });
    const remote = (id: string) => source({ kind: 'https', urls: [`${url}/${id}`], files: [] }, id);
    const error = await atlasError(runFetch([remote('bad'), remote('good'), remote('worse')], dataDir));
    expect(error.code).toBe('E_FETCH');
    const lines = error.message.split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('source "bad"');
    expect(lines[1]).toContain('source "worse"');
  });

  it('says what to do if the build is offline and the cache has no copy', async () => {
    const remote = source({ kind: 'https', urls: ['https://example.invalid/a'], files: [] });
    const error = await atlasError(runFetch([remote], scratchDir(), { offline: true }));
    expect(error.code).toBe('E_FETCH');
    expect(error.message).toMatch(/cannot get https.*: no usable copy in the cache; build once without --offline/);
  });

  it('ignores what a killed fetch left', async () => {
    const dataDir = scratchDir();
    const baseDir = folder({ 'a.csv': 'whole' });
    const objects = path.join(dataDir, 'cache', 'objects');
    mkdirSync(objects, { recursive: true });
    mkdirSync(path.join(dataDir, 'cache', 'sources'), { recursive: true });
    mkdirSync(path.join(dataDir, 'tmp', 'work', 'fetch-test', 'unpacked'), { recursive: true });
    writeFileSync(path.join(objects, '.part-0'), 'who');
    writeFileSync(path.join(dataDir, 'cache', 'sources', '.part-0'), '{');
    const { output } = await runFetch([file(baseDir, 'a.csv')], dataDir);
    expect(textsOf(output[0])).toEqual({ 'a.csv': 'whole' });
    expect(readdirSync(path.join(dataDir, 'tmp', 'work'))).toEqual([]);
  });

  it('distinguishes a data directory that cannot be used from a source that cannot', async () => {
    const baseDir = folder({ 'a.csv': 'a' });
    const dataDir = scratchDir();
    writeFileSync(path.join(dataDir, 'cache'), 'in the way');
    const sources = ['one', 'two'].map((id) => file(baseDir, 'a.csv', [], id));
    const error = await atlasError(runFetch(sources, dataDir));
    expect(error).toMatchObject({ code: 'E_DATA_DIR' });
    expect(error.message).toMatch(/^cannot use the data directory [^\n]*not a directory[^\n]*--data$/);
  });
});
