/** From range files to the compact form, and back to the same bytes. */
import type { Family } from '../address/parse.js';
import { noConfidence } from '../rangefile/confidence.js';
import { MAX_CONFIDENCE } from '../rangefile/layout.js';
import { COUNTRIES, type Partition } from '../rangefile/partitions.js';
import { contentOf, type PartitionFile, type RangeFile } from '../rangefile/reader.js';
import { encodeFile } from '../rangefile/writer.js';
import { decodeColumn, encodeColumn } from './column.js';
import type { Container } from './container.js';
import { decodeRanges, decodeRecords, partitionSections } from './records.js';

/**
 * Returns the sections of the file of a partition, in file order, for `writeContainer`.
 *
 * @param withConfidence whether the sections of the confidence are among them
 * @throws AtlasError E_USAGE if the file has no confidence and it is wanted
 */
export function fileSections(
  partition: Partition,
  file: PartitionFile & Partial<Pick<RangeFile, 'confidence4' | 'confidence6'>>,
  withConfidence = false,
): Map<string, Uint8Array> {
  const { path, confidence4, confidence6 } = file;
  const sections = partitionSections(partition, contentOf(file));
  if (!withConfidence) return sections;
  if (confidence4 === undefined || confidence6 === undefined) throw noConfidence(path);
  return sections.set('confidence4', encodeColumn(confidence4)).set('confidence6', encodeColumn(confidence6));
}

/** Returns the confidence of the ranges of both families in percent; undefined if the compact form has none. */
function confidenceOf(container: Container, counts: Record<Family, number>, name: string) {
  const column = (family: Family): Uint8Array | undefined => {
    const section = `confidence${family}`;
    if (!container.has(section)) return undefined;
    return Uint8Array.from(decodeColumn(container.section(section), counts[family], MAX_CONFIDENCE, name));
  };
  const [v4, v6] = [column(4), column(6)];
  if ((v4 === undefined) !== (v6 === undefined)) throw container.damaged('only one family has a confidence');
  return v4 && v6 && { v4, v6 };
}

/**
 * Builds the file of a partition from its compact form.
 *
 * @param asOf date of the release, `YYYY-MM-DD`
 * @param name of the compact form, for messages
 * @returns the bytes of the file that the compact form was made from; without its confidence if the compact form has none
 * @throws AtlasError E_DAMAGED if the compact form is not as FORMAT.md says
 */
export function buildFile(partition: Partition, container: Container, asOf: string, name: string): Buffer {
  const records = decodeRecords(container, partition);
  const columns = (family: Family) => decodeRanges(container, partition, family, records.length, name);
  const [v4, v6] = [columns(4), columns(6)];
  const counts = { 4: v4.count, 6: v6.count };
  const confidence = partition.name === COUNTRIES.name ? confidenceOf(container, counts, name) : undefined;
  return encodeFile(partition, { asOf, v4, v6, records, confidence });
}
