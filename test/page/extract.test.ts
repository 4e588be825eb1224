import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AddressReader, type Entry } from '../../src/page/extract.js';
import { addressesIn, isAddress, TEXT } from '../support/text-twin.js';

/** Reads a text in pieces of a size. */
function read(text: string, size = text.length || 1, limit = 1_000_000) {
  const reader = new AddressReader(limit);
  const entries: Entry[] = [];
  for (let at = 0; at < text.length; at += size) entries.push(...reader.read(text.slice(at, at + size)));
  entries.push(...reader.end());
  return { entries, lines: reader.linesWithoutAddress, isFull: reader.isFull };
}

const found = (text: string) => read(text).entries.map(({ line, text: word, valid }) => [line, word, valid]);

describe('addresses in text', () => {
  it.each<[string, unknown[]]>([
    ['8.8.8.8', [[1, '8.8.8.8', true]]],
    [
      '8.8.8.8\n2001:db8::1\r\n\n::1',
      [
        [1, '8.8.8.8', true],
        [2, '2001:db8::1', true],
        [4, '::1', true],
      ],
    ],
    ['"8.8.8.8","x"', [[1, '8.8.8.8', true]]],
    [
      'ip=8.8.8.8;gw=1.1.1.1',
      [
        [1, '8.8.8.8', true],
        [1, '1.1.1.1', true],
      ],
    ],
    ['8.8.8.8 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 5', [[1, '8.8.8.8', true]]],
    ['8.8.8.8:443', [[1, '8.8.8.8', true]]],
    ['[2001:db8::1]:443', [[1, '2001:db8::1', true]]],
    ['from 8.8.8.8.', [[1, '8.8.8.8', true]]],
    ['8.8.8.0/24', [[1, '8.8.8.0', true]]],
    ['{"ip":"::ffff:1.2.3.4"}', [[1, '::ffff:1.2.3.4', true]]],
    ['https://8.8.8.8/x', [[1, '8.8.8.8', true]]],
    ['8.8.8.8 "GET /" 200 "Mozilla/5.0 Chrome/120.0.0.0"', [[1, '8.8.8.8', true]]],
    [
      '10.0.0.1.50550 > 8.8.8.8.53: 4242+',
      [
        [1, '10.0.0.1', true],
        [1, '8.8.8.8', true],
      ],
    ],
    ['user from ::ffff:8.8.8.8:60495', [[1, '::ffff:8.8.8.8', true]]],
    ['fe80::1%eth0', [[1, 'fe80::1', true]]],
    // A list may have it, and text of a program has it often.
    ['::', [[1, '::', true]]],
    ['std:: string', []],
    // A single word that is not an address is reported; other text is not.
    ['256.1.1.1', [[1, '256.1.1.1', false]]],
    ['01.2.3.4', [[1, '01.2.3.4', false]]],
    ['8.8.8.8-8.8.8.9', [[1, '8.8.8.8-8.8.8.9', false]]],
    ['=cmd()', [[1, '=cmd()', false]]],
    ['ip,name', []],
    ['no address here at 12:34:56', []],
    ['', []],
    ['\n\n \n', []],
  ])('%j', (text, expected) => {
    expect(found(text)).toEqual(expected);
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

  it('has the same addresses for every split', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 50 }), (parts, size) => {
        const whole = parts.join('');
        expect(read(whole, size)).toEqual(read(whole));
      }),
    );
  });

  it('has the addresses that the naive twin of `enrich --format text` finds', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          TEXT,
          text.map((parts) => parts.join('')),
        ),
        (lines) => {
          const found = read(lines).entries.filter(({ valid }) => valid);
          const expected = lines.split('\n').flatMap((line, index) => {
            const inText = addressesIn(line);
            // A line of a list may also be an address without digits.
            const addresses = inText.length === 0 && isAddress(line.trim()) ? [line.trim()] : inText;
            return addresses.map((address) => [index + 1, address]);
          });
          expect(found.map(({ line, text: word }) => [line, word])).toEqual(expected);
        },
      ),
      { numRuns: Number(process.env.FUZZ_RUNS ?? 500) },
    );
  });

  it.each([
    ['8.8.8.8', 1],
    ['version 8.8.8.8', 0],
    ['~8.8.8.8', 0],
    ['Chrome/8.8.8.8', 0],
    ['name/8.8.8.8:8020', 1],
    ['UDP/8.8.8.8/50605', 1],
    ['UDP/8.8.8.8/50605x', 0],
    ['::ffff:8.8.8.8:60495', 1],
  ])('%s is read as a whole wherever a long line is cut', (part, count) => {
    for (let before = 65_400; before < 65_540; before++) {
      const { entries } = read(
        `${'x '.repeat(before / 2)}${' '.repeat(before % 2)}${part} ${'y'.repeat(200)}\n`,
        65_536,
      );
      expect([before, entries.length]).toEqual([before, count]);
    }
  });
});

describe('hostile text', () => {
  const MEGABYTES = 10_000_000;

  it.each<[string, string, number]>([
    ['one word', 'a'.repeat(MEGABYTES), 0],
    ['one word of digits and dots', '1.'.repeat(MEGABYTES / 2), 0],
    ['colons', ':'.repeat(MEGABYTES), 0],
    ['addresses on one line', '8.8.8.8 '.repeat(MEGABYTES / 8), MEGABYTES / 8],
    ['an address after a long word', `${'x'.repeat(MEGABYTES)} 8.8.8.8`, 1],
  ])('of ten megabytes on one line: %s', (_, text, count) => {
    const { entries, lines } = read(text, 32_768, 2_000_000);
    expect([entries.filter(({ valid }) => valid).length, entries.filter(({ valid }) => !valid).length]).toEqual([
      count,
      0,
    ]);
    expect(lines).toBe(count === 0 ? 1 : 0);
  });
});
