/** The continents of the countries: the table data/reference/continents.csv. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';
import { GROUPS } from './country.js';

export interface Continent {
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`. */
  code: string;
  /** English name. */
  name: string;
}

/** Returns the continent of each country, by country code. */
export function continentTable(): ReadonlyMap<string, Continent> {
  // The table has no quotes, and csv-parse takes as long to load as half of this program.
  const rows = readFileSync(packageFile('data/reference/continents.csv'), 'utf8').matchAll(/^([A-Z]{2}),(.*),(.*)$/gm);
  return new Map(
    [...rows].flatMap(([, code, name, countries]) =>
      countries!.split(' ').map((country): [string, Continent] => [country, { code: code!, name: name! }]),
    ),
  );
}

/** Returns the codes of all countries, and the groups of them that a list of countries can have. */
export function countryWords(): string[] {
  return [...GROUPS, ...[...continentTable().keys()].sort()];
}
