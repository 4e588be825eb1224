import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { BUILT_IN_FORMATS, resolveFormat } from '../../pipeline/source-formats/formats.js';
import { readSource } from '../../pipeline/source-formats/read-source.js';
import { filesOf, ingestContents, inputOf, rangesText, withFiles } from './ingest-helper.js';

const fixtures = path.join(import.meta.dirname, 'fixtures', 'ingest');

/** The ranges that each built-in format reads from its folder of fixtures. */
const GOLDEN: Record<string, { ranges: string[]; codes: string[]; skipped: number }> = {
  'ip-location-db': {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.3.255 CN',
      '1.0.4.0-1.0.7.255 AU',
      '223.255.255.0-223.255.255.255 AU',
      '2001:2::-2001:2:0:ffff:ffff:ffff:ffff:ffff JP',
      '2001:200::-2001:218:2000:51:ffff:ffff:ffff:ffff AU',
    ],
    codes: ['AU', 'CN', 'JP'],
    skipped: 0,
  },
  'ip-location-db-num': {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.3.255 CN',
      '223.255.255.0-223.255.255.255 AU',
      '2001:200::-2001:200:ffff:ffff:ffff:ffff:ffff:ffff JP',
      '2001:208::-2001:208:ffff:ffff:ffff:ffff:ffff:ffff SG',
    ],
    codes: ['AU', 'CN', 'JP', 'SG'],
    skipped: 0,
  },
  'dbip-lite': {
    ranges: [
      '0.0.0.0-0.255.255.255 ZZ',
      '1.0.0.0-1.0.0.255 AU',
      '2.16.3.0-2.16.4.255 FR',
      '224.0.0.0-255.255.255.255 ZZ',
      '::-1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ZZ',
      '2001:200::-2001:200:ffff:ffff:ffff:ffff:ffff:ffff JP',
    ],
    codes: ['ZZ', 'AU', 'FR', 'JP'],
    skipped: 0,
  },
  // The mapped block of the IPv6 file becomes IPv4, after the rows of the IPv4 file.
  'ip2location-lite': {
    ranges: [
      '0.0.0.0-0.255.255.255 -',
      '1.0.0.0-1.0.0.255 US',
      '1.0.1.0-1.0.3.255 CN',
      '203.0.113.0-203.0.113.255 CD',
      '224.0.0.0-255.255.255.255 -',
      '0.0.0.0-0.255.255.255 -',
      '1.0.0.0-1.0.0.255 US',
      '1.0.1.0-1.0.3.255 CN',
      '::-::fffe:ffff:ffff -',
      '2001:2::-2001:2:ffff:ffff:ffff:ffff:ffff:ffff JP',
    ],
    codes: ['-', 'US', 'CN', 'CD', 'JP'],
    skipped: 0,
  },
  // Without geoname_id, the country of registration. A continent or no location gives the empty code.
  'geolite2-country': {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.1.255 CN',
      '2.16.9.0-2.16.9.255 FR',
      '5.62.60.0-5.62.60.3 ',
      '57.72.4.0-57.72.4.255 ',
      '2001:200::-2001:200:ffff:ffff:ffff:ffff:ffff:ffff JP',
      '2001:4860:4860::8888-2001:4860:4860::8888 US',
    ],
    codes: ['AU', 'CN', 'FR', '', 'JP', 'US'],
    skipped: 0,
  },
  iplocate: {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.1.255 CN',
      '1.11.0.0-1.11.255.255 KR',
      '2001:200::-2001:200:ffff:ffff:ffff:ffff:ffff:ffff JP',
    ],
    codes: ['AU', 'CN', 'KR', 'JP'],
    skipped: 0,
  },
  'tor-geoip': {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.3.255 CN',
      '1.176.0.0-1.179.255.255 KR',
      '127.0.0.0-127.0.0.255 ??',
      '2001:4:112::-2001:4:112:ffff:ffff:ffff:ffff:ffff ??',
      '2001:200::-2001:200:134:ffff:ffff:ffff:ffff:ffff JP',
    ],
    codes: ['AU', 'CN', 'KR', '??', 'JP'],
    skipped: 0,
  },
  // 5376 addresses are not a CIDR block. Skipped: the version line, three summaries, one asn, three unassigned ranges.
  'rir-delegated-extended': {
    ranges: [
      '2.0.0.0-2.15.255.255 FR',
      '2.16.0.0-2.23.255.255 EU',
      '193.0.0.0-193.0.20.255 NL',
      '2001:600::-2001:600:ffff:ffff:ffff:ffff:ffff:ffff DE',
      '2001:67c:2e8::-2001:67c:2e8:ffff:ffff:ffff:ffff:ffff NL',
    ],
    codes: ['FR', 'EU', 'NL', 'DE'],
    skipped: 8,
  },
  'origin-asn': { ranges: [], codes: [], skipped: 0 },
  // An export of ipatlas: IPv4 once, although the tree has it five times; the addresses with an IPv4 address inside not at all.
  mmdb: {
    ranges: [
      '1.0.0.0-1.0.0.255 AU',
      '1.0.1.0-1.0.3.255 CN',
      '255.255.255.255-255.255.255.255 DE',
      '2001:200::-2001:200:ffff:ffff:ffff:ffff:ffff:ffff JP',
      '2a00:1:2:3::4-2a00:1:2:3::4 FR',
    ],
    codes: ['AU', 'CN', 'DE', 'JP', 'FR'],
    skipped: 0,
  },
  // A single address is a prefix, too; a row without a country says that its prefix must not be geolocated.
  geofeed: {
    ranges: [
      '192.0.2.0-192.0.2.127 US',
      '192.0.2.128-192.0.2.255 DE',
      '198.51.100.7-198.51.100.7 FR',
      '203.0.113.0-203.0.113.255 ',
      '2001:db8:1::-2001:db8:1:ffff:ffff:ffff:ffff:ffff JP',
    ],
    codes: ['US', 'DE', 'FR', '', 'JP'],
    skipped: 0,
  },
  // Prefixes, without a country.
  'cidr-list': { ranges: [], codes: [], skipped: 0 },
  // A prefix with one site is in one place.
  'laces-csv': { ranges: [], codes: [], skipped: 1 },
  // Rows of EC2 only; a local zone may be in another country than its region; GLOBAL is not a country.
  'aws-ip-ranges': {
    ranges: [
      '3.4.12.4-3.4.12.4 IE',
      '15.220.252.0-15.220.255.255 CL',
      '15.190.244.0-15.190.247.255 US',
      '2600:1f15::-2600:1f15:fff:ffff:ffff:ffff:ffff:ffff US',
    ],
    codes: ['IE', 'CL', 'US'],
    skipped: 1,
  },
  // Tags of regions only; a region whose country is not known is skipped.
  'azure-service-tags': {
    ranges: [
      '13.105.110.128-13.105.110.191 TW',
      '4.175.0.0-4.175.255.255 NL',
      '2a01:111:f403:e402::-2a01:111:f403:e402:ffff:ffff:ffff:ffff TW',
    ],
    codes: ['TW', 'NL'],
    skipped: 1,
  },
  'google-cloud': {
    ranges: ['34.80.0.0-34.81.255.255 TW', '2600:1900:4010::-2600:1900:401f:ffff:ffff:ffff:ffff:ffff BE'],
    codes: ['TW', 'BE'],
    skipped: 1,
  },
  'oracle-cloud': {
    ranges: ['132.145.0.0-132.145.63.255 GB', '140.238.64.0-140.238.127.255 GB', '130.61.0.0-130.61.255.255 DE'],
    codes: ['GB', 'DE'],
    skipped: 0,
  },
};

describe('built-in formats', () => {
  test('each has its golden result', () => {
    expect(Object.keys(GOLDEN)).toEqual(Object.keys(BUILT_IN_FORMATS));
  });

  test.each(Object.entries(GOLDEN))('%s', async (name, golden) => {
    const { ingested, skipped } = await readSource(inputOf(name, filesOf(path.join(fixtures, name))), () => {});
    expect({ ranges: rangesText(ingested), codes: ingested.codes, skipped }).toEqual(golden);
    // Announcements and lists name no country, so they give no ranges.
    const rows: Record<string, number> = { 'origin-asn': 3, 'cidr-list': 3, 'laces-csv': 2 };
    expect(ingested.rows).toBe(rows[name] ?? golden.ranges.length);
    expect(ingested.rejected).toBe(0);
  });

  test('decimal files of other names: a row is IPv6 if its last address is above 2^32 - 1', async () => {
    const rows = ['4294967295,4294967295,AA', '4294967295,4294967296,BB', '0,281470681743359,CC'];
    const { ingested } = await ingestContents('ip-location-db-num', { 'mine.csv': rows.join('\n') });
    expect(rangesText(ingested)).toEqual([
      '255.255.255.255-255.255.255.255 AA',
      '::ffff:ffff-::1:0:0 BB',
      '::-::fffe:ffff:ffff CC',
    ]);
  });

  test('an unknown name is refused, and the message lists the known ones', () => {
    expect(() => resolveFormat('maxmind')).toThrow(
      /format "maxmind" is unknown; the built-in formats are ip-location-db, /,
    );
    expect(() => resolveFormat('toString')).toThrow(/is unknown/);
  });
});

describe('the schema', () => {
  const schema = JSON.parse(
    readFileSync(path.join(import.meta.dirname, '../../schemas/source-format.schema.json'), 'utf8'),
  );
  const validate = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true }).compile(schema);

  test('accepts the built-in names only', () => {
    expect(schema.pattern).toBe(`^(${Object.keys(BUILT_IN_FORMATS).join('|')})$`);
    for (const name of Object.keys(BUILT_IN_FORMATS)) expect(validate(name)).toBe(true);
    expect(validate('maxmind')).toBe(false);
  });

  // The formats of operators cannot be described in sources.json, only named.
  const isNamedOnly = (format: object): boolean => 'operator' in format;
  const described = Object.entries(BUILT_IN_FORMATS).filter(([, format]) => !isNamedOnly(format));
  test.each(described)('accepts the description of %s', (_name, format) => {
    expect(validate(format)).toBe(true);
  });

  const good = { ranges: [{ files: ['*'], text: { first: 0, last: 1 } }], country: 2 };
  const ranges = (entry: object): object => ({ ...good, ranges: [entry] });

  test.each<[string, unknown]>([
    ['the least there is', good],
    ['all there is', { ...good, delimiter: '\t', quote: null, comment: ';', header: true, skipRows: 3, skip: [] }],
    ['columns by name', { ranges: [{ files: ['*'], text: { first: 'from', last: 'to' } }], country: 'cc' }],
    ['first address and count', ranges({ files: ['*'], count: { start: 0, count: 1 } })],
    ['a place in MMDB records', { mmdb: { country: 'country.iso_code' } }],
    ['an AS number and a name', { ranges: good.ranges, asn: 'origin', name: 3 }],
  ])('accepts %s', (_what, format) => {
    expect(validate(format)).toBe(true);
  });

  test.each<[string, unknown, string]>([
    ['an unknown key', { ...good, delimeter: ';' }, ''],
    ['a delimiter of two characters', { ...good, delimiter: '||' }, '/delimiter'],
    ['ranges without files', ranges({ text: { first: 0, last: 1 } }), '/ranges/0'],
    ['two notations', ranges({ files: ['*'], text: { first: 0, last: 1 }, cidr: { network: 0 } }), '/ranges/0'],
    ['a range without its end', ranges({ files: ['*'], text: { first: 0 } }), '/ranges/0/text'],
    ['a fraction of a column', { ...good, country: 1.5 }, '/country'],
    ['a join without locations', { ...good, country: { keys: ['id'] } }, '/country'],
    ['both MMDB and CSV', { ...good, mmdb: {} }, ''],
    ['neither a country nor an AS number', { ranges: good.ranges }, ''],
    ['a name without an AS number', { ...good, name: 3 }, ''],
    ['a skip rule without values', { ...good, skip: [{ column: 0 }] }, '/skip/0'],
  ])('refuses %s', (_what, format, where) => {
    expect(validate(format)).toBe(false);
    expect(validate.errors?.[0]?.instancePath).toBe(where);
  });
});

describe('user-defined formats', () => {
  const text = (files = ['*']) => [{ files, text: { first: 0, last: 1 } }];

  test.each<[string, object, string, string[]]>([
    ['tab as delimiter', { delimiter: '\t', ranges: text(), country: 2 }, '1.0.0.0\t1.0.0.1\tAU', ['AU']],
    ['another quote sign', { quote: "'", ranges: text(), country: 2 }, "'1.0.0.0','1.0.0.1','AU'", ['AU']],
    ['a comment sign', { comment: ';', ranges: text(), country: 2 }, '; a,b,c\n1.0.0.0,1.0.0.1,AU', ['AU']],
    ['rows at the head', { skipRows: 2, ranges: text(), country: 2 }, 'x\na,b\n1.0.0.0,1.0.0.1,AU', ['AU']],
    [
      'numbered columns under a header',
      { header: true, ranges: text(), country: 2 },
      'a,b,c\n1.0.0.0,1.0.0.1,AU',
      ['AU'],
    ],
    [
      'columns by name, in any letter case, after rows at the head',
      { skipRows: 1, ranges: [{ files: ['*'], text: { first: 'From', last: 'to' } }], country: 'CC' },
      'made today\ncc,to, FROM\nAU,1.0.0.1,1.0.0.0',
      ['AU'],
    ],
    [
      'rows to pass over',
      { ranges: text(), country: 2, skip: [{ column: 3, values: ['old', 'test'] }] },
      '1.0.0.0,1.0.0.1,AU\n1.0.0.0,1.0.0.1,CN,old\n1.0.0.0,1.0.0.1,JP,new\n1,2,KR,test',
      ['AU', 'JP'],
    ],
  ])('%s', async (_what, format, content, codes) => {
    const { ingested } = await ingestContents(format, { 'a.csv': content });
    expect(rangesText(ingested)).toEqual(codes.map((code) => `1.0.0.0-1.0.0.1 ${code}`));
  });

  test('a file is read by the first entry that matches its name', async () => {
    const ranges = [
      { files: ['*.cidr', 'blocks-?.csv'], cidr: { network: 0 } },
      { files: ['*.csv'], prefix: { start: 0, prefix: 1 } },
    ];
    const notes: string[] = [];
    const contents = {
      'dir/BLOCKS-1.csv': '1.0.0.0/24,0,AU',
      'blocks-10.csv': '2.0.0.0,24,CN',
      'LICENSE.txt': 'words',
    };
    const { ingested } = await withFiles(contents, (files) =>
      readSource(inputOf({ ranges, country: 2 }, files), (note) => notes.push(note)),
    );
    expect(rangesText(ingested)).toEqual(['1.0.0.0-1.0.0.255 AU', '2.0.0.0-2.0.0.255 CN']);
    expect(notes).toEqual(['test: LICENSE.txt is not read; its name matches nothing in the format']);
  });

  test('a column cannot be named if there is no header row', () => {
    const format = { header: false, ranges: text(), country: 'cc' };
    expect(() => resolveFormat(format)).toThrow(/column "cc" is given by name, but "header" is false/);
  });
});

describe('geofeeds', () => {
  const feed = (rows: string[], share = 0) => ingestContents('geofeed', { 'feed.csv': `${rows.join('\n')}\n` }, share);
  const good = (count: number): string[] => Array.from({ length: count }, (_, i) => `30.0.${i}.0/24,DE,,,`);

  test.each(['prefix,country,region,city,postal', 'ip_prefix,alpha2code,region,city,postal_code', 'Network, Country'])(
    'may begin with the names of the columns: %s',
    async (header) => {
      const { ingested } = await feed([header, ...good(2)]);
      expect([ingested.rows, ingested.rejected]).toEqual([2, 0]);
    },
  );

  test('may begin with a row, good or bad', async () => {
    expect((await feed(good(2))).ingested.rows).toBe(2);
    const { ingested, rejects } = await feed(['192.219.0.0.24,DE,,,', ...good(2)]);
    expect([ingested.rows, rejects.map(({ line }) => line)]).toEqual([2, [1]]);
  });

  test('may have five bad rows, or one in twenty', async () => {
    const bad = (count: number): string[] => Array.from({ length: count }, () => '192.219.0.0.24,DE,,,');
    expect((await feed([...good(1), ...bad(5)])).rejects).toHaveLength(5);
    await expect(feed([...good(1), ...bad(6)])).rejects.toThrow('6 of 7 rows cannot be read');
    expect((await feed([...good(190), ...bad(10)])).ingested.rejected).toBe(10);
    await expect(feed([...good(190), ...bad(11)])).rejects.toThrow('the limit is 5 %');
    expect((await feed([...good(10), ...bad(10)], 0.5)).ingested.rejected).toBe(10);
  });
});
