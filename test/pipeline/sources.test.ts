import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadSources, selectSources } from '../../pipeline/config/sources.js';
import { DEFAULT_GATES, DEFAULT_MAX_REJECT_SHARE, KEPT_RELEASES, MAX_SOURCES } from '../../src/limits.js';
import { packageRoot } from '../../src/package-root.js';
import { atlasError, scratchDir } from './fetch-support.js';

const NPM = { npm: '@scope/name@latest', files: ['a.csv'] };
const ONE = { id: 'one', license: 'CC0-1.0', fetch: NPM, format: 'ip-location-db' };

function written(content: unknown): string {
  const file = path.join(scratchDir(), 'sources.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

/** Returns a file with one changed source. */
function withSource(change: Record<string, unknown>): unknown {
  return { sources: [{ ...ONE, ...change }] };
}

describe('loadSources', () => {
  it('reads the default sources, whose files are in the pinned packages', async () => {
    const root = packageRoot();
    const config = await loadSources(path.join(root, 'data', 'sources.json'));
    for (const { id, locations, optional, attribution, license } of config.sources) {
      expect(locations[0]!.kind).toBe('https');
      if (license !== 'PDDL-1.0') expect(attribution).not.toBe('');
      if (optional) continue;
      const seed = locations.at(-1)!;
      if (seed.kind !== 'npm') throw new Error(`${id} has no seed`);
      expect(seed).toMatchObject({ seed: expect.stringContaining('June 2026') });
      expect(seed.attribution).toMatch(/NRO.*ip-location-db/);
      const directory = path.join(root, 'node_modules', seed.spec.replace(/@latest$/, ''));
      for (const file of seed.files) expect(existsSync(path.join(directory, file)), file).toBe(true);
    }
  });

  it('fills in every default', async () => {
    const file = written({ sources: [ONE] });
    expect(await loadSources(file)).toEqual({
      path: file,
      overrides: undefined,
      labels: [],
      merge: 'priority',
      keepReleases: KEPT_RELEASES,
      gates: DEFAULT_GATES,
      after: [],
      report: undefined,
      sources: [
        {
          ...{ id: 'one', title: 'one', license: 'CC0-1.0', attribution: '', homepage: '', corrections: '' },
          ...{ lineage: 'one', kind: 'other', interpolates: false, space: [], asns: [], optional: false },
          locations: [{ kind: 'npm', spec: '@scope/name@latest', files: ['a.csv'] }],
          format: 'ip-location-db',
          maxRejectShare: DEFAULT_MAX_REJECT_SHARE,
        },
      ],
    });
  });

  it('uses the values of the file instead of the defaults, and paths relative to it', async () => {
    const file = written({
      $schema: 'sources.schema.json',
      maxRejectShare: 0.5,
      overrides: 'mine/overrides.csv',
      keepReleases: 2,
      gates: { maxRowsChange: 0.5, maxBlockIPv4: 1 },
      sources: [
        { ...ONE, title: 'First', attribution: 'Someone', homepage: 'https://example.org' },
        { ...ONE, id: 'two', fetch: { file: 'data/*.csv' }, maxRejectShare: 0 },
        { ...ONE, id: 'three', fetch: { https: 'https://example.org/x.zip', files: ['*.csv'] } },
      ],
    });
    const config = await loadSources(file);
    const baseDir = path.dirname(file);
    expect(config).toMatchObject({ overrides: path.join(baseDir, 'mine/overrides.csv'), keepReleases: 2 });
    expect(config.gates).toEqual({ ...DEFAULT_GATES, maxRowsChange: 0.5, maxBlockIPv4: 1 });
    expect(config.sources).toMatchObject([
      { title: 'First', attribution: 'Someone', homepage: 'https://example.org', maxRejectShare: 0.5 },
      { locations: [{ kind: 'file', pattern: 'data/*.csv', baseDir, files: [] }], maxRejectShare: 0 },
      { locations: [{ kind: 'https', urls: ['https://example.org/x.zip'], files: ['*.csv'] }] },
    ]);
  });

  it('accepts plain http for this machine only', async () => {
    for (const host of ['localhost', '127.0.0.1:8080', '127.9.9.9', '[::1]:80']) {
      const config = await loadSources(written(withSource({ fetch: { https: `http://${host}/a.csv` } })));
      expect(config.sources[0]?.locations).toMatchObject([{ urls: [`http://${host}/a.csv`] }]);
    }
  });

  it('accepts a byte order mark', async () => {
    expect((await loadSources(written(`\ufeff${JSON.stringify({ sources: [ONE] })}`))).sources).toHaveLength(1);
  });

  it.each([
    ['a comma too many', '{\n  "sources": [\n    {"id": "x"},\n  ]\n}', /sources\.json:4:3 is not JSON/],
    ['a bare word', '{\n "sources": tru\n}', /sources\.json:2:13 is not JSON/],
    ['a cut-off file', '{"sources": [', /sources\.json:1:14 is not JSON/],
    ['an empty file', '', /sources\.json:1:1 is not JSON/],
  ])('reports line and column of %s', async (_what, text, message) => {
    const error = await atlasError(loadSources(written(text)));
    expect(error.code).toBe('E_CONFIG');
    expect(error.message).toMatch(message);
  });

  it.each([
    ['{"sources": [], "sources": []}', 'sources'],
    ['{"sources": [{"id": "a", "fetch": {"npm": "x", "npm": "y"}, "id": "b"}]}', 'sources[0].fetch.npm, sources[0].id'],
    ['{"sources": [1, [{"a": {}}], {"b": [], "c": null, "b": 1}]}', 'sources[2].b'],
  ])('refuses a key that is given twice: %s', async (text, keys) => {
    const error = await atlasError(loadSources(written(text)));
    expect(error.code).toBe('E_CONFIG');
    expect(error.message).toMatch(
      new RegExp(`has keys that are given twice: ${keys.replace(/[[\].]/g, '\\$&')}; keep one$`),
    );
  });

  it('reads several locations, each with its own format, license and seed', async () => {
    const living = { https: ['https://example.org/a', 'https://example.org/b'], checksum: `\${url}.md5` };
    const seed = { npm: 'x', files: ['a.csv'], format: 'dbip-lite', license: 'L', attribution: 'A', seed: 'old' };
    const config = await loadSources(written(withSource({ fetch: [living, seed], optional: true, kind: 'registry' })));
    expect(config.sources[0]).toMatchObject({
      optional: true,
      kind: 'registry',
      locations: [
        { kind: 'https', urls: living.https, files: [], checksum: living.checksum },
        { kind: 'npm', spec: 'x', format: 'dbip-lite', license: 'L', attribution: 'A', seed: 'old' },
      ],
    });
  });

  it.each<[string, unknown, RegExp]>([
    ['no locations', [], /sources\[0\]\.fetch is \[\]; expected/],
    [
      'a location of no kind',
      [{ files: ['a'] }],
      /sources\[0\]\.fetch\[0\] is .*expected an object with exactly one of/,
    ],
    ['a checksum of a package', { npm: 'x', files: ['a'], checksum: 'https://h/a' }, /fetch\.https is missing/],
    ['a checksum over plain http', { https: 'https://h/a', checksum: 'http://h/a' }, /checksum is .*expected an https/],
    [
      'a checksum over plain http, without its password',
      { https: 'https://h/a', checksum: 'http://u:p@h/a' },
      /checksum is "http:\/\/\*\*\*@h\/a"; expected an https/,
    ],
    [
      'one address of two',
      [{ https: ['https://h/a', 'http://u:p@h/b'] }],
      /fetch\[0\]\.https is "http:\/\/\*\*\*@h\/b"/,
    ],
  ])('refuses %s', async (_what, fetch, message) => {
    expect((await atlasError(loadSources(written(withSource({ fetch }))))).message).toMatch(message);
  });

  it('names a missing file', async () => {
    const error = await atlasError(loadSources(path.join(scratchDir(), 'absent.json')));
    expect(error.code).toBe('E_CONFIG');
    expect(error.message).toMatch(/cannot read the sources file.*absent\.json/);
  });

  it.each<[string, unknown, string]>([
    ['no object', 5, 'the file is 5; expected object'],
    ['no sources', {}, 'sources is missing; expected the sources'],
    ['an empty list', { sources: [] }, 'sources is []; expected no fewer than 1 items'],
    ['a misspelt key', { sources: [ONE], source: 1 }, 'source is not a known key; expected one of $schema, maxReject'],
    ['a share above 1', { sources: [ONE], maxRejectShare: 2 }, 'maxRejectShare is 2; expected <= 1 (the share'],
    ['an unknown gate', { sources: [ONE], gates: { maxRows: 1 } }, 'gates.maxRows is not a known key'],
    ['no release kept', { sources: [ONE], keepReleases: 0 }, 'keepReleases is 0; expected >= 1'],
    ['an id with a path', withSource({ id: '../x' }), 'sources[0].id is "../x"; expected a name of up to 64'],
    ['a license of blanks', withSource({ license: '' }), 'sources[0].license is ""; expected no fewer than 1'],
    ['a share as text', withSource({ maxRejectShare: '1%' }), 'sources[0].maxRejectShare is "1%"; expected number'],
    [
      'an empty fetch',
      withSource({ fetch: {} }),
      'sources[0].fetch is {}; expected an object with exactly one of "npm"',
    ],
    [
      'two kinds',
      withSource({ fetch: { ...NPM, file: 'x' } }),
      'expected an object with exactly one of "npm", "https"',
    ],
    [
      'an unknown kind',
      withSource({ fetch: { ...NPM, ftp: 'x' } }),
      'sources[0].fetch.ftp is not a known key; expected one of npm',
    ],
    [
      'npm from git',
      withSource({ fetch: { ...NPM, npm: 'github:a/b' } }),
      'sources[0].fetch.npm is "github:a/b"; expected',
    ],
    ['npm with a range', withSource({ fetch: { ...NPM, npm: 'a@^2.3.0' } }), '.fetch.npm is "a@^2.3.0"; expected'],
    [
      'a file twice',
      withSource({ fetch: { ...NPM, files: ['a', 'a'] } }),
      'sources[0].fetch.files is ["a","a"]; expected no dupl',
    ],
    [
      'plain http',
      withSource({ fetch: { https: 'http://example.org/a' } }),
      'expected an https:// address (http:// is only for this',
    ],
    ['a broken address', withSource({ fetch: { https: 'https://a b/' } }), 'expected a well-formed address'],
    ['one id twice', { sources: [ONE, ONE] }, 'sources[1].id is "one", as is sources[0].id'],
  ])('refuses %s', async (_what, content, message) => {
    const error = await atlasError(loadSources(written(content)));
    expect(error.code).toBe('E_CONFIG');
    expect(error.message).toContain(message);
    // One error, one line: other branches of the schema must not be listed.
    expect(error.message.split('\n')).toHaveLength(2);
  });

  it('lists all errors at once', async () => {
    const content = {
      sources: [
        { ...ONE, id: 'A', fetch: {} },
        { ...ONE, license: 5 },
      ],
      keepReleases: 'all',
    };
    const { message } = await atlasError(loadSources(written(content)));
    for (const where of ['sources[0].id', 'sources[0].fetch', 'sources[1].license', 'keepReleases']) {
      expect(message).toContain(`${where} is`);
    }
  });

  it(`accepts ${MAX_SOURCES} sources and no more`, async () => {
    const many = (count: number) => ({ sources: Array.from({ length: count }, (_, i) => ({ ...ONE, id: `s${i}` })) });
    expect((await loadSources(written(many(MAX_SOURCES)))).sources).toHaveLength(MAX_SOURCES);
    const error = await atlasError(loadSources(written(many(MAX_SOURCES + 1))));
    expect(error.message).toContain(`sources has ${MAX_SOURCES + 1} entries; expected at most ${MAX_SOURCES}`);
  });
});

describe('selectSources', () => {
  const load = () => loadSources(written({ sources: [ONE, { ...ONE, id: 'two' }, { ...ONE, id: 'three' }] }));

  it('keeps the order of the file', async () => {
    expect(selectSources(await load(), ['three', 'one']).map(({ id }) => id)).toEqual(['one', 'three']);
  });

  it('refuses an unknown id, and lists the known ones', async () => {
    const config = await load();
    const error = await atlasError((async () => selectSources(config, ['one', 'four']))());
    expect(error.code).toBe('E_CONFIG');
    expect(error.message).toMatch(/^no source "four" in .*; there are: one, two, three$/);
  });
});
