import { describe, expect, it } from 'vitest';
import { ageDays, ageText, parseMaxAge, releaseAge, staleWarning } from '../../src/database/age.js';
import type { Manifest } from '../../src/database/release.js';
import { DEFAULT_MAX_AGE_DAYS } from '../../src/limits.js';

const manifest = { id: '2026-01-10-0123456789ab', as_of: '2026-01-10' } as Manifest;
const DAY = 86_400_000;
const START = Date.UTC(2026, 0, 10);

describe('the age of a release', () => {
  it.each([
    [START, 0, 0],
    [START + 999, 0, 0],
    [START + 1000, 1, 0],
    [START + DAY - 1, 86_399, 0],
    [START + DAY, 86_400, 1],
    [START - DAY, 0, 0],
    [START + 400 * DAY, 400 * 86_400, 400],
  ])('at %d', (now, seconds, days) => {
    expect(releaseAge(manifest, now)).toBe(seconds);
    expect(ageDays(seconds)).toBe(days);
  });

  it('gives a warning above the limit, not at it', () => {
    expect(staleWarning(manifest, 7, undefined, START - DAY)).toMatch(
      /is as of 2026-01-10, and today is 2026-01-0\d: check the clock/,
    );
    expect(staleWarning(manifest, 7, undefined, START + 8 * DAY - 1)).toBeUndefined();
    expect(staleWarning(manifest, 7, undefined, START + 8 * DAY)).toMatch(
      /2026-01-10-0123456789ab is 8 days old, more than 7/,
    );
    expect(staleWarning(manifest, 0, undefined, START + DAY)).toMatch(/1 days old/);
  });

  it('says what it means, as measured: 0.97 % after 165 days, 1.8 % after 372, 3.0 % after 725', () => {
    const meaning = (percent: string): string => `: about ${percent} % of IPv4 addresses have changed country since`;
    expect(ageText(0)).toBe('0 days old');
    expect(ageText(1)).toBe(`1 day old${meaning('0.019')}`);
    expect(ageText(165)).toBe(`165 days old${meaning('0.96')}`);
    expect(ageText(372)).toBe(`372 days old${meaning('1.8')}`);
    expect(ageText(725)).toBe(`725 days old${meaning('3')}`);
    expect(staleWarning(manifest, 7, undefined, START + 165 * DAY)).toContain('about 0.96 % of IPv4 addresses');
  });

  it('has a configurable limit', () => {
    expect(parseMaxAge(undefined, '--max-age')).toBe(DEFAULT_MAX_AGE_DAYS);
    expect(parseMaxAge('0', '--max-age')).toBe(0);
    expect(parseMaxAge('1.5', '--max-age')).toBe(1.5);
    for (const text of ['', '-1', 'x', '1e3', ' 1', 'Infinity', '9'.repeat(400)]) {
      expect(() => parseMaxAge(text, '--max-age')).toThrow(/--max-age is .*write an age in days/);
    }
  });
});
