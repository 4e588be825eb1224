import { describe, expect, test } from 'vitest';
import { loadReference } from '../../pipeline/config/reference.js';
import { isReason, REASONS } from '../../src/country/assignment.js';
import { countryTable, resolveCountry } from '../../src/country/country.js';
import type { AtlasError } from '../../src/errors.js';

const reference = loadReference();
const { countries, aliases } = reference;

/** Every pair of capital letters. */
const LETTERS = Array.from({ length: 26 }, (_, i) => String.fromCharCode(65 + i));
const PAIRS = LETTERS.flatMap((a) => LETTERS.map((b) => a + b));

/** The data of the runtime's Unicode CLDR, which is independent of ours. */
const cldrNames = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
const cldrRegion = (code: string): string => new Intl.Locale(`und-${code}`).region!;

describe('codes and names', () => {
  test('codes are those of ISO 3166-1 in CLDR, and XK', () => {
    // Regions of CLDR that are not countries of ISO 3166-1: exceptional reservations, groupings, pseudo-locales.
    const noCountry = new Set('AC CP CQ DG EA EU EZ IC QO TA UN XA XB ZZ'.split(' '));
    const expected = PAIRS.filter(
      (code) => cldrNames.of(code) !== undefined && cldrRegion(code) === code && !noCountry.has(code),
    );
    expect([...countries.keys()]).toEqual(expected);
    expect(countries.size).toBe(250);
  });

  test('names are those of CLDR, with listed exceptions', () => {
    const differing = [...countries].filter(([code, name]) => name !== cldrNames.of(code));
    expect(Object.fromEntries(differing)).toEqual({
      AG: 'Antigua and Barbuda',
      BA: 'Bosnia and Herzegovina',
      BL: 'Saint Barthélemy',
      CD: 'Democratic Republic of the Congo',
      CG: 'Republic of the Congo',
      CI: "Côte d'Ivoire",
      GS: 'South Georgia and the South Sandwich Islands',
      HK: 'Hong Kong',
      HM: 'Heard Island and McDonald Islands',
      KN: 'Saint Kitts and Nevis',
      LC: 'Saint Lucia',
      MF: 'Saint Martin',
      MM: 'Myanmar',
      MO: 'Macao',
      PM: 'Saint Pierre and Miquelon',
      PS: 'Palestine',
      SH: 'Saint Helena',
      SJ: 'Svalbard and Jan Mayen',
      ST: 'São Tomé and Príncipe',
      TC: 'Turks and Caicos Islands',
      TT: 'Trinidad and Tobago',
      UM: 'United States Minor Outlying Islands',
      VC: 'Saint Vincent and the Grenadines',
      WF: 'Wallis and Futuna',
    });
  });
});

describe('aliases', () => {
  test('of withdrawn codes are those of CLDR, with listed exceptions', () => {
    const expected = new Map(
      PAIRS.filter((code) => cldrRegion(code) !== code).map((code) => [code, cldrRegion(code)] as const),
    );
    expected.delete('QU'); // a private code of CLDR for the EU
    expected.set('FQ', 'TF'); // CLDR: AQ
    expected.set('NT', ''); // CLDR: SA, the first of two
    expected.set('PC', ''); // CLDR: FM, the first of four
    for (const [alias, code] of expected) expect([alias, aliases.get(alias)]).toEqual([alias, code]);
    expect(expected.size).toBeGreaterThan(20);
  });

  test.each([
    ['us', { code: 'US' }],
    [' gb ', { code: 'GB' }],
    ['XK', { code: 'XK' }],
    ['UK', { code: 'GB' }],
    ['EL', { code: 'GR' }],
    ['IC', { code: 'ES' }],
    ['NA', { code: 'NA' }], // Namibia, not "not available"
    ['EU', 'none'],
    ['AP', 'none'],
    ['ZZ', 'none'],
    ['XX', 'none'],
    ['UN', 'none'],
    ['??', 'none'],
    ['?', 'none'],
    ['-', 'none'],
    ['', 'none'],
    ['A1', 'none'],
    ['O1', 'none'],
    ['T1', 'none'],
    ['null', 'none'],
    ['\\n', 'none'],
    ['QQ', 'unknown'],
    ['USA', 'unknown'],
    ['Germany', 'unknown'],
    ['__proto__', 'unknown'],
    // Unicode's upper case of these is IE, FI and SS: letters outside ASCII must not become a code.
    ['ıe', 'unknown'],
    ['ﬁ', 'unknown'],
    ['ß', 'unknown'],
  ])('resolveCountry(%j) is %j', (raw, expected) => {
    expect(resolveCountry(reference, raw)).toEqual(expected);
  });

  test('every alias resolves to a code of the table or to none', () => {
    for (const alias of aliases.keys()) {
      const resolved = resolveCountry(reference, alias.toLowerCase());
      if (typeof resolved === 'object') expect(countries.has(resolved.code)).toBe(true);
      else expect(resolved).toBe('none');
    }
  });
});

describe('countryTable', () => {
  test('has every country with its name, and its membership as of the day, in order', () => {
    const table = countryTable(reference, '2020-01-31');
    expect([...table.keys()]).toEqual([...countries.keys()]);
    expect(table.get('GB')).toEqual({ code: 'GB', name: 'United Kingdom', isEu: true });
    expect(table.get('US')).toEqual({ code: 'US', name: 'United States', isEu: false });
    expect(countryTable(reference, '2020-02-01').get('GB')!.isEu).toBe(false);
  });

  test.each(['', '2020', '2020-02-30', 'now'])('refuses the as-of date %j', (asOf) => {
    expect(() => countryTable(reference, asOf)).toThrow(
      expect.objectContaining({ code: 'E_USAGE', message: expect.stringContaining('YYYY-MM-DD') }) as AtlasError,
    );
  });
});

describe('reasons', () => {
  test('are short words in snake case, each with a meaning', () => {
    for (const [reason, meaning] of Object.entries(REASONS)) {
      expect(reason).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(meaning.length).toBeGreaterThan(10);
      expect(isReason(reason)).toBe(true);
    }
  });

  test.each(['', 'Private', 'toString', 'nonsense'])('do not include %j', (text) => {
    expect(isReason(text)).toBe(false);
  });
});
