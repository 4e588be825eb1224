import { expect, test } from 'vitest';
import { isDate } from '../../src/country/country.js';

test.each([
  ['2020-02-01', true],
  ['2024-02-29', true],
  ['2000-02-29', true],
  ['2023-02-29', false],
  ['1900-02-29', false],
  ['2023-1-1', false],
  ['20230101', false],
  ['2023-01-01T00:00:00Z', false],
  ['2023-01-01\n', false],
])('isDate(%j) is %s', (text, expected) => {
  expect(isDate(text)).toBe(expected);
});
