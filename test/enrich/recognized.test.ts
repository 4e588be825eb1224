/** What a twin writes is found: random tables, documents, lines of JSON and lists, with the field at random places. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitAlternatives } from '../../src/enrich/field-path.js';
import { findFields } from '../../src/enrich/find-fields.js';
import { addressNames } from '../../src/enrich/known-logs.js';

const RUNS = Math.ceil(Number(process.env.FUZZ_RUNS ?? 100));
const names = addressNames();

/** A record has an address at one key or more, and other values at others. */
const address = fc.oneof(fc.ipV4(), fc.ipV6()).filter((text) => !text.startsWith('0.'));
const other = fc.oneof(
  fc.constantFrom('ann', '2026-01-01', '12.5', 'GET /', '', 'a, b', 'x;y', 'say "hi"', '1.2.3', '10:20:30'),
  fc.integer().map(String),
);
const key = fc.stringMatching(/^[a-z]{3,9}(?:_[a-z]{2,5})?$/).filter((name) => !/ver|mask|build|oid|ip$/.test(name));
const written = fc
  .uniqueArray(fc.oneof(key, fc.constantFrom('client_ip', 'src', 'dst', 'server_addr')), { minLength: 2, maxLength: 7 })
  .chain((keys) =>
    fc.record({
      keys: fc.constant(keys),
      addresses: fc.subarray(keys, { minLength: 1, maxLength: 2 }),
      rows: fc.array(fc.tuple(...keys.map(() => fc.tuple(address, other))), { minLength: 2, maxLength: 20 }),
      delimiter: fc.constantFrom(',', ';', '\t', '|'),
      isQuoted: fc.boolean(),
    }),
  )
  .map(({ keys, addresses, rows, ...rest }) => ({
    ...{ keys, addresses, ...rest },
    rows: rows.map((row) => row.map(([ip, text], at) => (addresses.includes(keys[at]!) ? ip : text))),
  }));

const objectsOf = (keys: string[], rows: string[][]) =>
  rows.map((row) => Object.fromEntries(keys.map((name, at) => [name, row[at]])));

function expectFound(text: string, format: string, addresses: string[]) {
  const found = findFields(text, true, {}, names)!;
  expect({ text, format: found?.format }).toEqual({ text, format });
  const fields = [...found.field!.flatMap(splitAlternatives), ...found.others];
  expect(fields, text).toEqual(expect.arrayContaining(addresses));
  return found;
}

describe('the field that a twin writes is found, or named as another one', () => {
  it('in tables', () => {
    fc.assert(
      fc.property(written, ({ keys, rows, addresses, delimiter, isQuoted }) => {
        const cell = (text: string) =>
          isQuoted || text.includes(delimiter) || text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text;
        const text = [keys, ...rows].map((row) => `${row.map(cell).join(delimiter)}\n`).join('');
        expectFound(text, delimiter === '\t' ? 'tsv' : 'csv', addresses);
      }),
      { numRuns: RUNS },
    );
  });

  it('in lines of JSON and in documents', () => {
    const depth = fc.integer({ min: 0, max: 2 });
    fc.assert(
      fc.property(written, depth, ({ keys, rows, addresses }, levels) => {
        const objects = objectsOf(keys, rows);
        const lines = objects.map((one) => `${JSON.stringify(one)}\n`).join('');
        expectFound(lines, 'jsonl', addresses);
        const document = levels === 0 ? objects : levels === 1 ? { data: objects } : { a: { rows: objects }, b: [{}] };
        expectFound(JSON.stringify(document, null, levels), 'json', addresses);
      }),
      { numRuns: RUNS },
    );
  });

  it('in lists', () => {
    fc.assert(
      fc.property(fc.array(address, { minLength: 1, maxLength: 30 }), fc.boolean(), (list, hasPrefix) => {
        const text = list.map((one) => `${one}${hasPrefix ? '/32' : ''}\n`).join('');
        expect(findFields(text, true, {}, names)).toMatchObject({ format: 'list' });
      }),
      { numRuns: RUNS },
    );
  });
});
