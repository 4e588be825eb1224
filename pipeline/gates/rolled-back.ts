/** The gate against publishing a release again that someone rolled back from. */
import type { Refusal } from '../../src/database/release.js';
import { findRolledBack } from '../operations/rollback.js';

/** Returns a refusal if the inputs are those of a release that someone rolled back from. */
export function checkRolledBack(dataDir: string, inputHash: string): Refusal[] {
  const entry = findRolledBack(dataDir, inputHash);
  if (entry === undefined) return [];
  const { release, by, at } = entry;
  const message = `the sources are those of release ${release}, which ${by} rolled back at ${at}`;
  return [{ gate: 'rolledBack', message }];
}
