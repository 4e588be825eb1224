/** The date of a release's data: that of the oldest source with a substantial share of the addresses. */
import { addressWords, rangeSize } from '../../src/address/words.js';
import type { ManifestInput } from '../../src/database/release.js';
import { copyBounds, type MergedRanges } from '../../src/range/columns.js';
import type { RangeRecord } from '../../src/rangefile/layout.js';
import { sourceLayer } from './candidates.js';

/** Share of a family's addresses from which on a source determines the age of the data: a twentieth. */
const MIN_SOURCE_SHARE = 0.05;

/**
 * Returns the share of a family's addresses with a country that each source gave, 0 to 1.
 *
 * A range in which several sources won counts for each of them: which part came from which source is not recorded. So a
 * share may be too large, and the data may seem older than it is, but never newer.
 *
 * @param sources number of sources
 */
function sourceShares(ranges: MergedRanges, records: readonly RangeRecord[], sources: number): number[] {
  const words = addressWords(ranges.family);
  const first = new Uint32Array(words);
  const last = new Uint32Array(words);
  const sizes = new Array<number>(sources).fill(0);
  let total = 0;
  for (let range = 0; range < ranges.count; range++) {
    if (records[ranges.value[range]!]!.kind !== 'country') continue;
    copyBounds(ranges, range, first, last);
    const size = Number(rangeSize(first, last));
    total += size;
    for (let position = 0; position < sources; position++) {
      if (((ranges.layers[range]! >>> sourceLayer(position, sources)) & 1) === 1) sizes[position]! += size;
    }
  }
  return sizes.map((size) => (total === 0 ? 0 : size / total));
}

/**
 * Returns the date of a release's data: the oldest date of a source that gave at least MIN_SOURCE_SHARE of the addresses
 * of a family.
 *
 * @param inputs the source with the highest priority first
 * @returns `YYYY-MM-DD`; undefined if the date of such a source is not known
 */
export function dataDate(
  inputs: readonly Pick<ManifestInput, 'data_date'>[],
  families: readonly MergedRanges[],
  records: readonly RangeRecord[],
): string | undefined {
  const shares = families.map((ranges) => sourceShares(ranges, records, inputs.length));
  const dates = inputs.flatMap(({ data_date }, position) =>
    shares.some((each) => each[position]! >= MIN_SOURCE_SHARE) ? [data_date] : [],
  );
  if (dates.includes(undefined)) return undefined;
  return dates.sort()[0];
}
