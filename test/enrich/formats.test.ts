/** Examples of lists, tables and JSON documents. */
import { describe, expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import { type InvalidPolicy, parseFields } from '../../src/enrich/options.js';
import { MAX_CSV_RECORD_BYTES, MAX_JSON_ITEM_BYTES } from '../../src/limits.js';
import { parseAdd } from '../support/add.js';
import { cut, everyByte, stream } from '../support/chunks.js';
import {
  CSV,
  documentAt,
  engineFormat,
  type FormatContext,
  type FormatEnricher,
  LIST,
} from '../support/engine-format.js';
import { releaseForTests } from '../support/open-release.js';

const release = releaseForTests();

interface Settings {
  fields?: string[];
  add?: string;
  onInvalid?: InvalidPolicy;
  items?: string[];
}
type MakeFormat = (context: FormatContext, settings: Settings) => FormatEnricher;

const csv: MakeFormat = (context) => engineFormat(context, CSV);
/** With the real limit of a record. */
const csvAsShipped: MakeFormat = (context) => engineFormat(context, CSV, { maxLineBytes: MAX_CSV_RECORD_BYTES });
const json: MakeFormat = (context, { items }) => engineFormat(context, documentAt(...(items ?? [])));
const list: MakeFormat = (context) => engineFormat(context, LIST);

function start(make: MakeFormat, settings: Settings) {
  const counts = emptyCounts();
  const rejects: Uint8Array[] = [];
  const options = {
    fields: parseFields(settings.fields ?? []),
    add: parseAdd(settings.add),
    onInvalid: settings.onInvalid ?? 'keep',
  };
  const format = make(
    { database: release.database, options, counts, reject: (record) => rejects.push(record) },
    settings,
  );
  return { format, counts, rejected: () => Buffer.concat(rejects).toString() };
}

async function collect(format: FormatEnricher, chunks: Uint8Array[], name = 'input'): Promise<Buffer> {
  const out: Uint8Array[] = [];
  for await (const piece of format.enrich(name, stream(chunks))) out.push(piece);
  return Buffer.concat(out);
}

async function enrich(make: MakeFormat, input: string, settings: Settings = {}, positions?: number[]) {
  const { format, counts, rejected } = start(make, settings);
  const output = (await collect(format, cut(Buffer.from(input), positions))).toString();
  return { output, counts, rejected: rejected() };
}

it('blank lines before a header are copied', async () => {
  const blank = '\n\r\n'.repeat(200);
  const { output, counts } = await enrich(csv, `${blank}ip\n8.8.8.8\n`, { add: 'country_code' });
  expect(output).toBe(`${blank}ip,geo_country_code\n8.8.8.8,US\n`);
  expect(counts.lines).toBe(401);
  expect((await enrich(csv, blank)).output).toBe(blank);
});

describe('a list', () => {
  it('adds the requested values, and counts', async () => {
    const { output, counts } = await enrich(list, '8.8.8.8\n10.0.0.1\nx\n\n', { add: 'reason,country_code' });
    expect(output).toBe('8.8.8.8\t\tUS\n10.0.0.1\tprivate\t\nx\t\t\n\n');
    expect(counts).toMatchObject({ lines: 4, found: 1, no_country: 1, invalid_address: 1, missing_field: 0 });
  });
});

describe('a table', () => {
  const HEADER = 'id,ip,name\n';
  const WITH_GEO = 'id,ip,name,geo_country,geo_country_code,geo_is_eu\n';

  it('accepts several fields and columns with dots, and quotes a column name if necessary', async () => {
    const { output, counts } = await enrich(csv, 'src.ip,dst\n8.8.8.8,::1\n', {
      fields: ['src.ip', 'dst=to, maybe'],
      add: 'country_code,reason',
    });
    expect(output).toBe(
      'src.ip,dst,src_ip_geo_country_code,src_ip_geo_reason,"to, maybe_country_code","to, maybe_reason"\n' +
        '8.8.8.8,::1,US,,,loopback\n',
    );
    expect(counts).toMatchObject({ lines: 1, found: 1, no_country: 1 });
  });

  it('fails at the first record that does not match the header, after those before it', async () => {
    const { format, rejected } = start(csv, { onInvalid: 'fail' });
    const output: string[] = [];
    async function* source() {
      yield Buffer.from(`${HEADER}1,"8\n8",x\n2,8.8.8.8,x\n3\n4,8.8.8.8,x\n`);
    }
    async function read() {
      for await (const piece of format.enrich('logs.csv', source())) output.push(Buffer.from(piece).toString());
    }
    await expect(read()).rejects.toMatchObject({
      code: 'E_BAD_INPUT',
      message:
        'logs.csv, line 5: the record has 1 cells, but the header 3; fix it, or choose the policy keep or drop for such lines',
    });
    expect(output.join('')).toBe(`${WITH_GEO}1,"8\n8",x,,,\n2,8.8.8.8,x,United States,US,false\n`);
    expect(rejected()).toBe('3\n');
  });

  it.each([
    ['no such column', 'a,b\n', /input has no column "ip"; its columns are a, b\./],
    ['another delimiter', 'ip;name\n', /its columns are ip;name\. If these are several columns, .*--delimiter/],
    ['the column twice', 'ip,ip\n', /more than one column "ip"/],
    ['a column of ours', 'ip,geo_is_eu\n', /already has a column "geo_is_eu"/],
  ])('refuses a header with %s', async (_, input, message) => {
    await expect(enrich(csv, input)).rejects.toMatchObject({
      code: 'E_USAGE',
      message: expect.stringMatching(message),
    });
  });

  it('refuses a header that cannot be read', async () => {
    await expect(enrich(csv, '"ip\n')).rejects.toMatchObject({ code: 'E_BAD_INPUT' });
  });

  it('skips only the line of a quote that is not closed', async () => {
    const filler = `${'x'.repeat(991)},8.8.8.8\n`.repeat(MAX_CSV_RECORD_BYTES / 1000 + 100);
    const { output, counts } = await enrich(csvAsShipped, `id,ip\n1,"8.8.8.8\n${filler}2,::1\n`);
    expect(output.startsWith('id,ip,geo_country,geo_country_code,geo_is_eu\n1,"8.8.8.8\nxxx')).toBe(true);
    expect(output.endsWith('\n2,::1,,,false\n')).toBe(true);
    expect(counts).toMatchObject({ invalid_line: 1, no_country: 1, found: filler.length / 1000 });
  });

  it('passes on a line that is too long for memory', async () => {
    const long = `"${'y'.repeat(MAX_CSV_RECORD_BYTES * 2)}`;
    const { format, counts, rejected } = start(csvAsShipped, {});
    const input = Buffer.from(`id,ip\n${long}\n2,8.8.8.8\n`);
    const positions = Array.from({ length: input.length / 1_000_000 }, (_, index) => index * 1_000_000);
    const output = (await collect(format, cut(input, positions))).toString();
    expect(output).toBe(`id,ip,geo_country,geo_country_code,geo_is_eu\n${long}\n2,8.8.8.8,United States,US,false\n`);
    expect(counts).toMatchObject({ lines: 2, invalid_line: 1, found: 1 });
    expect(rejected()).toBe(`${long}\n`);
  });
});

describe('a JSON document', () => {
  const US = '"geo":{"country":"United States","country_code":"US","is_eu":false}';

  it.each<[string, string, string, Settings?]>([
    [
      'an indented object',
      '[\n  {\n    "ip": "8.8.8.8"\n  }\n]\n',
      `[\n  {\n    "ip": "8.8.8.8",\n    ${US}\n  }\n]\n`,
    ],
    ['a byte order mark', '\ufeff[{"ip":"8.8.8.8"}]', `\ufeff[{"ip":"8.8.8.8",${US}}]`],
    [
      'an array inside',
      '{"n":1,"data":{"x":[{"ip":"8.8.8.8"}],"rows":[{"ip":"8.8.8.8"}]},"ip":"8.8.8.8"} ',
      `{"n":1,"data":{"x":[{"ip":"8.8.8.8"}],"rows":[{"ip":"8.8.8.8",${US}}]},"ip":"8.8.8.8"} `,
      { items: ['data', 'rows'] },
    ],
    ['an array inside, not the one in another array', '[{"rows":[{}]}, {"rows":[{}]}]', '', { items: ['rows'] }],
    [
      'a key twice inside, the first no array',
      '{"rows":1,"rows":[{}]}',
      '{"rows":1,"rows":[{"geo":null}]}',
      { items: ['rows'] },
    ],
    ['the array twice', '{"rows":[{}],"rows":[{}]}', '', { items: ['rows'] }],
    ['a parent of the array twice', '{"a":{"rows":[{}]},"a":1}', '', { items: ['a', 'rows'] }],
  ])('%s', async (_, input, expected, settings = {}) => {
    if (expected === '') {
      await expect(enrich(json, input, settings)).rejects.toMatchObject({ code: 'E_BAD_INPUT' });
      return;
    }
    expect((await enrich(json, input, settings)).output).toBe(expected);
    const { format } = start(json, settings);
    expect((await collect(format, cut(Buffer.from(input), everyByte(Buffer.from(input))))).toString()).toBe(expected);
  });

  it('counts, and reports rejected items', async () => {
    const { counts, rejected } = await enrich(json, '[1,{"ip":"8.8.8.8"},{"ip":"::1"},{"ip":1},{},[2, 3]]');
    expect(counts).toMatchObject({
      lines: 6,
      found: 1,
      no_country: 1,
      invalid_address: 1,
      missing_field: 1,
      invalid_line: 2,
      missing_date: 0,
      damaged_history: 0,
    });
    expect(rejected).toBe('1\n[2, 3]\n');
  });

  it('fails at the first item that is not an object', async () => {
    await expect(enrich(json, '[{},\n{},\n [7]]', { onInvalid: 'fail' })).rejects.toMatchObject({
      code: 'E_BAD_INPUT',
      message: 'input, line 3, byte 11: item 3 is not an object; repair it there',
    });
  });

  it.each([
    ['', 'line 1, byte 1: there is no JSON document'],
    [' \n', 'line 2, byte 3: there is no JSON document'],
    ['[{"ip":"8.8.8.8"}', 'line 1, byte 18: the document ends in the middle'],
    ['["8.8', 'line 1, byte 6: the document ends in the middle'],
    ['[\n{"a":1,}]', "line 2, byte 10: not valid JSON: unexpected token '}'"],
    ['[{"a" 1}]', "line 1, byte 7: not valid JSON: expected ':'"],
    ['[1 2]', "line 1, byte 4: not valid JSON: expected ','"],
    ['[{}}', "line 1, byte 4: not valid JSON: expected ']'"],
    ['[tru]', 'line 1, byte 2: not valid JSON: expected a value'],
    ['["\\x"]', 'line 1, byte 3: not valid JSON: escaped characters'],
    ['[[[{"a":[1,"\u0001"]}]]]', 'line 1, byte 13: not valid JSON: escaped characters'],
    ['[] []', 'line 1, byte 4: not valid JSON: unexpected characters'],
    ['{"ip":1}', 'line 1, byte 1: this is not a JSON array; name the array'],
    ['"x"', 'line 1, byte 1: this is not a JSON array; name the array'],
  ])('says where %j is wrong', async (input, message) => {
    const expected = { code: 'E_BAD_INPUT', message: expect.stringContaining(`input, ${message}`) };
    await expect(enrich(json, input)).rejects.toMatchObject(expected);
    const { format } = start(json, {});
    await expect(collect(format, cut(Buffer.from(input), everyByte(Buffer.from(input))))).rejects.toMatchObject(
      expected,
    );
  });

  it.each(['{"a":{}}', '{"a":{"b":{}}}', '{"b":[]}', '[{"a":{"b":[]}}]', '1'])(
    'says that %j has no such array',
    async (input) => {
      await expect(enrich(json, input, { items: ['a', 'b'] })).rejects.toMatchObject({
        code: 'E_BAD_INPUT',
        message: 'input has no array at "a.b"; name one with --items',
      });
    },
  );

  it('accepts ten thousand levels of nesting', async () => {
    const deep = `${'[{"a":'.repeat(5000)}1${'}]'.repeat(5000)}`;
    expect((await enrich(json, `[{"ip":"8.8.8.8","a":${deep}}]`)).output).toBe(`[{"ip":"8.8.8.8","a":${deep},${US}}]`);
  });

  it.each<[InvalidPolicy, number]>([
    ['keep', 3],
    ['drop', 2],
  ])('%ss an item that is too long for memory', async (onInvalid, items) => {
    const { format, counts } = start(json, { onInvalid });
    const piece = Buffer.from(`"${'z'.repeat(1_000_000)}",`);
    const pieces = Math.ceil(MAX_JSON_ITEM_BYTES / piece.length) + 3;
    const chunks = [
      Buffer.from('[{"ip":"8.8.8.8"},{"a":['),
      ...Array.from({ length: pieces }, () => piece),
      Buffer.from('1]},{"ip":"8.8.8.8"}]'),
    ];
    const output = (await collect(format, chunks)).toString();
    expect(output.startsWith(`[{"ip":"8.8.8.8",${US}},`)).toBe(true);
    expect(output.endsWith(`,{"ip":"8.8.8.8",${US}}]`)).toBe(true);
    expect(JSON.parse(output)).toHaveLength(items);
    expect(counts).toMatchObject({ lines: 3, found: 2, invalid_line: 1 });
  });
});
