/** Tables in the line engine, compared with csv-parse. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import { type InvalidPolicy, parseFields, type TableInput } from '../../src/enrich/options.js';
import { CountrySummary, type Filter } from '../../src/enrich/query.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource, everyByte } from '../support/chunks.js';
import { nastyTables } from '../support/nasty-tables.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';
import { expectTable } from '../support/table-oracle.js';

/** Runs of each property; set it high for a long test. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 30));

const release = releaseForTests();

type Settings = Partial<LineRequest> & { cuts?: number[] };

function enrich(tables: string[], options: LineRequest['options'], { cuts = [], ...request }: Settings = {}) {
  const inputs = tables.map((text, index) => chunkedSource(`table ${index}`, Buffer.from(text, 'latin1'), cuts));
  return runEngine({ inputs, options, openFile: () => release.file, ...request });
}

function optionsOf(input: Partial<TableInput> = {}, fields = ['ip'], onInvalid: InvalidPolicy = 'keep') {
  return {
    input: { kind: 'table', delimiter: ',', hasHeader: true, ...input } as const,
    fields: parseFields(fields),
    add: parseAdd('country_code,is_eu'),
    onInvalid,
  };
}

const SETTINGS = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 5 }),
  jobs: fc.constantFrom(1, 1, 1, 1, 2, 3),
  chunkBytes: fc.integer({ min: 1, max: 400 }),
  maxLineBytes: fc.constantFrom(60, 300, 100_000),
});

/** The folder of the package csv-spectrum: tables, and the records that they have as JSON. */
const SPECTRUM = join(createRequire(import.meta.url).resolve('csv-spectrum/package.json'), '..');

const FIELDS = fc.constantFrom<string[]>(['ip'], ['ip', 'a=first'], ['c', 'ip', 'a=x']);

describe('a table', () => {
  it('equals the oracle for all tables, chunks, blocks, jobs and policies', async () => {
    const policies = fc.constantFrom<InvalidPolicy>('keep', 'keep', 'drop', 'fail');
    await fc.assert(
      fc.asyncProperty(
        nastyTables(12),
        FIELDS,
        policies,
        SETTINGS,
        async ({ delimiter, text }, fields, onInvalid, settings) => {
          const options = optionsOf({ delimiter }, fields, onInvalid);
          const actual = await enrich([text], options, settings);
          const expected = expectTable(release.database, text, options, settings.maxLineBytes);
          expect(actual.output).toBe(expected.output);
          expect(actual.rejects).toBe(expected.rejects);
          if (expected.failsAt === undefined) {
            expect(actual.error).toBeUndefined();
            expect(actual.counts).toEqual(expected.counts);
          } else {
            expect(actual.error).toMatchObject({
              code: 'E_BAD_INPUT',
              message: expect.stringContaining(`table 0, line ${expected.failsAt}: `),
            });
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('equals the oracle for chunks of one byte, after comments, too', async () => {
    const comments = fc.constantFrom('', '#\n', '\n# x\r\n\n#ip a;,\t\n');
    const size = fc.integer({ min: 1, max: 100 });
    await fc.assert(
      fc.asyncProperty(nastyTables(6), size, comments, async ({ delimiter, text }, chunkBytes, some) => {
        const options = optionsOf({ delimiter });
        const before = text.startsWith('\xef\xbb\xbf') ? '' : some;
        const settings = { cuts: everyByte(before + text), chunkBytes, maxLineBytes: 200 };
        const actual = await enrich([before + text], options, settings);
        expect(actual.output).toBe(before + expectTable(release.database, text, options, 200).output);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('equals the oracle in blocks of the usual size', async () => {
    await fc.assert(
      fc.asyncProperty(nastyTables(300), FIELDS, async ({ delimiter, text }, fields) => {
        const options = optionsOf({ delimiter }, fields);
        const actual = await enrich([text], options, { jobs: 2 });
        const expected = expectTable(release.database, text, options, 4_194_304);
        expect(actual.output).toBe(expected.output);
        expect(actual.counts).toEqual(expected.counts);
      }),
      { numRuns: Math.ceil(RUNS / 10) },
    );
  });

  it('with addresses in other text equals the oracle, enriched and filtered', async () => {
    await fc.assert(
      fc.asyncProperty(
        nastyTables(12, true),
        FIELDS,
        SETTINGS,
        fc.boolean(),
        async (table, fields, settings, isQuery) => {
          const filter = { kind: 'filter', countries: new Set(['US']), selectsEu: true, isInverted: false } as const;
          const options = {
            ...optionsOf({ delimiter: table.delimiter }, fields),
            lenient: true,
            ...(isQuery ? { add: [], onInvalid: 'drop' as const, query: filter } : { add: parseAdd('address,is_eu') }),
          };
          const actual = await enrich([table.text], options, settings);
          const expected = expectTable(release.database, table.text, options, settings.maxLineBytes);
          expect(actual.output).toBe(expected.output);
          expect(actual.counts).toEqual(expected.counts);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('with addresses in other text is searched up to a length, however a cell is written', async () => {
    const cells = [8191, 8192, 8193, 8194, 20_000].flatMap((length) => {
      const filler = (text: string) => text.repeat(Math.ceil(length / text.length)).slice(0, length - 8);
      return [
        `"${filler('x,')},8.8.8.8"`,
        `"${'""'.repeat(length - 8)},8.8.8.8"`,
        `"8.8.8.8,${'""'.repeat(length - 8)}"`,
        `"8.8.8.8,${filler('x')}"`,
        `8.8.8.8 ${filler('x')}`,
        ...[0, 1, 2, 3].map((less) => `"x,""8.8.8.8,"${filler('y').slice(less)}`),
        ...[0, 1, 2, 3].map((less) => `"${filler('y,').slice(less)}"y,8.8.8.8`),
      ];
    });
    // Another delimiter, so that lists need no quotes; at a place in the text at which it is in quotes.
    const text = `a;ip\n${cells.map((cell) => `1;${cell}\n2;${cell.replace('x,', 'x;')}\n`).join('')}`;
    const options = { ...optionsOf({ delimiter: ';' }), lenient: true };
    const { output, counts } = await enrich([text], options);
    const expected = expectTable(release.database, text, options, 4_194_304);
    expect(counts).toEqual(expected.counts);
    expect(output).toBe(expected.output);
    expect(counts.found).toBeGreaterThan(20);
    expect(counts.invalid_address).toBeGreaterThan(20);
  });

  it('has quotes after backslashes in a text where a record has its cells only then', async () => {
    const texts = ['"x \\"y\\", z"', '"{\\"a\\":1,\\"b\\":2}"', '"C:\\"', '"a,\\\\"', '"x \\", y'];
    const records = texts.map((text) => `${text},8.8.8.8\n`).join('');
    const { counts } = await enrich([`a,ip\n${records}`], optionsOf({ delimiter: ',' }));
    expect(counts).toMatchObject({ found: 4, invalid_line: 1 });
  });

  it('without a header equals the oracle', async () => {
    await fc.assert(
      fc.asyncProperty(nastyTables(8), SETTINGS, async ({ delimiter, text }, settings) => {
        const options = optionsOf({ delimiter, hasHeader: false }, ['2', '1=x']);
        const actual = await enrich([text], options, settings);
        const expected = expectTable(release.database, text, options, settings.maxLineBytes);
        expect(actual.output).toBe(expected.output);
        expect(actual.counts).toEqual(expected.counts);
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });

  it('is filtered and summarized as by the oracle', async () => {
    const filters = fc
      .tuple(fc.constantFrom(['US'], ['NL', 'CI'], []), fc.boolean(), fc.boolean())
      .map(([codes, selectsEu, isInverted]): Filter => {
        return { kind: 'filter', countries: new Set<string>(codes), selectsEu, isInverted };
      });
    await fc.assert(
      fc.asyncProperty(nastyTables(12), FIELDS, filters, SETTINGS, async (table, fields, query, settings) => {
        const { delimiter, text } = table;
        const options = { ...optionsOf({ delimiter }, fields), add: [], query } as const;
        const filter = { ...options, add: [], onInvalid: query.isInverted ? 'keep' : 'drop' } as const;
        const filtered = await enrich([text], { ...filter, add: [] }, settings);
        const expected = expectTable(release.database, text, { ...filter, add: [] }, settings.maxLineBytes);
        expect(filtered.output).toBe(expected.output);
        expect(filtered.counts).toEqual(expected.counts);

        const summary = new CountrySummary();
        const { counts } = await enrich(
          [text],
          { ...filter, add: [], onInvalid: 'drop', query: { kind: 'summarize', summary } },
          settings,
        );
        const actual = summary.byCountry().map(({ country_code, count }) => [country_code, count]);
        expect(Object.fromEntries(actual)).toEqual(expected.countries);
        expect(counts).toEqual(expected.counts);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it.each([
    'comma_in_quotes',
    'empty',
    'empty_crlf',
    'escaped_quotes',
    'json',
    'location_coordinates',
    'newlines',
    'newlines_crlf',
    'quotes_and_newlines',
    'simple',
    'simple_crlf',
    'utf8',
  ])('is read as csv-spectrum says: %s', async (name) => {
    const text = readFileSync(join(SPECTRUM, 'csvs', `${name}.csv`), 'latin1');
    const said = [JSON.parse(readFileSync(join(SPECTRUM, 'json', `${name}.json`), 'utf8'))].flat();
    // The one file whose JSON has another number than its table.
    if (name === 'location_coordinates') said[0]['Contact Phone Number'] = '2095257564';
    const records: Record<string, string>[] = said;
    const columns = Object.keys(records[0]!);
    const cells = records.flatMap((record) => Object.values(record));
    const fields = columns.map((column, index) => `${column.replaceAll('.', '\\.')}=r${index}`);
    for (const jobs of [1, 2]) {
      for (const cuts of [[], everyByte(text)]) {
        const settings = { cuts, jobs, chunkBytes: 16 };
        const { output, rejects, counts } = await enrich([text], optionsOf({}, fields), settings);
        const added = columns.flatMap((_, index) => [`r${index}_country_code`, `r${index}_is_eu`]);
        const expected = records.map((record) => ({
          ...record,
          ...Object.fromEntries(added.map((column) => [column, ''])),
        }));
        expect(parse(Buffer.from(output, 'latin1'), { columns: true, relax_quotes: true })).toEqual(expected);
        expect(rejects).toBe('');
        expect(counts).toMatchObject({
          missing_field: cells.filter((cell) => cell === '').length,
          invalid_address: cells.filter((cell) => cell !== '').length,
          invalid_line: 0,
        });
      }
    }
  });

  it('has one header in several inputs with the same columns', async () => {
    const options = optionsOf();
    const { output, error } = await enrich(['ip\r\n8.8.8.8', '\xef\xbb\xbf"ip"\n::1\n', '\n\nip\n', 'ip'], options);
    expect(error).toBeUndefined();
    expect(output).toBe('ip,geo_country_code,geo_is_eu\r\n8.8.8.8,US,false\r\n::1,,false\n\n\n');
    expect((await enrich(['ip\n', 'id,ip\n'], options)).error).toMatchObject({
      code: 'E_BAD_INPUT',
      message:
        'table 1 has the columns id, ip, but the input before it ip; the inputs of one run must have the same columns; enrich them one by one',
    });
  });

  it('with many columns and cells longer than a block is read', async () => {
    const names = Array.from({ length: 5000 }, (_, index) => `c${index}`);
    const cells = names.map((_, index) => (index % 3 === 0 ? `"${'q'.repeat(index % 200)}"` : 'p'.repeat(index % 90)));
    const row = (address: string) => [...cells.slice(0, 4321), address, ...cells.slice(4322)].join(',');
    const text = `${names.join(',')}\n${row('8.8.8.8')}\n${row('"193.0.0.1"')}\r\n`;
    const options = optionsOf({}, ['c4321=geo', 'c0=a', 'c4999=z']);
    for (const chunkBytes of [1000, 100_000]) {
      const { output, counts } = await enrich([text], options, { chunkBytes, maxLineBytes: 1_000_000 });
      expect(output).toBe(expectTable(release.database, text, options, 4_194_304).output);
      expect(counts).toMatchObject({ lines: 2, found: 2 });
    }
  });

  it('refuses a column number that it does not have, and too many fields', async () => {
    const { error } = await enrich(['1,2\n'], optionsOf({ hasHeader: false }, ['3']));
    expect(error).toMatchObject({
      code: 'E_USAGE',
      message: 'table 0 has 2 columns, so there is no column 3; choose another with --field',
    });
    const fields = Array.from({ length: 65 }, (_, index) => `a=n${index}`);
    expect(() => optionsOf({}, fields)).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });
});
