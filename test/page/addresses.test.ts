import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressFinder, type Entry } from '../../src/page/addresses.js';
import { addressesIn, isAddress, TEXT } from '../support/text-twin.js';

/** Reads a text in pieces of a size. */
function read(text: string, size = text.length || 1, limit = 1_000_000) {
  const entries: Entry[] = [];
  const finder = new AddressFinder(undefined, undefined, limit, (entry) => entries.push(entry));
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) finder.read(bytes.subarray(at, at + size));
  finder.end();
  return { entries, lines: finder.linesWithoutAddress, isFull: finder.isFull };
}

describe('addresses in text', () => {
  it.each<[string, unknown[]]>([
    ['8.8.8.8\n2001:db8::1\r\n\n', ['1 8.8.8.8 true', '2 2001:db8::1 true']],
    ['ip=8.8.8.8;gw=1.1.1.1', ['1 8.8.8.8 true', '1 1.1.1.1 true']],
    // A list may have it, and text of a program has it often.
    ['::', ['1 :: true']],
    ['std:: string', []],
    // A single word that is not an address is reported; other text is not.
    ['256.1.1.1\n01.2.3.4', ['1 256.1.1.1 false', '2 01.2.3.4 false']],
    ['8.8.8.8-8.8.8.9\n=cmd()', ['1 8.8.8.8 true', '2 =cmd() false']],
    ['ip,name\nno address here at 12:34:56\n\n \n', []],
  ])('%j', (text, expected) => {
    expect(read(text).entries.map(({ line, text: word, valid }) => `${line} ${word} ${valid}`)).toEqual(expected);
  });

  it('counts the lines that have no address and more than one word', () => {
    expect(read('ip,name\n8.8.8.8,a\nnothing, here\n\nword\n').lines).toBe(2);
  });

  it('keeps a hundred characters of a text that is not an address', () => {
    expect(read('x'.repeat(5_000)).entries).toEqual([{ line: 1, text: 'x'.repeat(100), valid: false }]);
  });

  it('stops at the limit', () => {
    const { entries, isFull } = read('1.1.1.1\n'.repeat(50), 7, 20);
    expect([entries.length, isFull, entries.at(-1)?.line]).toEqual([20, true, 20]);
  });
});

describe('text in pieces', () => {
  const text = fc.array(
    fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.constantFrom('\n', '\r\n', ' ', ',', ';', '"', '.', ':', '%', 'ab', '12:30:59', '=x', '1.2.3', '/24', '-'),
      fc.string({ maxLength: 5 }),
    ),
    { maxLength: 60 },
  );

  it('has the addresses that the naive twin of `enrich --format text` finds, for every split', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          TEXT,
          text.map((parts) => parts.join('')),
        ),
        fc.integer({ min: 1, max: 50 }),
        (lines, size) => {
          const found = read(lines, size).entries.filter(({ valid }) => valid);
          const expected = lines.split('\n').flatMap((line, index) => {
            const inText = addressesIn(line);
            // A line of a list may also be an address without digits.
            const addresses = inText.length === 0 && isAddress(line.trim()) ? [line.trim()] : inText;
            return addresses.map((address) => [index + 1, address]);
          });
          expect(found.map(({ line, text: word }) => [line, word])).toEqual(expected);
        },
      ),
      { numRuns: Number(process.env.FUZZ_RUNS ?? 25) },
    );
  });
});

describe('hostile text', () => {
  const MEGABYTES = 4_000_000;

  it.each<[string, string, number]>([
    ['one word', 'a'.repeat(MEGABYTES), 0],
    ['one word of digits and dots', '1.'.repeat(MEGABYTES / 2), 0],
    ['colons', ':'.repeat(MEGABYTES), 0],
    ['addresses on one line', '8.8.8.8 '.repeat(MEGABYTES / 8), MEGABYTES / 8],
    ['an address after a long word', `${'x'.repeat(MEGABYTES)} 8.8.8.8`, 1],
  ])('of four megabytes on one line: %s', (_, text, count) => {
    const { entries, lines } = read(text, 32_768, 2_000_000);
    expect([entries.filter(({ valid }) => valid).length, entries.filter(({ valid }) => !valid).length]).toEqual([
      count,
      0,
    ]);
    expect(lines).toBe(count === 0 ? 1 : 0);
  });
});
