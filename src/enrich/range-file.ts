/** Opens the range file of a release for an enrichment. */
import { openReleaseRanges } from '../database/release-files.js';
import { withConfidence } from '../rangefile/confidence.js';
import type { RangeFile } from '../rangefile/reader.js';
import type { Addable } from './options.js';

/**
 * Opens the range file of a release.
 *
 * @param dir of the release
 * @param add what is added to the records
 * @param allocate returns the memory to read the file into, see {@link openReleaseRanges}
 * @throws AtlasError E_USAGE if the confidence is added and the release has none; the errors of opening a release
 */
export function openForResults(dir: string, add: readonly Addable[], allocate?: (bytes: number) => Buffer): RangeFile {
  const { file } = openReleaseRanges(dir, allocate);
  return add.includes('confidence') ? withConfidence(file) : file;
}
