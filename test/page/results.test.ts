import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { networkOf, truncatedAddress } from '../../src/address/network.js';
import { answerHtml } from '../../src/page/answer.js';
import {
  columnsOf,
  csvField,
  DOWNLOADS,
  type Hiding,
  LEVELS,
  levelOf,
  levelStarts,
  type Row,
} from '../../src/page/results.js';
import { ipatlas } from '../support/in-process.js';
import { addressesIn, addressesNear } from '../support/near-addresses.js';
import { SMALL_WORLD } from '../support/release.js';

const rows: Row[] = [
  { line: 1, text: '8.8.8.8', result: { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false } },
  { line: 2, text: '10.0.0.1', result: { ip: '10.0.0.1', country: null, country_code: null, is_eu: false } },
  { line: 7, text: '=HYPERLINK("http://evil.example")', result: undefined },
];

describe('the rows of a download', () => {
  it('are CSV and JSON lines with the line of the input', () => {
    const { csv, jsonl } = DOWNLOADS;
    const csvOf = (all: Row[], columns: string[]): string =>
      csv.head(columns) + all.map((row) => csv.row(row, columns)).join('');
    expect(csvOf(rows, columnsOf(false))).toBe(
      'line,text,ip,country,country_code,is_eu,error\r\n' +
        '1,8.8.8.8,8.8.8.8,United States,US,false,\r\n' +
        '2,10.0.0.1,10.0.0.1,,,false,\r\n' +
        `7,"'=HYPERLINK(""http://evil.example"")",,,,,invalid ip\r\n`,
    );
    const network = { ...rows[0]!.result!, asn: 15169, as_name: 'Google, LLC' };
    expect(csvOf([{ ...rows[0]!, result: network }, rows[2]!], columnsOf(true))).toBe(
      'line,text,ip,country,country_code,is_eu,asn,as_name,error\r\n' +
        '1,8.8.8.8,8.8.8.8,United States,US,false,15169,"Google, LLC",\r\n' +
        `7,"'=HYPERLINK(""http://evil.example"")",,,,,,,invalid ip\r\n`,
    );
    expect(rows.map((row) => jsonl.row(row)).map((line) => JSON.parse(line))).toEqual([
      { line: 1, text: '8.8.8.8', ...rows[0]!.result },
      { line: 2, text: '10.0.0.1', ...rows[1]!.result },
      { line: 7, text: '=HYPERLINK("http://evil.example")', error: 'invalid ip' },
    ]);
  });

  it('have the same fields in both formats', () => {
    const columns = columnsOf(false);
    const text = rows.map((row) => DOWNLOADS.csv.row(row, columns)).join('');
    const table = parse(DOWNLOADS.csv.head(columns) + text, { columns: true }) as object[];
    for (const [index, row] of rows.entries()) {
      const fields = Object.entries(JSON.parse(DOWNLOADS.jsonl.row(row)) as Record<string, unknown>);
      const texts = fields.map(([name, value]) => [name, value === null ? '' : String(value)]);
      const cells = Object.entries(table[index]!).filter(
        ([name, value]) => value !== '' || texts.flat().includes(name),
      );
      expect(cells.map(([name, value]) => [name, String(value).replace(/^'/, '')])).toEqual(texts);
    }
  });
});

it('addresses in a download are cut as ipatlas redact cuts them, or left out', async () => {
  const cidrs = SMALL_WORLD.map(([cidr]) => cidr);
  const addresses = fc.sample(fc.oneof(addressesIn([...cidrs, '::/0']), addressesNear(cidrs)), 400);
  const { stdout } = await ipatlas(['redact', '--format', 'list', '--redact', 'truncate'], {
    input: `${addresses.join('\n')}\n`,
  });
  const canonical = (text: string): string => networkOf(text, 128);
  expect(addresses.map((address) => canonical(truncatedAddress(address) ?? ''))).toEqual(
    stdout.trimEnd().split('\n').map(canonical),
  );
  const row = (hiding: Hiding) => rows.map((row) => JSON.parse(DOWNLOADS.jsonl.row(row, [], hiding)));
  const known = { country: 'United States', country_code: 'US', is_eu: false };
  expect(row('truncate')[0]).toEqual({ line: 1, text: '8.8.8.0', ip: '8.8.8.0', ...known });
  expect(row('drop')[0]).toEqual({ line: 1, text: null, ip: null, ...known });
  for (const hiding of ['truncate', 'drop'] as const)
    expect(row(hiding)[2]).toEqual({ line: 7, text: null, error: 'invalid ip' });
  expect(DOWNLOADS.csv.row(rows[0]!, columnsOf(false), 'drop')).toBe('1,,,United States,US,false,\r\n');
});

describe('a field of CSV', () => {
  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1'])('is not a formula: %j', (text) => {
    const [[read]] = parse(`${csvField(text)}\n`) as [[string]];
    expect(read).toBe(`'${text}`);
  });

  it('is read as it was written, by another parser', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 1, maxLength: 5 }), (texts) => {
        const [row] = parse(`${texts.map(csvField).join(',')}\r\n`, { record_delimiter: '\r\n' }) as [string[]];
        expect(row).toEqual(texts.map((text) => (/^[=+\-@\t\r＝＋－＠]/.test(text) ? `'${text}` : text)));
      }),
      { numRuns: 40 },
    );
  });
});

it('a long name of a country is written smaller', () => {
  const html = (country: string) =>
    answerHtml({ ip: '8.8.8.8', country, country_code: 'GS', is_eu: false }, {}).text.match(
      /class="(country[^"]*)"/,
    )![1];
  expect([html('South Georgia and the South Sandwich Islands'), html('Netherlands')]).toEqual([
    'country long',
    'country',
  ]);
});

describe('the steps of color', () => {
  it.each([1, 2, 3, 5, 9, 10, 100, 12_345, 100_000])('match the legend, for a maximum of %d', (most) => {
    const starts = levelStarts(most);
    expect(starts[0]?.from).toBe(1);
    expect(starts.at(-1)?.level).toBe(LEVELS);
    for (let count = 1; count <= most; count++) {
      const { level } = starts.findLast(({ from }) => from <= count)!;
      if (levelOf(count, most) !== level) expect([count, level]).toEqual([count, levelOf(count, most)]);
    }
  });
});
