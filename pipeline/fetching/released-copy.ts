/** Finds the files of a source from which the current release was built. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { currentReleaseId, type Manifest, RELEASES_DIR, readManifest } from '../../src/database/release.js';
import { AtlasError } from '../../src/errors.js';
import type { FetchedSource } from '../stage.js';
import { cachedFiles } from './cache.js';

/** Returns the manifest of the current release; undefined if there is none, or it cannot be read. */
export function currentManifest(dataDir: string): Manifest | undefined {
  const id = currentReleaseId(dataDir);
  if (id === undefined) return undefined;
  try {
    return readManifest(join(dataDir, RELEASES_DIR, id));
  } catch (error) {
    if (error instanceof AtlasError) return undefined;
    throw error;
  }
}

/**
 * Returns the copy of a source from which the current release was built, to use instead of a download that cannot be read.
 *
 * @param fetched the source as it was fetched
 * @returns undefined if the source was not downloaded (the user has to correct a local file), or if the current release was
 *   not built from other files of the source in the same format, or they are no longer in the cache
 */
export async function copyFromCurrentRelease(
  dataDir: string,
  fetched: FetchedSource,
): Promise<FetchedSource | undefined> {
  const { id, source, from } = fetched;
  if (from === 'file' || from === 'bundled') return undefined;
  const input = currentManifest(dataDir)?.inputs.find((each) => each.id === id);
  if (input === undefined || input.seed !== undefined || !isDeepStrictEqual(input.format, source.format))
    return undefined;
  const isSame = input.files.every(({ sha256 }, index) => sha256 === fetched.files[index]?.sha256);
  const files = isSame ? undefined : await cachedFiles(dataDir, input.files);
  if (files === undefined) return undefined;
  const { version, data_date: date, data_date_evidence: evidence, data_date_problem: dateProblem } = input;
  const dataDate = date === undefined || evidence === undefined ? undefined : { date, evidence };
  return { ...fetched, version, from: 'cache', dataDate, dateProblem, files };
}
