/** Checks that a source's countries are country codes. */
import { type CountryReference, resolveCountry } from '../../src/country/country.js';
import { AtlasError } from '../../src/errors.js';
import type { IngestedSource } from '../stage.js';

/** Share of a source's rows that must name a country: fewer mean a wrong column or another kind of code. */
const MIN_COUNTRY_ROWS_SHARE = 0.5;

/**
 * Checks that enough rows of a source name a country.
 *
 * @throws AtlasError E_BAD_INPUT if fewer than MIN_COUNTRY_ROWS_SHARE of the rows do
 */
export function checkUsableCountries(source: IngestedSource, reference: CountryReference): void {
  const { id, codes, rows } = source;
  if (source.v4.count + source.v6.count === 0) return; // networks, or a list
  const rowsOf = new Uint32Array(codes.length);
  for (const { value } of [source.v4, source.v6]) for (const code of value) rowsOf[code]!++;
  const withoutCountry = codes
    .map((code, index) => ({ code, rows: rowsOf[index]! }))
    .filter(({ code }) => typeof resolveCountry(reference, code) !== 'object')
    .sort((a, b) => b.rows - a.rows);
  const missing = withoutCountry.reduce((sum, each) => sum + each.rows, 0);
  if (rows - missing >= MIN_COUNTRY_ROWS_SHARE * rows) return;
  const examples = withoutCountry.slice(0, 3).map(({ code }) => JSON.stringify(code));
  const threeLetters = withoutCountry.filter(({ code }) => /^[A-Z]{3}$/.test(code));
  const isAlpha3 = threeLetters.reduce((sum, each) => sum + each.rows, 0) > missing / 2;
  const advice = isAlpha3
    ? 'these are country codes of three letters; ipatlas reads codes of two letters (ISO 3166-1 alpha-2), such as US'
    : 'check which column of the source\'s "format" is the country';
  throw new AtlasError(
    'E_BAD_INPUT',
    `source ${id}: ${missing} of ${rows} rows name no country (${examples.join(', ')}); ${advice}`,
  );
}
