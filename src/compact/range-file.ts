/** From range files to the compact form, and back to the same bytes. */
import { noConfidence } from '../rangefile/confidence.js';
import type { Partition } from '../rangefile/partitions.js';
import { type PartitionFile, type RangeFile, rangeColumns } from '../rangefile/reader.js';
import { encodeFile, encodeRangeFile } from '../rangefile/writer.js';
import type { Container } from './container.js';
import { type About, type CompactCountries, countrySections } from './countries.js';
import { decodeRanges, decodeRecords, partitionSections } from './records.js';

/**
 * Returns the sections of a range file, for `writeContainer`.
 *
 * @param about the release; `as_of` is that of the file
 * @param withConfidence whether the sections of the confidence are among them
 * @throws AtlasError E_USAGE if the file has no confidence and it is wanted
 */
export function rangeFileSections(about: About, file: RangeFile, withConfidence: boolean): Map<string, Uint8Array> {
  const { records, confidence4, confidence6 } = file;
  const hasConfidence = confidence4 !== undefined && confidence6 !== undefined;
  if (withConfidence && !hasConfidence) throw noConfidence(file.path);
  return countrySections(about, {
    records,
    v4: rangeColumns(file, 4),
    v6: rangeColumns(file, 6),
    confidence: withConfidence && hasConfidence ? { v4: confidence4, v6: confidence6 } : undefined,
  });
}

/**
 * Builds the range file from its compact form.
 *
 * @returns the bytes of the range file that the compact form was made from; without its confidence if the compact form
 *   has none
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says
 */
export function buildRangeFile(compact: CompactCountries): Buffer {
  const [v4, v6] = [compact.ranges(4), compact.ranges(6)];
  const [confidence4, confidence6] = [compact.confidence(4, v4.count), compact.confidence(6, v6.count)];
  if ((confidence4 === undefined) !== (confidence6 === undefined)) {
    throw compact.container.damaged('only one family has a confidence');
  }
  return encodeRangeFile({
    asOf: compact.about.as_of,
    v4,
    v6,
    records: compact.records,
    confidence: confidence4 && confidence6 && { v4: Uint8Array.from(confidence4), v6: Uint8Array.from(confidence6) },
  });
}

/** Returns the sections of a partition besides the countries, in file order, for `writeContainer`. */
export function sectionsOfFile(partition: Partition, file: PartitionFile): Map<string, Uint8Array> {
  const { records } = file;
  return partitionSections(partition, { records, v4: rangeColumns(file, 4), v6: rangeColumns(file, 6) });
}

/**
 * Builds the file of a partition besides the countries from its compact form.
 *
 * @param asOf date of the release, `YYYY-MM-DD`
 * @param name of the compact form, for messages
 * @returns the bytes of the file that the compact form was made from
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says
 */
export function buildFile(partition: Partition, container: Container, asOf: string, name: string): Buffer {
  const records = decodeRecords(container, partition);
  const columns = (family: 4 | 6) => decodeRanges(container, partition, family, records.length, name);
  return encodeFile(partition, { asOf, v4: columns(4), v6: columns(6), records });
}
