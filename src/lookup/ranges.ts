/** The ranges of a compact form, as the columns that searches need. */
import type { CompactCountries } from '../compact/countries.js';
import type { RangeLists } from '../database/binary-engine.js';
import { buildIndex } from '../rangefile/search.js';

/**
 * Reads the ranges of both families.
 *
 * @throws AtlasError E_DAMAGED if they are not as FORMAT.md of the compact form says
 */
export function readRanges(compact: CompactCountries): RangeLists {
  const ranges4 = compact.ranges(4);
  const start4 = new Uint32Array(ranges4.count);
  const record4 = new Uint16Array(ranges4.count);
  for (let range = 0; ranges4.next(); range++) {
    start4[range] = ranges4.first[0]!;
    record4[range] = ranges4.record;
  }
  const ranges6 = compact.ranges(6);
  const high6 = new Uint32Array(2 * ranges6.count);
  const low6 = new Uint32Array(2 * ranges6.count);
  const record6 = new Uint16Array(ranges6.count);
  for (let range = 0; ranges6.next(); range++) {
    const { first } = ranges6;
    high6[2 * range + 1] = first[0]!;
    high6[2 * range] = first[1]!;
    low6[2 * range + 1] = first[2]!;
    low6[2 * range] = first[3]!;
    record6[range] = ranges6.record;
  }
  return {
    records: compact.records,
    start4Low: new Uint16Array(start4.buffer),
    record4,
    index4: buildIndex(start4.length, (range) => start4[range]! >>> 16),
    high6,
    low6,
    record6,
    index6: buildIndex(record6.length, (range) => high6[2 * range + 1]! >>> 16),
    dense6: undefined,
  };
}
