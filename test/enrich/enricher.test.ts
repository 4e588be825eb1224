/** The enrichers as streams, and lines of every kind in them. */
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createEnricher, createEnricherStream, type EnricherSizes, LineEnricher } from '../../src/enrich/enricher.js';
import { type EnrichOptions, type InvalidPolicy, parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { cut, everyByte } from '../support/chunks.js';
import { expectLines } from '../support/line-oracle.js';
import { ANY_INPUT } from '../support/nasty-lines.js';
import { releaseForTests } from '../support/open-release.js';
import { until } from '../support/serve.js';

/** Runs of each property; set it high for a long test. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 16);

const release = releaseForTests();

function optionsOf(fields: string[], onInvalid: InvalidPolicy = 'keep', add?: string): EnrichOptions {
  return { fields: parseFields(fields), add: parseAdd(add), onInvalid };
}

/** Enriches with a new enricher. */
function enrich(input: Uint8Array, options: EnrichOptions, cuts: number[] = [], sizes: EnricherSizes = {}) {
  const output: Uint8Array[] = [];
  const rejects: Uint8Array[] = [];
  const enricher = new LineEnricher(
    release.file,
    options,
    (bytes) => output.push(Uint8Array.from(bytes)),
    (bytes) => rejects.push(bytes),
    { maxLineBytes: 100_000, ...sizes },
  );
  let error: unknown;
  try {
    for (const chunk of cut(input, cuts)) enricher.write(chunk);
    enricher.end();
  } catch (thrown) {
    error = thrown;
  }
  return { output: Buffer.concat(output), rejects: Buffer.concat(rejects), counts: enricher.counts, error };
}

function enrichText(text: string, fields: string[] = [], onInvalid?: InvalidPolicy): string {
  return enrich(Buffer.from(text), optionsOf(fields, onInvalid)).output.toString();
}

const US = '{"country":"United States","country_code":"US","is_eu":false}';
const NL = '{"country":"Netherlands","country_code":"NL","is_eu":true}';

describe('a line', () => {
  // Of all kinds: the properties below.
  const cases: [what: string, line: string, expected: string, fields?: string[]][] = [
    ['gets its result last', '{"ip":"8.8.8.8","a":1}', `{"ip":"8.8.8.8","a":1,"geo":${US}}`],
    ['keeps blanks', ' { "ip" : "8.8.8.8" } ', ` { "ip" : "8.8.8.8" ,"geo":${US}} `],
    ['keeps a carriage return', '{"ip":"8.8.8.8"}\r', `{"ip":"8.8.8.8","geo":${US}}\r`],
    ['without the field', '{"a":1}', '{"a":1,"geo":null}'],
    ['with no address', '{"ip":"localhost"}', '{"ip":"localhost","geo":null}'],
    ['with an escaped address', '{"ip":"8.8.8\\u002e8"}', `{"ip":"8.8.8\\u002e8","geo":${US}}`],
    ['with the field in a string', '{"a":"\\"ip\\":\\"8.8.8.8\\""}', '{"a":"\\"ip\\":\\"8.8.8.8\\"","geo":null}'],
    ['replaces a middle member', '{"ip":"8.8.8.8", "geo":[1,{}] ,"a":2}', `{"ip":"8.8.8.8","a":2,"geo":${US}}`],
    ['replaces all of them', '{"geo":1,"a":2,"g\\u0065o":3}', '{"a":2,"geo":null}'],
    ['reads what it replaces', '{"geo":{"ip":"8.8.8.8"}}', `{"geo":${US}}`, ['geo.ip=geo']],
    ['replaces the field itself', '{"ip":"8.8.8.8"}', `{"ip":${US}}`, ['ip=ip']],
    ['with one field under two names', '{"ip":"8.8.8.8"}', `{"ip":"8.8.8.8","a":${US},"b":${US}}`, ['ip=a', 'ip=b']],
    ['with a name that needs escapes', '{"\\"é":1}', '{"\\"é":null}', ['ip="é']],
  ];
  it.each(cases)('%s', (_, line, expected, fields) => {
    expect(enrichText(line, fields)).toBe(expected);
    // Before and after other lines, at different positions in a block.
    for (const before of ['', '{}', 'x'.repeat(61), '{"a":"', '\\']) {
      expect(enrichText(`${before}\n${line}\n{}`, fields).split('\n')[1]).toBe(expected);
    }
  });

  // json-test-suite.test.ts and json-acceptance.test.ts try many more.
  const invalid = [
    '[]',
    'x',
    '{',
    '}',
    '{}{}',
    '{},',
    '{"a":1]',
    '{"a":1,}',
    '{"a":[}]',
    '{"ip":"8.8.8.8}',
    '\ufeff{}',
  ];
  it.each(invalid)('%s is not an object and is copied', (line) => {
    const { output, rejects, counts } = enrich(Buffer.from(`{}\n${line}\n{}`), optionsOf([]));
    expect(output.toString()).toBe(`{"geo":null}\n${line}\n{"geo":null}`);
    expect(rejects.toString()).toBe(`${line}\n`);
    expect(counts).toMatchObject({ lines: 3, invalid_line: 1, missing_field: 2 });
  });

  it('may have invalid UTF-8 in its strings, as for JSON.parse of the decoded text', () => {
    const line = '{"a":"\xff"}';
    const { output } = enrich(Buffer.from(line, 'latin1'), optionsOf([]));
    expect(output.toString('latin1')).toBe(`${line.slice(0, -1)},"geo":null}`);
  });

  it('can nest ten thousand levels deep, or a million', () => {
    for (const depth of [10_000, 999_999]) {
      const line = `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)},"ip":"8.8.8.8"}`;
      const sizes = { maxLineBytes: 4_000_000 };
      const { output } = enrich(Buffer.from(`${line}\n{}`), optionsOf([]), [], sizes);
      expect(output.toString()).toBe(`${line.slice(0, -1)},"geo":${US}}\n{"geo":null}`);
    }
  });

  it('that is nested too deeply is invalid, and its neighbors are not', () => {
    const line = `{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`;
    const { output, counts } = enrich(Buffer.from(`{}\n${line}\n{}`), optionsOf([]), [], { maxLineBytes: 4_000_000 });
    expect(output.toString()).toBe(`{"geo":null}\n${line}\n{"geo":null}`);
    expect(counts.invalid_line).toBe(1);
  });
});

/** Fields that use every path of finding and replacing members. */
const FIELDS = fc.constantFrom<string[][]>(
  ['ip'],
  ['client.ip'],
  ['ip', 'client.ip'],
  ['client=geo', 'client.ip=a', 'ip=b'],
  ['geo.ip=geo'],
  ['ip=ip'],
  ['a.b.ip=geo', 'a.b=x', 'a=y'],
  ['ключ=😀', 'a-key-of-more-than-eight-bytes=ip'],
  [`${'x'.repeat(80)}=geo`, '__proto__=constructor'],
);
const ADD = fc.constantFrom(undefined, 'country_code', 'reason,is_eu');

describe('any input', () => {
  it('equals the oracle for all chunks, blocks and longest lines', () => {
    fc.assert(
      fc.property(
        ANY_INPUT,
        FIELDS,
        ADD,
        fc.constantFrom<InvalidPolicy>('keep', 'keep', 'drop', 'fail'),
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(1, 7, 60, 300, 100_000),
        (input, fields, add, policy, cuts, chunkBytes, maxLineBytes) => {
          const options = optionsOf(fields, policy, add);
          const expected = expectLines(release.database, input, options, maxLineBytes);
          const actual = enrich(input, options, cuts, { chunkBytes, maxLineBytes });
          expect(actual.output.toString('latin1')).toBe(expected.output.toString('latin1'));
          expect(actual.rejects.toString('latin1')).toBe(expected.rejects.toString('latin1'));
          if (expected.failsAt === undefined) {
            expect(actual.error).toBeUndefined();
            expect(actual.counts).toEqual(expected.counts);
          } else {
            expect(actual.error).toMatchObject({ code: 'E_BAD_INPUT' });
            expect(String(actual.error)).toContain(`line ${expected.failsAt} `);
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('ends if the longest line is shorter than a byte order mark that the input begins with', () => {
    const input = Buffer.from('\ufeff{"ip":"8.8.8.8"}');
    const options = optionsOf(['ip'], 'keep', undefined);
    const { output } = enrich(input, options, [], { chunkBytes: 216, maxLineBytes: 1 });
    expect(output).toEqual(input);
  });

  it('equals the oracle for lines that differ in their values only, of one program or of several', () => {
    const templates: ((values: string[]) => string)[] = [
      ([a, b, c]) => `{"ip":${a},"n":${b},"client":${c}}`,
      ([a, b, c]) => `{"client":{"ip":${a},"port":${b}},"list":[${c}]}`,
      ([a, b, c]) => ` { "a" : ${a}, "client" : { "a-key-of-more-than-32-bytes-in-all" : ${b} , "ip" : ${c} } }\r`,
      ([a, b, c]) => `{"ip":${a},"ip":${b},"client":{"x":[{"ip":1}]},"c\\u006cient":{"ip":${c}}}`,
      ([a, b, c]) => `{"a":{"b":{"ip":${a},"x":${b}}},"geo":${c}}`,
      ([a, b, c]) => `{"${'x'.repeat(80)}":${a},"ключ":${b},"ip":${c}}`,
      // They begin like the first one, and a text between two values has 15 or 16 bytes.
      ([a, b, c]) => `{"ip":${a},"eleven-long":${b},"client":${c}}`,
      ([a, b]) => `{"ip":${a},"n":${b}}`,
      ([a, b, c]) => `{"n":${a},"client":{"port":${b}},"c":${c}}`,
    ];
    const address = fc.constantFrom('"8.8.8.8"', '"193.0.0.1"', '"2a00::1"', '"10.0.0.1"', '"::ffff:8.8.8.8"');
    const value = fc.oneof(
      { weight: 4, arbitrary: address },
      {
        weight: 2,
        arbitrary: fc.constantFrom('""', '"x"', '"8.8.8.8.8"', `"${'y'.repeat(31)}"`, `"${'é'.repeat(40)}"`),
      },
      { weight: 2, arbitrary: fc.constantFrom('0', '-1.5e7', '12345678901234567890', '0.25', 'true', 'false', 'null') },
      { weight: 1, arbitrary: fc.constantFrom('"8.8.8\\u002e8"', '"\\""', '[]', '{}', '01', '"\t"', '"', '') },
    );
    const lines = fc
      .tuple(
        fc.array(fc.constantFrom(...templates), { minLength: 1, maxLength: 4 }),
        fc.array(fc.tuple(fc.nat(3), fc.oneof(fc.tuple(address, address, address), fc.tuple(value, value, value))), {
          maxLength: 90,
          size: 'max',
        }),
      )
      .map(([chosen, all]) => Buffer.from(all.map(([n, values]) => chosen[n % chosen.length]!(values)).join('\n')));
    const sizes = fc.record({ chunkBytes: fc.constantFrom(500, 4_000, 100_000) });
    fc.assert(
      fc.property(lines, FIELDS, fc.array(fc.nat(), { maxLength: 3 }), sizes, (input, fields, cuts, size) => {
        const options = optionsOf(fields);
        const expected = expectLines(release.database, input, options);
        const actual = enrich(input, options, cuts, size);
        expect(actual.output.toString()).toBe(expected.output.toString());
        expect(actual.counts).toEqual(expected.counts);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('lines that are too long', () => {
  const sizes = { chunkBytes: 64, maxLineBytes: 200 };
  const lineOf = (length: number): string => `{"ip":"8.8.8.8","a":"${'x'.repeat(length - 23)}"}`;

  it.each([198, 199, 200, 201, 202, 250, 263, 264, 265, 1000])('%i bytes', (length) => {
    for (const end of ['', '\n', '\n{"ip":"8.8.8.8"}\n']) {
      const input = Buffer.from(`{"ip":"193.0.0.1"}\n${lineOf(length)}${end}`);
      for (const policy of ['keep', 'drop', 'fail'] as const) {
        const options = optionsOf([], policy);
        const expected = expectLines(release.database, input, options, 200);
        for (const cuts of [[], everyByte(input), [20, 219, 220, 221]]) {
          const actual = enrich(input, options, cuts, sizes);
          expect(actual.output.toString()).toBe(expected.output.toString());
          expect(actual.rejects.toString()).toBe(expected.rejects.toString());
          expect(actual.error !== undefined).toBe(expected.failsAt !== undefined);
          if (actual.error === undefined) expect(actual.counts).toEqual(expected.counts);
        }
      }
    }
  });
});

describe('createEnricher', () => {
  it('is a transform stream over chunks of any size', async () => {
    const text = '{"ip":"8.8.8.8"}\n\nx\n{"ip":"193.0.0.1"}';
    for (const size of [1, 7, 1000]) {
      const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g'))!.map((chunk) => Buffer.from(chunk));
      const enricher = createEnricher(release.database);
      const output: Buffer[] = [];
      await pipeline(Readable.from(chunks), enricher, async (source) => {
        for await (const chunk of source) output.push(chunk);
      });
      expect(Buffer.concat(output).toString()).toBe(
        `{"ip":"8.8.8.8","geo":${US}}\n\nx\n{"ip":"193.0.0.1","geo":${NL}}`,
      );
      expect(enricher.counts).toEqual({ ...enricher.counts, lines: 4, bytes: text.length, found: 2, invalid_line: 1 });
    }
  });

  it('accepts its options', async () => {
    const rejected: string[] = [];
    const enricher = createEnricher(release.database, {
      field: ['client.ip', 'ip=country'],
      add: ['country_code'],
      onInvalid: 'drop',
      onReject: (lines) => rejected.push(Buffer.from(lines).toString()),
    });
    const output = Readable.from([Buffer.from('{"client":{"ip":"8.8.8.8"},"ip":"193.0.0.1"}\n[]\n')]).pipe(enricher);
    expect(Buffer.concat(await output.toArray()).toString()).toBe(
      '{"client":{"ip":"8.8.8.8"},"ip":"193.0.0.1","client_ip_geo":{"country_code":"US"},"country":{"country_code":"NL"}}\n',
    );
    expect(rejected).toEqual(['[]\n']);
  });

  it('fails under the policy fail, naming the line', async () => {
    const enricher = createEnricher(release.database, { onInvalid: 'fail' });
    const done = pipeline(Readable.from([Buffer.from('{}\n{}\n[]\n{}\n')]), enricher, async (source) => {
      for await (const _ of source);
    });
    await expect(done).rejects.toThrow('line 3 is not a JSON object');
  });

  it('refuses options that are not valid', () => {
    expect(() => createEnricher(release.database, { field: 'a..b' })).toThrow(
      expect.objectContaining({ code: 'E_USAGE' }),
    );
    expect(() => createEnricher(release.database, { field: 'k'.repeat(1025) })).toThrow('longer than');
    const fields = Array.from({ length: 65 }, (_, index) => `f${index}`);
    expect(() => createEnricher(release.database, { field: fields })).toThrow('65 fields');
    expect(() => createEnricher(release.database, { field: Array(65).fill('a').join('.') })).toThrow(
      'more than 64 keys',
    );
    expect(() => createEnricher(release.database, { field: fields.slice(1) })).not.toThrow();
  });

  // test/soak/enrich-memory.test.ts measures two hundred.
  it('releases its memory when it ends, so that a server can use one for each request', async () => {
    const { Memory } = WebAssembly;
    const made: WeakRef<WebAssembly.Memory>[] = [];
    const areShared: boolean[] = [];
    WebAssembly.Memory = class extends Memory {
      constructor(...[descriptor]: ConstructorParameters<typeof Memory>) {
        super(descriptor);
        made.push(new WeakRef(this));
        areShared.push(descriptor.shared === true);
      }
    };
    try {
      for (let i = 0; i < 3; i++) await runOnce();
    } finally {
      WebAssembly.Memory = Memory;
    }
    // The garbage collector does not see the size of shared memories, and would let them pile up.
    expect(areShared).toEqual([false, false, false]);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await until(() => {
      collect();
      return made.every((memory) => memory.deref() === undefined);
    }, 'the end of the memories');
  });

  async function runOnce(): Promise<void> {
    const enricher = createEnricher(release.database).resume();
    enricher.end('{"ip":"8.8.8.8"}\n');
    await once(enricher, 'end');
  }

  it('is a web stream, too', async () => {
    const stream = createEnricherStream(release.database);
    const source = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of ['{"ip":', '"8.8.8.8"}\n{', '}']) controller.enqueue(Buffer.from(part));
        controller.close();
      },
    });
    const parts: Uint8Array[] = [];
    for await (const part of source.pipeThrough(stream)) parts.push(part);
    expect(Buffer.concat(parts).toString()).toBe(`{"ip":"8.8.8.8","geo":${US}}\n{"geo":null}`);
    expect(stream.counts.lines).toBe(2);
  });

  it('fails as a web stream if a chunk is not a Uint8Array', async () => {
    const stream = createEnricherStream(release.database);
    const writer = stream.writable.getWriter();
    const reading = stream.readable.getReader().read();
    await expect(writer.write(new ArrayBuffer(8) as unknown as Uint8Array)).rejects.toThrow(/not a Uint8Array/);
    await expect(reading).rejects.toThrow(/not a Uint8Array/);
    expect(stream.counts.bytes).toBe(0);
  });
});
