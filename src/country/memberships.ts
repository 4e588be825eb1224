/** Membership in groups of countries by day: dist/memberships.json, which the build of the code makes of the tables. */
import { readFileSync } from 'node:fs';
import { misuse } from '../errors.js';
import { packageFile } from '../package-root.js';
import { type CountryGroup, GROUPS, isMember, type Membership } from './country.js';

let rows: readonly Membership[] | undefined;

/**
 * Returns the rows of data/reference/eu-membership.csv and eea-membership.csv.
 *
 * @throws an error of the file system if the code was not built (`npm run build`)
 */
export function readMemberships(): readonly Membership[] {
  rows ??= JSON.parse(readFileSync(packageFile('dist/memberships.json'), 'utf8')) as Membership[];
  return rows;
}

/** Returns the days on which a country, or any, joined or left a group. They may repeat. */
export function membershipDays(code?: string): string[] {
  const rows = readMemberships().filter((row) => code === undefined || row.code === code);
  return rows.flatMap(({ from, until }) => (until === undefined ? [from] : [from, until]));
}

/** Returns whether a country is in the European Economic Area on a day, `YYYY-MM-DD`; false for no country. */
export function isInEea(code: string | null, day: string): boolean {
  return code !== null && isMember(readMemberships(), code, day, 'EEA');
}

/** Countries that a user names: by their codes, and by the groups that they are in. */
export interface CountryList {
  /** ISO 3166-1 alpha-2 codes, upper case; `XK`. */
  codes: ReadonlySet<string>;
  groups: ReadonlySet<CountryGroup>;
}

/**
 * Parses lists of countries, such as `DE,CH` and `EEA,GB`. In them, `EU` is the Union, not the continent.
 *
 * @param name of the flag, for the message
 * @throws AtlasError E_USAGE for what is neither two letters nor a group
 */
export function parseCountryList(lists: readonly string[], name: string): CountryList {
  const codes = new Set<string>();
  const groups = new Set<CountryGroup>();
  for (const part of lists.flatMap((list) => list.split(','))) {
    const word = part.trim().toUpperCase();
    const group = GROUPS.find((one) => one === word);
    if (group !== undefined) groups.add(group);
    else if (/^[A-Za-z]{2}$/.test(part.trim())) codes.add(word);
    else {
      throw misuse(
        `${name} has ${JSON.stringify(part)}; write ISO 3166-1 alpha-2 codes, EU or EEA with commas between them, such as DE,FR or EEA,GB`,
      );
    }
  }
  return { codes, groups };
}

/** Returns whether a country is in a list. @param isEu whether it is in the Union on the day, `YYYY-MM-DD` */
export function isListed({ codes, groups }: CountryList, code: string | null, isEu: boolean, day: string): boolean {
  if (code === null) return false;
  return codes.has(code) || (groups.has('EU') && isEu) || (groups.has('EEA') && isInEea(code, day));
}
