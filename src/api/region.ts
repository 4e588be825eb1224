/** The promise of an EU base address: it is served from within the European Union. */
import { join } from 'node:path';
import { RANGE_FILE } from '../database/release.js';
import { AtlasError } from '../errors.js';
import { openRangeFile } from '../rangefile/reader.js';

/**
 * Checks that a country is in the European Union, as of a release.
 *
 * @param dir the release's directory
 * @param country ISO 3166-1 alpha-2, upper case
 * @throws AtlasError E_USAGE where it is not, or the release does not know it
 */
export function requireInUnion(dir: string, country: string): void {
  const { records, asOf } = openRangeFile(join(dir, RANGE_FILE));
  const record = records.find((one) => one.kind === 'country' && one.code === country);
  if (record?.kind === 'country' && record.isEu) return;
  const name = record?.kind === 'country' ? `${record.name} (${country})` : country;
  const what = record === undefined ? 'is not in the database' : 'is not in the European Union';
  throw new AtlasError(
    'E_USAGE',
    `--eu: ${name} ${what} as of ${asOf}; serve the EU base address from a member state, or leave --eu out`,
  );
}
