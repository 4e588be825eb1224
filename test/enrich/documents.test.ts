/** JSON documents, compared with JSON.parse, for every split of the input. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import { type EnrichOptions, type InvalidPolicy, parseFields } from '../../src/enrich/options.js';
import { CountrySummary, type RecordQuery } from '../../src/enrich/query.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource, cut, stream } from '../support/chunks.js';
import { documentAt, engineFormat } from '../support/engine-format.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 15);

const release = releaseForTests();

interface Run {
  items: string[];
  options: EnrichOptions;
  cuts: number[];
  chunkBytes?: number;
}

/** Runs one document after the other. */
async function run(documents: string[], { items, options, cuts, chunkBytes }: Run) {
  if (options.query !== undefined) {
    return runEngine({
      inputs: documents.map((document) => chunkedSource('input', Buffer.from(document), cuts)),
      openFile: () => release.file,
      options: { ...options, input: documentAt(...items) },
      chunkBytes,
    });
  }
  const counts = emptyCounts();
  const rejects: Buffer[] = [];
  const context = {
    database: release.database,
    options,
    counts,
    reject: (record: Uint8Array) => void rejects.push(Buffer.from(record)),
  };
  const format = engineFormat(context, documentAt(...items), chunkBytes === undefined ? {} : { chunkBytes });
  const output: Uint8Array[] = [];
  let error: unknown;
  for (const document of documents) {
    try {
      for await (const part of format.enrich('input', stream(cut(Buffer.from(document), cuts)))) output.push(part);
    } catch (thrown) {
      error = thrown;
      break;
    }
  }
  return { output: Buffer.concat(output).toString(), rejects: Buffer.concat(rejects).toString(), counts, error };
}

/** JSON text with blanks anywhere, keys of all kinds, and keys that occur again. */
const BLANK = fc.constantFrom('', '', '', ' ', '\n', '\r\n\t ');
const KEYS = ['"ip"', '"\\u0069p"', '"ip_geo"', '"\\u0063"', '"client"', '"client"', '"a"', '"é"', '"\\"ip\\""', '""'];
const SCALAR = fc.oneof(
  fc.constantFrom('8.8.8.8', '193.0.6.139', '90.0.0.1', '10.0.0.1', 'x', '8.8.8.8 ').map((text) => `"${text}"`),
  fc.constantFrom('1', '-1.50e-7', '1e400', 'true', 'false', 'null', `"${'z'.repeat(80)}"`),
  fc.constantFrom('"]}"', '"\\\\"', '"\\"{"', '"ü\\u00fc"', '"\\ud800"', '"[bracketed], \\n"'),
  fc.string({ unit: 'binary', maxLength: 5 }).map((text) => JSON.stringify(text)),
);
const { value: JSON_TEXT, object: OBJECT } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  object: fc
    .array(fc.tuple(BLANK, fc.constantFrom(...KEYS), BLANK, BLANK, tie('value'), BLANK), { maxLength: 5 })
    .map((members) => `{${members.map(([a, key, b, c, value, d]) => `${a}${key}${b}:${c}${value}${d}`).join(',')}}`),
  array: fc
    .array(fc.tuple(BLANK, tie('value'), BLANK), { maxLength: 4 })
    .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`),
  value: fc.oneof({ maxDepth: 4 }, SCALAR, tie('object'), tie('object'), tie('array')),
}));
const ITEM = fc.tuple(
  BLANK,
  fc.oneof({ arbitrary: OBJECT, weight: 20 }, { arbitrary: JSON_TEXT, weight: 1 }, { arbitrary: SCALAR, weight: 1 }),
  BLANK,
);
const DOCUMENT = fc
  .tuple(fc.array(ITEM, { maxLength: 8 }), fc.boolean(), JSON_TEXT, JSON_TEXT, BLANK)
  .map(([items, isInside, before, after, end]) => {
    const rows = `[${items.map((parts) => parts.join('')).join(',')}]`;
    const text = isInside ? `{"n":${before},"data":{"other":${after},"rows":${rows}},"rows":[{}]}` : rows;
    return { path: isInside ? ['data', 'rows'] : [], text: end + text + end };
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
  chunkBytes: fc.constantFrom(1, 20, 64, 100, 333, 1000, 100_000),
});

function optionsOf(onInvalid: InvalidPolicy, query?: RecordQuery): EnrichOptions {
  return { fields: parseFields(['ip', 'client.ip=c']), add: query ? [] : parseAdd('country_code'), onInvalid, query };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The result of a value as `optionsOf` adds it. */
function resultOf(value: unknown): unknown {
  const result = typeof value === 'string' ? release.database.lookup(value) : undefined;
  return result === undefined ? null : { country_code: result.country_code };
}

/** The naive twin: what JSON.parse finds at a path, enriched; undefined if the document is to be refused. */
function naive(text: string, path: readonly string[], policy: InvalidPolicy): unknown[] | undefined {
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    return undefined;
  }
  for (const key of path) items = isObject(items) ? items[key] : undefined;
  if (!Array.isArray(items) || (policy === 'fail' && !items.every(isObject))) return undefined;
  return items
    .filter((item) => policy === 'keep' || isObject(item))
    .map((item) => {
      if (!isObject(item)) return item;
      const { ip_geo: _, c: __, ...rest } = item;
      return { ...rest, ip_geo: resultOf(item.ip), c: resultOf(isObject(item.client) ? item.client.ip : undefined) };
    });
}

/** What is at a path of JSON text. */
function itemsOf(text: string, path: readonly string[]): unknown {
  return path.reduce((value, key) => (value as Record<string, unknown>)[key], JSON.parse(text) as unknown);
}

it('are enriched or refused as JSON.parse reads them, the same for all cuts and chunks', async () => {
  const policies = fc.constantFrom<InvalidPolicy>('keep', 'keep', 'drop', 'fail');
  await fc.assert(
    fc.asyncProperty(DOCUMENT, CHANGES, policies, SETTINGS, async ({ path, text }, changes, policy, settings) => {
      const cutUp = changes.reduce((now, [place, character]) => {
        const at = place % (now.length + 1);
        return now.slice(0, at) + character + now.slice(at + (place % 2));
      }, text);
      // Half of a pair of surrogates becomes another character.
      const changed = Buffer.from(cutUp).toString();
      const options = optionsOf(policy);
      const whole = await run([changed], { items: path, options, cuts: [] });
      const split = await run([changed], { items: path, options, ...settings });
      const expected = naive(changed, path, policy);
      if (expected !== undefined) {
        expect(whole.error).toBeUndefined();
        expect(JSON.stringify(itemsOf(whole.output, path))).toBe(JSON.stringify(expected));
        expect(split).toEqual(whole);
      } else {
        expect(whole.error).toMatchObject({ code: 'E_BAD_INPUT' });
        expect(split.error).toMatchObject({ code: 'E_BAD_INPUT' });
        // How much of the text around the items precedes an error in the output depends on the chunks.
        const [shorter, longer] = [split.output, whole.output].sort((a, b) => a.length - b.length);
        expect(longer!.startsWith(shorter!)).toBe(true);
      }
    }),
    { numRuns: 4 * RUNS },
  );
});

it('have no other byte changed', async () => {
  const options = { fields: parseFields(['ip=RESULT']), add: parseAdd('country_code'), onInvalid: 'keep' as const };
  await fc.assert(
    fc.asyncProperty(DOCUMENT, SETTINGS, async ({ path, text }, settings) => {
      const { output } = await run([text], { items: path, options, ...settings });
      expect(output.replaceAll(/(,\s*)?"RESULT":(null|\{"country_code":(null|"..")\})/g, '')).toBe(text);
    }),
    { numRuns: 2 * RUNS },
  );
});

it('are filtered and summarized the same for all cuts and chunks, over several documents', async () => {
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
      const whole = await run(texts, { items, options, cuts: [] });
      expect(whole.error).toBeUndefined();
      expect(await run(texts, { items, options, ...settings })).toEqual(whole);

      const summaries = [new CountrySummary(), new CountrySummary()];
      const counts = [settings, { cuts: [] }].map((one, index) =>
        run(texts, { items, options: optionsOf('drop', { kind: 'summarize', summary: summaries[index]! }), ...one }),
      );
      const [split, plain] = await Promise.all(counts);
      expect(split!.counts).toEqual(plain!.counts);
      expect(summaries[0]!.byCountry()).toEqual(summaries[1]!.byCountry());
    }),
    { numRuns: RUNS },
  );
});

it('have items in many chunks', async () => {
  const rows = Array.from({ length: 20_000 }, (_, n) => ({ n, ip: `8.8.${n % 256}.8`, text: 'é"\\'.repeat(n % 9) }));
  const text = JSON.stringify(rows, null, 1);
  const options = optionsOf('keep');
  const { output, counts } = await run([text], { items: [], options, cuts: [70_000, 1_000_000], chunkBytes: 50_000 });
  const expected = rows.map((row) => ({ ...row, ip_geo: { country_code: 'US' }, c: null }));
  expect(counts).toMatchObject({ lines: 20_000, found: 20_000, missing_field: 20_000 });
  expect(JSON.parse(output)).toEqual(expected);
});
