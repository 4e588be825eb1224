// Known places: addresses whose country is published by the organization that runs them.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { PLACES } from './paths.js';

/** Share of the operators whose places are held out of the design of a merge strategy. */
const HELD_OUT_SHARE = 1 / 3;

/**
 * Returns whether the places of an operator are held out. They are measured only with `--held-out`, for the last run,
 * so that no strategy is fitted to them. All places of an operator are on the same side, because they tend to be right
 * or wrong together.
 */
export function isHeldOut(operator) {
  return createHash('sha256').update(operator).digest().readUInt32BE(0) < HELD_OUT_SHARE * 2 ** 32;
}

/**
 * Reads the known places.
 *
 * @param directory of CSV files with the columns address, country, class, operator, url, date; see README.md
 * @returns one object per row, with the name of its file
 */
export function readPlaces(directory = PLACES) {
  const files = readdirSync(directory).filter((name) => name.endsWith('.csv'));
  return files.sort().flatMap((file) => {
    const rows = parse(readFileSync(join(directory, file)), { columns: true });
    return rows.map((row) => ({ file, ...row }));
  });
}
