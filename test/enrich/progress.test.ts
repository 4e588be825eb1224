import { describe, expect, it } from 'vitest';
import { emptyCounts } from '../../src/enrich/counts.js';
import { formatBytes, formatDuration, progressLine, summaryText } from '../../src/enrich/progress.js';
import { grouped } from '../../src/text-table.js';

describe('numbers for people', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [209_300_000, '209.3 MB'],
    [5_000_000_000, '5.0 GB'],
    [7.2e15, '7200.0 TB'],
    [452.229, '452 B'],
    [999.7, '1.0 kB'],
  ])('%d bytes are %s', (bytes, expected) => expect(formatBytes(bytes)).toBe(expected));

  it.each<[number | bigint, string]>([
    [999, '999'],
    [-1234567, '-1,234,567'],
    [1234.5678, '1,234.568'],
    [16777216n, '16,777,216'],
  ])('%d has its digits in groups: %s', (number, expected) => expect(grouped(number)).toBe(expected));

  it.each([
    [0.2, '1 s'],
    [59, '59 s'],
    [59.5, '1 min 0 s'],
    [125, '2 min 5 s'],
    [4800, '1 h 20 min'],
  ])('%d seconds are %s', (seconds, expected) => expect(formatDuration(seconds)).toBe(expected));
});

describe('the progress line', () => {
  const counts = { ...emptyCounts(), bytes: 25_000_000, lines: 100_000 };

  it('has a bar and the time left if the size is known', () => {
    expect(progressLine(counts, 100_000_000, 2)).toBe(
      '[#####---------------]  25 %  6 s left  25.0 MB of 100.0 MB  50,000 lines/s',
    );
    expect(progressLine(counts, 25_000_000, 2)).toContain('[####################] 100 %');
    // A file may grow while it is read.
    expect(progressLine(counts, 20_000_000, 2)).toContain('100 %  0 s left  25.0 MB of 20.0 MB  50,000 lines/s');
  });

  it('has the counts if it is not', () => {
    expect(progressLine(counts, undefined, 2)).toBe('25.0 MB  100,000 lines  50,000 lines/s');
    expect(progressLine(emptyCounts(), 0, 0)).toBe('0 B  0 lines  0 lines/s');
  });
});

it('formats the summary', () => {
  const counts = {
    lines: 1_000_000,
    bytes: 209_000_000,
    found: 900_000,
    no_country: 50_000,
    invalid_address: 40_000,
    missing_field: 9_990,
    missing_date: 0,
    damaged_history: 0,
    invalid_line: 10,
  };
  expect(summaryText(counts, 0.5)).toBe(`1,000,000 lines, 209.0 MB in 0.5 s (418.0 MB/s)
  found            900,000
  no country        50,000
  invalid address   40,000
  missing field      9,990
  invalid lines         10
`);
  expect(summaryText(emptyCounts(), 0)).toContain('0 lines, 0 B in 0.0 s (-/s)');
});
