import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerHtml } from '../../src/page/answer.js';
import { columnsOf, csvField, DOWNLOADS, LEVELS, levelOf, levelStarts, type Row } from '../../src/page/results.js';

describe('the rows of a download', () => {
  const rows: Row[] = [
    { line: 1, text: '8.8.8.8', result: { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false } },
    { line: 2, text: '10.0.0.1', result: { ip: '10.0.0.1', country: null, country_code: null, is_eu: false } },
    { line: 7, text: '=HYPERLINK("http://evil.example")', result: undefined },
  ];

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
    expect(rows.map(jsonl.row).map((line) => JSON.parse(line))).toEqual([
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
