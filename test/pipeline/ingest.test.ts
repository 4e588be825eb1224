import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { MAX_CODES_PER_SOURCE, readSource } from '../../pipeline/source-formats/read-source.js';
import { printable } from '../../pipeline/source-formats/rejects.js';
import type { StageContext } from '../../pipeline/stage.js';
import { ingestSources, REJECTS_FILE } from '../../pipeline/stages/ingest.js';
import { AtlasError } from '../../src/errors.js';
import { MAX_REJECTS_WRITTEN } from '../../src/limits.js';
import { ingestContents, inputOf, rangesText, withFiles } from './ingest-helper.js';

const GOOD = '1.0.0.0,1.0.0.255,AU\n';
const MANY_GOOD = GOOD.repeat(2000);

/** Returns the error of reading contents as a source. */
async function failure(format: string | object, contents: Record<string, string | Uint8Array>, share = 0) {
  const error = await ingestContents(format, contents, share).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(AtlasError);
  return error as AtlasError;
}

describe('a row that cannot be read', () => {
  const notations = {
    text: 'ip-location-db',
    decimal: 'ip-location-db-num',
    cidr: { ranges: [{ files: ['*'], cidr: { network: 0 } }], country: 1 },
    count: { ranges: [{ files: ['*'], count: { start: 0, count: 1 } }], country: 2 },
    prefix: { ranges: [{ files: ['*'], prefix: { start: 0, prefix: 1 } }], country: 2 },
  } as const;

  test.each<[keyof typeof notations, string, string]>([
    ['text', '1.0.0.0,1.0.0.256,AU', 'the last address cannot be read'],
    ['text', '01.0.0.0,1.0.0.255,AU', 'the first address cannot be read'],
    ['text', '1.0.0.9,1.0.0.8,AU', 'the last address is below the first'],
    ['text', '1.0.0.0,2001:db8::,AU', 'one address is IPv4, the other IPv6'],
    ['text', '1.0.0.0,1.0.0.2', 'the row has 2 of at least 3 columns'],
    ['text', '1.0.0.0,1.0.0.255,Australia', 'the country is not a country code'],
    ['text', '1.0.0.0,1.0.0.255,A\u0001', 'the country is not a country code'],
    ['text', '1.0.0.0,1.0.0.255,AU1.0.1.0,1.0.3.255,CN', 'the country is not a country code'],
    ['decimal', '1.0.0.0,1.0.0.255,AU', 'the first address is not a decimal number of up to 128 bits'],
    ['decimal', `1,${2n ** 128n},AU`, 'the last address is not a decimal number of up to 128 bits'],
    ['decimal', '4294967296,1,AU', 'the number is above the last IPv4 address'],
    ['decimal', '2,1,AU', 'the last address is below the first'],
    ['cidr', '1.0.0.0/33,AU', 'the CIDR block cannot be read'],
    ['cidr', '1.0.0.1/24,AU', 'the CIDR block has bits set after its 24-bit prefix'],
    ['cidr', '2001:db8::1/64,AU', 'the CIDR block has bits set after its 64-bit prefix'],
    ['count', '1.0.0.0,0,AU', 'the count is not a number of addresses'],
    ['count', '255.255.255.255,2,AU', 'the range runs past the last address of its family'],
    ['count', `0.0.0.1,${2n ** 32n},AU`, 'the range runs past the last address of its family'],
    ['count', `0.0.0.0,${2n ** 32n + 1n},AU`, 'the range runs past the last address of its family'],
    ['count', `::2,${2n ** 128n - 1n},AU`, 'the range runs past the last address of its family'],
    ['prefix', '1.0.0.0,129,AU', 'the CIDR block cannot be read'],
    ['prefix', '1.0.0.0/8,8,AU', 'the CIDR block cannot be read'],
  ])('%s: %j', async (notation, row, reason) => {
    const good = {
      text: GOOD,
      decimal: '1,2,AU\n',
      cidr: '1.0.0.0/24,AU\n',
      count: '1.0.0.0,256,AU\n',
      prefix: '::,0,AU\n',
    };
    const content = `${good[notation]}${row}\n${good[notation]}`;
    const { ingested, rejects } = await ingestContents(notations[notation], { 'a.csv': content }, 1);
    expect(rejects).toEqual([{ source: 'test', file: 'a.csv', line: 2, text: row, reason }]);
    expect({ rows: ingested.rows, rejected: ingested.rejected }).toEqual({ rows: 2, rejected: 1 });
  });

  test('a number that does not fit the family that the format names', async () => {
    const contents = { 'a-ipv4-num.csv': '1,2,AU\n1,4294967296,AU\n' };
    const { rejects } = await ingestContents('ip-location-db-num', contents, 1);
    expect(rejects.map(({ line, reason }) => [line, reason])).toEqual([
      [2, 'the number is above the last IPv4 address'],
    ]);
  });

  test('a location that is not in the file of locations', async () => {
    const contents = {
      'X-Blocks-IPv4.csv': 'network,geoname_id,registered_country_geoname_id\n1.0.0.0/24,7,\n1.0.1.0/24,8,7\n',
      'X-Locations-en.csv': 'geoname_id,country_iso_code\n7,AU\n9\n',
    };
    const { ingested, rejects } = await ingestContents('geolite2-country', contents, 1);
    expect(rangesText(ingested)).toEqual(['1.0.0.0-1.0.0.255 AU']);
    expect(rejects).toEqual([
      { source: 'test', file: 'X-Locations-en.csv', line: 3, text: '9', reason: 'the row has 1 of at least 2 columns' },
      {
        source: 'test',
        file: 'X-Blocks-IPv4.csv',
        line: 3,
        text: '1.0.1.0/24,8,7',
        reason: 'its location is in no file of locations',
      },
    ]);
  });

  test('more codes than any list of countries has', async () => {
    const rows = Array.from({ length: MAX_CODES_PER_SOURCE + 5 }, (_, i) => `1.0.0.0,1.0.0.255,C${i}\n`);
    const { ingested, rejects } = await ingestContents('ip-location-db', { 'a.csv': rows.join('') }, 1);
    expect(ingested.codes.length).toBe(MAX_CODES_PER_SOURCE);
    expect(ingested.rejected).toBe(5);
    expect(rejects[0]?.reason).toMatch(/is this the country column\?/);
  });

  test('is reported with its line number, for LF and CRLF', async () => {
    const { rejects } = await ingestContents('tor-geoip', { geoip: '1,2,AU\n#\ra\n\r1\r2\n\n5,6,A\rU\nb\r\n\rc' }, 1);
    expect(rejects.map(({ line, text }) => [line, text])).toEqual([
      [3, '\r1\r2'],
      [5, '5,6,A\rU'],
      [6, 'b'],
      [7, '\rc'],
    ]);
  });
});

describe('unusual text that is valid', () => {
  const expected = ['1.0.0.0-1.0.0.255 AU', '1.0.1.0-1.0.1.255 '];

  test.each<[string, string | Uint8Array]>([
    ['blanks around fields', ' 1.0.0.0, 1.0.0.255\t,AU \n1.0.1.0 ,1.0.1.255, \n'],
    ['lower case', '1.0.0.0,1.0.0.255,au\n1.0.1.0,1.0.1.255,\n'],
    ['more columns', '1.0.0.0,1.0.0.255,AU,x\n1.0.1.0,1.0.1.255,,"\n'],
    ['Latin-1 in an unused column', Buffer.from('1.0.0.0,1.0.0.255,AU,\xe9\n1.0.1.0,1.0.1.255,,\xff\xfe\n', 'latin1')],
    ['IPv4-mapped IPv6', '::ffff:1.0.0.0,::ffff:100:ff,AU\n1.0.1.0,::ffff:1.0.1.255,\n'],
  ])('%s', async (_what, content) => {
    const { ingested } = await ingestContents('ip-location-db', { 'a.csv': content });
    expect(rangesText(ingested)).toEqual(expected);
    expect(ingested.codes).toEqual(['AU', '']);
  });

  test('a range that only reaches into the IPv4-mapped block stays IPv6', async () => {
    const { ingested } = await ingestContents('ip-location-db', {
      'a.csv': '::,::ffff:1.2.3.4,AA\n::ffff:0:0,::1:0:0:0,BB',
    });
    expect(rangesText(ingested)).toEqual(['::-::ffff:102:304 AA', '::ffff:0:0-::1:0:0:0 BB']);
  });

  test('spellings of one code are one code', async () => {
    const { ingested } = await ingestContents('ip-location-db', { 'a.csv': '::,::,au\n::,::, AU\n::,::,AU\n::,::,cn' });
    expect(ingested.codes).toEqual(['AU', 'CN']);
    expect([...ingested.v6.value]).toEqual([0, 0, 0, 1]);
  });

  test('rows after an unclosed quote are rejected, not lost', async () => {
    const row = (i: number): string => `"1.0.${i}.0","1.0.${i}.255","AU","Australia"`;
    const rows = [row(0), row(1).slice(0, -1), row(2), row(3)];
    const { ingested, rejects } = await ingestContents('dbip-lite', { 'a.csv': rows.join('\n') }, 1);
    expect(rangesText(ingested)).toEqual(['1.0.0.0-1.0.0.255 AU', '1.0.3.0-1.0.3.255 AU']);
    expect(ingested.rejected).toBe(2);
    expect(rejects).toEqual([
      {
        source: 'test',
        file: 'a.csv',
        line: 3,
        text: `${rows[1]}\n${rows[2]}`,
        reason: 'a quote is not closed: the row has a line break in it',
      },
    ]);
  });
});

describe('a source that cannot be read', () => {
  const long = 10 * 1024 * 1024;
  const rubbish = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * i * 31 + (i >> 3) * 7 + (i >> 11)) & 255));

  test.each<[string, string, Record<string, string | Uint8Array>, RegExp]>([
    ['no bytes', 'ip-location-db', { 'a.csv': '', 'b.csv': '' }, /^source test: its files hold no ranges \(0 rows/],
    ['only a byte order mark', 'ip-location-db', { 'a.csv': '\ufeff' }, /hold no range/],
    ['only a header', 'iplocate', { 'a.csv': 'network,country_code\n' }, /hold no range/],
    ['only rows to skip', 'rir-delegated-extended', { a: 'x|*|asn|*|1|summary\n' }, /\(1 rows were skipped\)/],
    ['random bytes, in a format with quotes', 'dbip-lite', { 'a.csv': rubbish }, /cannot be read|bytes|quote/],
    ['one endless field', 'ip-location-db', { 'a.csv': GOOD + 'x'.repeat(long) }, /after line 1 is longer than/],
    ['an endless comment', 'tor-geoip', { geoip: `#${' '.repeat(long)}` }, /its files hold no ranges/],
    [
      'a quote that is closed much later',
      'dbip-lite',
      { 'a.csv': `${GOOD}"1.0.0.0\n${MANY_GOOD.repeat(10)}` },
      /after line 1 is longer/,
    ],
    [
      'a quote open at the end',
      'dbip-lite',
      { 'a.csv': `${GOOD}${GOOD}"1.0.0.0,1.0.0.255,AU\n` },
      /after line 2 has a quote/,
    ],
    [
      'no such column',
      'iplocate',
      { 'a.csv': 'network,Land\n1.0.0.0/8,AU' },
      /a\.csv: no column "country_code" in the header row "network,Land"/,
    ],
    [
      'no such column of locations',
      'geolite2-country',
      { 'a-Blocks-b.csv': '', 'a-Locations-b.csv': 'id\n' },
      /no column "geoname_id"/,
    ],
    [
      'no file of ranges',
      'geolite2-country',
      { 'README.txt': '' },
      /no file of ranges: the format reads \*-Blocks-\*\.csv; the source has README\.txt/,
    ],
    [
      'no file of locations',
      'geolite2-country',
      { 'a-Blocks-b.csv': '' },
      /no file of locations: the format reads \*-Locations-\*\.csv/,
    ],
    ['no file at all', 'ip-location-db', {}, /the source has none/],
  ])('%s', async (_what, format, contents, message) => {
    const error = await failure(format, contents);
    expect(error.message).toMatch(message);
    expect(error.code).toBe('E_BAD_INPUT');
  });

  test('a missing file, or a folder', async () => {
    for (const file of ['/nowhere/a.csv', import.meta.dirname]) {
      const input = inputOf('ip-location-db', [{ name: 'a.csv', path: file, bytes: 0, sha256: '' }]);
      await expect(readSource(input, () => {})).rejects.toMatchObject({
        code: 'E_FETCH',
        message: expect.stringMatching(/^source test: cannot read a\.csv: (no such file|a folder|illegal)/),
      });
    }
  });
});

describe('the share of rows that may be rejected', () => {
  const bad = '1.0.0.9,1.0.0.1,AU\n';

  test.each<[number, number, number, boolean]>([
    [0, 1, 2000, false],
    [0.001, 2, 1998, true],
    [0.001, 2, 1997, false],
    [0.5, 6, 5, false],
  ])('limit %d, %d bad rows, %d good rows', async (share, badRows, goodRows, passes) => {
    const contents = { 'a.csv': GOOD.repeat(goodRows), 'b.csv': bad.repeat(badRows) };
    const result = ingestContents('ip-location-db', contents, share);
    if (passes) expect((await result).ingested.rejected).toBe(badRows);
    else await expect(result).rejects.toMatchObject({ code: 'E_BAD_INPUT' });
  });

  test('the error has the numbers, the first rows and what to do', async () => {
    const contents = { 'a.csv': `${GOOD}${bad.repeat(2)}`, 'b.csv': `rubbish\u001b[31m\n${bad}${GOOD.repeat(95)}` };
    const error = await failure('ip-location-db', contents, 0.001);
    expect(error.code).toBe('E_BAD_INPUT');
    expect(error.message.split('\n')).toEqual([
      'source test: 4 of 100 rows cannot be read (4 %); the limit is 0.1 %',
      '  a.csv, line 2: the last address is below the first: "1.0.0.9,1.0.0.1,AU"',
      '  a.csv, line 3: the last address is below the first: "1.0.0.9,1.0.0.1,AU"',
      '  b.csv, line 1: the row has 1 of at least 3 columns: "rubbish\\u001b[31m"',
      'Check the fetched files, and the source\'s "format" and "maxRejectShare"',
    ]);
  });

  test('control characters of a source are escaped in messages', () => {
    expect(printable('a\u009b1m\u202eb\u2028\n')).toBe('"a?1m?b?\\n"');
    expect(printable('x'.repeat(90))).toBe(`"${'x'.repeat(80)}…"`);
  });
});

describe('the ingest stage', () => {
  const options = { reference: loadReference(), findEarlier: async () => undefined };
  const contextOf = (workDir: string, notes: string[]): StageContext => ({
    dataDir: workDir,
    workDir,
    offline: true,
    asOf: '2026-06-17',
    note: (text) => notes.push(text),
    stages: [],
  });

  test('reads sources in order, counts each, and writes the rejected rows', async () => {
    const contents = {
      'one.csv': `${GOOD}bad\n::,::1,CN\n`,
      'two.txt': '# x\nr|*|asn|*|1|summary\nr|NL|ipv4|193.0.0.0|256|x|assigned\n1\n',
    };
    await withFiles(contents, async ([one, two], folder) => {
      const workDir = path.join(folder, 'work');
      mkdirSync(workDir);
      writeFileSync(path.join(workDir, REJECTS_FILE), 'of an earlier try\n');
      const notes: string[] = [];
      const inputs = [
        inputOf('ip-location-db', [one!], 0.5, 'first'),
        inputOf('rir-delegated-extended', [two!], 0.5, 'second'),
      ];
      const { output, counts } = await ingestSources(inputs, contextOf(workDir, notes), options);
      expect(output.ingested.map(({ id, rows, rejected, codes }) => ({ id, rows, rejected, codes }))).toEqual([
        { id: 'first', rows: 2, rejected: 1, codes: ['AU', 'CN'] },
        { id: 'second', rows: 1, rejected: 0, codes: ['NL'] },
      ]);
      expect(counts).toEqual({
        rows: 3,
        rejected: 1,
        'first.rows': 2,
        'first.ipv4': 1,
        'first.ipv6': 1,
        'first.rejected': 1,
        'first.skipped': 0,
        'second.rows': 1,
        'second.ipv4': 1,
        'second.ipv6': 0,
        'second.rejected': 0,
        'second.skipped': 2,
      });
      expect(readFileSync(path.join(workDir, REJECTS_FILE), 'utf8')).toBe(
        '{"source":"first","file":"one.csv","line":2,"text":"bad","reason":"the row has 1 of at least 3 columns"}\n',
      );
      expect(notes).toEqual([
        expect.stringContaining(
          'first: 1 IPv6 row (2 addresses, such as :: – ::1) in special-purpose ranges, without effect',
        ),
        'first: 1 IPv4 and 1 IPv6 ranges, 1 rows rejected',
        'second: 1 IPv4 and 0 IPv6 ranges, 0 rows rejected',
      ]);
    });
  });

  test('says how many addresses are special-purpose, so that its rows have no effect', async () => {
    const rows = ['10.0.0.0,10.255.255.255,AU', '192.168.1.0,192.168.1.9,AU', '0.0.0.0,255.255.255.255,AU'];
    await withFiles({ 'one.csv': `${[...rows, 'fe80::,fe80::ff,AU'].join('\n')}\n` }, async (files) => {
      const notes: string[] = [];
      const inputs = [inputOf('ip-location-db', files, 0, 'first')];
      await ingestSources(inputs, contextOf(path.dirname(files[0]!.path), notes), options);
      const rest = 'in special-purpose ranges, without effect; rows of overrides.csv have priority over these ranges';
      expect(notes.slice(0, 2)).toEqual([
        `first: 2 IPv4 rows (16777226 addresses, such as 10.0.0.0 – 10.255.255.255) ${rest}`,
        `first: 1 IPv6 row (256 addresses, such as fe80:: – fe80::ff) ${rest}`,
      ]);
    });
  });

  test('writes the rejected rows of a source that fails', async () => {
    await withFiles({ 'one.csv': `${GOOD}bad\nworse\n` }, async (files) => {
      const workDir = path.dirname(files[0]!.path);
      const run = ingestSources([inputOf('ip-location-db', files, 0, 'first')], contextOf(workDir, []), options);
      await expect(run).rejects.toMatchObject({ code: 'E_BAD_INPUT' });
      const lines = readFileSync(path.join(workDir, REJECTS_FILE), 'utf8').trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line).text)).toEqual(['bad', 'worse']);
    });
  });

  test.each(['ß', 'ﬁ', 'ſs', 'ĸr'])('does not take %s for a country code', async (code) => {
    const { ingested, rejects } = await ingestContents(
      'ip-location-db',
      { 'a.csv': `${GOOD}1.1.1.0,1.1.1.255,${code}\n` },
      1,
    );
    expect(rejects.map(({ reason }) => reason)).toEqual(['the country is not a country code']);
    expect(ingested.codes).not.toContain('SS');
  });

  test('writes no more rejects than the limit, and counts them all', async () => {
    const contents = { 'a.csv': `${GOOD}${'bad\n'.repeat(MAX_REJECTS_WRITTEN + 10)}`, 'b.csv': 'bad\n' };
    const { ingested, rejects } = await ingestContents('ip-location-db', contents, 1);
    expect(rejects.length).toBe(MAX_REJECTS_WRITTEN);
    expect(new Set(rejects.map(({ text }) => text))).toEqual(new Set(['bad']));
    expect(ingested.rejected).toBe(MAX_REJECTS_WRITTEN + 11);
  });

  test('columns have exactly the ranges, after any number of reallocations', async () => {
    const rows = Array.from({ length: 5000 }, (_, i) => [`0.${i >> 8}.${i & 255}.0`, `${(i + 1).toString(16)}::`]);
    const v4 = rows.map(([a]) => `${a},${a},AU`);
    const v6 = rows.map(([, b]) => `${b},${b},C${b!.length}`);
    const { ingested } = await ingestContents('ip-location-db', { 'a.csv': [...v4, ...v6].join('\n') });
    expect(ingested.v4.first).toEqual(Uint32Array.from(rows, (_, i) => i << 8));
    expect(ingested.v4.last).toEqual(ingested.v4.first);
    expect(ingested.v6.first.length).toBe(20_000);
    expect(ingested.v6.value.length).toBe(5000);
    expect(rangesText(ingested).slice(5000)).toEqual(rows.map(([, b]) => `${b}-${b} C${b!.length}`));
  });
});

test('rows of different lengths do not create an error object each', async () => {
  const rows = [
    '2|ripencc|1|500|1|1|+0',
    'ripencc|*|ipv4|*|500|summary',
    ...Array.from({ length: 500 }, (_, i) => `r|NL|ipv4|1.0.0.0|256|x|assigned|o${i % 100 === 0 ? '|e' : ''}`),
  ];
  const traces = vi.spyOn(Error, 'captureStackTrace');
  const { ingested } = await ingestContents('rir-delegated-extended', { a: rows.join('\n') });
  const taken = traces.mock.calls.length;
  traces.mockRestore();
  expect(ingested.rows).toBe(500);
  expect(taken).toBeLessThan(70);
});
