/** `enrichBlock` in all formats: the same bytes as the command line writes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/database/database.js';
import { type BlockEnricherOptions, createBlockEnricher } from '../../src/enrich/block-enricher.js';
import { FORMAT_NAMES } from '../../src/enrich/options.js';
import { ipatlas } from '../support/in-process.js';
import { smallRelease } from '../support/release.js';

const dataDir = await smallRelease();
const database = openDatabase(dataDir);
afterAll(() => {
  database.close();
});

const CELLS = 'name,ip\nann,8.8.8.8\n"b ""c""",2a00:1::1\r\nbroken,1,2\nlast,10.0.0.1';
const ITEMS = '[{"ip":"8.8.8.8","n":1e400}, 7,\n {"ip":"2a00:1::1"},{"x":null}]';

/** Options, the flags that mean the same, and messages. */
const CASES: [BlockEnricherOptions, string[], string[]][] = [
  [{}, [], ['{"ip":"8.8.8.8"}\n\nbroken\n{"ip":"no address"}', '', '\n']],
  [{ format: 'jsonl', field: 'a.ip=a.geo' }, ['--field', 'a.ip=a.geo'], ['{"a":{"ip":"8.8.8.8"}}\n']],
  [{ format: 'csv' }, ['--format', 'csv'], [CELLS, 'ip\n8.8.8.8\n', 'ip\n', '\ufeffip\n8.8.8.8']],
  [{ format: 'csv', onInvalid: 'drop' }, ['--format', 'csv', '--on-invalid', 'drop'], [CELLS]],
  [{ format: 'tsv' }, ['--format', 'tsv'], [CELLS.replaceAll(',', '\t')]],
  [
    { format: 'csv', delimiter: ';', header: false, field: '2', add: ['country_code'] },
    ['--format', 'csv', '--delimiter', ';', '--no-header', '--field', '2', '--add', 'country_code'],
    [CELLS.replaceAll(',', ';')],
  ],
  [
    { format: 'w3c', field: 'c-ip' },
    ['--format', 'w3c', '--field', 'c-ip'],
    ['#Version: 1.0\n#Fields: time c-ip\n00:00:01 8.8.8.8\n00:00:02 -\n', '#Fields: c-ip\r\n2a00:1::1\r\n'],
  ],
  [
    { format: 'zeek', field: 'id.orig_h' },
    ['--format', 'zeek', '--field', 'id.orig_h'],
    ['#separator \\x09\n#unset_field\t-\n#fields\tts\tid.orig_h\n#types\ttime\taddr\n1.5\t8.8.8.8\n2.5\t-\n#close\n'],
  ],
  [
    { format: 'logfmt', field: ['SRC', 'DST'] },
    ['--format', 'logfmt', '--field', 'SRC', '--field', 'DST'],
    ['IN=eth0 SRC=8.8.8.8 DST=10.0.0.1\nnothing\nSRC="2a00:1::1"\n'],
  ],
  [{ log: 'suricata' }, ['--log', 'suricata'], ['{"src_ip":"8.8.8.8"}\n']],
  [{ format: 'list' }, ['--format', 'list'], ['8.8.8.8\n\nno address\n2a00:1::1', '8.8.8.8\n']],
  [{ format: 'text' }, ['--format', 'text'], ['from 8.8.8.8 to 10.0.0.1\nnothing\n']],
  [
    { format: 'combined' },
    ['--format', 'combined'],
    ['8.8.8.8 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\nbroken\n'],
  ],
  [
    { format: 'json-seq', add: ['country_code'] },
    ['--format', 'json-seq', '--add', 'country_code'],
    [
      '{"ip":"8.8.8.8"}{"ip":"x"} 5\n[1]{\n  "ip": "2a00:1::1"\n}\n',
      '\x1e{"ip":"8.8.8.8"}\n\x1e{"n":"\\"}"}\n',
      '{"ip":"8.8.8.8"',
    ],
  ],
  [{ format: 'json' }, ['--format', 'json'], [ITEMS, `\ufeff ${ITEMS} \n`, '[]']],
  [
    { format: 'json', items: 'data.rows', onInvalid: 'drop', add: ['reason', 'country_code'] },
    ['--format', 'json', '--items', 'data.rows', '--on-invalid', 'drop', '--add', 'reason,country_code'],
    [`{"data":{"rows":${ITEMS},"more":1}}\n`],
  ],
];

describe('enrichBlock', () => {
  it('has cases for every format', () => {
    expect(new Set(CASES.map(([{ format = 'jsonl' }]) => format))).toEqual(new Set(FORMAT_NAMES));
  });

  it.each(CASES)('with %j gives what "enrich %j" writes, message after message', async (options, flags, messages) => {
    const enricher = createBlockEnricher(database, options);
    for (const [index, message] of messages.entries()) {
      const path = join(dataDir, `message-${index}`);
      writeFileSync(path, message);
      const result = await ipatlas(['enrich', path, '--data', dataDir, '--jobs', '1', '--none-ok', ...flags]);
      expect(result.code, result.stderr).toBe(0);
      expect(Buffer.from(enricher.enrichBlock(Buffer.from(message))).toString()).toBe(result.stdout);
    }
    expect(enricher.counts.bytes).toBe(messages.reduce((sum, message) => sum + Buffer.byteLength(message), 0));
  });

  it.each<[BlockEnricherOptions, string, string]>([
    [{ format: 'w3c', field: 'Ädr=läg' }, '#Fields: Ädr\n8.8.8.8\n', '#Fields: Ädr läg_country_code\n8.8.8.8 US\n'],
    [
      { format: 'w3c' },
      '#Fields: c-ip a\n8.8.8.8 x\n8.8.8.8\tx\n',
      '#Fields: c-ip a geo_country_code\n8.8.8.8 x US\n8.8.8.8\tx\tUS\n',
    ],
    [
      { format: 'w3c' },
      '#Fields: c-ip a b\n8.8.8.8 x\ty z\n',
      '#Fields: c-ip a b geo_country_code\n8.8.8.8 x\ty z US\n',
    ],
    [{ format: 'zeek', field: 'Ädr' }, '#fields\tÄdr\n8.8.8.8\n', '#fields\tÄdr\tgeo_country_code\n8.8.8.8\tUS\n'],
    [{ format: 'csv', header: false, field: '2' }, '# x,y\n#x,8.8.8.8\n# z\n', '# x,y\n#x,8.8.8.8,US\n# z\n'],
    [
      { format: 'json', items: 'r[].i[]' },
      '{"r":[{"i":[{"ip":"8.8.8.8"},5]},{"i":[]}, {"i":[ {"ip":"x"} ]}],"n":1}',
      '{"r":[{"i":[{"ip":"8.8.8.8","geo":{"country_code":"US"}},5]},{"i":[]}, {"i":[ {"ip":"x","geo":null} ]}],"n":1}',
    ],
    [
      { format: 'json-seq' },
      '\ufeff{"ip":"8.8.8.8"}{ }\n{\n  "ip": "8.8.8.8"\n}\n5\n[{}]\x1e{"a":"\\"}{"}\n{"a":\x1e{}\n',
      '\ufeff{"ip":"8.8.8.8","geo":{"country_code":"US"}}{ "geo":null}\n{\n  "ip": "8.8.8.8",\n  "geo":{"country_code":"US"}\n}\n5\n[{}]\x1e{"a":"\\"}{","geo":null}\n{"a":\x1e{"geo":null}\n',
    ],
    [{ format: 'json', items: '[][]' }, '[[],[{}],[{},{}]]', '[[],[{"geo":null}],[{"geo":null},{"geo":null}]]'],
  ])('with %j of %j', (options, input, expected) => {
    const { enrichBlock } = createBlockEnricher(database, { add: ['country_code'], ...options });
    expect(Buffer.from(enrichBlock(Buffer.from(input))).toString()).toBe(expected);
  });

  it.each([
    ['w3c', 'c-ip=läg', '#Fields: c-ip läg_country_code\n', /already has a column "läg_country_code"/],
    ['json', undefined, '{"r":[{"i":[{}],"i":[{}]}]}', /the key "r\[\].i" occurs again after the array/],
  ] as const)('refuses in %s with %s %j', (format, field, input, message) => {
    const { enrichBlock } = createBlockEnricher(database, {
      format,
      field,
      add: ['country_code'],
      items: format === 'json' ? 'r[].i' : undefined,
    });
    expect(() => enrichBlock(Buffer.from(input))).toThrow(message);
  });

  it('of a document fails at a broken one, and takes the next one', () => {
    const enricher = createBlockEnricher(database, { format: 'json', add: ['country_code'] });
    for (const broken of ['', '{}', '[{"ip":"8.8.8.8"}', '[1}', '[{"ip":"8.8.8.8"}] x', '\u0000']) {
      expect(() => enricher.enrichBlock(Buffer.from(broken)), broken).toThrow(
        expect.objectContaining({ code: 'E_BAD_INPUT' }),
      );
    }
    const output = enricher.enrichBlock(Buffer.from('[{"ip":"8.8.8.8"}]'));
    expect(Buffer.from(output).toString()).toBe('[{"ip":"8.8.8.8","geo":{"country_code":"US"}}]');
  });

  it('hands over the records that it drops, in tables and documents', () => {
    const rejects: string[] = [];
    const onReject = (bytes: Uint8Array): void => void rejects.push(Buffer.from(bytes).toString());
    createBlockEnricher(database, { format: 'csv', onInvalid: 'drop', onReject }).enrichBlock(Buffer.from(CELLS));
    createBlockEnricher(database, { format: 'json', onInvalid: 'drop', onReject }).enrichBlock(Buffer.from(ITEMS));
    expect(rejects).toEqual(['broken,1,2\n', '7\n']);
  });

  it.each([
    [{ format: 'xml' }, /the option format is "xml"; it can be jsonl, json, json-seq, csv/],
    [{ items: 'a' }, /the option items requires the option format json/],
    [{ format: 'json', items: 'a..b' }, /the option items "a..b" has an empty key/],
    [{ delimiter: ';' }, /the option delimiter requires the option format csv or tsv/],
    [
      { format: 'w3c', field: 'c-ip=a b' },
      /the target "a b" of the field "c-ip=a b" has a character that w3c cannot have/,
    ],
    [{ format: 'logfmt', field: 'a=b\nc' }, /has a character that logfmt cannot have in a name/],
    [{ format: 'list', header: false }, /the option header requires the option format csv or tsv/],
    [{ format: 'csv', delimiter: '"' }, /the option delimiter is .*; it can be one ASCII character/],
    [{ format: 'csv', header: 1 }, /the option header must be true or false/],
    [{ format: 'csv', header: false }, /the option header requires the option field N/],
    [{ format: 'csv', header: false, field: '0' }, /the option field is "0"; with the option header it is the number/],
    [{ format: 'csv', header: false, field: ['1', '-1'] }, /the option field is "-1"/],
    [{ format: 'csv', header: false, field: '1.5' }, /the option field is "1.5"/],
    [{ format: 'list', field: 'ip' }, /the option field cannot be used with the option format list/],
    [{ field: [] }, /the option field is an empty array/],
    [{ formats: 'csv' }, /there is no option "formats"/],
  ])('refuses %j', (options, message) => {
    expect(() => createBlockEnricher(database, options as BlockEnricherOptions)).toThrow(
      expect.objectContaining({ code: 'E_USAGE', message: expect.stringMatching(message) }),
    );
  });
});

describe('the text of the address', () => {
  it.each<[BlockEnricherOptions, input: string, output: string]>([
    [
      { add: ['address', 'country_code'] },
      '{"ip":"8.8.8\\u002e8"}\n{"ip":"x"}\n',
      '{"ip":"8.8.8\\u002e8","geo":{"address":"8.8.8.8","country_code":"US"}}\n{"ip":"x","geo":null}\n',
    ],
    [
      { field: 'xff', lenient: true },
      '{"xff":"unknown, [2A00:1::1]:443"}',
      '{"xff":"unknown, [2A00:1::1]:443","geo":{"address":"2A00:1::1"}}',
    ],
    [{ format: 'json' }, '[ {"ip":"10.0.0.1"} ]', '[ {"ip":"10.0.0.1","geo":{"address":"10.0.0.1"}} ]'],
    [{ format: 'csv' }, 'ip\n8.8.8.8\n""\n', 'ip,geo_address\n8.8.8.8,8.8.8.8\n"",\n'],
    [{ format: 'csv', delimiter: '.' }, 'ip.n\n"8.8.8.8".1\n', 'ip.n.geo_address\n"8.8.8.8".1."8.8.8.8"\n'],
    [{ format: 'combined' }, '8.8.8.8 -\nx -\n', '8.8.8.8 - "8.8.8.8"\nx - "-"\n'],
    [{ format: 'text' }, 'from 10.0.0.1 to 8.8.8.8:53, 10.0.0.2', 'from 10.0.0.1 to 8.8.8.8:53, 10.0.0.2\t10.0.0.1'],
    [{ format: 'text', pick: 'first' }, '10.0.0.1 8.8.8.8 10.0.0.2\n', '10.0.0.1 8.8.8.8 10.0.0.2\t10.0.0.1\n'],
    [{ format: 'text', pick: 'last' }, '10.0.0.1 8.8.8.8 10.0.0.2\n', '10.0.0.1 8.8.8.8 10.0.0.2\t10.0.0.2\n'],
    [
      { field: 'hops[]', pick: 'last' },
      '{"hops":["8.8.8.8","10.0.0.2","x"]}',
      '{"hops":["8.8.8.8","10.0.0.2","x"],"geo":{"address":"10.0.0.2"}}',
    ],
  ])('%j: %j', (options, input, output) => {
    const { enrichBlock } = createBlockEnricher(database, { add: ['address'], ...options });
    expect(Buffer.from(enrichBlock(Buffer.from(input))).toString()).toBe(output);
  });

  it('of more values than are looked up together', () => {
    const { enrichBlock } = createBlockEnricher(database, { add: ['address'], field: 'hops[]', pick: 'last' });
    const hops = Array.from({ length: 700 }, (_, index) => `8.8.${index >> 8}.${index & 255}`);
    const output = Buffer.from(enrichBlock(Buffer.from(JSON.stringify({ hops })))).toString();
    expect(JSON.parse(output).geo).toEqual({ address: hops.at(-1) });
  });
});
