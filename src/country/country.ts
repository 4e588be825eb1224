/** Countries: codes, names, dated membership in groups of countries, and what sources write for them. */
import { misuse } from '../errors.js';

/** A country or territory as of a date. */
export interface Country {
  /** ISO 3166-1 alpha-2, upper case, or `XK`. */
  code: string;
  /** English short name in everyday use. */
  name: string;
  /** Whether it is part of the European Union on the date of the table. */
  isEu: boolean;
}

/** The groups of countries that lists may name: the European Union, and the European Economic Area. */
export const GROUPS = ['EU', 'EEA'] as const;
export type CountryGroup = (typeof GROUPS)[number];

/** One uninterrupted period in which a country or territory is part of a group. */
export interface Membership {
  group: CountryGroup;
  /** ISO 3166-1 alpha-2 code. */
  code: string;
  /** First day of membership, `YYYY-MM-DD`. */
  from: string;
  /** First day after membership, `YYYY-MM-DD`; undefined if it continues. */
  until: string | undefined;
  /** The treaty or decision that defines it. */
  basis: string;
}

/** The reference tables about countries. */
export interface CountryReference {
  /** Name by code, in ascending order of the codes. */
  countries: ReadonlyMap<string, string>;
  memberships: readonly Membership[];
  /** Code by the text that a source may write instead, in upper case; empty if that text names no country. */
  aliases: ReadonlyMap<string, string>;
}

/**
 * Whether a text is a calendar date, `YYYY-MM-DD` (ISO 8601, extended format). Such texts sort in the order of their dates, so
 * `<` compares them.
 *
 * @returns false for any other text, such as `2023-02-29` and `2023-2-9`
 */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  // `Date` accepts some dates that do not exist, and moves them into the next month.
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/**
 * Whether a country or territory is part of a group on a date.
 *
 * @param memberships the tables of `data/reference`
 * @param code ISO 3166-1 alpha-2 code, upper case
 * @param asOf the date, `YYYY-MM-DD`
 * @returns false for a code that is not in the tables
 */
export function isMember(
  memberships: readonly Membership[],
  code: string,
  asOf: string,
  group: CountryGroup = 'EU',
): boolean {
  return memberships.some(
    (row) =>
      row.code === code && row.group === group && row.from <= asOf && (row.until === undefined || asOf < row.until),
  );
}

/**
 * Returns every country as of a date, by code, in ascending order of the codes.
 *
 * @param reference the names and memberships
 * @param asOf the date, `YYYY-MM-DD`
 * @throws AtlasError E_USAGE if `asOf` is not a calendar date
 */
export function countryTable(
  reference: Pick<CountryReference, 'countries' | 'memberships'>,
  asOf: string,
): ReadonlyMap<string, Country> {
  if (!isDate(asOf)) throw misuse(`as-of date "${asOf}": write a calendar date as YYYY-MM-DD`);
  const table = new Map<string, Country>();
  for (const [code, name] of reference.countries) {
    table.set(code, { code, name, isEu: isMember(reference.memberships, code, asOf) });
  }
  return table;
}

/** Returns the text with ASCII letters in upper case. Unicode rules would turn the ligature `ﬁ` into the code `FI`. */
function upperCase(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/**
 * Resolves the country code of a source.
 *
 * @param reference the codes and aliases
 * @param rawCode what the source writes; letter case and surrounding white space are ignored
 * @returns the ISO code; `none` if the text is known to name no country (`EU`, `ZZ`, `-`, …); `unknown` if it is in no table,
 *   which the caller counts, reports, and treats as no country
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
