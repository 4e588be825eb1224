/** Keys and values in lines of any text (logfmt), compared with a twin that reads a line with regular expressions. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import { parseFields } from '../../src/enrich/options.js';
import { CountrySummary } from '../../src/enrich/query.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource } from '../support/chunks.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 80));
const release = releaseForTests();

function optionsOf(fields: string[], add = 'country,is_eu'): LineRequest['options'] {
  return { input: { kind: 'logfmt' }, fields: parseFields(fields, 'logfmt'), add: parseAdd(add), onInvalid: 'keep' };
}

function enrich(
  text: string,
  options: LineRequest['options'],
  settings: Partial<LineRequest> & { cuts?: number[] } = {},
) {
  const { cuts = [], ...request } = settings;
  const inputs = [chunkedSource('log', Buffer.from(text, 'latin1'), cuts)];
  return runEngine({ inputs, options, openFile: () => release.file, ...request });
}

/** The twin: the values of keys in a line, and whether they are between tabs. */
function pairsOf(line: string, keys: string[]) {
  const values: (string | undefined)[] = keys.map(() => undefined);
  let isTabbed = false;
  let quotedEnd = 0;
  for (const { index } of line.matchAll(/=/g)) {
    if (index < quotedEnd) continue;
    const rest = line.slice(index + 1);
    const quoted = /^"((?:[^"\\]|\\.)*)"/s.exec(rest);
    if (quoted !== null) quotedEnd = index + 1 + quoted[0].length;
    const plain = /^\[/.test(rest) ? /^[^\0-\x20,;|")}]*/.exec(rest)![0] : /^[^\0-\x20,;|")}\]]*/.exec(rest)![0];
    keys.forEach((key, field) => {
      const before = line.slice(0, index);
      if (values[field] !== undefined || !before.endsWith(key)) return;
      const at = before.length - key.length;
      if (/[\w.=\x80-\xff-]/.test(before[at - 1] ?? ' ')) return;
      values[field] = quoted?.[1] ?? plain;
      isTabbed ||= before[at - 1] === '\t' || rest[quoted?.[0].length ?? plain.length] === '\t';
    });
    if (!values.includes(undefined)) break;
  }
  return { values, isTabbed };
}

function expected(text: string, options: LineRequest['options']) {
  const counts = { ...emptyCounts(), bytes: text.length };
  const output = text.split(/(?<=\n)/).map((line) => {
    const [, body, ending] = /^(.*?)(\r?\n?)$/s.exec(line)!;
    if (line !== '') counts.lines++;
    if (/^[ \t\r\v\f]*$/.test(body!)) return line;
    const keys = options.fields.map(({ path }) => path.join('.'));
    const { values, isTabbed } = pairsOf(body!, keys);
    const blank = isTabbed ? '\t' : ' ';
    const added = values.flatMap((value, field) => {
      const result = value === undefined ? undefined : release.database.lookup(value);
      if (value === undefined || value === '' || value === '-') counts.missing_field++;
      else if (result === undefined) counts.invalid_address++;
      else if (result.country_code === null) counts.no_country++;
      else counts.found++;
      if (result === undefined) return [];
      const country = result.country ?? '';
      const name = options.fields[field]!.name;
      return [`${name}_country=${country.includes(blank) ? `"${country}"` : country}`, `${name}_is_eu=${result.is_eu}`];
    });
    return body + Buffer.from(added.map((pair) => blank + pair).join('')).toString('latin1') + ending;
  });
  return { output: output.join(''), counts };
}

const PIECES = [
  ...['SRC=', 'DST=', 'src=', 'XSRC=', 'a.SRC=', 'SRC', '=', 'msg=', 'é=', 'éSRC='],
  ...['8.8.8.8', '193.0.6.139', '2001:4860:4860::8888', '10.0.0.1', '-', '90.0.0.1', '[::1]', 'x'],
  ...[
    '"',
    '"',
    '\\"',
    '\\',
    ' ',
    ' ',
    '\t',
    ',',
    '|',
    ';',
    ']',
    ')',
    '\n',
    '\r\n',
    '\r',
    '\0',
    'y'.repeat(70),
    'LEEF:1.0|',
  ],
];

describe('keys and values', () => {
  it('equal the twin for all text, chunks and jobs', async () => {
    const text = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join(''));
    const fields = fc.constantFrom<string[]>(['SRC'], ['SRC', 'DST'], ['DST=dst', 'SRC', 'a\\.SRC']);
    const settings = fc.record({
      cuts: fc.array(fc.nat(), { maxLength: 4 }),
      jobs: fc.constantFrom(1, 1, 1, 1, 1, 2),
      chunkBytes: fc.integer({ min: 1, max: 300 }),
    });
    await fc.assert(
      fc.asyncProperty(text, fields, settings, async (content, names, request) => {
        const bytes = Buffer.from(content).toString('latin1');
        const options = optionsOf(names);
        const actual = await enrich(bytes, options, request);
        const twin = expected(bytes, options);
        expect(actual.output).toBe(twin.output);
        expect(actual.counts).toEqual(twin.counts);
      }),
      { numRuns: RUNS },
    );
  });

  it.each([
    ['logfmt', 'level=info msg="at=8.8.8.8 \\"SRC=1.1.1.1\\"" SRC="8.8.8.8"', ' SRC_country_code=US'],
    ['iptables', '[UFW BLOCK] IN=eth0 SRC=193.0.6.139 DST=10.0.0.1 [SRC=8.8.8.8] ', ' SRC_country_code=NL'],
    ['CEF', 'CEF:0|V|P|1.0|100|name|10|SRC=8.8.8.8 DST=1 msg=a\\=b', ' SRC_country_code=US'],
    ['LEEF', 'LEEF:1.0|V|P|1|x|SRC=8.8.8.8\tdst=10.0.0.1', '\tSRC_country_code=US'],
    ['an address without a country', 'SRC=10.0.0.1,x', ' SRC_country_code='],
    ['no address', 'SRC=host DST=8.8.8.8', ''],
  ])('of %s are found', async (_, line, added) => {
    const { output } = await enrich(`${line}\r\n`, optionsOf(['SRC'], 'country_code'));
    expect(output).toBe(`${line}${added}\r\n`);
  });

  it('are counted', async () => {
    const summary = new CountrySummary();
    const options = {
      ...optionsOf(['SRC', 'DST']),
      add: [],
      onInvalid: 'drop',
      query: { kind: 'summarize', summary },
    } as const;
    await enrich('SRC=8.8.8.8 DST=8.8.8.8\nDST=193.0.6.139\n', { ...options, add: [] });
    expect(summary.byCountry().map(({ country_code, count }) => [country_code, count])).toEqual([
      ['US', 2],
      ['NL', 1],
    ]);
  });
});
