/**
 * The kernel reads its input a number of times that does not depend on the input's length: for expressions of fields, formats, ways to
 * hide and logs, and for hostile pieces that are repeated, as lines and as a value of one record. The loads of the compiled kernel are
 * counted (binaryen's pass `instrument-memory`), so that nothing depends on time.
 */
import { readFileSync } from 'node:fs';
import binaryen from 'binaryen';
import { afterAll, describe, expect, it } from 'vitest';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { AtlasError } from '../../src/errors.js';
import { packageFile } from '../../src/package-root.js';
import { releaseForTests } from '../support/open-release.js';

/** Bytes of an input. What is read anew for each of some of them would be loaded thousands of times. */
const BYTES = 16_384;
const SIZES = { chunkBytes: 262_144, maxLineBytes: 262_144 };
/** Bytes that are loaded for each byte of input at most; lines of two bytes take most. */
const MOST = 250;

/** What the kernel itself imports; all else belongs to the pass. */
const OWN_IMPORTS = ['memory', 'readIPv6', 'encrypt'];

interface Kernels {
  Module: { new (bytes: Uint8Array): object; imports(module: object): { name: string }[] };
  Instance: new (module: object, imports: { env: object }) => object;
}

/** Bytes that the kernel has loaded. */
let loaded = 0;
const HOOKS: Record<string, (...values: never[]) => unknown> = {
  load_ptr: (_id: number, bytes: number, _offset: number, at: number) => {
    loaded += bytes;
    return at;
  },
  store_ptr: (_id: number, _bytes: number, _offset: number, at: number) => at,
};

const wasm = WebAssembly as unknown as Kernels;
const { Instance } = wasm;

/** Lets instances of the kernel count their loads. */
function countLoads(): void {
  const module = binaryen.readBinary(readFileSync(packageFile('dist/src/enrich/kernel/kernel-alone.wasm')));
  module.setFeatures(binaryen.Features.All);
  module.runPasses(['instrument-memory']);
  const counting = new wasm.Module(module.emitBinary());
  const same = (_id: number, value: unknown): unknown => value;
  const hooks = wasm.Module.imports(counting).filter(({ name }) => !OWN_IMPORTS.includes(name));
  const env = Object.fromEntries(hooks.map(({ name }) => [name, HOOKS[name] ?? same]));
  wasm.Instance = new Proxy(Instance, {
    construct: (target, [, imports]: [object, { env: object }]) =>
      new target(counting, { env: { ...imports.env, ...env } }),
  });
}

countLoads();
afterAll(() => {
  wasm.Instance = Instance;
});

const release = releaseForTests();
const KEY = Buffer.alloc(16, 7);

const PIECES = [
  ...[
    '"a"b,"\n',
    '"a,1\n',
    '"',
    '""',
    '\\',
    '\\\\"',
    '\\u0041',
    '{\n',
    '{"a":[',
    '{"a":',
    '{"ip":"8.8.8.8"},',
    '}\n',
    '[',
    ']',
    ',',
  ],
  ...['a="', 'a=', '=', 'a=8.8.8.8 ', '\n', ' ', '\t', '#', '#Fields: c-ip b\n', '\x1e', '\x1b[31m', '[1;', 'é'],
  ...[
    '.',
    ':',
    '::',
    '1.',
    '1:',
    'a.b.c.d ',
    '8.8.8.8 ',
    '8.8.8.8,',
    '8.8.8.8\n',
    '8.8.8.8-',
    '1.2.3.4.5.6',
    '_',
    '-',
    '52:54:',
  ],
  ...[
    'client: ',
    ', client: 8.8.8.8',
    ' rhost=8.8.8.8',
    ' from 8.8.8.8',
    'user ip ',
    '@8.8.8.8',
    '//8.8.8.8/',
    '(',
    ';for=8.8.8.8',
  ],
  ...['Chrome/1.2.3.4 ', '2026-02-03T04:05:06Z ', '<1>', 'Failed ', ', request: "', 'version 1.2.3.4 '],
];

const FIELDS = [
  ...[
    'ip',
    'a.b.c',
    'a\\.b',
    'hops[]',
    'hops[0]',
    'hops[9]',
    'a.d[].e',
    'a.d[].e[]',
    'a.d[1].e[2]',
    'ip|a.ip|hops[]',
    'ip=geo',
    'a.ip=a.geo',
  ],
];
const json: RequestedOptions[] = [
  ...FIELDS.map((field) => ({ field: [field] })),
  ...[{ field: FIELDS.slice(0, 4) }, { lenient: true }, { pick: 'last', field: ['hops[]'] }, { inText: true }],
  ...[{ schema: 'ecs', field: ['ip=client'] }, { onInvalid: 'drop' }, { format: 'json-seq' }],
  ...[
    { redact: 'drop', field: ['ip', 'hops[]'] },
    { redact: 'truncate', redactAll: true },
    { redact: 'ipcrypt', redactKey: KEY, lenient: true },
  ],
] as RequestedOptions[];
const tables = [
  ...[
    { format: 'csv' },
    { format: 'csv', lenient: true },
    { format: 'csv', redact: 'truncate' },
    { format: 'tsv', redact: 'drop', redactAll: true },
  ],
  ...[{ format: 'csv', inText: true }, { format: 'tsv' }, { format: 'csv', delimiter: ';' }],
] as RequestedOptions[];
const texts = [
  ...[
    { format: 'text' },
    { format: 'text', pick: 'first' },
    { format: 'text', redact: 'truncate' },
    { format: 'text', redact: 'ipcrypt', redactKey: KEY },
  ],
  ...[
    { log: 'sshd' },
    { log: 'exim' },
    { log: 'dovecot' },
    { log: 'nginx-error' },
    { log: 'asterisk' },
    { log: 'squid' },
    { log: 'apache-vhost' },
  ],
  ...[
    { format: 'list' },
    { format: 'list', lenient: true },
    { format: 'combined' },
    { format: 'combined', lenient: true, redact: 'drop' },
  ],
  ...[
    { format: 'logfmt', field: ['a'] },
    { format: 'logfmt', field: ['a', 'b', 'user'], redact: 'drop' },
  ],
] as RequestedOptions[];

/** A value in one record of each kind, and what is before all records. */
const KINDS: {
  options: RequestedOptions[];
  head: (options: RequestedOptions) => string;
  record: (text: string) => string;
}[] = [
  {
    options: json,
    head: () => '',
    record: (text) =>
      `${JSON.stringify({ ip: text, hops: [text, text], a: { b: { c: text }, ip: 1, d: [{ e: [text] }] } })}\n`,
  },
  {
    options: tables,
    head: ({ format, delimiter = format === 'tsv' ? '\t' : ',' }) => `ip${delimiter}b\n`,
    record: (text) => `"${text.replaceAll('"', '""')}",x\n`,
  },
  { options: texts, head: () => '', record: (text) => `${text.replaceAll('\n', ' ')}\n` },
];

/** Returns the bytes that the kernel loads for an input. */
function loadsOf(enricher: LineEnricher, input: string): number {
  enricher.reset();
  loaded = 0;
  try {
    enricher.write(Buffer.from(input));
    enricher.end();
  } catch (error) {
    // A table or document may be refused.
    if (!(error instanceof AtlasError)) throw error;
  }
  return loaded;
}

describe.each(KINDS)('of records', ({ options, head, record }) => {
  it.each(options.map((one) => [JSON.stringify(one), one] as const))('%s', (_name, requested) => {
    const parsed = parseEnrichOptions({ ...requested, add: ['country_code'] }, (name) => name);
    const enricher = new LineEnricher(
      release.file,
      parsed,
      () => {},
      () => {},
      SIZES,
    );
    const wrong: string[] = [];
    for (const piece of PIECES) {
      for (const wrap of [(text: string) => text, record]) {
        const input = head(requested) + wrap(piece.repeat(BYTES / piece.length));
        const loads = loadsOf(enricher, input) / Buffer.byteLength(input);
        if (loads > MOST) wrong.push(`${JSON.stringify(input.slice(0, 50))}: ${loads.toFixed()} for a byte`);
      }
    }
    expect(wrong).toEqual([]);
  });
});
