import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CsvError, parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Dialect, type FilePart, type RowPosition, readRows } from '../../pipeline/source-formats/csv-rows.js';
import { MAX_CSV_ROW_BYTES } from '../../src/limits.js';
import { dir, giveFolders } from '../support/own-folder.js';

interface Row extends RowPosition {
  cells: string[];
}

giveFolders();

async function rowsOf(content: Buffer, dialect: Dialect, part?: FilePart): Promise<Row[] | string> {
  const path = join(dir, 'file.csv');
  writeFileSync(path, content);
  const rows: Row[] = [];
  try {
    await readRows(path, 'file.csv', dialect, (cells, position) => rows.push({ cells, ...position }), part);
  } catch (error) {
    expect(error).toMatchObject({ code: 'E_BAD_INPUT' });
    return 'error';
  }
  return rows;
}

/** The same by csv-parse alone, which tells where a row ends; the lines are counted in the bytes before that. */
function twin(content: Buffer, dialect: Dialect): Row[] | string {
  const options = {
    bom: true,
    comment: dialect.comment,
    comment_no_infix: true,
    delimiter: dialect.delimiter,
    escape: dialect.quote ?? false,
    info: true as const,
    quote: dialect.quote ?? false,
    record_delimiter: ['\n', '\r\n'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
  };
  let records: { record: string[]; info: { bytes: number } }[];
  try {
    records = parse(content, options) as unknown as typeof records;
  } catch (error) {
    expect(error).toBeInstanceOf(CsvError);
    return 'error';
  }
  let [from, previousLine] = [0, 0];
  return records.map(({ record, info: { bytes } }) => {
    const lines = content.toString('latin1', from, bytes).split('\n').length - 1;
    const line = previousLine + lines + (content[bytes - 1] === 10 ? 0 : 1);
    const breaks = record.join('').split('\n').length - 1;
    const row = { cells: record, previousLine, line, breaks, from, to: bytes };
    [from, previousLine] = [bytes, line];
    return row;
  });
}

const DIALECTS: Dialect[] = [
  { delimiter: ',', quote: '"', comment: null },
  { delimiter: ',', quote: '"', comment: '#' },
  { delimiter: '|', quote: null, comment: '#' },
  { delimiter: '^', quote: ']', comment: null },
];

/** Pieces of which every reading differs from the others if one rule is wrong. */
const pieces = fc.constantFrom(
  ...['a', 'bc', ' ', '\n', '\n', '\n', ',', ',', '|', '^', '"', '"', '""', '",', ',"', '"\n', '\n"', ']', '#', '\n#'],
  ...['\r\n', '\r', 'é', '😀', '\ufeff', '\0', '-', '\\'],
);
const plainPieces = fc.constantFrom('a', 'é', '\n', '\n', ',', ',"b","c""d"\n', '\n"",""\n', '\n#"\n', '\n\n', ' ');
const contents = fc.oneof(
  fc.array(pieces, { maxLength: 30 }).map((each) => Buffer.from(each.join(''))),
  fc.array(plainPieces, { maxLength: 30 }).map((each) => Buffer.from(each.join(''))),
  fc.array(fc.constantFrom(10, 34, 44, 0x61, 0xc3, 0xa9, 0xef, 0xf0, 0x9f, 0xff), { maxLength: 20 }).map(Buffer.from),
);

describe('rows', () => {
  test('and their positions are those of csv-parse', async () => {
    await fc.assert(
      fc.asyncProperty(contents, fc.constantFrom(...DIALECTS), async (content, dialect) => {
        expect(await rowsOf(content, dialect)).toEqual(twin(content, dialect));
      }),
      { seed: 20, numRuns: 300 },
    );
  });

  test.each([
    ['a stray quote', 'é"'],
    ['a lone CR', '\r'],
    ['nothing else', ''],
  ])('of several chunks are those of csv-parse, with %s in a late one', async (_, stray) => {
    const lines = Array.from({ length: 20_000 }, (_, i) =>
      i % 7 === 0 ? '# é' : `${i},é${'x'.repeat(i % 11)},"a, ""b"""`,
    );
    const content = Buffer.from(`${lines.join('\n')}\n${stray}\n${lines.slice(0, 9).join('\n')}`);
    const [rows, expected] = [await rowsOf(content, DIALECTS[1]!), twin(content, DIALECTS[1]!)];
    expect(rows.length).toBeGreaterThan(15_000);
    expect(JSON.stringify(rows) === JSON.stringify(expected)).toBe(true);
  });

  test('are read up to the limit of their length', async () => {
    const fits = `${'a'.repeat(MAX_CSV_ROW_BYTES)}\nb`;
    expect(await rowsOf(Buffer.from(fits), DIALECTS[0]!)).toHaveLength(2);
    expect(await rowsOf(Buffer.from(`b\n${'a'.repeat(10 * MAX_CSV_ROW_BYTES)}\n`), DIALECTS[0]!)).toBe('error');
  });

  test('of a part begin where the part begins, with a mark of byte order only at the beginning of a file', async () => {
    const content = Buffer.from('\ufeffa,b\n\ufeffc,"d"\n\ufeffe"f\n');
    const whole = await rowsOf(content, DIALECTS[0]!);
    const part = await rowsOf(content, DIALECTS[0]!, { from: 7, to: content.length, line: 1 });
    expect(part).toEqual((whole as Row[]).slice(1));
    expect((part as Row[]).map(({ cells }) => cells)).toEqual([['\ufeffc', 'd'], ['\ufeffe"f']]);
  });
});
