/** The fast path of JSON documents, compared with stream-json alone. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import { jsonFormat } from '../../src/enrich/formats/json.js';
import { ItemReader } from '../../src/enrich/formats/json-items.js';
import { type EnrichOptions, type InvalidPolicy, parseAdd, parseFields } from '../../src/enrich/options.js';
import { CountrySummary, type RecordQuery } from '../../src/enrich/query.js';
import { cut, stream } from '../support/chunks.js';
import { releaseForTests } from '../support/open-release.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 400);

const release = releaseForTests();

interface Run {
  items: string[];
  options: EnrichOptions;
  cuts: number[];
  /** Size of a block of the fast path; undefined for stream-json alone. */
  blockBytes?: number;
}

/** Runs one document after the other. */
async function run(documents: string[], { items, options, cuts, blockBytes }: Run) {
  const counts = emptyCounts();
  const rejects: Buffer[] = [];
  const context = {
    database: release.database,
    options,
    counts,
    reject: (record: Uint8Array) => void rejects.push(Buffer.from(record)),
  };
  const reader = blockBytes === undefined ? undefined : new ItemReader(release.file, options, counts, blockBytes);
  const format = jsonFormat(context, items, reader);
  const output: Uint8Array[] = [];
  let error: unknown;
  for (const document of documents) {
    try {
      for await (const part of format.enrich('input', stream(cut(Buffer.from(document), cuts)))) output.push(part);
    } catch (thrown) {
      error = String(thrown);
      break;
    }
  }
  return {
    output: Buffer.concat(output).toString('latin1'),
    rejects: Buffer.concat(rejects).toString('latin1'),
    counts,
    error,
  };
}

const VALUE = fc.constantFrom<unknown>(
  '8.8.8.8',
  '193.0.6.139',
  '90.0.0.1',
  '10.0.0.1',
  'x',
  '',
  null,
  5,
  1.5e300,
  true,
  [],
  [1, '8.8.8.8', { ip: '::1' }],
  { ip: '193.0.0.1' },
  'a "quoted", [bracketed] {text} \\ é\n',
  '\\',
  'z'.repeat(80),
);
const OBJECT = fc.dictionary(fc.constantFrom('ip', 'client', 'a', 'b"', 'é'), VALUE, { maxKeys: 4 });
const ITEM = fc.oneof(
  { arbitrary: OBJECT, weight: 30 },
  { arbitrary: OBJECT.map((value) => ({ ...value, geo: { country: 'old' } })), weight: 1 },
  { arbitrary: VALUE, weight: 1 },
);
const INDENT = fc.constantFrom<string | number>('', '', 1, 2, '\t');

const DOCUMENT = fc
  .tuple(
    fc.array(ITEM, { maxLength: 12 }),
    INDENT,
    fc.boolean(),
    fc.constantFrom('', '\n', '\r\n', ' '),
    fc.constantFrom('\n', '\n', '\n', '\r\n'),
  )
  .map(([items, indent, isInside, end, newline]) => {
    const document = isInside ? { n: '[', data: { other: [1, [2]], rows: items }, last: [{}] } : items;
    return {
      path: isInside ? ['data', 'rows'] : [],
      text: JSON.stringify(document, null, indent).replaceAll('\n', newline) + end,
    };
  });

/** Changes that often make a document invalid. */
const CHANGES = fc.array(
  fc.tuple(fc.nat(), fc.constantFrom('', ',', ']', '[', '}', '{', '"', '\\', ' ', '\n', '\r', '1', 'x', '\0')),
  {
    maxLength: 2,
  },
);

const SETTINGS = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 6 }),
  blockBytes: fc.constantFrom(1, 20, 64, 100, 333, 1000, 100_000),
});

function optionsOf(onInvalid: InvalidPolicy, query?: RecordQuery): EnrichOptions {
  return { fields: parseFields(['ip', 'client.ip=c']), add: query ? [] : parseAdd('country_code'), onInvalid, query };
}

it('equals stream-json for all documents, chunks and blocks', async () => {
  const policies = fc.constantFrom<InvalidPolicy>('keep', 'keep', 'drop', 'fail');
  await fc.assert(
    fc.asyncProperty(DOCUMENT, CHANGES, policies, SETTINGS, async ({ path, text }, changes, policy, settings) => {
      const changed = changes.reduce((now, [place, character]) => {
        const at = place % (now.length + 1);
        return now.slice(0, at) + character + now.slice(at + (place % 2));
      }, text);
      const options = optionsOf(policy);
      const expected = await run([changed], { items: path, options, cuts: [...Buffer.from(changed).keys()] });
      const actual = await run([changed], { items: path, options, ...settings });
      expect(actual.error === undefined).toBe(expected.error === undefined);
      // In a document with several errors, the first that is found depends on the chunks.
      if (changes.length === 0) expect(actual.error).toBe(expected.error);
      if (expected.error === undefined) {
        expect(actual).toEqual(expected);
      } else {
        // How much precedes an error in the output depends on the chunks.
        const [shorter, longer] = [actual.output, expected.output].sort((a, b) => a.length - b.length);
        expect(longer!.startsWith(shorter!)).toBe(true);
      }
    }),
    { numRuns: 3 * RUNS },
  );
});

it('filters and summarizes as stream-json does, over several documents', async () => {
  const queries = fc.constantFrom<[string[], boolean, boolean]>(
    [['US'], false, false],
    [['CI'], true, true],
    [[], true, false],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(DOCUMENT, { maxLength: 3 }), queries, SETTINGS, async (documents, query, settings) => {
      const [codes, selectsEu, isInverted] = query;
      const items = documents[0]?.path ?? [];
      const texts = documents.filter(({ path }) => path.length === items.length).map(({ text }) => text);
      const filter = { kind: 'filter', countries: new Set(codes), selectsEu, isInverted } as const;
      const options = optionsOf(isInverted ? 'keep' : 'drop', filter);
      expect(await run(texts, { items, options, ...settings })).toEqual(await run(texts, { items, options, cuts: [] }));

      const summaries = [new CountrySummary(), new CountrySummary()];
      const counts = [settings, { cuts: [] }].map((one, index) =>
        run(texts, { items, options: optionsOf('drop', { kind: 'summarize', summary: summaries[index]! }), ...one }),
      );
      const [fast, slow] = await Promise.all(counts);
      expect(fast!.counts).toEqual(slow!.counts);
      expect(summaries[0]!.byCountry()).toEqual(summaries[1]!.byCountry());
    }),
    { numRuns: RUNS },
  );
});

it('takes items of many blocks without stream-json', async () => {
  const rows = Array.from({ length: 20_000 }, (_, n) => ({ n, ip: `8.8.${n % 256}.8`, text: 'é"\\'.repeat(n % 9) }));
  const text = JSON.stringify(rows, null, 1);
  const options = optionsOf('keep');
  const reader = new ItemReader(release.file, options, emptyCounts());
  reader.start();
  const { items, rest } = reader.add(Buffer.from(text.slice(1)));
  expect(items).toBe(20_000);
  expect(Buffer.from(rest!).toString()).toBe('\n]');
  const { output, counts } = await run([text], { items: [], options, cuts: [70_000, 1_000_000], blockBytes: 50_000 });
  const expected = rows.map((row) => ({ ...row, geo: undefined, c: null }));
  expect(counts).toMatchObject({ lines: 20_000, found: 20_000, missing_field: 20_000 });
  expect(JSON.parse(Buffer.from(output, 'latin1').toString())).toEqual(
    expected.map(({ geo: _, c, ...row }) => ({ ...row, ip_geo: { country_code: 'US' }, c })),
  );
});
