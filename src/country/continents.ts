/** The continents of the countries: the table data/reference/continents.csv. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { parse as Parse } from 'csv-parse/sync';
import { packageFile } from '../package-root.js';

export interface Continent {
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`. */
  code: string;
  /** English name. */
  name: string;
}

/** Returns the continent of each country, by country code. */
export function continentTable(): ReadonlyMap<string, Continent> {
  // Not imported: most commands do not need it, and its files take as long to load as half of this program.
  const { parse } = createRequire(import.meta.url)('csv-parse/sync') as { parse: typeof Parse };
  const text = readFileSync(packageFile('data/reference/continents.csv'), 'utf8');
  const rows = parse(text, { columns: true, comment: '#' }) as { code: string; name: string; countries: string }[];
  return new Map(
    rows.flatMap(({ code, name, countries }) =>
      countries.split(' ').map((country): [string, Continent] => [country, { code, name }]),
    ),
  );
}
