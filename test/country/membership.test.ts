import { describe, expect, test } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { isMember } from '../../src/country/country.js';

const { countries, memberships } = loadReference();
const isEu = (code: string, asOf: string): boolean => isMember(memberships, code, asOf);
const isEea = (code: string, asOf: string): boolean => isMember(memberships, code, asOf, 'EEA');
const membersOn = (asOf: string, isIn = isEu): string[] => [...countries.keys()].filter((code) => isIn(code, asOf));

const STATES = 'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK'.split(' ');
const TERRITORIES = 'AX GF GP MF MQ RE YT'.split(' ');

/** Returns the day before. */
function dayBefore(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
}

test('today exactly the 27 states and the 7 territories are members', () => {
  expect(STATES).toHaveLength(27);
  expect(membersOn(new Date().toISOString().slice(0, 10))).toEqual([...STATES, ...TERRITORIES].sort());
});

test('the European Economic Area is the Union with Iceland, Liechtenstein and Norway, but not always', () => {
  const today = new Date().toISOString().slice(0, 10);
  expect(membersOn(today, isEea)).toEqual([...membersOn(today), 'IS', 'LI', 'NO'].sort());
  const efta = ['AT', 'AX', 'FI', 'IS', 'NO', 'SE'];
  expect(membersOn('1993-12-31', isEea)).toEqual([]);
  expect(membersOn('1994-01-01', isEea)).toEqual([...membersOn('1994-01-01'), ...efta].sort());
  // In the Union, and not yet in the Area.
  const waiting = (day: string): string[] => membersOn(day).filter((code) => !isEea(code, day));
  expect([waiting('2007-07-31'), waiting('2007-08-01')]).toEqual([['BG', 'RO'], []]);
  expect([waiting('2014-04-11'), waiting('2014-04-12')]).toEqual([['HR'], []]);
  expect(['1995-04-30', '1995-05-01'].map((day) => isEea('LI', day))).toEqual([false, true]);
  expect(['2020-01-31', '2020-02-01'].map((day) => isEea('GB', day))).toEqual([true, false]);
  expect(['CH', 'SJ', 'GI', 'FO', 'GL'].filter((code) => isEea(code, today))).toEqual([]);
});

describe('territories and neighbors that are not members by the wire contract', () => {
  const others = 'AW BL BQ CW FO GL NC PF PM SX TF WF NO IS LI CH GB GI AD MC SM VA XK'.split(' ');
  test.each(others)('%s', (code) => {
    expect(countries.has(code)).toBe(true);
    expect(isEu(code, '2026-11-21')).toBe(false);
  });
});

// Number of member states, without territories, on the day of each enlargement or exit and on the day before.
test.each([
  ['1958-01-01', 0, 6],
  ['1973-01-01', 6, 9],
  ['1981-01-01', 9, 10],
  ['1986-01-01', 10, 12],
  ['1995-01-01', 12, 15],
  ['2004-05-01', 15, 25],
  ['2007-01-01', 25, 27],
  ['2013-07-01', 27, 28],
  ['2020-02-01', 28, 27],
])('on %s the number of member states changes from %i to %i', (date, before, after) => {
  const states = new Set([...STATES, 'GB']);
  const count = (day: string): number => membersOn(day).filter((code) => states.has(code)).length;
  expect([count(dayBefore(date)), count(date)]).toEqual([before, after]);
});

// The first day of membership, and the first day after it.
test.each([
  ['DE', '1958-01-01', undefined],
  ['DK', '1973-01-01', undefined],
  ['GB', '1973-01-01', '2020-02-01'],
  ['GR', '1981-01-01', undefined],
  ['ES', '1986-01-01', undefined],
  ['PT', '1986-01-01', undefined],
  ['AT', '1995-01-01', undefined],
  ['FI', '1995-01-01', undefined],
  ['SE', '1995-01-01', undefined],
  ['AX', '1995-01-01', undefined],
  ['CY', '2004-05-01', undefined],
  ['MT', '2004-05-01', undefined],
  ['PL', '2004-05-01', undefined],
  ['BG', '2007-01-01', undefined],
  ['RO', '2007-01-01', undefined],
  ['HR', '2013-07-01', undefined],
  ['YT', '2014-01-01', undefined],
  ['RE', '1958-01-01', undefined],
  ['MF', '1958-01-01', undefined],
  ['BL', '1958-01-01', '2012-01-01'],
  ['GL', '1973-01-01', '1985-02-01'],
])('%s: in from %s, out from %s', (code, from, until) => {
  expect(isEu(code, dayBefore(from))).toBe(false);
  expect(isEu(code, from)).toBe(true);
  expect(isEu(code, dayBefore(until ?? '2100-01-01'))).toBe(true);
  if (until !== undefined) expect(isEu(code, until)).toBe(false);
});

test('every other row also takes effect exactly on its dates', () => {
  for (const { group, code, from, until } of memberships) {
    const isIn = group === 'EU' ? isEu : isEea;
    expect([code, isIn(code, dayBefore(from)), isIn(code, from)]).toEqual([code, false, true]);
    if (until !== undefined)
      expect([code, isIn(code, dayBefore(until)), isIn(code, until)]).toEqual([code, true, false]);
  }
});

test('each row names a treaty, act or decision with its date', () => {
  for (const { basis } of memberships) {
    expect(basis).toMatch(/Treaty|Decision|Act|Agreement/);
    expect(basis).toMatch(/\d{4}-\d{2}-\d{2}|art\. 126/);
  }
});

test('a code that is in no table is not a member', () => {
  expect(isEu('ZZ', '2026-01-01')).toBe(false);
  expect(isEu('de', '2026-01-01')).toBe(false);
});
