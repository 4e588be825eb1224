/** `--schema`: the field names of other systems, compared with results that are put into parsed objects. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BlockEnricherOptions, createBlockEnricher } from '../../src/enrich/block-enricher.js';
import type { Addable } from '../../src/enrich/members.js';
import { membersOf, SCHEMA_NAMES, type SchemaName, schemaPath } from '../../src/enrich/members.js';
import { packageFile } from '../../src/package-root.js';
import { releaseForTests } from '../support/open-release.js';

/** Times each property is tried; set it high for a long test. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 50);

const release = releaseForTests();

function enrich(text: string, options: BlockEnricherOptions): string {
  return Buffer.from(createBlockEnricher(release.database, options).enrichBlock(Buffer.from(text))).toString();
}

describe('the names', () => {
  it.each(SCHEMA_NAMES)('of %s are fields of the convention', (schema) => {
    const fields = readFileSync(packageFile(`test/enrich/fixtures/${schema}-fields.txt`), 'utf8').split('\n');
    const names = membersOf(schema).map((member) => schemaPath(schema, member).join('.'));
    // OpenTelemetry's `geo` attributes are used in any namespace.
    const known = (root: string, name: string) =>
      fields.includes(`${root}.${name}`) || (schema === 'otel' && name.startsWith('geo.') && fields.includes(name));
    const unknown = ['client', 'destination', 'server', 'source'].flatMap((root) =>
      names.filter((name) => !known(root, name)).map((name) => `${root}.${name}`),
    );
    expect(unknown).toEqual([]);
    expect(names.length).toBeGreaterThan(2);
  });
});

describe('--schema', () => {
  it.each<[options: BlockEnricherOptions, input: string, output: string]>([
    [
      { schema: 'ecs' },
      '{"ip":"8.8.8.8"}\n',
      '{"ip":"8.8.8.8","source":{"geo":{"country_name":"United States","country_iso_code":"US"}}}\n',
    ],
    [{ schema: 'otel' }, '{"ip":"8.8.8.8"}\n', '{"ip":"8.8.8.8","source":{"geo":{"country":{"iso_code":"US"}}}}\n'],
    [
      { schema: 'otel', field: 'client.ip=client', add: ['address', 'continent', 'country_code'] },
      '{"client":{"ip":"8.8.8.8","port":1}}\n',
      '{"client":{"ip":"8.8.8.8","port":1,"address":"8.8.8.8","geo":{"continent":{"code":"NA"},"country":{"iso_code":"US"}}}}\n',
    ],
    [
      { schema: 'ecs', add: ['country_code', 'address'] },
      '{ "ip" : "8.8.8.8", "source" : { "ip" : "::" , "geo" : { "city_name" : "X", "country_iso_code" : "DE" } } }\r\n',
      '{ "ip" : "8.8.8.8", "source" : { "geo" : { "city_name" : "X","country_iso_code":"US"} ,"ip":"8.8.8.8"}}\r\n'.replace(
        '"8.8.8.8"}}',
        '"8.8.8.8"} }',
      ),
    ],
    // No address: nothing is known, and nothing changes. No country: nulls.
    [
      { schema: 'ecs' },
      '{"ip":"x","source":{"geo":{"city_name":"X"}}}\n{}\n',
      '{"ip":"x","source":{"geo":{"city_name":"X"}}}\n{}\n',
    ],
    [
      { schema: 'ecs' },
      '{"ip":"10.0.0.1"}\n',
      '{"ip":"10.0.0.1","source":{"geo":{"country_name":null,"country_iso_code":null}}}\n',
    ],
    [
      { schema: 'otel' },
      '{"ip":"8.8.8.8","source":{"geo":null}}',
      '{"ip":"8.8.8.8","source":{"geo":{"country":{"iso_code":"US"}}}}',
    ],
    [
      { schema: 'otel', format: 'json' },
      '[\n  {\n    "ip": "8.8.8.8",\n    "source": {\n      "port": 1\n    }\n  }\n]\n',
      '[\n  {\n    "ip": "8.8.8.8",\n    "source": {\n      "port": 1,\n      "geo":{"country":{"iso_code":"US"}}\n    }\n  }\n]\n',
    ],
    [
      { schema: 'otel', format: 'json' },
      '[\n  {\n    "ip": "8.8.8.8"\n  }\n]\n',
      '[\n  {\n    "ip": "8.8.8.8",\n    "source":{"geo":{"country":{"iso_code":"US"}}}\n  }\n]\n',
    ],
    [
      { schema: 'otel', field: ['a.ip=a', 'b=c\\"d'] },
      '{"a":{"ip":"8.8.8.8"},"b":"193.0.6.139"}\n{"b":"8.8.8.8"}\n',
      '{"a":{"ip":"8.8.8.8","geo":{"country":{"iso_code":"US"}}},"b":"193.0.6.139","c\\\\\\"d":{"geo":{"country":{"iso_code":"NL"}}}}\n' +
        '{"b":"8.8.8.8","c\\\\\\"d":{"geo":{"country":{"iso_code":"US"}}}}\n',
    ],
  ])('%j', (options, input, output) => {
    expect(enrich(input, options)).toBe(output);
  });

  const add = {
    ecs: ['country', 'continent', 'country_code'],
    otel: ['continent', 'country_code'],
  } as const satisfies Record<SchemaName, readonly Addable[]>;

  it.each(SCHEMA_NAMES)('%s equals results put into parsed objects', (schema) => {
    const key = fc.constantFrom(
      'ip',
      'source',
      'geo',
      'country',
      'iso_code',
      'country_iso_code',
      'code',
      'continent',
      'x',
    );
    const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('8.8.8.8', '10.0.0.1', 'text', 1, null, true, [], [{ geo: 1 }]),
        tie('object'),
      ),
      object: fc.dictionary(key, tie('value'), { maxKeys: 4 }) as fc.Arbitrary<Record<string, unknown>>,
    }));
    const enricher = createBlockEnricher(release.database, { schema, add: add[schema] });
    fc.assert(
      fc.property(fc.array(object, { minLength: 1, maxLength: 30 }), (objects) => {
        const input = objects.map((line) => `${JSON.stringify(line)}\n`).join('');
        const lines = Buffer.from(enricher.enrichBlock(Buffer.from(input)))
          .toString()
          .trimEnd()
          .split('\n');
        expect(lines.map((line) => JSON.parse(line))).toEqual(objects.map((line) => expected(schema, line)));
      }),
      { numRuns: RUNS },
    );
  });

  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);

  function expected(schema: SchemaName, line: Record<string, unknown>): unknown {
    const result = typeof line.ip === 'string' ? release.database.lookup(line.ip) : undefined;
    if (result === undefined || (Object.hasOwn(line, 'source') && !isObject(line.source))) return line;
    const copy = structuredClone(line);
    const values = { ...result, continent: { US: 'NA' }[result.country_code ?? ''] ?? null };
    for (const member of add[schema]) {
      let place: Record<string, unknown> = copy;
      const path = ['source', ...schemaPath(schema, member)];
      for (const step of path.slice(0, -1)) {
        if (!Object.hasOwn(place, step) || !isObject(place[step])) place[step] = {};
        place = place[step] as Record<string, unknown>;
      }
      place[path.at(-1)!] = values[member];
    }
    return copy;
  }

  it('treats a line with another value in place of the object by the policy, and says why', () => {
    const input =
      '{"ip":"8.8.8.8"}\n{"ip":"8.8.8.8","source":"web"}\n{"ip":"8.8.8.8","source":{},"source":[]}\n{"source":1}\n';
    const rejects: string[] = [];
    const enricher = createBlockEnricher(release.database, {
      schema: 'otel',
      onInvalid: 'drop',
      onReject: (lines) => rejects.push(Buffer.from(lines).toString()),
    });
    const output = Buffer.from(enricher.enrichBlock(Buffer.from(input))).toString();
    expect(output).toBe('{"ip":"8.8.8.8","source":{"geo":{"country":{"iso_code":"US"}}}}\n{"source":1}\n');
    expect(rejects.join('')).toBe('{"ip":"8.8.8.8","source":"web"}\n{"ip":"8.8.8.8","source":{},"source":[]}\n');
    expect(enricher.counts).toMatchObject({ lines: 4, invalid_line: 2, found: 1, missing_field: 1 });
    expect(enrich(input, { schema: 'otel' }).split('\n')[1]).toBe('{"ip":"8.8.8.8","source":"web"}');
    const problem = 'has another value than an object at "source", where the results go';
    expect(() => enrich(input, { schema: 'otel', onInvalid: 'fail' })).toThrow(`line 2 ${problem}`);
    const items = '[{"ip":"8.8.8.8"},{"ip":"8.8.8.8","source":"web"}]';
    expect(() => enrich(items, { schema: 'otel', format: 'json', onInvalid: 'fail' })).toThrow(`item 2 ${problem}`);
    expect(enrich(items, { schema: 'otel', format: 'json', onInvalid: 'drop' })).toBe(
      '[{"ip":"8.8.8.8","source":{"geo":{"country":{"iso_code":"US"}}}}]',
    );
  });

  it.each<[options: BlockEnricherOptions, message: string]>([
    [{ schema: 'ocsf' as SchemaName }, 'the option schema is "ocsf"; it can be ecs, otel'],
    [{ schema: 'ecs', format: 'csv' }, 'the option schema requires the option format jsonl, json or json-seq'],
    [
      { schema: 'ecs', add: ['is_eu'] },
      'ecs has no field for is_eu; it has fields for country, country_code, continent',
    ],
    [{ schema: 'otel', field: ['a', 'b'] }, 'two fields would write to "source"'],
  ])('refuses %j', (options, message) => {
    expect(() => enrich('', options)).toThrow(message);
  });
});
