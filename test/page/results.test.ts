import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvField, DOWNLOADS, LEVELS, levelOf, levelStarts, type Result, Results } from '../../src/page/results.js';

const US: Result = { ip: '8.8.8.8', country: 'United States', country_code: 'US', is_eu: false };
const DE: Result = { ip: '80.0.0.1', country: 'Germany', country_code: 'DE', is_eu: true };
const NONE: Result = { ip: '10.0.0.1', country: null, country_code: null, is_eu: false };
const entry = (line: number, text: string, valid = true) => ({ line, text, valid });

describe('the results of a batch', () => {
  it('are counted by country, the largest first', () => {
    const results = new Results();
    for (const [index, result] of [DE, US, US, NONE, undefined].entries()) results.add(entry(index, 'x'), result);
    expect(results.counts()).toEqual([
      { code: 'US', name: 'United States', isEu: false, count: 2 },
      { code: 'DE', name: 'Germany', isEu: true, count: 1 },
      { code: undefined, name: 'No country', isEu: false, count: 1 },
    ]);
    expect([results.located, results.inUnion, results.invalid]).toEqual([3, 1, 1]);
  });

  it('are rows of CSV and lines of JSON with the line of the input', () => {
    const answered = [
      { ...entry(1, '8.8.8.8'), result: US },
      { ...entry(2, '10.0.0.1'), result: NONE },
      { ...entry(7, '=HYPERLINK("http://evil.example")', false), result: undefined },
    ];
    const { csv, jsonl } = DOWNLOADS;
    expect(csv.head + answered.map(csv.row).join('')).toBe(
      'line,ip,country,country_code,is_eu\r\n' +
        '1,8.8.8.8,United States,US,false\r\n' +
        '2,10.0.0.1,,,false\r\n' +
        `7,"'=HYPERLINK(""http://evil.example"")",,,\r\n`,
    );
    expect(answered.map(jsonl.row).map((line) => JSON.parse(line))).toEqual([
      { line: 1, ...US },
      { line: 2, ...NONE },
      { line: 7, ip: '=HYPERLINK("http://evil.example")', error: 'invalid ip' },
    ]);
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
    );
  });
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
