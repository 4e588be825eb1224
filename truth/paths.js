// Where the truth benchmark finds its inputs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TRUTH = fileURLToPath(new URL('.', import.meta.url));

/** The CSV files of known places. */
export const PLACES = join(TRUTH, 'places');
/** Databases that only the benchmark uses. */
export const PACKAGES = join(TRUTH, 'node_modules', '@ip-location-db');
/** The sources that ipatlas itself installs. */
export const SEEDS = join(TRUTH, '..', 'node_modules', '@ip-location-db');
/** The unpacked Debian package tor-geoipdb. */
export const DEBIAN = join(TRUTH, 'node_modules', '.tor-geoipdb');

/**
 * Returns the date in the version of a package, such as 2026-06-17 in 2.3.2026061719.
 *
 * @param directory of the package
 * @throws Error if the version has no date
 */
export function packageDate(directory) {
  const { name, version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  const date = /^\d+\.\d+\.(\d{4})(\d\d)(\d\d)\d*$/.exec(version);
  if (date === null) throw new Error(`${name}: no date in version ${version}`);
  return date.slice(1).join('-');
}
