/** `ipatlas filter` and `ipatlas summarize`, as a user runs them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ipatlas } from '../support/in-process.js';
import { smallRelease } from '../support/release.js';

const dataDir = await smallRelease();

const run = (args: string[], input: string | Buffer = '') => ipatlas([...args, '--data', dataDir], { input });

const US = '{"ip": "8.8.8.8"}\n';
const NL = '{"ip":"193.0.0.1", "x":[1]}\n';
const PRIVATE = '{"ip":"10.0.0.1"}\n';
const LINES = `${US}${NL}x\n\n${PRIVATE}{}\n`;

describe('filter', () => {
  it.each<[args: string[], expected: string]>([
    [['--country', 'NL'], NL],
    [['--country', 'us,nl'], US + NL],
    [['--country', 'US', '--country', 'NL'], US + NL],
    [['--country', 'DE'], ''],
    [['--eu'], NL],
    [['--eu', '--country', 'US'], US + NL],
    [['--eu', '--not'], `${US}x\n\n${PRIVATE}{}\n`],
    [['--country', 'US', '--not', '--jobs', '2'], `${NL}x\n\n${PRIVATE}{}\n`],
  ])('%j', async (args, expected) => {
    for (const input of [LINES, gzipSync(LINES)]) {
      expect(await run(['filter', ...args], input)).toMatchObject({ code: 0, stdout: expected });
    }
  });

  it.each<[format: string, input: string, expected: string, args?: string[]]>([
    ['list', '8.8.8.8\n193.0.0.1\nx\n', '193.0.0.1\n'],
    ['csv', 'a,"b"\r\n1,8.8.8.8\r\n2,"193.0.0.1"\r\n3\r\n', 'a,"b"\r\n2,"193.0.0.1"\r\n', ['--field', 'b']],
    ['tsv', 'ip\tb\n8.8.8.8\t1\n193.0.0.1\t2', 'ip\tb\n193.0.0.1\t2'],
    ['json', '[{"ip":"8.8.8.8"},\n 5, {"ip": "193.0.0.1"} ]\n', '[ {"ip": "193.0.0.1"} ]\n'],
    ['json', '{"n":1,"d":[{"ip":"8.8.8.8"}]}', '{"n":1,"d":[]}', ['--items', 'd']],
  ])('keeps matching records of %s', async (format, input, expected, args = []) => {
    const result = await run(['filter', '--eu', '--format', format, ...args], input);
    expect(result).toMatchObject({ code: 0, stdout: expected });
  });

  it('writes to a file, compressed, and counts', async () => {
    const out = join(dataDir, 'out.gz');
    const { code, stdout } = await run(['filter', '--eu', '-o', out, '-z', 'gzip', '--stats', '-'], LINES);
    expect(code).toBe(0);
    expect(gunzipSync(readFileSync(out)).toString()).toBe(NL);
    expect(JSON.parse(stdout)).toMatchObject({ lines: 6, found: 2, no_country: 1, missing_field: 1, invalid_line: 1 });
  });

  it.each([
    [[], 'choose countries with --country LIST or --eu, or networks with --asn LIST'],
    [['--not'], 'choose countries'],
    [['--country', ''], '--country has ""'],
    [['--country', 'DE FR'], '--country has "DE FR"'],
    [['--country', 'Germany'], 'ISO 3166-1 alpha-2'],
    [['--country', 'UK'], 'the release has no country "UK"'],
    [['--country', 'UK', '--format', 'list'], 'the release has no country "UK"'],
    [['--eu', '--add', 'reason'], 'unknown option "--add"'],
    [['--eu', '--jobs', 'x'], '--jobs is "x"'],
  ])('%j is wrong', async (args, message) => {
    const result = await run(['filter', ...args], LINES);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
  });
});

describe('summarize', () => {
  const OTHERS = {
    no_country: 1,
    invalid_address: 0,
    missing_field: 1,
    invalid_line: 1,
    missing_date: 0,
    damaged_history: 0,
  };

  it('counts by country, most frequent first', async () => {
    const { code, stdout, stderr } = await run(['summarize'], LINES + US);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(
      `code  country        lines   share
US    United States      2  33.3 %
NL    Netherlands        1  16.7 %
      no country         1  16.7 %
      missing field      1  16.7 %
      invalid line       1  16.7 %
`,
    );
    expect(JSON.parse((await run(['summarize', '--json'], LINES + US)).stdout)).toEqual({
      by: 'country',
      countries: [
        { country: 'United States', country_code: 'US', is_eu: false, count: 2 },
        { country: 'Netherlands', country_code: 'NL', is_eu: true, count: 1 },
      ],
      lines: 7,
      ...OTHERS,
    });
  });

  it('counts by membership in the European Union', async () => {
    const { stdout } = await run(['summarize', '--by', 'eu'], US + NL + NL);
    expect(stdout).toBe(
      `country                    lines   share
in the European Union          2  66.7 %
not in the European Union      1  33.3 %
`,
    );
    const json = JSON.parse((await run(['summarize', '--by', 'eu', '--json'], LINES)).stdout);
    expect(json).toEqual({ by: 'eu', eu: 1, not_eu: 1, lines: 6, ...OTHERS });
  });

  it.each([
    ['list', '8.8.8.8\n8.8.4.4\nx\n'],
    ['csv', 'n,ip\n1,8.8.8.8\n2,8.8.4.4\n3,x\n'],
    ['json', '[{"ip":"8.8.8.8"},{"ip":"8.8.4.4"},{"ip":"x"}]'],
  ])('counts in %s', async (format, input) => {
    const path = join(dataDir, `in.${format}`);
    writeFileSync(path, input);
    const { stdout } = await run(['summarize', '--json', '--format', format, path, path]);
    expect(JSON.parse(stdout)).toMatchObject({ countries: [{ country_code: 'US', count: 4 }], invalid_address: 2 });
  });

  it('of nothing is empty, and warns if there was nothing to count', async () => {
    expect(await run(['summarize'], '')).toMatchObject({
      code: 0,
      stdout: 'code  country  lines  share\n',
      stderr: '',
    });
    expect((await run(['summarize', '--by', 'eu'], '')).stdout.match(/\S+ %/g)).toEqual(['0 %', '0 %']);
    const { stderr } = await run(['summarize'], '{"a":1}\n');
    expect(stderr).toContain('warning: no address was found: ip is missing');
  });

  it.each([
    [['--by', 'city'], '--by is "city"; it can be country, eu'],
    [['-o', 'x'], 'unknown option'],
  ])('%j is wrong', async (args, message) => {
    const result = await run(['summarize', ...args], LINES);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
  });
});
