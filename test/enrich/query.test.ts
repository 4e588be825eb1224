/** Filters and summaries, against naive twins that look at one record at a time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EnrichOptions, parseFields } from '../../src/enrich/options.js';
import { CountrySummary, checkCountries, type Filter, type RecordQuery } from '../../src/enrich/query.js';
import { chunkedSource } from '../support/chunks.js';
import { documentAt } from '../support/engine-format.js';
import { expectLines } from '../support/line-oracle.js';
import { ANY_INPUT } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 48) / 4);

const release = releaseForTests();

const FILTERS: fc.Arbitrary<Filter> = fc.record({
  kind: fc.constant('filter' as const),
  countries: fc.subarray(['US', 'NL', 'CI', 'DE']).map((codes) => new Set(codes)),
  selectsEu: fc.boolean(),
  isInverted: fc.boolean(),
});

/** Returns whether a result, as JSON.parse reads it, is selected. */
function isSelected({ countries, selectsEu }: Filter, result: { country_code: string | null; is_eu: boolean } | null) {
  if (result === null || result.country_code === null) return false;
  return countries.has(result.country_code) || (selectsEu && result.is_eu);
}

function optionsOf(query: RecordQuery, fields: string[]): EnrichOptions {
  const keepsInvalid = query.kind === 'filter' && query.isInverted;
  return { fields: parseFields(fields), add: [], onInvalid: keepsInvalid ? 'keep' : 'drop', query };
}

/** A line and the results of its fields; undefined for a line that is blank or invalid. */
interface NaiveLine {
  text: string;
  results: ({ country_code: string | null; is_eu: boolean } | null)[] | undefined;
}

/** Takes an input apart, line by line, with the oracle of the line engine. */
function naiveLines(input: Buffer, fields: string[], maxLineBytes: number): { mark: string; lines: NaiveLine[] } {
  const text = input.toString('latin1');
  const mark = text.startsWith('\xef\xbb\xbf') ? '\xef\xbb\xbf' : '';
  const options: EnrichOptions = {
    fields: parseFields(fields.map((field, index) => `${field}=Q${index}`)),
    add: ['country_code', 'is_eu'],
    onInvalid: 'keep',
  };
  const lines = (text.slice(mark.length).match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line) => {
    const { output, counts } = expectLines(release.database, Buffer.from(line, 'latin1'), options, maxLineBytes);
    const isRecord = counts.invalid_line === 0 && /[^ \t\r\n]/.test(line);
    const results = fields.map((_, index) => {
      const found = [...output.toString('latin1').matchAll(new RegExp(`"Q${index}":(null|\\{[^}]*\\})`, 'g'))].at(-1);
      return isRecord ? JSON.parse(found![1]!) : null;
    });
    return { text: line, results: isRecord ? results : undefined };
  });
  return { mark, lines };
}

async function run(input: Buffer, options: EnrichOptions, cuts: number[], jobs: number, sizes = {}) {
  const inputs = [chunkedSource('input', input, cuts)];
  const { error, ...result } = await runEngine({ inputs, openFile: () => release.file, options, jobs, ...sizes });
  expect(error).toBeUndefined();
  return result;
}

/** Returns whether the first line is too long with its byte order mark, of which the naive twin knows nothing. */
function isTooLongWithMark(mark: string, lines: { text: string }[], maxLineBytes: number): boolean {
  return mark !== '' && lines[0] !== undefined && lines[0].text.length >= maxLineBytes - mark.length;
}

const FIELDS = fc.constantFrom<string[][]>(['ip'], ['client.ip'], ['ip', 'client.ip'], ['a', 'ip', 'client.ip']);
const SIZES = fc.record({ chunkBytes: fc.integer({ min: 1, max: 400 }), maxLineBytes: fc.constantFrom(60, 100_000) });

describe('JSON lines', () => {
  it('are filtered as the naive twin does, for any chunks, blocks and jobs', async () => {
    await fc.assert(
      fc.asyncProperty(
        ANY_INPUT,
        FIELDS,
        FILTERS,
        fc.array(fc.nat(), { maxLength: 4 }),
        fc.integer({ min: 1, max: 3 }),
        SIZES,
        async (input, fields, filter, cuts, jobs, sizes) => {
          const { mark, lines } = naiveLines(input, fields, sizes.maxLineBytes);
          fc.pre(!isTooLongWithMark(mark, lines, sizes.maxLineBytes));
          const expected = lines.filter(
            ({ results }) => (results ?? []).some((result) => isSelected(filter, result)) !== filter.isInverted,
          );
          const { output } = await run(input, optionsOf(filter, fields), cuts, jobs, sizes);
          expect(output).toBe(mark + expected.map(({ text }) => text).join(''));
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('are counted by country as the naive twin does', async () => {
    await fc.assert(
      fc.asyncProperty(ANY_INPUT, FIELDS, fc.integer({ min: 1, max: 3 }), SIZES, async (input, fields, jobs, sizes) => {
        const { mark, lines } = naiveLines(input, fields, sizes.maxLineBytes);
        fc.pre(!isTooLongWithMark(mark, lines, sizes.maxLineBytes));
        const expected: Record<string, number> = {};
        for (const result of lines.flatMap(({ results }) => results ?? [])) {
          const code = result?.country_code;
          if (code != null) expected[code] = (expected[code] ?? 0) + 1;
        }
        const summary = new CountrySummary();
        const { counts } = await run(input, optionsOf({ kind: 'summarize', summary }, fields), [], jobs, sizes);
        const actual = summary.byCountry();
        expect(Object.fromEntries(actual.map(({ country_code, count }) => [country_code, count]))).toEqual(expected);
        expect(counts.found).toBe(actual.reduce((sum, { count }) => sum + count, 0));
        const options = { fields: parseFields(fields), add: [], onInvalid: 'drop' } as const;
        const enriched = expectLines(
          release.database,
          input,
          { ...options, fields: [...options.fields], add: [] },
          sizes.maxLineBytes,
        );
        expect(counts).toEqual(enriched.counts);
      }),
      { numRuns: RUNS },
    );
  });
});

/** Addresses and other values, with and without a country. */
const VALUE = fc.constantFrom('8.8.8.8', '193.0.6.139', '90.0.0.1', '80.1.2.3', '10.0.0.1', '::1', 'x', '');

async function runDocument(items: unknown[], query: RecordQuery, cuts: number[]) {
  return runEngine({
    inputs: [chunkedSource('input', Buffer.from(JSON.stringify(items, null, 1)), cuts)],
    openFile: () => release.file,
    options: { ...optionsOf(query, []), input: documentAt() },
  });
}

// Lists and tables are in text.test.ts and tables.test.ts.
describe('JSON documents', () => {
  const cuts = fc.array(fc.nat(), { maxLength: 4 });
  const selects = (filter: Filter, value: string) =>
    isSelected(filter, release.database.lookup(value) ?? null) !== filter.isInverted;

  it('are filtered, and stay valid', async () => {
    const item = fc.oneof(
      VALUE.map((ip) => ({ ip, x: [1, { y: 2 }] })),
      fc.constantFrom<unknown>({}, 5, [], null),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(item), FILTERS, cuts, async (items, filter, positions) => {
        const expected = items.filter((one) => selects(filter, (one as { ip?: string } | null)?.ip ?? ''));
        const { output } = await runDocument(items, filter, positions);
        expect(JSON.parse(output)).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });

  it('are summarized', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(VALUE), async (values) => {
        const expected = values.filter((value) => release.database.lookup(value)?.is_eu === true).length;
        const summary = new CountrySummary();
        await runDocument(
          values.map((ip) => ({ ip })),
          { kind: 'summarize', summary },
          [],
        );
        expect(summary.byEu().eu).toBe(expected);
      }),
      { numRuns: RUNS },
    );
  });
});

it('refuses a country that the release does not have', () => {
  const filter: Filter = { kind: 'filter', countries: new Set(['DE', 'UK']), selectsEu: false, isInverted: false };
  expect(() => checkCountries(filter, ['DE', 'GB'])).toThrow(
    expect.objectContaining({ code: 'E_USAGE', message: expect.stringContaining('no country "UK"') }),
  );
  expect(() => checkCountries(filter, ['DE', 'UK'])).not.toThrow();
});
