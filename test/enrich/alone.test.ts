/**
 * Each record for itself: the output of many records is that of each of them alone, one after the other, in every format and log, for
 * every split of the input and number of threads, by the command and by the library.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EnrichCounts } from '../../src/enrich/counts.js';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { JsonDocument } from '../../src/enrich/formats/document.js';
import { knownLogs } from '../../src/enrich/known-logs.js';
import { AddressLocator, type RecordsListener } from '../../src/enrich/locate.js';
import { type InputOptions, parseEnrichOptions, type RequestedOptions } from '../../src/enrich/options.js';
import { CountrySummary } from '../../src/enrich/query.js';
import { chunkedSource, cut } from '../support/chunks.js';
import { ipatlas } from '../support/in-process.js';
import { logSamples } from '../support/log-samples.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';
import { SHARE } from '../support/seed.js';

/** Runs for each format and log; soak sets it high. */
const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 50) / 50);
const release = releaseForTests();

/** An input: its options, what is before its records and after them, and records, which have no newline. */
interface Sample {
  options: RequestedOptions;
  heads: string[];
  tail: string;
  /** Ends a record; in a document it is between two. */
  terminator: string;
  records: string[];
}

const lines = (options: RequestedOptions, records: string[], heads = ['']): Sample => ({
  options,
  heads,
  tail: '',
  terminator: '\n',
  records,
});
const items = (options: RequestedOptions, head: string, tail: string, values: unknown[]): Sample => ({
  options,
  heads: [head],
  tail,
  terminator: ',',
  records: values.map((value) => JSON.stringify(value)),
});

const VALUES = ['8.8.8.8', '2a00:1::1', '10.0.0.1', '193.0.6.139:443', 'x', '', '-', '8.8.8.8, 193.0.6.139'];
const FORMATS: Record<string, Sample> = {
  jsonl: lines(
    { field: ['ip', 'a.ip=a.geo', 'hops[]=hops_geo', 'h[1].ip=h'] },
    VALUES.flatMap((ip) => [
      JSON.stringify({ ip, a: { ip }, n: 1 }),
      JSON.stringify({ hops: [ip, '8.8.8.8'], ip: 5, geo: 1 }),
      JSON.stringify({ h: [{}, { ip }], a: 1 }),
    ]),
  ),
  'jsonl with a schema': lines(
    { schema: 'ecs', field: ['client.ip=client'] },
    VALUES.flatMap((ip) => [JSON.stringify({ client: { ip } }), JSON.stringify({ client: { geo: 1, ip }, n: [1] })]),
  ),
  json: items({ format: 'json', lenient: true }, '[', ']', [...VALUES.map((ip) => ({ ip })), 5, 'x', null, { n: 1 }]),
  'json-seq': {
    options: { format: 'json-seq', field: ['ip', 'a.ip=a.geo'] },
    heads: [''],
    tail: '',
    // Ends any record, also in the middle of an object.
    terminator: '\x1e',
    records: VALUES.flatMap((ip) => [
      `{"ip":"${ip}"}`,
      `{"ip":"${ip}"},\n{"ip":"${ip}"},`,
      `\n{\n  "ip": "${ip}",\n  "a": { "ip": "}" }\n}\n`,
      `\x1e{"a":{"ip":"${ip}"},"b":"{\\""}\n`,
      ` ["${ip}"]`,
      '\n5\n',
      '\n{"ip":"x\n',
      '{"a":[\x1e',
    ]),
  },
  csv: lines(
    { format: 'csv', field: ['ip', 'b=x'] },
    VALUES.map((ip) => `1,"${ip}",${ip},x`),
    ['a,ip,b,c\n'],
  ),
  'csv without a header': lines(
    { format: 'csv', header: false, field: '2' },
    VALUES.map((ip) => `1,${ip}`),
    ['x,y\n'],
  ),
  tsv: lines(
    { format: 'tsv' },
    VALUES.map((ip) => `${ip}\t"1\n2"`),
    ['ip\ta\n'],
  ),
  w3c: lines(
    { format: 'w3c', field: ['c-ip', 'n'] },
    VALUES.flatMap((ip) => [`1 ${ip} x`, `1\t${ip}\tx`, `1 "a b" ${ip}`]),
    ['#Fields: n c-ip x\n', '#Version: 1\n#Fields: n x c-ip\n', '#Fields: c-ip\n'],
  ),
  zeek: lines(
    { format: 'zeek' },
    VALUES.flatMap((ip) => [`1\t${ip}\tx`, `1,${ip},x`]),
    [
      '#separator \\x09\n#fields\tn\tid.orig_h\tx\n#types\ta\tb\tc\n',
      '#separator \\x2c\n#fields,n,x,id.orig_h\n',
      '#separator \\x09\n#fields\tid.orig_h\tn\n',
    ],
  ),
  logfmt: lines(
    { format: 'logfmt', field: ['a', 'b'], lenient: true },
    VALUES.flatMap((ip) => [`a=${ip} b="${ip}"`, `x b=${ip}\ta=1`, `"a=${ip}" b="\\"${ip}" a="${ip}`]),
  ),
  list: lines({ format: 'list' }, VALUES),
  combined: lines(
    { format: 'combined', lenient: true },
    VALUES.map((ip) => `${ip} - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`),
  ),
  text: lines(
    { format: 'text' },
    VALUES.flatMap((ip) => [`from ${ip} to [${ip}]`, `1.2.3.4.5 at ::${ip} ${ip}`]),
  ),
};

/** Returns whether a line of a log is a header: in logs of columns, the one of vpc-flow. */
function isHeader(format: string, line: string): boolean {
  if (format === 'columns') return line.includes('srcaddr');
  return (format === 'w3c' || format === 'zeek') && line.startsWith('#');
}

/** The samples of the logs by name. */
const LOGS = logSamples().map(({ name, input }): [name: string, Sample] => {
  const { format, items: path } = knownLogs()[name]!;
  if (format === 'json') {
    const document = JSON.parse(input) as Record<string, unknown[]> & unknown[];
    const head = path === undefined ? '[' : `{"${path}":[`;
    return [name, items({ log: name }, head, path === undefined ? ']' : ']}', path ? document[path]! : document)];
  }
  const all = input.trimEnd().split('\n');
  const directives = all.filter((line) => isHeader(format, line));
  const head = directives.map((line) => `${line}\n`).join('');
  return [
    name,
    lines(
      { log: name },
      all.filter((line) => !directives.includes(line)),
      [head],
    ),
  ];
});

const PIECE = fc.constantFrom(
  '"',
  '\\',
  '[',
  ']',
  '=',
  '{',
  ':',
  '.',
  ',',
  ' ',
  '  ',
  '\t',
  '8.8.8.8',
  '::1',
  '\r',
  '\xe4',
);
/** What becomes of a record. */
const EDIT = fc.oneof(
  { weight: 3, arbitrary: fc.constant((text: string) => text) },
  SHARE.map((part) => (text: string) => text.slice(0, part * text.length)),
  fc.nat({ max: 12 }).map(
    (count) => (text: string) =>
      text
        .split(/(?<=[ \t,])/)
        .slice(0, count)
        .join(''),
  ),
  fc.tuple(fc.nat(), PIECE).map(
    ([at, piece]) =>
      (text: string) =>
        text.slice(0, at % (text.length + 1)) + piece + text.slice(at % (text.length + 1)),
  ),
  fc.array(PIECE, { maxLength: 8 }).map((pieces) => () => pieces.join('')),
);
/** What becomes of an item, which stays JSON. */
const ITEM_EDIT = fc.constantFrom(
  (text: string) => text,
  (text: string) => text.replaceAll('8.8.8.8', 'x'),
  (text: string) => text.replace(/:\s*"[^"]*"/, ':null'),
  (text: string) => ` ${text}\n`,
  () => '{}',
  () => '[{"ip":"8.8.8.8"}]',
);

/** Records with what the format takes for another record, or for a part of one, left out. */
function isRecord({ options: { format, log }, terminator }: Sample, text: string): boolean {
  if (terminator === ',') return true;
  const isTable = format === 'csv' || format === 'tsv';
  // Quotes must be closed, lest the record go on in the next line.
  if (isTable) return (text.match(/"/g)?.length ?? 0) % 2 === 0 && !/[^,\t"]"|"[^,\t"]/.test(text);
  return !isHeader(format ?? knownLogs()[log ?? '']?.format ?? '', text);
}

interface Run {
  output: string;
  counts: EnrichCounts;
}

async function run(text: string, options: InputOptions, settings = {}, cuts: number[] = []): Promise<Run> {
  const inputs = [chunkedSource('log', Buffer.from(text, 'latin1'), cuts)];
  const { output, counts, error } = await runEngine({ inputs, options, openFile: () => release.file, ...settings });
  expect(error).toBeUndefined();
  return { output, counts };
}

/** Returns the first counts and those of records alone, less those of what they were alone with. */
function sum(counts: EnrichCounts, more: EnrichCounts, less: EnrichCounts): EnrichCounts {
  const names = Object.keys(counts) as (keyof EnrichCounts)[];
  return Object.fromEntries(names.map((name) => [name, counts[name] + more[name] - less[name]])) as never;
}

/** Returns a function that locates the addresses of an input: a text for each, and for each record without one. */
function locatorOf(options: InputOptions, chunkBytes: number, maxLineBytes: number) {
  let found: string[] = [];
  const take: RecordsListener = (records, bytes, offset) => {
    for (const { addresses, isInvalid } of records) {
      if (addresses.length === 0) found.push(isInvalid ? 'invalid' : 'none');
      for (const { from, to, role, counts } of addresses) {
        const text = bytes.toString('latin1', from - offset, to - offset);
        found.push([text, role, counts].join(' '));
      }
    }
  };
  const settings = { documents: JsonDocument, chunkBytes, maxLineBytes };
  const locator = new AddressLocator(release.file, options, take, settings);
  return (text: string, cuts: number[] = []): string[] => {
    found = [];
    locator.start();
    for (const piece of cut(Buffer.from(text, 'latin1'), cuts)) locator.write(piece);
    locator.end();
    return found;
  };
}

const SETTINGS = fc.record({
  jobs: fc.constantFrom(1, 1, 1, 2),
  chunkBytes: fc.integer({ min: 1, max: 500 }),
  maxLineBytes: fc.constantFrom(600, 2000, 100_000),
});

describe.each([...Object.entries(FORMATS), ...LOGS])('%s', (_, sample) => {
  const { options: requested, heads, tail, terminator, records } = sample;
  const options = parseEnrichOptions({ ...requested, add: ['country_code', 'address'] }, (name) => name);
  const edit = terminator === ',' ? ITEM_EDIT : EDIT;
  const record = fc
    .tuple(fc.constantFrom(...records), edit)
    .map(([text, change]) => change(text))
    .filter((text) => isRecord(sample, text));
  const directives = heads.length > 1 ? [fc.constantFrom(...heads).map((head) => ({ head }))] : [];
  const part = fc.oneof({ weight: 5, arbitrary: record.map((text) => ({ text })) }, ...directives);

  it('has the output of each record alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { minLength: 1, maxLength: 8 }),
        SETTINGS,
        fc.array(fc.nat(), { maxLength: 5 }),
        async (parts, settings, cuts) => {
          const { maxLineBytes } = settings;
          const chunkBytes = Math.min(settings.chunkBytes, maxLineBytes);
          const first = heads[0]!;
          let head = first;
          const start = await run(head + tail, options, { maxLineBytes });
          const ended = (text: string): string => text.slice(0, text.length - tail.length);
          let input = first;
          let output = ended(start.output);
          let counts = start.counts;
          let alone = start;
          let separator = '';
          for (const one of parts) {
            const text = 'head' in one ? one.head : terminator === ',' ? one.text : `${one.text}${terminator}`;
            const own = await run(head + text + tail, options, { maxLineBytes });
            input += separator + text;
            output += separator + ended(own.output).slice(ended(alone.output).length);
            counts = sum(counts, own.counts, alone.counts);
            if (terminator === ',') separator = ',';
            if ('head' in one) {
              head = first + one.head;
              alone = await run(head + tail, options, { maxLineBytes });
            }
          }
          input += tail;
          output += tail;
          const expected = { output, counts: { ...counts, bytes: input.length } };
          expect(await run(input, options, { ...settings, chunkBytes }, cuts)).toEqual(expected);

          const pieces: string[] = [];
          const enricher = new LineEnricher(
            release.file,
            options,
            (bytes) => pieces.push(Buffer.from(bytes).toString('latin1')),
            undefined,
            { chunkBytes, maxLineBytes },
          );
          for (const piece of cut(Buffer.from(input, 'latin1'), cuts)) enricher.write(piece);
          enricher.end();
          expect({ output: pieces.join(''), counts: { ...enricher.counts } }).toEqual(expected);

          // What the page lists.
          const locate = locatorOf(options, chunkBytes, maxLineBytes);
          const located = locate(first + tail);
          let own = first;
          for (const one of parts) {
            const text = 'head' in one ? '' : one.text + (terminator === ',' ? '' : terminator);
            located.push(...locate(own + text + tail).slice(locate(own + tail).length));
            if ('head' in one) own = first + one.head;
          }
          expect(locate(input, cuts)).toEqual(located);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('has the output of each record alone from the command', async () => {
    const path = join(release.dataDir, 'input');
    const cells = records.map((text) => text.split(/(?<=[ \t,])/));
    const short = cells.flatMap((texts) => [texts.join(''), texts[0]!.trimEnd()]);
    const all = (terminator === ',' ? records : short).filter((text) => isRecord(sample, text));
    const [first = ''] = heads;
    const end = terminator === ',' ? '' : terminator;
    const input = first + all.map((text) => text + end).join(terminator === ',' ? ',' : '') + tail;
    writeFileSync(path, input, 'latin1');
    const flags = Object.entries(requested).flatMap(([name, value]) => {
      if (name === 'header') return ['--no-header'];
      return value === true ? [`--${name}`] : [value].flat().flatMap((one) => [`--${name}`, String(one)]);
    });
    const args = ['enrich', '--none-ok', path, '--data', release.dataDir, '--add', 'country_code,address', ...flags];
    const { stdout, stderr, code } = await ipatlas([...args, '--jobs', '1']);
    expect(code, stderr).toBe(0);
    const alone = await Promise.all(
      all.map((text) => run(first + text + end + tail, options).then(({ output }) => output)),
    );
    const header = (await run(first + tail, options)).output;
    const body = (text: string): string => text.slice(header.length - tail.length, text.length - tail.length);
    const bodies = alone.map(body).join(terminator === ',' ? ',' : '');
    expect(stdout).toBe(header.slice(0, header.length - tail.length) + bodies + tail);
    // A log is read as its format.
    if ('log' in requested) return;
    const query = { kind: 'summarize', summary: new CountrySummary() } as const;
    const queried = { ...options, add: [], query };
    await run(input, queried);
    const expected = new CountrySummary();
    for (const text of all)
      await run(first + text + end + tail, { ...queried, query: { ...query, summary: expected } });
    expect(query.summary.byCountry()).toEqual(expected.byCountry());
  });
});
