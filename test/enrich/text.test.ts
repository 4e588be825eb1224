/** Free text and access logs in the line engine, compared with regular expressions and ipaddr.js. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/database/database.js';
import type { CountryResult } from '../../src/database/engine.js';
import { RANGE_FILE } from '../../src/database/release.js';
import { emptyCounts } from '../../src/enrich/counts.js';
import { enrichLines, type LineRequest } from '../../src/enrich/enrich-lines.js';
import { streamSource } from '../../src/enrich/input/source.js';
import { type Addable, parseAdd, parseFields } from '../../src/enrich/options.js';
import { CountrySummary, type Filter } from '../../src/enrich/query.js';
import { openRangeFile, type RangeFile } from '../../src/rangefile/reader.js';
import { publishBlocks, SMALL_WORLD, temporaryDir } from '../support/release.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 400);

let dataDir: string;
let database: Database;
let file: RangeFile;
beforeAll(async () => {
  dataDir = temporaryDir();
  await publishBlocks(dataDir, SMALL_WORLD);
  database = openDatabase(dataDir);
  file = openRangeFile(join(database.dir, RANGE_FILE));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

async function* chunksOf(input: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const at = [0, ...cuts.map((cut) => cut % (input.length + 1)).sort((a, b) => a - b), input.length];
  for (let i = 1; i < at.length; i++) yield input.subarray(at[i - 1], at[i]);
}

type Kind = 'text' | 'combined';
type Settings = Partial<LineRequest> & { cuts?: number[]; add?: string };

async function run(kind: Kind, input: string, settings: Settings = {}, query?: LineRequest['options']['query']) {
  const { cuts = [], add, ...request } = settings;
  const output: Buffer[] = [];
  const counts = emptyCounts();
  await enrichLines({
    inputs: [streamSource('input', chunksOf(Buffer.from(input, 'latin1'), cuts))],
    output: { write: (bytes) => void output.push(Buffer.from(bytes)) },
    openFile: () => file,
    options: {
      input: { kind },
      fields: parseFields([]),
      add: query === undefined ? parseAdd(add) : [],
      onInvalid: 'keep',
      query,
    },
    jobs: 1,
    counts,
    ...request,
  });
  return { output: Buffer.concat(output).toString('latin1'), counts };
}

// ipaddr.js allows leading zeros in a dotted-decimal tail.
const isAddress = (text: string): boolean =>
  text.length <= 45 &&
  (ipaddr.IPv4.isValidFourPartDecimal(text) ||
    (text.includes(':') && ipaddr.IPv6.isValid(text) && !/[:.]0\d+\./.test(text) && !/\.0\d+$/.test(text)));

/** A word, which no part of a path or of a product's version may be. */
const WORD = /(?<![\w.:\-\x80-\xff])(?<![\w.:\-\x80-\xff]\/)[\w.:\-\x80-\xff]+/g;

/** The addresses of a line. */
function addressesIn(line: string): string[] {
  return [...line.matchAll(WORD)].flatMap(([word]) => {
    const text = word.replace(/[.-]+$/, '').replace(/(?<=[^:]):$/, '');
    const [, withoutPort] = /^([\d.]+):\d{1,5}$/.exec(text) ?? [];
    if (withoutPort !== undefined && isAddress(withoutPort)) return [withoutPort];
    return isAddress(text) && /\d/.test(text) ? [text] : [];
  });
}

/** The result of a line: undefined if it has no address. */
function resultOf(kind: Kind, line: string): { isMissing: boolean; result: CountryResult | undefined } {
  if (kind === 'combined') return { isMissing: false, result: database.lookupWithReason(line.split(' ')[0]!) };
  const results = addressesIn(line).map((address) => database.lookupWithReason(address)!);
  return {
    isMissing: results.length === 0,
    result: results.find(({ country_code }) => country_code !== null) ?? results[0],
  };
}

function partsOf(kind: Kind, result: CountryResult | undefined, add: readonly Addable[]): string {
  const values = add.map((part) => result?.[part]);
  const text =
    kind === 'text' ? values.map((value) => `\t${value ?? ''}`) : values.map((value) => ` "${value ?? '-'}"`);
  return Buffer.from(text.join('')).toString('latin1');
}

/** Each line with its ending, and its text. */
function linesOf(input: string): { line: string; text: string; isBlank: boolean }[] {
  return (input.match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line) => {
    const text = line.replace(/\r?\n$/, '');
    return { line, text, isBlank: /^[\t\v\f\r ]*$/.test(text) };
  });
}

function expectedOutput(kind: Kind, input: string, add: readonly Addable[]): string {
  return linesOf(input)
    .map(({ line, text, isBlank }) =>
      isBlank ? line : text + partsOf(kind, resultOf(kind, text).result, add) + line.slice(text.length),
    )
    .join('');
}

const PIECES = [
  '8.8.8.8',
  '193.0.6.139',
  '10.0.0.1',
  '90.0.0.1',
  '255.255.255.256',
  '1.2.3',
  '08.8.8.8',
  '2001:4860:4860::8888',
  '2a00:1::',
  '::1',
  '::',
  '::ffff:8.8.8.8',
  'fe80::1',
  '12:34:56',
  '00:1a:2b:3c:4d:5e',
  '2026-11-22T06:13:03.123Z',
  '3.14',
  'Chrome/120.0.0.0',
  'v1.2.3.4',
  'std::string',
  'dead::beef',
  ':8080',
  ':123456',
  '/',
  '//',
  '.',
  ':',
  '-',
  '_',
  ' ',
  '\t',
  '=',
  '"',
  '[',
  ']',
  '(',
  ',',
  '%',
  '@',
  '\r',
  '\0',
  'a',
  'x',
  '7',
  '\xe9',
  'z'.repeat(60),
  '\n',
  '\r\n',
];
const TEXT = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.constant(' ')), { maxLength: 40 })
  .map((pieces) => pieces.join(''));
const SETTINGS = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 4 }),
  jobs: fc.constantFrom(1, 1, 1, 2),
  blockBytes: fc.integer({ min: 1, max: 300 }),
});

describe.each<Kind>(['text', 'combined'])('%s', (kind) => {
  it('equals the naive twin for all texts, chunks, blocks and jobs', async () => {
    await fc.assert(
      fc.asyncProperty(TEXT, SETTINGS, async (input, settings) => {
        const { output, counts } = await run(kind, input, { ...settings, add: 'country,reason' });
        expect(output).toBe(expectedOutput(kind, input, ['country', 'reason']));
        const results = linesOf(input)
          .filter(({ isBlank }) => !isBlank)
          .map(({ text }) => resultOf(kind, text));
        expect(counts).toEqual({
          ...emptyCounts(),
          lines: linesOf(input).length,
          bytes: input.length,
          found: results.filter(({ result }) => result?.country_code != null).length,
          no_country: results.filter(({ result }) => result?.country_code === null).length,
          missing_field: results.filter(({ isMissing }) => isMissing).length,
          invalid_address: results.filter(({ isMissing, result }) => !isMissing && result === undefined).length,
        });
      }),
      { numRuns: RUNS },
    );
  });

  it('is filtered and summarized as by the naive twin', async () => {
    await fc.assert(
      fc.asyncProperty(TEXT, SETTINGS, fc.boolean(), async (input, settings, isInverted) => {
        const filter: Filter = { kind: 'filter', countries: new Set(['US']), selectsEu: true, isInverted };
        const { output } = await run(kind, input, settings, filter);
        const expected = linesOf(input).filter(({ text, isBlank }) => {
          const { result } = resultOf(kind, text);
          return (!isBlank && (result?.is_eu === true || result?.country_code === 'US')) !== isInverted;
        });
        expect(output).toBe(expected.map(({ line }) => line).join(''));

        const summary = new CountrySummary();
        await run(kind, input, settings, { kind: 'summarize', summary });
        const counts: Record<string, number> = {};
        for (const { text, isBlank } of linesOf(input)) {
          const code = isBlank ? null : resultOf(kind, text).result?.country_code;
          if (code != null) counts[code] = (counts[code] ?? 0) + 1;
        }
        const actual = summary.byCountry().map(({ country_code, count }) => [country_code, count]);
        expect(Object.fromEntries(actual)).toEqual(counts);
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });
});

describe('the address of a line of text', () => {
  it.each([
    ['sshd[811]: Failed password for root from 193.0.6.139 port 22 ssh2', 'NL'],
    ['Nov 22 06:13:03 10.0.0.1 %ASA-6-302013: Built inbound TCP from outside:8.8.8.8/443', ''],
    ['2026/11/22 06:13:03 [error] 7#7: *1 open() failed, client: 8.8.8.8, server: _', 'US'],
    ['level=info ts=2026-11-22T06:13:03.123Z ip=8.8.8.8 dur=0.25', 'US'],
    ['kernel: IN=eth0 MAC=00:1a:2b:3c:4d:5e:00:1a:2b:3c:4d:5e:08:00 SRC=10.0.0.1 DST=193.0.0.1', 'NL'],
    ['connected to [2001:4860:4860::8888]:443', 'US'],
    ['GET http://8.8.8.8/index.html', 'US'],
    ['accepted 8.8.8.8:51234 and 8.8.8.8:51235.', 'US'],
    ['The address is 8.8.8.8.', 'US'],
    ['from=<a@[8.8.8.8]>', 'US'],
    ['10.0.0.1', ''],
    ['Mozilla/5.0 Chrome/90.0.0.1 Safari/537.36', ''],
    ['package 8.8.8.8-rc1 and v8.8.8.8 and 8.8.8.8.8', ''],
    ['nothing at 12:34:56, 3.14 or 1.2.3', ''],
    ['::', ''],
  ])('%s', async (line, code) => {
    const { output } = await run('text', `${line}\n`, { add: 'country_code' });
    expect(output).toBe(`${line}\t${code}\n`);
  });

  it('is the first field of an access log', async () => {
    const rest = ' - - [22/Nov/2026:06:13:03 +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8.5.0"';
    const { output } = await run('combined', `8.8.8.8${rest}\r\nlocalhost${rest}\n10.0.0.1`);
    expect(output).toBe(
      `8.8.8.8${rest} "United States" "US" "false"\r\nlocalhost${rest} "-" "-" "-"\n10.0.0.1 "-" "-" "false"`,
    );
  });
});
