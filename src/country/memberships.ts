/** Membership in the European Union by day: dist/eu-membership.json, which the build of the code makes of the table. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';
import type { Membership } from './country.js';

let rows: readonly Membership[] | undefined;

/**
 * Returns the rows of data/reference/eu-membership.csv.
 *
 * @throws an error of the file system if the code was not built (`npm run build`)
 */
export function readMemberships(): readonly Membership[] {
  rows ??= JSON.parse(readFileSync(packageFile('dist/eu-membership.json'), 'utf8')) as Membership[];
  return rows;
}
