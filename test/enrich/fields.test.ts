/** Fields in arrays, results in inner objects, and addresses in other text: JSON lines and JSON documents. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BlockEnricher,
  type BlockEnricherOptions,
  createBlockEnricher,
  createMessageEnricher,
} from '../../src/enrich/block-enricher.js';
import { type KernelInput, PICKS, parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { findAddress } from '../support/lenient-twin.js';
import { expectLines } from '../support/line-oracle.js';
import { DECORATED_LIST } from '../support/nasty-addresses.js';
import { ANY_LINE, fieldLines } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';

/** Runs of each property; set it high for a long test. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 16) / 2);

const release = releaseForTests();

function optionsOf(field: readonly string[], lenient: boolean) {
  return { fields: parseFields(field), add: parseAdd('country_code'), onInvalid: 'keep' as const, lenient };
}

/** The enrichers by field and options, because to make one takes longer than to use it. */
const enrichers = new Map<string, BlockEnricher>();

/** Enriches lines with the kernel. */
function enrichLines(input: string, field: readonly string[], options: BlockEnricherOptions = {}): string {
  const key = JSON.stringify([field, options]);
  const enricher =
    enrichers.get(key) ?? createBlockEnricher(release.database, { field, add: ['country_code'], ...options });
  enrichers.set(key, enricher);
  return Buffer.from(enricher.enrichBlock(Buffer.from(input, 'latin1'))).toString('latin1');
}

/** Enriches one object as the item of a document. */
function enrichItem(item: string, field: readonly string[], lenient = false): string {
  return enrichLines(`[${item}]`, field, { format: 'json', lenient }).slice(1, -1);
}

/** For each case: fields, an object, and the same object with the results. */
const CASES: [fields: string[], object: string, expected: string][] = [
  [['hops[0]'], '{"hops":["8.8.8.8","10.0.0.1"]}', '{"hops":["8.8.8.8","10.0.0.1"],"geo":{"country_code":"US"}}'],
  [['hops[1]'], '{"hops":["8.8.8.8"]}', '{"hops":["8.8.8.8"],"geo":null}'],
  [['hops[0]'], '{"hops":"8.8.8.8"}', '{"hops":"8.8.8.8","geo":null}'],
  [
    ['hops[]'],
    '{"hops":["10.0.0.1",5,"8.8.8.8","193.0.0.1"]}',
    '{"hops":["10.0.0.1",5,"8.8.8.8","193.0.0.1"],"geo":{"country_code":"US"}}',
  ],
  [['hops[]'], '{"hops":["x","10.0.0.1"]}', '{"hops":["x","10.0.0.1"],"geo":{"country_code":null}}'],
  [['hops[]'], '{"hops":[]}', '{"hops":[],"geo":null}'],
  [
    ['a[].b[1].ip'],
    '{"a":[{"b":[]},{"b":[0,{"ip":"8.8.8.8"}]}]}',
    '{"a":[{"b":[]},{"b":[0,{"ip":"8.8.8.8"}]}],"geo":{"country_code":"US"}}',
  ],
  [['m[0][1]'], '{"m":[["x","8.8.8.8"]]}', '{"m":[["x","8.8.8.8"]],"geo":{"country_code":"US"}}'],
  [
    ['a[].ip'],
    '{"a":[{"ip":"8.8.8.8","ip":"10.0.0.1"}]}',
    '{"a":[{"ip":"8.8.8.8","ip":"10.0.0.1"}],"geo":{"country_code":null}}',
  ],
  [['tags\\[0\\]'], '{"tags[0]":"8.8.8.8"}', '{"tags[0]":"8.8.8.8","geo":{"country_code":"US"}}'],
  [
    ['client.ip=client.geo'],
    '{"client":{"ip":"8.8.8.8"},"b":1}',
    '{"client":{"ip":"8.8.8.8","geo":{"country_code":"US"}},"b":1}',
  ],
  [
    ['client.ip=client.geo'],
    '{"client":{"geo":{"x":1},"ip":"8.8.8.8"}}',
    '{"client":{"ip":"8.8.8.8","geo":{"country_code":"US"}}}',
  ],
  [
    ['client.ip=client.geo'],
    '{"client":{"ip":"8.8.8.8","geo":1}}',
    '{"client":{"ip":"8.8.8.8","geo":{"country_code":"US"}}}',
  ],
  [['client.ip=client.geo'], '{"client":{"geo":1}}', '{"client":{"geo":null}}'],
  [['client.ip=client.geo'], '{"client":{}}', '{"client":{"geo":null}}'],
  [['client.ip=client.geo'], '{"client":"8.8.8.8"}', '{"client":"8.8.8.8"}'],
  [['client.ip=client.geo'], '{"client":[{"ip":"8.8.8.8"}]}', '{"client":[{"ip":"8.8.8.8"}]}'],
  [['client.ip=client.geo'], '{}', '{}'],
  [
    ['client.ip=client.geo'],
    '{"client":{"ip":"8.8.8.8"},"client":{"b":1}}',
    '{"client":{"ip":"8.8.8.8"},"client":{"b":1,"geo":null}}',
  ],
  [['client.ip=client.geo'], '{"client":{"ip":"8.8.8.8"},"client":5}', '{"client":{"ip":"8.8.8.8"},"client":5}'],
  [['client.ip=client.ip'], '{"client":{"ip":"8.8.8.8","b":1}}', '{"client":{"b":1,"ip":{"country_code":"US"}}}'],
  [
    ['a.ip=a.geo', 'a.b.ip=a.b.geo', 'a.b.ip=a.inner', 'ip'],
    '{"a":{"b":{"ip":"8.8.8.8"},"ip":"193.0.0.1"},"ip":"x"}',
    '{"a":{"b":{"ip":"8.8.8.8","geo":{"country_code":"US"}},"ip":"193.0.0.1","geo":{"country_code":"NL"},"inner":{"country_code":"US"}},"ip":"x","ip_geo":null}',
  ],
];

describe('fields in arrays and results in inner objects', () => {
  it.each(CASES)('%j of %s', async (fields, object, expected) => {
    expect(enrichLines(`${object}\n`, fields)).toBe(`${expected}\n`);
    expect(enrichItem(object, fields)).toBe(expected);
  });

  const FIELDS = [
    ['a[]', 'a[0]=x'],
    ['a[].ip=geo', 'ip=b'],
    ['client.a[1]=client.geo', 'client.ip=client.b'],
    ['client.ip=client.geo', 'client.client.ip=client.client.geo', 'ip'],
    ['client.client.a[]=client.geo', 'a[][]=ip_geo'],
  ];

  it.each(FIELDS.flatMap((field) => [false, true].map((lenient) => ({ field, lenient }))))(
    'in lines are enriched as by the oracle: $field, lenient $lenient',
    ({ field, lenient }) => {
      const line = fc.oneof({ weight: 3, arbitrary: fieldLines(lenient) }, { weight: 1, arbitrary: ANY_LINE });
      fc.assert(
        fc.property(fc.array(line, { minLength: 1, maxLength: 12 }), fc.constantFrom(...PICKS), (lines, pick) => {
          const input = lines.join('\n');
          const options = { ...optionsOf(field, lenient), add: parseAdd('country_code,address'), pick };
          const expected = expectLines(release.database, Buffer.from(input, 'latin1'), options);
          const actual = enrichLines(input, field, { lenient, pick, add: options.add });
          expect(actual).toBe(expected.output.toString('latin1'));
        }),
        { numRuns: RUNS },
      );
    },
  );

  it.each(FIELDS.flatMap((field) => [false, true].map((lenient) => ({ field, lenient }))))(
    'in documents have the meaning that they have in lines: $field, lenient $lenient',
    async ({ field, lenient }) => {
      await fc.assert(
        fc.asyncProperty(fieldLines(lenient), async (line) => {
          const expected = enrichLines(line, field, { lenient });
          const item = Buffer.from(line, 'latin1').toString();
          expect(JSON.parse(enrichItem(item, field, lenient))).toEqual(
            JSON.parse(Buffer.from(expected, 'latin1').toString()),
          );
        }),
        { numRuns: Math.ceil(RUNS / 4) },
      );
    },
  );

  it('puts one result into the last of many inner objects with the same key, and as often as it fits', () => {
    const line = `{${'"client":{"ip":"8.8.8.8"},'.repeat(20_000)}"x":[${'"10.0.0.1",'.repeat(20_000)}"8.8.8.8"]}`;
    const output = enrichLines(line, ['client.ip=client.geo', 'x[]=last']);
    const { client, last } = JSON.parse(output);
    expect(client.geo).toEqual({ country_code: 'US' });
    expect(last).toEqual({ country_code: 'US' });
    expect(output.match(/geo/g)).toHaveLength(1);
  });
});

describe('a field with several places', () => {
  const CSV = { format: 'csv' } as const;
  it.each<[BlockEnricherOptions, string, string]>([
    [{ field: 'a|b' }, '{"a":"x","b":"8.8.8.8"}', '{"a":"x","b":"8.8.8.8","geo":{"country_code":"US"}}'],
    [
      { field: ['a.x|b.x', 'b.x'] },
      '{"b":{"x":"8.8.8.8"}}',
      '{"b":{"x":"8.8.8.8"},"a_x_geo":{"country_code":"US"},"b_x_geo":{"country_code":"US"}}',
    ],
    [{ field: 'a\\|b' }, '{"a|b":"8.8.8.8"}', '{"a|b":"8.8.8.8","geo":{"country_code":"US"}}'],
    [
      { ...CSV, field: 'a|b' },
      'a,b\n,8.8.8.8\n10.0.0.1,8.8.8.8\n',
      'a,b,geo_country_code\n,8.8.8.8,US\n10.0.0.1,8.8.8.8,\n',
    ],
    [{ ...CSV, field: 'b|a' }, 'a,c\n8.8.8.8,\n', 'a,c,geo_country_code\n8.8.8.8,,US\n'],
    [{ ...CSV, field: '2|1', header: false }, 'x,8.8.8.8\n8.8.8.8,x\n', 'x,8.8.8.8,US\n8.8.8.8,x,US\n'],
    [{ format: 'logfmt', field: 'a|b' }, 'b=8.8.8.8 a=-\n', 'b=8.8.8.8 a=- a_country_code=US\n'],
    [
      { format: 'w3c', field: 'a|b' },
      '#Fields: b c\n8.8.8.8 -\n#Fields: a b\n- 8.8.8.8\n',
      '#Fields: b c geo_country_code\n8.8.8.8 - US\n#Fields: a b geo_country_code\n- 8.8.8.8 US\n',
    ],
  ])('%j of %j', (options, input, expected) => {
    const enricher = createBlockEnricher(release.database, { add: ['country_code'], ...options });
    expect(Buffer.from(enricher.enrichBlock(Buffer.from(input))).toString()).toBe(expected);
  });

  it('that the table does not have is refused', () => {
    const enricher = createBlockEnricher(release.database, { ...CSV, field: 'x|y' });
    expect(() => enricher.enrichBlock(Buffer.from('a\n'))).toThrow(/has no column "x\|y"; its columns are a/);
  });

  it('has the result of the first of them that has an address', () => {
    const places = ['a', 'client.ip', 'a[]', 'ip', 'client.a[1]'];
    const settings = fc.record({ lenient: fc.boolean(), pick: fc.constantFrom(...PICKS) });
    const lines = fc.array(fieldLines(true), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.shuffledSubarray(places, { minLength: 2 }), lines, settings, (paths, texts, options) => {
        const all = { ...options, add: ['country_code', 'address'] };
        const outputs = paths.map((path) => enrichLines(texts.join('\n'), [`${path}=r`], all).split('\n'));
        const expected = outputs[0]!.map(
          (none, at) => outputs.map((output) => output[at]!).find((line) => !line.endsWith('"r":null}')) ?? none,
        );
        expect(enrichLines(texts.join('\n'), [`${paths.join('|')}=r`], all).split('\n')).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('addresses in other text', () => {
  it('are found by the kernel if and only if the library finds them', () => {
    fc.assert(
      fc.property(fc.array(DECORATED_LIST, { minLength: 1, maxLength: 40 }), (texts) => {
        const lines = texts.map((text) => `${JSON.stringify({ ip: text })}\n`).join('');
        const expected = texts.map((text) => {
          const address = findAddress(text);
          const result = address === undefined ? undefined : release.database.lookup(address);
          return `${JSON.stringify({ ip: text, geo: result === undefined ? null : { country_code: result.country_code } })}\n`;
        });
        expect(enrichLines(lines, ['ip'], { lenient: true })).toBe(expected.join(''));
      }),
      { numRuns: RUNS },
    );
  });

  it('are not found without the option', () => {
    expect(enrichLines('{"ip":"8.8.8.8:53"}\n{"ip":"8.8.8.8"}\n', ['ip'])).toBe(
      '{"ip":"8.8.8.8:53","geo":null}\n{"ip":"8.8.8.8","geo":{"country_code":"US"}}\n',
    );
  });

  it.each<[input: KernelInput, text: string, expected: string]>([
    [
      { kind: 'table', delimiter: ',', hasHeader: true },
      'ip,a\n8.8.8.8:53,1\n"unknown, 10.0.0.1",2\n"[2a00::1]:443",3\n',
      'ip,a,geo_country_code\n8.8.8.8:53,1,US\n"unknown, 10.0.0.1",2,\n"[2a00::1]:443",3,DE\n',
    ],
    [{ kind: 'list' }, '8.8.8.8/8\nunknown, 8.8.8.8\nx\n', '8.8.8.8/8\tUS\nunknown, 8.8.8.8\tUS\nx\t\n'],
    [{ kind: 'combined' }, '8.8.8.8:53 - - "GET /"\n', '8.8.8.8:53 - - "GET /" "US"\n'],
  ])('are found in cells and lines of %j', (input, text, expected) => {
    const enricher = createMessageEnricher(release.database, { ...optionsOf([], true), input });
    expect(Buffer.from(enricher.enrichBlock(Buffer.from(text))).toString()).toBe(expected);
  });

  it('may be written with escapes, and are searched up to a length', () => {
    const found = (text: string) => enrichLines(`{"ip":"${text}"}`, ['ip'], { lenient: true }).includes('US');
    expect(found('8.8.8.8\\/32')).toBe(true);
    expect(found('unknown\\u002c 8.8.8.8')).toBe(true);
    expect(found(`${'x,'.repeat(4092)}8.8.8.8`)).toBe(true);
    expect(found(`${'x,'.repeat(4093)}8.8.8.8`)).toBe(false);
    expect(found(`\\u0078${'x,'.repeat(4092)}8.8.8.8`)).toBe(true);
    expect(found(`\\u0078${'x,'.repeat(4093)}8.8.8.8`)).toBe(false);
  });
});

describe('options that are not valid', () => {
  it.each([
    ['hops[1000000]', /misplaced element/],
    ['[0]', /misplaced element/],
    ['a[0]b', /misplaced element/],
    ['a.[0]', /misplaced element/],
    ['a=b[0]', /neither a top-level key nor in an object of its path/],
    ['a.ip=b.geo', /neither a top-level key nor in an object of its path/],
    ['ip=ip.geo', /neither a top-level key nor in an object of its path/],
    ['a[0].ip=a.geo', /neither a top-level key nor in an object of its path/],
    ['a.ip|b.ip=a.geo', /neither a top-level key nor in an object of its path/],
    ['a||b', /has an empty key/],
  ])('%s', (field, message) => {
    expect(() => enrichLines('', [field])).toThrow(
      expect.objectContaining({ code: 'E_USAGE', message: expect.stringMatching(message) }),
    );
  });

  it('are names of columns in a table', () => {
    expect(parseFields(['a.b=x.y[0]'], 'csv')).toEqual([
      { path: ['a', 'b'], others: [], resultPath: ['x.y[0]'], name: 'x.y[0]' },
    ]);
    expect(() => parseFields(['a.b='], 'csv')).toThrow(expect.objectContaining({ code: 'E_USAGE' }));
  });

  it('are two results in one place', () => {
    expect(() => parseFields(['a.b=a.geo', 'a.c=a.geo'])).toThrow(/two fields would write to "a.geo"/);
    expect(() => parseFields(['ip=a', 'a.b=a.geo'])).toThrow(/"a.geo" would be inside "a", which another field writes/);
  });

  it('is a value of lenient that is not a boolean', () => {
    expect(() => createBlockEnricher(release.database, { lenient: 'yes' as unknown as boolean })).toThrow(
      expect.objectContaining({ code: 'E_USAGE' }),
    );
  });
});
