/** Tables for property tests: from well-formed ones to garbage. */
import fc from 'fast-check';
import { DECORATED_LIST } from './nasty-addresses.js';

const CELLS = [
  '8.8.8.8',
  '193.0.6.139',
  '2001:4860:4860::8888',
  '10.0.0.1',
  '::1',
  '90.0.0.1',
  '8.8.8',
  '',
  ' ',
  'x',
  '\0',
  'a b',
  'é',
  '"',
  '""',
  'x"y',
  '\r',
  'y'.repeat(70),
];

const PIECES = ['"', '""', '"""', '\n', '\r\n', '\r', '\0', 'x', ' ', '8.8.8.8', '"8.8.8.8"', '::1', 'z'.repeat(64)];

export interface NastyTable {
  delimiter: string;
  /** One character for each byte. */
  text: string;
}

/**
 * Tables with three columns, of which the second is `ip`. Each cell is written plainly, in quotes, or wrongly.
 *
 * @param rows most records
 * @param isDecorated whether addresses also are in other text
 */
export function nastyTables(rows: number, isDecorated = false): fc.Arbitrary<NastyTable> {
  return fc.constantFrom(',', '\t', ';', '|', ' ', 'x').chain((delimiter) => {
    const plain = fc.constantFrom(...CELLS.filter((text) => !/["\r]/.test(text) && !text.includes(delimiter)));
    const inQuotes = fc
      .tuple(fc.constantFrom(...CELLS, '\n', '\r\n', delimiter, `a${delimiter}"b"\n`))
      .map(([text]) => `"${text.replaceAll('"', '""')}"`);
    const wrong = fc.array(fc.constantFrom(...PIECES, delimiter), { maxLength: 4 }).map((pieces) => pieces.join(''));
    const decorated = DECORATED_LIST.map((text) => (text.includes(delimiter) ? `"${text}"` : text));
    const cell = fc.oneof(
      { arbitrary: decorated, weight: isDecorated ? 12 : 0 },
      { arbitrary: plain, weight: 6 },
      { arbitrary: inQuotes, weight: 3 },
      { arbitrary: wrong, weight: 1 },
    );
    const whole = fc.array(cell, { minLength: 3, maxLength: 3 });
    const record = fc
      .tuple(
        fc.oneof({ arbitrary: whole, weight: 9 }, { arbitrary: fc.array(cell, { maxLength: 5 }), weight: 1 }),
        fc.constantFrom('\n', '\n', '\r\n'),
      )
      .map(([cells, ending]) => Buffer.from(cells.join(delimiter) + ending).toString('latin1'));
    const bytes = fc.uint8Array({ maxLength: 100 }).map((garbage) => Buffer.from(garbage).toString('latin1'));
    const line = fc.oneof({ arbitrary: record, weight: 30 }, { arbitrary: bytes, weight: 1 });
    const header = fc
      .tuple(fc.constantFrom('', '', '\xef\xbb\xbf', '\n', '\xef\xbb\xbf\r\n'), fc.constantFrom('\n', '\r\n'))
      .map(([before, ending]) => `${before}a${delimiter}"ip"${delimiter}c${ending}`);
    return fc
      .tuple(header, fc.array(line, { maxLength: rows }), fc.boolean())
      .map(([head, records, hasLastNewline]) => {
        const text = head + records.join('');
        return { delimiter, text: hasLastNewline ? text : text.replace(/\r?\n$/, '') };
      });
  });
}
