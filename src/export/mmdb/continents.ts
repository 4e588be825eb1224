/** Continents, for readers that expect them beside the country: the table data/reference/continents.csv. */
import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { packageFile } from '../../package-root.js';

export interface Continent {
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`. */
  code: string;
  /** English name. */
  name: string;
}

/** Returns the continent of each country, by country code. */
export function continentTable(): ReadonlyMap<string, Continent> {
  const text = readFileSync(packageFile('data/reference/continents.csv'), 'utf8');
  const rows = parse(text, { columns: true, comment: '#' }) as { code: string; name: string; countries: string }[];
  return new Map(
    rows.flatMap(({ code, name, countries }) =>
      countries.split(' ').map((country): [string, Continent] => [country, { code, name }]),
    ),
  );
}
