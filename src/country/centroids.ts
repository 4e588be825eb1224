/** Centers of countries, for distances between them: dist/centroids.json, which the build of the code makes. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-root.js';

/**
 * Returns the center of each country and territory: that of its largest piece of land, so that it lies where most people
 * are rather than in the sea between islands.
 *
 * @returns [longitude, latitude] in degrees, with two decimals, by country code; every code of data/reference/countries.csv
 * is in it
 * @throws an error of the file system if the code was not built (`npm run build`)
 */
export function centroids(): ReadonlyMap<string, readonly [longitude: number, latitude: number]> {
  return new Map(Object.entries(JSON.parse(readFileSync(packageFile('dist/centroids.json'), 'utf8'))));
}
