/** Countries: their codes, names and membership as of a day, and what sources write for them. */
import { AtlasError } from '../errors.js';
import { isDate } from './date.js';
import { isEuMember, type Membership } from './membership.js';

/** A country or territory, as an answer names it. */
export interface Country {
  /** ISO 3166-1 alpha-2, upper case, or `XK`. */
  code: string;
  /** English short name as people know it. */
  name: string;
  /** Whether it is part of the European Union, as of the day the table was made for. */
  isEu: boolean;
}

/** The reference tables about countries. */
export interface CountryReference {
  /** Name by code, in ascending order of the codes. */
  countries: ReadonlyMap<string, string>;
  memberships: readonly Membership[];
  /** Code by what a source may write instead of it, in upper case; the empty text where that names no country. */
  aliases: ReadonlyMap<string, string>;
}

/**
 * Every country as of a day, by code, in ascending order of the codes.
 *
 * @param reference the names and memberships
 * @param asOf the day, `YYYY-MM-DD`
 * @throws AtlasError E_USAGE where `asOf` is no day of the calendar
 */
export function countryTable(
  reference: Pick<CountryReference, 'countries' | 'memberships'>,
  asOf: string,
): ReadonlyMap<string, Country> {
  if (!isDate(asOf)) throw new AtlasError('E_USAGE', `as-of date "${asOf}": write a day of the calendar as YYYY-MM-DD`);
  const table = new Map<string, Country>();
  for (const [code, name] of reference.countries) {
    table.set(code, { code, name, isEu: isEuMember(reference.memberships, code, asOf) });
  }
  return table;
}

/** ASCII letters in upper case. Unicode's upper case would make a code of other letters: `ﬁ`, a ligature, becomes `FI`. */
function upperCase(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/**
 * What a source means by its country code.
 *
 * @param reference the codes and aliases
 * @param rawCode what the source writes; the case of its letters and blanks around it do not matter
 * @returns the ISO code; `none` where the text is known to name no country (`EU`, `ZZ`, `-`, …); `unknown` where it is in no
 *   table, which the caller counts, reports and treats as no country
 */
export function resolveCountry(
  reference: Pick<CountryReference, 'countries' | 'aliases'>,
  rawCode: string,
): { code: string } | 'none' | 'unknown' {
  const text = upperCase(rawCode.trim());
  if (reference.countries.has(text)) return { code: text };
  const code = reference.aliases.get(text);
  if (code === undefined) return 'unknown';
  return code === '' ? 'none' : { code };
}
