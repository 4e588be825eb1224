/** Finds the files of a source from which the current release was built. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { currentReleaseId, type Manifest, RELEASES_DIR, readManifest } from '../../src/database/release.js';
import { isAtlasError, orElse } from '../../src/errors.js';
import type { SourceConfig } from '../config/sources.js';
import type { FetchedSource } from '../stage.js';
import { cachedFiles } from './cache.js';

/** Returns the manifest of the current release; undefined if there is none, or it cannot be read. */
export function currentManifest(dataDir: string): Manifest | undefined {
  const id = currentReleaseId(dataDir);
  if (id === undefined) return undefined;
  return orElse(() => readManifest(join(dataDir, RELEASES_DIR, id)), isAtlasError, undefined);
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
  const { source, from } = fetched;
  if (from === 'file' || from === 'bundled') return undefined;
  const copy = await lastCopy(dataDir, source);
  if (copy === undefined || copy.seed !== undefined) return undefined;
  const isSame = copy.files.every(({ sha256 }, index) => sha256 === fetched.files[index]?.sha256);
  if (isSame) return undefined;
  const { version, dataDate, dateProblem, files } = copy;
  return { ...fetched, version, from: 'cache', dataDate, dateProblem, files };
}

/**
 * Returns a source as the current release has it, to use instead of one that cannot be had.
 *
 * @returns undefined if the current release was not built from the source in the same format, or its files are no longer in the
 *   cache
 */
export async function lastCopy(dataDir: string, source: SourceConfig): Promise<FetchedSource | undefined> {
  const input = currentManifest(dataDir)?.inputs.find(({ id }) => id === source.id);
  if (input === undefined || !isDeepStrictEqual(input.format, source.format)) return undefined;
  const files = await cachedFiles(dataDir, input.files);
  if (files === undefined) return undefined;
  const { version, seed, place, data_date: date, data_date_evidence: evidence, data_date_problem: dateProblem } = input;
  const { license, attribution } = input;
  return {
    id: source.id,
    source: { ...source, license, attribution },
    location: place ?? '',
    version,
    from: 'cache',
    dataDate: date === undefined || evidence === undefined ? undefined : { date, evidence },
    dateProblem,
    seed,
    files,
    accept: async () => {},
  };
}
