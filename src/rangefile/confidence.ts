/** The confidence of ranges, as a view of a range file in which it is part of the records. */
import { AtlasError, misuse } from '../errors.js';
import { MAX_RECORDS, type RangeRecord, recordMembers } from './layout.js';
import type { RangeFile } from './reader.js';

/** Returns the error for a file of a release without a confidence. */
export function noConfidence(path: string): AtlasError {
  const why = 'its sources were merged by priority, or by an earlier version of ipatlas';
  return misuse(`${path} has no confidence: ${why}; build it again with "merge": "evidence"`);
}

/**
 * Returns a view of a range file with a record for each pair of a country and a confidence. Everything that knows ranges
 * only by their records, such as the kernel of the line engine, then works with the confidence too.
 *
 * In the view, adjacent ranges may differ in nothing but their confidence.
 *
 * @throws AtlasError E_USAGE if the file has no confidence
 */
export function withConfidence(file: RangeFile): RangeFile {
  const { confidence4, confidence6 } = file;
  if (confidence4 === undefined || confidence6 === undefined) {
    throw noConfidence(file.path);
  }
  const records: RangeRecord[] = [];
  const indexes = new Map<number, number>();
  const withPairs = (record: Uint16Array, confidence: Uint8Array): Uint16Array =>
    record.map((id, range) => {
      const original = file.records[id]!;
      const isCountry = original.kind === 'country';
      const key = id * 256 + (isCountry ? confidence[range]! : 0);
      const known = indexes.get(key);
      if (known !== undefined) return known;
      records.push(isCountry ? { ...original, confidence: confidence[range]! } : { ...original, confidence: null });
      indexes.set(key, records.length - 1);
      return records.length - 1;
    });
  const record4 = withPairs(file.record4, confidence4);
  const record6 = withPairs(file.record6, confidence6);
  // 250 countries with 101 values each and a few other records are always fewer.
  if (records.length > MAX_RECORDS) throw new AtlasError('E_FAULT', `${records.length} records with a confidence`);
  return { ...file, ...recordMembers(records), record4, record6 };
}
