import { execFileSync } from 'node:child_process';
/** Labels: read from the user's files, merged, looked up, verified, and rebuilt when they change. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readLabels } from '../../pipeline/source-formats/labels.js';
import { openDatabase } from '../../src/database/database.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { verifyRelease } from '../../src/database/verify.js';
import { LABELS } from '../../src/rangefile/partitions.js';
import { sqlite } from '../../src/sqlite.js';
import { withFiles } from '../pipeline/ingest-helper.js';
import { ipatlas } from '../support/in-process.js';
import { randomRows, scan, type TwinFile, textOf, writeLabelSources } from '../support/labels.js';
import { dataDir, dir, giveFolders } from '../support/own-folder.js';
import { randomFrom } from '../support/seed.js';
import { type Built, buildOnce, manifestOf, writeSources } from '../support/sources.js';

giveFolders();

const OFFLINE = { asOf: '2026-01-01', offline: true };

/** Builds with files of labels. */
function build(labels: Record<string, string | Buffer>): Promise<Built> {
  for (const [name, content] of Object.entries(labels)) writeFileSync(join(dir, name), content);
  const names = Object.keys(labels);
  const more = { gates: { maxWrongSentinels: 999 }, ...(names.length > 0 && { labels: names }) };
  return buildOnce(
    dataDir,
    writeSources(dir, { countries: ['0.0.0.0,223.255.255.255,US', '2000::,2fff::,US'] }, more),
    OFFLINE,
  );
}

describe('labels', () => {
  it('are those of the narrowest row, as by linear scan', async () => {
    const random = randomFrom(1);
    const below = (end: number): number => Math.floor(random() * end);
    const columns = [['site', 'owner'], ['owner'], ['vpn', 'site']];
    const files = columns.map(
      (names, index): TwinFile => ({ name: `l${index}.csv`, columns: names, rows: randomRows(below, 120, names) }),
    );
    expect((await buildOnce(dataDir, writeLabelSources(dir, files), OFFLINE)).outcome).toBe('published');
    using database = openDatabase(dataDir);
    expect(database.labelNames).toEqual(['site', 'owner', 'vpn']);
    const find = database.fields(['site', 'owner', 'vpn']);
    let labeled = 0;
    const check = (family: 4 | 6, address: bigint): void => {
      const ip = textOf(family, address);
      const { ip: _ip, ...found } = find(ip)!;
      expect(found, ip).toEqual(scan(files, family, address));
      if (Object.values(found).some((value) => value !== null)) labeled++;
    };
    for (const { family, first, last } of files.flatMap(({ rows }) => rows)) {
      for (const address of [first - 1n, first, last, last + 1n, (first + last) / 2n]) check(family, address);
      // In the addresses of 6to4, NAT64 and Teredo.
      if (family === 4) {
        check(6, (0x2002n << 112n) | (first << 80n) | 1n);
        check(6, (0x64ff9bn << 96n) | last);
        check(6, (0x20010000n << 96n) | (first ^ 0xffffffffn));
      }
    }
    expect(labeled).toBeGreaterThan(1000);
    expect(verifyRelease(join(dataDir, 'current')).others.get(LABELS)!.count4).toBeGreaterThan(100);
  });

  it('never change a country, and are in a file and tables of their own', async () => {
    await build({});
    const ranges = readFileSync(join(dataDir, 'current', RANGE_FILE));
    const before = manifestOf(dataDir);
    expect(existsSync(join(dataDir, 'current', LABELS.file))).toBe(false);
    expect((await build({ 'a.csv': 'net,order\n10.0.0.0/8,Büro "1"\n' })).outcome).toBe('published');
    expect(readFileSync(join(dataDir, 'current', RANGE_FILE)).equals(ranges)).toBe(true);
    expect(manifestOf(dataDir).counts).toEqual(before.counts);
    expect(manifestOf(dataDir).labels).toMatchObject({ columns: ['order'], rows: 1, files: [{ name: 'a.csv' }] });
    const mirror = new (sqlite())(join(dataDir, 'current', 'ranges.sqlite'));
    const sql = 'SELECT "order", last FROM ipv4_label JOIN label USING (label) WHERE first = 167772160';
    expect(mirror.prepare(sql).get()).toEqual({ order: 'Büro "1"', last: 0x0affffff });
    expect((await ipatlas(['verify', '--data', dataDir])).stdout).toContain(' ranges of labels, mirror equal');
    mirror.exec(`UPDATE label SET "order" = 'other'`);
    mirror.close();
    expect(() => verifyRelease(join(dataDir, 'current'))).toThrow(/does not match the SHA-256/);
  });

  it('make a new release when a file changes, and go away with it', async () => {
    const first = await build({ 'a.csv': 'net,site\n10.0.0.0/8,x\n' });
    expect((await build({ 'a.csv': 'net,site\n10.0.0.0/8,x\n' })).outcome).toBe('unchanged');
    const second = await build({ 'a.csv': 'net,site\n10.0.0.0/8,y\n' });
    expect(second).toMatchObject({ outcome: 'published' });
    expect(second.id).not.toBe(first.id);
    const third = await build({});
    expect(third.outcome).toBe('published');
    expect(manifestOf(dataDir).labels).toBeUndefined();
    expect(verifyRelease(join(dataDir, 'current')).others.get(LABELS)).toBeUndefined();
  });

  it('may vanish, unless the gate for them is set', async () => {
    const rows = Array.from({ length: 10 }, (_, i) => `10.${i}.0.0/16,x\n`);
    const first = await build({ 'a.csv': `net,site\n${rows.join('')}` });
    const sources = JSON.parse(readFileSync(join(dir, 'sources.json'), 'utf8'));
    sources.gates.maxLostLabelRowsShare = 0.5;
    writeFileSync(join(dir, 'sources.json'), JSON.stringify(sources));
    writeFileSync(join(dir, 'a.csv'), `net,site\n${rows.slice(6).join('')}`);
    const refused = await buildOnce(dataDir, join(dir, 'sources.json'), OFFLINE);
    expect(refused).toMatchObject({
      outcome: 'E_REFUSED',
      message: expect.stringContaining('4 rows of labels, previously 10'),
    });
    expect(manifestOf(dataDir).id).toBe(first.id);
    expect((await build({ 'a.csv': `net,site\n${rows[0]}` })).outcome).toBe('published');
    expect((await build({})).outcome).toBe('published');
  });

  it('are fields of lookup; a name that the release does not have is refused with those that it has', async () => {
    await build({ 'a.csv': 'net,site\n10.0.0.0/8,x\n', 'b.csv': 'net,owner\n10.1.0.0/16,"a, b"\n' });
    const lookup = (...args: string[]) => ipatlas(['lookup', '--data', dataDir, ...args, '10.1.2.3']);
    expect((await lookup('--add', 'owner,network,country_code,site')).stdout).toBe(
      '{"ip":"10.1.2.3","owner":"a, b","network":"10.1.0.0/16","country_code":null,"site":"x"}\n',
    );
    expect((await lookup('--add', 'site,network')).stdout).toBe(
      '{"ip":"10.1.2.3","site":"x","network":"10.0.0.0/8"}\n',
    );
    const unknown = await lookup('--add', 'tenant');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toMatch(/choose from country, .*, network, site, owner, each once/);
    expect((await lookup('--at', '2026-01-01', '--add', 'site')).code).toBe(2);
    expect((await ipatlas(['info', '--data', dataDir])).stdout).toMatch(/^labels +site, owner$/m);
    await build({});
    expect((await lookup('--add', 'site')).stderr).toMatch(/choose from country, .*, network, each once/);
  });
});

describe('explain', () => {
  it('names the rows that cover an address, by file and line', async () => {
    const a = 'net,site\n# wide\n10.0.0.0/8,x\n10.1.2.0-10.1.2.9,\n';
    await build({ 'a.csv': a, 'b.csv': 'net,owner,site\n10.1.0.0/16,"o, p",y\n2002::/15,z,z\n' });
    const explained = async (ip: string) =>
      JSON.parse((await ipatlas(['explain', ip, '--data', dataDir, '--json'])).stdout).labels;
    const rows = [
      { file: 'a.csv', line: 4, first: '10.1.2.0', last: '10.1.2.9', labels: { site: null }, decides: ['site'] },
      {
        ...{ file: 'b.csv', line: 2, first: '10.1.0.0', last: '10.1.255.255' },
        ...{ labels: { owner: 'o, p', site: 'y' }, decides: ['owner'] },
      },
      { file: 'a.csv', line: 3, first: '10.0.0.0', last: '10.255.255.255', labels: { site: 'x' }, decides: [] },
    ];
    const labels = { site: null, owner: 'o, p' };
    expect(await explained('10.1.2.3')).toEqual({ address: '10.1.2.3', labels, rows });
    expect(await explained('2002:a01:203::1')).toEqual({ address: '10.1.2.3', labels, rows });
    expect(await explained('11.0.0.1')).toMatchObject({ labels: { site: null, owner: null }, rows: [] });
    const { stdout } = await ipatlas(['explain', '10.1.0.1', '--data', dataDir]);
    expect(stdout).toContain(`
labels of 10.1.0.1: site "y", owner "o, p"
  ✓ b.csv line 2: 10.1.0.0 – 10.1.255.255: owner "o, p", site "y"
  · a.csv line 3: 10.0.0.0 – 10.255.255.255: site "x"
`);
    await build({});
    expect(await explained('10.1.2.3')).toBeNull();
  });
});

/** Returns the message with which files of labels are refused, or the values that they have. */
function read(contents: Record<string, string | Uint8Array>, maxRows?: number): Promise<unknown> {
  return withFiles(contents, async (files) => {
    try {
      return (await readLabels(files, maxRows)).map(({ columns, values, v4, v6 }) => [
        columns,
        values,
        v4.count,
        v6.count,
      ]);
    } catch (error) {
      return (error as Error).message;
    }
  });
}

describe('a file of labels', () => {
  const HEAD = 'net,site,owner\n';
  it.each<[what: string, content: string | Uint8Array, message: string | RegExp]>([
    ['nothing', '', 'l.csv: empty; the first row must name the columns'],
    ['comments only', '# none\n\n', 'l.csv: empty; the first row must name the columns'],
    ['no header', '10.0.0.0/8,x\n', 'l.csv:1: the first row must name the columns, but begins with "10.0.0.0/8"'],
    ['only the ranges', 'net\n10.0.0.0/8\n', 'l.csv:1: there is no column after that of the ranges'],
    ['a column twice', 'net,site,site\n', 'l.csv:1: column 3: the name "site" occurs twice'],
    ['a name of another field', 'net,asn\n', /^l.csv:1: column 2: the name "asn" has another meaning/],
    ['a name of JavaScript', 'net,constructor\n', /^l.csv:1: column 2: the name "constructor" has another meaning/],
    ['a name with other characters', 'net,Site\n', /^l.csv:1: column 2: the name "Site" must be a lower-case letter/],
    ['an empty name', 'net,site,\n', /^l.csv:1: column 3: the name "" must be/],
    ['a long name', `net,${'a'.repeat(65)}\n`, /^l.csv:1: column 2: the name "a{60}…" must be/],
    ['17 columns', `net,${Array.from({ length: 17 }, (_, i) => `c${i}`).join()}\n`, /^l.csv:1: 17 columns of labels/],
    ['a row with too few cells', `${HEAD}\n10.0.0.0/8,x\n`, 'l.csv:3: 2 cells under 3 columns'],
    ['a row with too many cells', `${HEAD}10.0.0.0/8,x,y,z\n`, 'l.csv:2: 4 cells under 3 columns'],
    ['garbage', Buffer.from([0xff, 0xfe, 0, 1, 2, 10, 0x80]), /^l.csv:1: /],
    ['no range', `${HEAD}ten,x,y\n`, 'l.csv:2: column 1: range "ten" is not an address, a CIDR block or first-last'],
    ['host bits', `${HEAD}10.0.0.1/8,x,y\n`, /^l.csv:2: column 1: range "10.0.0.1\/8" has bits set/],
    ['a range backwards', `${HEAD}10.0.0.9-10.0.0.1,x,y\n`, /^l.csv:2: column 1: .* ends before it begins/],
    ['a long range', `${HEAD}${'1'.repeat(5000)},x,y\n`, 'l.csv:2: column 1: the range is too long'],
    ['a huge value', `${HEAD}10.0.0.0/8,x,${'y'.repeat(257)}\n`, /^l.csv:2: column owner: 257 characters/],
    ['a row without end', `${HEAD}10.0.0.0/8,x,${'y'.repeat(70_000)}\n`, /the row after line 1 is longer than 65536/],
    ['a control character', `${HEAD}10.0.0.0/8,x,a\u0007b\n`, /^l.csv:2: column owner: .* has control characters/],
    ['a line break', `${HEAD}10.0.0.0/8,"x\ny",z\n`, /^l.csv:3: column site: .* has control characters/],
    ['another encoding', Buffer.from(`${HEAD}10.0.0.0/8,x,M\xfcnchen\n`, 'latin1'), /column owner: .* or is not UTF-8/],
    ['an open quote', `${HEAD}10.0.0.0/8,x,"y\n`, 'l.csv: the row after line 1 has a quote that is not closed'],
    ['several errors', `${HEAD}a,b\nten,x,y\n`, /^l.csv:2: 2 cells under 3 columns\nl.csv:3: column 1: /],
    ['errors in every row', `${HEAD}${'a,b\n'.repeat(100)}`, /^(l.csv:\d+: 2 cells under 3 columns\n?){20}$/],
  ])('is refused if it has %s', async (_what, content, message) => {
    const result = await read({ 'l.csv': content });
    if (typeof message === 'string') expect(result).toBe(message);
    else expect(result).toMatch(message);
  });

  it.each<[what: string, content: string | Uint8Array, values: unknown]>([
    ['a byte order mark and CRLF', '\ufeffnet,site\r\n10.0.0.0/8,x\r\n', [['x']]],
    ['quotes and commas', 'net,site\n10.0.0.0/8,"a, ""b"""\n', [['a, "b"']]],
    ['blanks around cells', ' net , site \n 10.0.0.0/8 , x \n', [['x']]],
    ['empty cells', 'net,site,owner\n10.0.0.0/8,,\n', [[null, null]]],
    ['comments and blank lines', '# mine\nnet,site\n\n# more\n10.0.0.0/8,x\n', [['x']]],
    ['a header only', 'net,site\n', []],
    ['no line end', 'net,site\n10.0.0.0/8,x', [['x']]],
    ['the longest value', `net,site\n10.0.0.0/8,${'é'.repeat(256)}\n`, [['é'.repeat(256)]]],
  ])('may have %s', async (_what, content, values) => {
    const [table] = (await read({ 'l.csv': content })) as unknown[][];
    expect(table![1]).toEqual(values);
  });

  it('has ranges of both families in every notation; IPv4-mapped ones are IPv4', async () => {
    const ranges = [
      '10.0.0.0/8',
      '10.0.0.1',
      '10.0.0.1 - 10.0.0.3',
      '::ffff:10.0.0.0/104',
      '2001:db8::/32',
      '::1',
      '::-::5',
    ];
    const [table] = (await read({
      'l.csv': `net,site\n${ranges.map((range) => `${range},x\n`).join('')}`,
    })) as unknown[][];
    expect(table!.slice(2)).toEqual([4, 3]);
  });

  it('has, with the others, a limited number of columns and rows', async () => {
    const row = '10.0.0.0/8,x\n';
    expect(await read({ a: `net,site\n${row}`, b: `net,site\n${row}${row}` }, 2)).toBe(
      'b:3: more than 2 rows of labels; remove some',
    );
    const many = (from: number): string => `net,${Array.from({ length: 9 }, (_, i) => `c${from + i}`).join()}\n`;
    expect(await read({ a: many(0), b: many(8) })).toBe('b:1: 17 columns of labels; there can be at most 16');
    expect(await read({ a: many(0), b: many(7) })).toHaveLength(2);
  });

  it('that cannot be read ends the build, and the current release stays', async () => {
    const { id } = await build({ 'a.csv': 'net,site\n10.0.0.0/8,x\n' });
    rmSync(join(dir, 'a.csv'));
    const failed = await buildOnce(dataDir, join(dir, 'sources.json'), OFFLINE);
    expect(failed).toMatchObject({ outcome: 'E_CONFIG', message: expect.stringContaining('a.csv: cannot be read') });
    expect(await build({ 'a.csv': 'net,site\nten,x\n' })).toMatchObject({ outcome: 'E_CONFIG' });
    rmSync(join(dir, 'a.csv'));
    execFileSync('mkfifo', [join(dir, 'a.csv')]);
    const pipe = await buildOnce(dataDir, join(dir, 'sources.json'), OFFLINE);
    expect(pipe).toMatchObject({ outcome: 'E_CONFIG', message: expect.stringContaining('a.csv: not a regular file') });
    rmSync(join(dir, 'a.csv'));
    expect(manifestOf(dataDir).id).toBe(id);
  });
});
