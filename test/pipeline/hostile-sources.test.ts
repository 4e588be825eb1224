/**
 * Every built-in format reads damaged and hostile files: each record is a range, a rejected row or a skipped row, or the
 * source is refused with an error that names the file. "make soak" tries many more.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findDataDate } from '../../pipeline/fetching/data-date.js';
import { takeFiles } from '../../pipeline/fetching/unpack.js';
import { BUILT_IN_FORMATS } from '../../pipeline/source-formats/formats.js';
import { readSource, type SourceResult } from '../../pipeline/source-formats/read-source.js';
import { MAX_REJECT_TEXT } from '../../pipeline/source-formats/rejects.js';
import { compareAddresses } from '../../src/address/words.js';
import { AtlasError } from '../../src/errors.js';
import { MAX_CSV_ROW_BYTES, MAX_REJECTS_WRITTEN } from '../../src/limits.js';
import { SHARE } from '../support/seed.js';
import { makeZip, scratchDir } from './fetch-support.js';
import { filesOf, ingestContents, inputOf, rangesText, withFiles } from './ingest-helper.js';

/** Damaged copies of each format's files. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 120) / 20);

const FIXTURES = path.join(import.meta.dirname, 'fixtures', 'ingest');

type Contents = Record<string, Buffer>;

/** The files of a format's fixtures. */
function pristine(format: string): Contents {
  const files = filesOf(path.join(FIXTURES, format));
  return Object.fromEntries(files.map(({ name, path: file }) => [name, readFileSync(file)]));
}

/** How many records a source has at least, and at most, counted without the code under test. */
type Count = (contents: Contents) => { least: number; most: number };

/** Returns the text of a file. csv-parse does not take two bytes alone for a byte order mark. */
const textOf = (bytes: Buffer): string => {
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe && bytes.length > 2;
  return bytes.toString(isUtf16 ? 'utf16le' : 'utf8').replace(/^\ufeff/, '');
};

const linesOf = (text: string): string[] => text.split(/\r?\n/).filter((line) => line.trim() !== '');
const total = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);

/** Returns the most lines that files can have: each newline byte ends one, also in UTF-16. */
const mostLines = (contents: Contents): number =>
  total(Object.values(contents).map((bytes) => bytes.filter((byte) => byte === 10).length + 1));

/** Counts the lines of files whose fields are not quoted: exactly one record each. */
function plainLines(comment?: string): Count {
  return (contents) => {
    const lines = Object.values(contents).flatMap((bytes) => linesOf(textOf(bytes)));
    const count = lines.filter((line) => comment === undefined || !line.startsWith(comment)).length;
    return { least: count, most: count };
  };
}

/**
 * Counts the lines of files whose fields may be quoted. A quote can join lines, and empty quoted lines are no records.
 *
 * @param files name pattern of the files with ranges
 * @param headers whether each begins with a header row
 */
function quotedLines({ files = /./, headers = false, comment = '' }): Count {
  return (contents) => {
    const texts = Object.entries(contents).flatMap(([name, bytes]) => (files.test(name) ? [textOf(bytes)] : []));
    const isRecord = (line: string): boolean => comment === '' || !line.startsWith(comment);
    const filled = texts.map((text) => linesOf(text.replaceAll('"', ' ')).filter(isRecord).length - (headers ? 1 : 0));
    // A row of a file of locations can be rejected, too.
    const lines = Object.values(contents).map((bytes) => textOf(bytes).split('\n').length);
    return { least: total(filled), most: total(lines) };
  };
}

/** Counts the entries of the lists in JSON files. */
function entries(listsOf: (json: never) => unknown[]): Count {
  return (contents) => {
    const lists = Object.values(contents).flatMap((bytes) => {
      try {
        return listsOf(JSON.parse(textOf(bytes)) as never);
      } catch {
        return []; // Not JSON, or of another form: the source is refused.
      }
    });
    return { least: lists.length, most: lists.length };
  };
}

type Entry = { service?: string } | null;
type AzureTag = { name?: unknown; properties?: { addressPrefixes?: unknown } | null } | null;

const COUNTS: Record<string, Count | undefined> = {
  'ip-location-db': plainLines(),
  'ip-location-db-num': plainLines(),
  'rir-delegated-extended': plainLines('#'),
  'tor-geoip': plainLines('#'),
  'dbip-lite': quotedLines({}),
  'origin-asn': quotedLines({}),
  'ip2location-lite': quotedLines({ files: /\.CSV$/i }),
  'geolite2-country': quotedLines({ files: /Blocks/, headers: true }),
  iplocate: quotedLines({ headers: true }),
  // A first row of words counts as the names of the columns.
  geofeed: (files) => {
    const { least, most } = quotedLines({ comment: '#' })(files);
    return { least: Math.max(0, least - 1), most };
  },
  'cidr-list': plainLines('#'),
  // Prefixes with one site are passed over.
  'laces-csv': (files) => ({ ...quotedLines({ headers: true })(files), least: 0 }),
  'aws-ip-ranges': entries((json: { prefixes?: Entry[]; ipv6_prefixes?: Entry[] }) =>
    [json.prefixes, json.ipv6_prefixes]
      .flatMap((list) => (Array.isArray(list) ? list : []))
      .filter((entry) => entry?.service === 'EC2'),
  ),
  'azure-service-tags': entries((json: { values?: AzureTag[] }) =>
    (Array.isArray(json.values) ? json.values : [])
      .filter((tag) => typeof tag?.name === 'string' && tag.name.startsWith('AzureCloud.'))
      .flatMap((tag) => (Array.isArray(tag?.properties?.addressPrefixes) ? tag.properties.addressPrefixes : [])),
  ),
  'google-cloud': entries((json: { prefixes?: unknown[] }) => (Array.isArray(json.prefixes) ? json.prefixes : [])),
  'oracle-cloud': entries((json: { regions?: ({ cidrs?: unknown[] } | null)[] }) =>
    (Array.isArray(json.regions) ? json.regions : []).flatMap((region) =>
      Array.isArray(region?.cidrs) ? region.cidrs : [],
    ),
  ),
  // A MaxMind DB has no records to count: damage to its tree gives other networks.
  mmdb: undefined,
};

const TOKENS = [
  ...['', '0', '-1', '1e9', 'NaN', 'null', '[]', '{}', '"', '""', '\0', '٣', '9'.repeat(39), '9'.repeat(400)],
  ...['::', '::1', '::/0', '::ffff:1.2.3.4', '2001:db8::/129', 'fe80::1%eth0', 'ffff:'.repeat(7).concat('ffff')],
  ...['0.0.0.0', '255.255.255.255', '256.1.1.1', '1.0.0.0/33', '0.0.0.0/0', '010.0.0.1', '16777216', '4294967296'],
  ...['ZZ', 'USA', 'de', '\ufeffDE', '🇩🇪', 'EU', 'allocated', 'available', 'asn', 'EC2', 'us-east-1', '__proto__'],
];

/** A change to the bytes of one file; `at` and `to` are shares of its length. */
const change = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('insert'),
      text: fc.oneof(
        fc.constantFrom('\r', '\n', '\r\n', '"', ',', '|', '\0', '\ufeff', ' ', '#', '[', '}'),
        fc.uint8Array({ minLength: 1, maxLength: 6 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('insert'),
      text: fc.constantFrom(
        'x'.repeat(MAX_CSV_ROW_BYTES),
        '['.repeat(50_000),
        '{"a":'.repeat(20_000),
        '1,'.repeat(20_000),
      ),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('token'), text: fc.constantFrom(...TOKENS) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('cut', 'remove', 'repeat', 'swap') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('utf16', 'gzip', 'crlf', 'cr') }) },
);
const changes = fc.array(
  fc.record({
    change,
    file: fc.nat(),
    at: SHARE,
    to: SHARE,
  }),
  { minLength: 1, maxLength: 5 },
);
interface Change {
  change: { kind: string; text?: string };
  file: number;
  at: number;
  to: number;
}

/** Returns the offsets of a token of the text, such as an address, around a position. */
function tokenAt(text: string, position: number): [number, number] {
  const isToken = (index: number): boolean => /[^\s,|"{}[\]]/.test(text[index] ?? ' ');
  let [from, to] = [position, position];
  while (from > 0 && isToken(from - 1)) from--;
  while (to < text.length && isToken(to)) to++;
  return [from, to];
}

function damage(bytes: Buffer, { change: { kind, text = '' }, at, to }: Change): Buffer {
  const from = Math.floor(at * bytes.length);
  const until = Math.max(from, Math.floor(to * bytes.length));
  const latin1 = bytes.toString('latin1');
  const part = bytes.subarray(from, until);
  switch (kind) {
    case 'insert':
      return Buffer.concat([bytes.subarray(0, from), Buffer.from(text), bytes.subarray(from)]);
    case 'token': {
      const [start, end] = tokenAt(latin1, from);
      return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]);
    }
    case 'cut':
      return bytes.subarray(0, from);
    case 'remove':
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(until)]);
    case 'repeat':
      return Buffer.concat([bytes, ...Array.from({ length: 20 }, () => part)]);
    case 'swap': {
      // First and last address of a row change places, or an IPv4 and an IPv6 address.
      const [a, b] = [tokenAt(latin1, from), tokenAt(latin1, until)];
      if (a[1] > b[0]) return bytes;
      const pieces = [latin1.slice(0, a[0]), latin1.slice(...b), latin1.slice(a[1], b[0]), latin1.slice(...a)];
      return Buffer.from(pieces.join('') + latin1.slice(b[1]), 'latin1');
    }
    case 'utf16':
      return Buffer.from(`\ufeff${textOf(bytes)}`, 'utf16le');
    case 'gzip':
      return gzipSync(bytes);
    case 'crlf':
      return Buffer.from(latin1.replace(/\r?\n/g, '\r\n'), 'latin1');
    default:
      return Buffer.from(latin1.replace(/\r?\n/g, '\r'), 'latin1');
  }
}

function damaged(contents: Contents, made: readonly Change[]): Contents {
  const result = { ...contents };
  const names = Object.keys(contents);
  for (const each of made) {
    const name = names[each.file % names.length]!;
    result[name] = damage(result[name]!, each);
  }
  return result;
}

/** Checks what a source gave: valid ranges, and a share of rejected rows within the limit. */
function checkResult(
  { ingested, rejects }: SourceResult,
  format: string,
  share: number,
  names: readonly string[],
): void {
  const { v4, v6, codes, rows, rejected } = ingested;
  expect(rows).toBeGreaterThan(0);
  const always = format === 'geofeed' ? Math.max(5, 0.05 * (rows + rejected)) : 0;
  expect(rejected).toBeLessThanOrEqual(Math.max(always, share * (rows + rejected)));
  for (const { family, count, first, last, value } of [v4, v6]) {
    const words = family === 4 ? 1 : 4;
    expect([first.length, last.length, value.length]).toEqual([count * words, count * words, count]);
    for (let i = 0; i < count; i++) {
      expect(compareAddresses(first, i, last, i, words)).toBeLessThanOrEqual(0);
      expect(codes[value[i]!]).toMatch(/^[A-Z0-9?*/_-]*$/);
    }
  }
  expect(rejects.length).toBeLessThanOrEqual(Math.min(rejected, MAX_REJECTS_WRITTEN));
  for (const { file, line, text, reason } of rejects) {
    expect(names).toContain(file);
    expect(line).toBeGreaterThan(0);
    expect(text.length).toBeLessThanOrEqual(MAX_REJECT_TEXT);
    expect(reason).toMatch(/\S/);
  }
}

/** Checks that an error says which source and file, and what to do or where the damage is, in printable text. */
function checkError(error: unknown, names: readonly string[]): void {
  if (!(error instanceof AtlasError)) throw error;
  expect(error.code).toBe('E_BAD_INPUT');
  const { message } = error;
  expect(message).toMatch(/^source test: /);
  expect(message.length).toBeLessThan(3000);
  expect(message.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
  const namesFile = names.some((name) => message.includes(name));
  expect(namesFile || /its files hold no ranges/.test(message), message).toBe(true);
  expect(message).toMatch(/line \d+|offset \d+|Check |Correct /);
}

/** Reads a source; returns undefined if it is refused. */
async function read(format: string, contents: Contents, share: number): Promise<SourceResult | undefined> {
  const names = Object.keys(contents);
  return withFiles(contents, async (files) => {
    try {
      const result = await readSource({ ...inputOf(format, files, share), asns: new Set([2500, 3333]) }, () => {});
      checkResult(result, format, share, names);
      await findDataDate(files, {});
      return result;
    } catch (error) {
      checkError(error, names);
      return undefined;
    }
  });
}

it('has files and a count of records for every format', () => {
  expect(Object.keys(COUNTS).sort()).toEqual(Object.keys(BUILT_IN_FORMATS).sort());
});

describe.each(Object.entries(COUNTS))('%s', (format, count) => {
  const contents = pristine(format);

  it('loses no record of a damaged file silently, or is refused', async () => {
    await fc.assert(
      fc.asyncProperty(changes, async (made) => {
        const files = damaged(contents, made);
        const result = await read(format, files, 1);
        if (result === undefined || count === undefined) return;
        if (result.ingested.rejected > 0) await read(format, files, 0.001);
        const { least, most } = count(files);
        const records = result.ingested.rows + result.ingested.rejected + result.skipped;
        expect(records).toBeGreaterThanOrEqual(least);
        // After an odd number of bytes, csv-parse still finds the ends of lines in UTF-16, and the decoder of the count does not.
        const isWhole = made.every(({ change: { kind } }, index) => kind !== 'utf16' || index === made.length - 1);
        expect(records).toBeLessThanOrEqual(isWhole ? most : mostLines(files));
      }),
      { numRuns: RUNS },
    );
  });

  // A database is not text.
  if (format !== 'mmdb') {
    it('reads the same from a file with a byte order mark, CRLF and blank lines', async () => {
      const expected = (await read(format, contents, 0))!;
      const names = Object.keys(contents);
      const changed = Object.fromEntries(
        names.map((name) => [
          name,
          Buffer.from(`\ufeff${textOf(contents[name]!).replaceAll('\n', '\r\n')}\r\n \r\n`, 'utf8'),
        ]),
      );
      const { ingested } = (await read(format, changed, 0))!;
      expect(rangesText(ingested)).toEqual(rangesText(expected.ingested));
    });
  }

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['NUL bytes', Buffer.alloc(10_000)],
    ['one endless line', Buffer.alloc(1_000_000, 'x')],
    ['brackets without end', Buffer.alloc(200_000, '[')],
    ['nested JSON', Buffer.from('['.repeat(100_000) + ']'.repeat(100_000))],
    ['an error page', Buffer.from('<!doctype html><html><title>502 Bad Gateway</title></html>\n')],
    ['a row of many columns', Buffer.from(`${'x,'.repeat(30_000)}\n`)],
  ])('refuses files with %s', async (_, bytes) => {
    expect(await read(format, Object.fromEntries(Object.keys(contents).map((name) => [name, bytes])), 1)).toBe(
      undefined,
    );
  });
});

describe("a registry's file that is truncated", () => {
  const [[name, bytes]] = Object.entries(pristine('rir-delegated-extended')) as [[string, Buffer]];
  const lines = textOf(bytes).split('\n').slice(0, -1);
  const read = (text: string) => ingestContents('rir-delegated-extended', { [name]: text });

  it('is refused after each record except the last', async () => {
    const first = lines.findIndex((line) => line.startsWith('ripencc|FR'));
    for (let kept = first + 1; kept < lines.length; kept++) {
      const message = `|+0200" says that there are 9 records, but there are ${kept - first}: `;
      await expect(read(`${lines.slice(0, kept).join('\n')}\n`)).rejects.toThrow(message);
    }
    expect((await read(lines.join('\n'))).ingested.rows).toBe(5);
  });

  it('is refused at each byte of its records, except inside the last one', async () => {
    const text = textOf(bytes);
    const lastRecord = text.lastIndexOf('\n', text.length - 2) + 1;
    for (let end = text.indexOf('\nripencc|FR') + 12; end < lastRecord; end += 3) {
      await expect(read(text.slice(0, end))).rejects.toMatchObject({ code: 'E_BAD_INPUT' });
    }
  });

  it('is accepted if its version line has no number, or it has more records', async () => {
    expect((await read(textOf(bytes).replace('|9|', '||'))).ingested.rows).toBe(5);
    expect((await read(`${textOf(bytes)}ripencc|NL|ipv4|193.1.0.0|256|19930901|assigned\n`)).ingested.rows).toBe(6);
  });

  it('is refused if it consists of two files, of which one is truncated', async () => {
    const text = textOf(bytes);
    expect((await read(text + text)).ingested.rows).toBe(10);
    await expect(read(text + lines.slice(0, -1).join('\n'))).rejects.toThrow('there are 18 records, but there are 17');
  });
});

describe('packed files', () => {
  const LIMIT = 1_000_000;
  const text = Buffer.from('1.0.0.0,1.0.0.255,AU\n'.repeat(2000));
  const packed = { gzip: gzipSync(text), zip: makeZip([{ name: 'a.csv', content: text.toString() }]) };

  it.each(Object.entries(packed))('damaged %s gives the same bytes or an error', async (_, bytes) => {
    const folder = scratchDir();
    const file = path.join(folder, 'packed');
    await fc.assert(
      fc.asyncProperty(changes, async (made) => {
        writeFileSync(file, damaged({ a: bytes }, made).a!);
        try {
          const [taken] = await takeFiles(folder, [{ path: file, name: 'a.csv' }], [], LIMIT);
          expect(taken!.bytes).toBeLessThanOrEqual(LIMIT);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).message).toMatch(/\S/);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it.each([
    ['gzip', gzipSync(Buffer.alloc(50_000_000))],
    ['gzip in gzip members', Buffer.concat(Array.from({ length: 100 }, () => gzipSync(Buffer.alloc(1_000_000))))],
    ['zip', makeZip([{ name: 'a.csv', content: '\0'.repeat(50_000_000) }])],
  ])('a %s bomb is stopped at the limit', async (_, bytes) => {
    const folder = scratchDir();
    const file = path.join(folder, 'bomb');
    writeFileSync(file, bytes);
    await expect(takeFiles(folder, [{ path: file, name: 'a.csv' }], [], LIMIT)).rejects.toThrow(
      `it unpacks to more than ${LIMIT} bytes`,
    );
  });
});
