/** What happens at the limits of docs/bulk.md and past them, in every format. */
import { describe, expect, it } from 'vitest';
import { createMessageEnricher } from '../../src/enrich/block-enricher.js';
import { type EnrichOptions, FORMAT_NAMES, type KernelInput, parseFields } from '../../src/enrich/options.js';
import {
  MAX_CSV_RECORD_BYTES,
  MAX_FIELDS,
  MAX_JSON_DEPTH,
  MAX_KEY_BYTES,
  MAX_LENIENT_BYTES,
  MAX_LINE_BYTES,
  MAX_PATH_KEYS,
} from '../../src/limits.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource } from '../support/chunks.js';
import { documentAt } from '../support/engine-format.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const release = releaseForTests();

const options: EnrichOptions = { fields: parseFields([]), add: parseAdd('country_code'), onInvalid: 'keep' };

const CSV: KernelInput = { kind: 'table', delimiter: ',', hasHeader: true };
const TSV: KernelInput = { kind: 'table', delimiter: '\t', hasHeader: true };

/** For each format: the longest line or record, the text before the lines, a line of a length, and what follows its text. */
const LINES: {
  input: KernelInput;
  longest: number;
  head: string;
  line: (length: number) => string;
  /** Turns a line into the expected one. */
  enriched: (line: string) => string;
}[] = [
  {
    input: { kind: 'jsonl' },
    longest: MAX_LINE_BYTES,
    head: '',
    line: (length) => `{"ip":"8.8.8.8","text":"${'x'.repeat(length - 26)}"}`,
    enriched: (line) => `${line.slice(0, -1)},"geo":{"country_code":"US"}}`,
  },
  {
    input: { kind: 'text' },
    longest: MAX_LINE_BYTES,
    head: '',
    line: (length) => `${'x'.repeat(length - 8)} 8.8.8.8`,
    enriched: (line) => `${line}\tUS`,
  },
  {
    input: { kind: 'combined' },
    longest: MAX_LINE_BYTES,
    head: '',
    line: (length) => `8.8.8.8 ${'x'.repeat(length - 8)}`,
    enriched: (line) => `${line} "US"`,
  },
  {
    input: { kind: 'list' },
    longest: MAX_LINE_BYTES,
    head: '',
    line: (length) => (length < 10 ? '8.8.8.8' : 'x'.repeat(length)),
    enriched: (line) => `${line}\t${line === '8.8.8.8' ? 'US' : ''}`,
  },
  {
    input: CSV,
    longest: MAX_CSV_RECORD_BYTES,
    head: 'ip,text\n',
    line: (length) => `8.8.8.8,"${'x'.repeat(length - 10)}"`,
    enriched: (line) => `${line},US`,
  },
  {
    input: TSV,
    longest: MAX_CSV_RECORD_BYTES,
    head: 'ip\ttext\n',
    line: (length) => `8.8.8.8\t${'x'.repeat(length - 8)}`,
    enriched: (line) => `${line}\tUS`,
  },
];

describe.each(LINES)('a line of $input.kind', ({ input, longest, head, line, enriched }) => {
  it.each([0, 1])('of the greatest length and %i bytes', async (more) => {
    const short = line(input.kind === 'list' ? 7 : 40);
    const long = line(longest + more);
    expect(long.length).toBe(longest + more);
    // The slot for such a record is the same for all formats, so one of them shows that threads share it.
    for (const jobs of input.kind === 'jsonl' ? [1, 2] : [1]) {
      const { output, rejects, counts, error } = await runEngine({
        inputs: [chunkedSource('input', Buffer.from(`${head}${short}\n${long}\n${short}\n`))],
        openFile: () => release.file,
        options: { ...options, input },
        jobs,
        maxLineBytes: undefined,
      });
      expect(error).toBeUndefined();
      const middle = more === 0 ? enriched(long) : long;
      const expected = `${enriched(short)}\n${middle}\n${enriched(short)}\n`;
      const start = output.length - expected.length;
      expect(start).toBe(head === '' ? 0 : head.length + 'xgeo_country_code'.length);
      expect(output.slice(start) === expected, 'the same output').toBe(true);
      expect(rejects === (more === 0 ? '' : `${long}\n`), 'the same rejects').toBe(true);
      expect(counts).toMatchObject({ lines: 3, invalid_line: more });
    }
  });
});

/** Enriches a JSON document. */
function enrichDocument(text: string, request: EnrichOptions): string {
  const { enrichBlock } = createMessageEnricher(release.database, { ...request, input: documentAt() });
  return Buffer.from(enrichBlock(Buffer.from(text))).toString();
}

it.each([[0], [1]])('the items of a JSON document nest as deep as lines; more by: %i', (more) => {
  const depth = MAX_JSON_DEPTH - 1 + more;
  const item = `{"ip":"8.8.8.8","a":${'['.repeat(depth)}${']'.repeat(depth)}`;
  const output = enrichDocument(`[${item}},{"ip":"8.8.8.8"}]`, options);
  const geo = '"geo":{"country_code":"US"}';
  expect(output === `[${item}${more === 0 ? `,${geo}` : ''}},{"ip":"8.8.8.8",${geo}}]`).toBe(true);
});

describe('text that is searched with --lenient', () => {
  const lenient: EnrichOptions = { ...options, lenient: true };
  const text = (length: number): string => `${'x,'.repeat(length / 2)}`.slice(0, length - 8).concat(',8.8.8.8');
  const US = expect.stringContaining('US');

  it.each<[KernelInput, (text: string) => string]>([
    [{ kind: 'jsonl' }, (value) => `{"ip":"${value}"}`],
    [CSV, (value) => `ip\n"${value}"`],
    [TSV, (value) => `ip\n${value}`],
    [{ kind: 'list' }, (value) => value],
    [{ kind: 'combined' }, (value) => `${value} - -`],
  ])('may have a length: %j', (input, place) => {
    const { enrichBlock } = createMessageEnricher(release.database, { ...lenient, input });
    const run = (length: number): string => Buffer.from(enrichBlock(Buffer.from(place(text(length))))).toString();
    expect(run(MAX_LENIENT_BYTES)).toEqual(US);
    expect(run(MAX_LENIENT_BYTES + 1)).not.toEqual(US);
  });

  it('may have a length in JSON documents', () => {
    const run = (length: number) => enrichDocument(`[{"ip":"${text(length)}"}]`, lenient);
    expect(run(MAX_LENIENT_BYTES)).toEqual(US);
    expect(run(MAX_LENIENT_BYTES + 1)).not.toEqual(US);
  });
});

describe.each(FORMAT_NAMES)('fields of %s', (format) => {
  const isColumn = ['csv', 'tsv', 'w3c', 'zeek', 'logfmt'].includes(format);

  it('are limited in number', () => {
    const fields = Array.from({ length: MAX_FIELDS + 1 }, (_, index) => `a.ip=${isColumn ? '' : 'a.'}g${index}`);
    expect(parseFields(fields.slice(1), format)).toHaveLength(MAX_FIELDS);
    expect(() => parseFields(fields, format)).toThrow('65 fields are too many; at most 64 go in one run');
  });

  it('are limited in their steps and keys, except for columns and keys in text', () => {
    const path = (steps: number): string => Array(steps).fill('a').join('.');
    const parse = (field: string) => () => parseFields([field], format);
    expect(parse(path(MAX_PATH_KEYS))).not.toThrow();
    expect(parse('k'.repeat(MAX_KEY_BYTES))).not.toThrow();
    for (const [field, message] of [
      [path(MAX_PATH_KEYS + 1), /has more than 64 keys/],
      ['k'.repeat(MAX_KEY_BYTES + 1), /is longer than 1024 bytes/],
      [`ip=${'é'.repeat(MAX_KEY_BYTES / 2)}e`, /is longer than 1024 bytes/],
    ] as const) {
      if (isColumn) expect(parse(field)).not.toThrow();
      else
        expect(parse(field)).toThrow(
          expect.objectContaining({ code: 'E_USAGE', message: expect.stringMatching(message) }),
        );
    }
  });
});
