/** Tables whose header is a directive (W3C Extended Log Format, Zeek), compared with a twin that reads line by line. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import type { LineRequest } from '../../src/enrich/enrich-lines.js';
import { LineEnricher } from '../../src/enrich/enricher.js';
import { type InvalidPolicy, parseFields } from '../../src/enrich/options.js';
import { parseAdd } from '../support/add.js';
import { chunkedSource, everyByte } from '../support/chunks.js';
import { releaseForTests } from '../support/open-release.js';
import { runEngine } from '../support/run-engine.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 24));
const release = releaseForTests();

type Kind = 'w3c' | 'zeek';

function optionsOf(kind: Kind, fields: string[], onInvalid: InvalidPolicy = 'keep'): LineRequest['options'] {
  return {
    input: { kind: 'table', delimiter: '\t', hasHeader: true, directives: kind },
    fields: parseFields(fields, kind),
    add: parseAdd('country,is_eu'),
    onInvalid,
  };
}

function enrich(
  texts: string[],
  options: LineRequest['options'],
  settings: Partial<LineRequest> & { cuts?: number[] } = {},
) {
  const { cuts = [], ...request } = settings;
  const inputs = texts.map((text, index) => chunkedSource(`log ${index}`, Buffer.from(text, 'latin1'), cuts));
  return runEngine({ inputs, options, openFile: () => release.file, ...request });
}

/** Splits a line of W3C at spaces or tabs that are not in quotes; a quote that is not closed is text, and so are all of its line. */
function cellsOf(line: string, delimiter: string, kind: Kind): string[] {
  const cell = `"(?:[^"]|"")*"(?!")[^${delimiter}]*|[^"${delimiter}][^${delimiter}]*|`;
  // Several spaces are one.
  const between = kind === 'w3c' && delimiter === ' ' ? ' +' : delimiter;
  const pattern = new RegExp(`^(?:${cell})(?:${between}(?:${cell}))*$`, 's');
  if (kind === 'zeek' || !pattern.test(line)) return line.split(new RegExp(between));
  const [first] = new RegExp(`^(?:${cell})`, 's').exec(line)!;
  const rest = line.slice(first.length).matchAll(new RegExp(`${between}(${cell})`, 'gs'));
  return [first, ...[...rest].map(([, text]) => text!)];
}

const plain = (text: string): string => (/^"[^"]*"$/.test(text) ? text.slice(1, -1) : text);
const bytes = (text: string): string => Buffer.from(text).toString('latin1');

/** The twin: what the output must be. */
function expected(text: string, kind: Kind, options: LineRequest['options']) {
  const counts = { ...emptyCounts(), bytes: text.length };
  let output = '';
  let columns: string[] = [];
  let delimiter = '\t';
  let separator = '\t';
  for (const [index, line] of text.split(/(?<=\n)/).entries()) {
    const [, mark, body, ending] = /^((?:\xef\xbb\xbf)?)(.*?)((?:\r?\n)?)$/s.exec(line)!;
    const names = options.fields.flatMap(({ name }) => options.add.map((part) => `${name}_${part}`));
    if (body!.startsWith('#')) {
      if (kind === 'w3c' && body!.startsWith('#Fields:')) {
        columns = body!.slice(8).split(/[ \t]/).filter(Boolean);
        const blank = /\S\t/.test(body!) ? '\t' : ' ';
        output += `${mark}${body}${/[ \t]$/.test(body!) ? '' : blank}${names.join(blank)}${ending}`;
      } else if (kind === 'zeek' && body!.startsWith('#separator ')) {
        separator = body!.endsWith('\\x2c') ? ',' : '\t';
        output += line;
      } else if (kind === 'zeek' && body!.startsWith(`#fields${separator}`)) {
        columns = body!.split(separator).slice(1);
        delimiter = separator;
        output += [`${mark}${body}`, ...names].join(separator) + ending;
      } else if (kind === 'zeek' && body!.startsWith(`#types${separator}`)) {
        output += [body, ...options.fields.flatMap(() => ['string', 'bool'])].join(separator) + ending;
      } else output += line;
      continue;
    }
    counts.lines++;
    // A byte order mark is a part of the first cell, except at the beginning of the input.
    const record = index === 0 ? body! : mark! + body!;
    if (record === '') {
      output += line;
      continue;
    }
    // As many tabs as the columns need: CloudFront writes them, under a header with spaces.
    if (kind === 'w3c') delimiter = body!.split('\t').length >= Math.max(columns.length, 2) ? '\t' : ' ';
    const cells = cellsOf(record, delimiter, kind);
    if (columns.length === 0 || cells.length !== columns.length) {
      counts.invalid_line++;
      output += options.onInvalid === 'keep' ? line : index === 0 ? mark : '';
      continue;
    }
    const added = options.fields.flatMap(({ path }) => {
      const at = columns.indexOf(path.join('.'));
      const cell = kind === 'zeek' ? cells[at] : at < 0 ? undefined : plain(cells[at]!);
      const isMissing = cell === undefined || cell === '' || cells[at] === '-';
      const result = isMissing ? undefined : release.database.lookup(cell);
      if (isMissing) counts.missing_field++;
      else if (result === undefined) counts.invalid_address++;
      else if (result.country_code === null) counts.no_country++;
      else counts.found++;
      const country = result?.country ?? '-';
      const flag = result === undefined ? '-' : kind === 'zeek' ? (result.is_eu ? 'T' : 'F') : String(result.is_eu);
      return [/ /.test(country) && delimiter === ' ' ? `"${country}"` : country, flag];
    });
    output +=
      line.slice(0, line.length - ending!.length) + bytes(added.map((cell) => delimiter + cell).join('')) + ending;
  }
  return { output, counts };
}

const ADDRESSES = [
  '8.8.8.8',
  '193.0.6.139',
  '2001:4860:4860::8888',
  '10.0.0.1',
  '-',
  '90.0.0.1',
  'x',
  '"8.8.8.8"',
  '""',
];
const CELLS = [
  ...ADDRESSES,
  ' ',
  'a',
  '/x?y="z',
  '"Mozilla/5.0 (X11; Linux)"',
  '"cut',
  'Moz"illa',
  '"a"b',
  '"',
  '#',
  'y'.repeat(70),
  '\r',
  'é',
];

/** Logs with headers that come again with other columns, and with garbage. */
function logs(kind: Kind, first: string): fc.Arbitrary<string> {
  const names = kind === 'w3c' ? ['date', 'c-ip', 's-ip', 'cs(User-Agent)'] : ['ts', 'id.orig_h', 'id.resp_h', 'uid'];
  const columns = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 5 });
  const ending = fc.constantFrom('\n', '\n', '\r\n');
  const section = fc
    .record({
      columns: fc
        .constantFrom<string[]>([first, 'x'], ['date', first, 'y'])
        .chain((one) => fc.oneof(fc.constant(one), columns)),
      delimiter: kind === 'w3c' ? fc.constantFrom(' ', '\t') : fc.constantFrom('\t', '\t', ','),
      ending,
      head: fc.constantFrom('', '\xef\xbb\xbf', '#Software: IIS\n', '\xef\xbb\xbf#Version: 1.0\r\n#Date: x\n', '\n'),
      tail: fc.constantFrom('', ' ', '#Date: y\n#close\t2026\n', '\n#x\n', '#Fields\n#fields\n'),
    })
    .chain((one) => {
      const { delimiter } = one;
      const cell = fc.constantFrom(...CELLS, ...ADDRESSES).map((text) => bytes(text));
      const whole = fc.array(cell, { minLength: one.columns.length, maxLength: one.columns.length });
      const record = fc
        .tuple(
          fc.oneof({ arbitrary: whole, weight: 9 }, { arbitrary: fc.array(cell, { maxLength: 6 }), weight: 1 }),
          ending,
        )
        .map(([cells, end]) => cells.join(delimiter) + end);
      return fc.array(record, { maxLength: 6 }).map((records) => {
        const isW3c = kind === 'w3c';
        const tail = isW3c && one.tail === ' ' ? ' ' : '';
        const header = isW3c
          ? `${one.head}#Fields: ${one.columns.join(' ')}${tail}${one.ending}`
          : `${one.head}#separator ${delimiter === ',' ? '\\x2c' : '\\x09'}\n#fields${delimiter}${one.columns.join(delimiter)}${one.ending}` +
            `#types${one.columns.map(() => `${delimiter}x`).join('')}\n`;
        return header + records.join('') + (one.tail === ' ' ? '' : one.tail);
      });
    });
  return fc
    .tuple(
      fc.array(section, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.constantFrom('', 'early 8.8.8.8\n', '\n'),
    )
    .map(([sections, hasLastNewline, early]) => {
      const text = early + sections.join('');
      return hasLastNewline ? text : text.replace(/\r?\n$/, '');
    });
}

const SETTINGS = fc.record({
  cuts: fc.array(fc.nat(), { maxLength: 5 }),
  jobs: fc.constantFrom(1, 1, 1, 1, 1, 2),
  chunkBytes: fc.integer({ min: 1, max: 300 }),
});

describe.each([
  ['w3c', 'c-ip', 's-ip'],
  ['zeek', 'id\\.orig_h', 'id\\.resp_h'],
] as const)('a table with directives: %s', (kind, first, second) => {
  const name = first.replace('\\', '');

  it('equals the twin for all logs, chunks, jobs and policies', async () => {
    await fc.assert(
      fc.asyncProperty(
        logs(kind, name),
        fc.constantFrom<string[]>([first], [first, second]),
        fc.constantFrom<InvalidPolicy>('keep', 'keep', 'drop'),
        SETTINGS,
        async (text, fields, onInvalid, settings) => {
          const options = optionsOf(kind, fields, onInvalid);
          const actual = await enrich([text], options, settings);
          if (actual.error !== undefined) {
            // The first header may have none of the fields.
            expect(actual.error).toMatchObject({ code: 'E_USAGE', message: expect.stringContaining('has no column') });
            return;
          }
          const twin = expected(text, kind, options);
          expect(actual.output).toBe(twin.output);
          expect(actual.counts).toEqual(twin.counts);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('equals the twin for chunks of one byte, and in the library', async () => {
    await fc.assert(
      fc.asyncProperty(logs(kind, name), async (text) => {
        const options = optionsOf(kind, [first]);
        const actual = await enrich([text], options, { cuts: everyByte(text), chunkBytes: 7 });
        if (actual.error !== undefined) return;
        const twin = expected(text, kind, options);
        expect(actual.output).toBe(twin.output);
        let output = '';
        const enricher = new LineEnricher(release.file, options, (part) => {
          output += Buffer.from(part).toString('latin1');
        });
        for (let message = 0; message < 2; message++) {
          output = '';
          enricher.reset();
          enricher.write(Buffer.from(text, 'latin1'));
          enricher.end();
          expect(output).toBe(twin.output);
        }
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('is filtered: directives are always passed on', async () => {
    const filter = { kind: 'filter', countries: new Set(['US']), selectsEu: false, isInverted: false } as const;
    const head = kind === 'w3c' ? '#Fields: c-ip x\r\n' : '#separator \\x09\n#fields\tid.orig_h\tx\n#types\taddr\tx\n';
    const rows: string[] = kind === 'w3c' ? ['8.8.8.8 1\r\n', '193.0.6.139 2\n'] : ['8.8.8.8\t1\n', '193.0.6.139\t2\n'];
    const options = { ...optionsOf(kind, [first], 'drop'), add: [], query: filter };
    const { output } = await enrich([`\xef\xbb\xbf${head}${rows.join('')}${head}\n${rows[1]}`, head], options);
    expect(output).toBe(`\xef\xbb\xbf${head}${rows[0]}${head}${head}`);
  });

  it('names the line of a record that does not match the header', async () => {
    const head = kind === 'w3c' ? '#Version: 1.0\n#Fields: c-ip x\n' : '#fields\tid.orig_h\tx\n#types\taddr\tx\n';
    const row = kind === 'w3c' ? '8.8.8.8 1\n' : '8.8.8.8\t1\n';
    const { error } = await enrich([`${head}${row}${head}${row}8.8.8.8\n`], optionsOf(kind, [first], 'fail'));
    expect(error).toMatchObject({
      code: 'E_BAD_INPUT',
      message:
        'log 0, line 7: the record has 1 cells, but the header 2; fix it, or choose the policy keep or drop for such lines',
    });
    const early = await enrich([row], optionsOf(kind, [first], 'fail'));
    expect(early.error).toMatchObject({
      message:
        'log 0, line 1: there is no header before the record; fix it, or choose the policy keep or drop for such lines',
    });
  });
});

describe('a table with directives', () => {
  it('that cannot be read is refused', async () => {
    const cases: [Kind, string, string][] = [
      ['w3c', '#Fields: date x\n', 'log 0 has no column "c-ip"; its columns are date, x. Choose one with --field'],
      ['w3c', '#Fields: c-ip geo_is_eu\n', 'already has a column "geo_is_eu"'],
      ['w3c', `#Fields: c-ip ${'x'.repeat(600)}\n`, 'a line that begins with "#" is longer than 500 bytes'],
      ['zeek', '#separator ab\n', 'has the separator "ab", which is not supported'],
      ['zeek', '#unset_field\tNULL\n', 'has the value "NULL" for no value; it must be "-"'],
    ];
    for (const [kind, text, message] of cases) {
      const field = kind === 'w3c' ? 'c-ip' : 'id\\.orig_h';
      const { error } = await enrich([text], optionsOf(kind, [field]), { maxLineBytes: 500 });
      expect(error).toMatchObject({ message: expect.stringContaining(message) });
    }
  });

  it('keeps its order with several jobs while headers change', async () => {
    const section = (index: number): string => {
      const columns = index % 2 === 0 ? ['c-ip', 'n'] : ['n', 'date', 'c-ip'];
      const row = (n: number): string => (index % 2 === 0 ? `8.8.8.8 ${n}` : `${n} d 193.0.6.139`);
      return `#Fields: ${columns.join(' ')}\n${Array.from({ length: 3000 }, (_, n) => `${row(n)}\n`).join('')}`;
    };
    const text = Array.from({ length: 8 }, (_, index) => section(index)).join('');
    const options = optionsOf('w3c', ['c-ip']);
    const twin = expected(text, 'w3c', options);
    const actual = await enrich([text], options, { jobs: 3, chunkBytes: 5000 });
    expect(actual.output === twin.output).toBe(true);
    expect(actual.counts).toEqual(twin.counts);
  });
});
