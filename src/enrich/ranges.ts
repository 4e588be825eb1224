/** What an enrichment looks addresses up in. */
import type { AnswersOverTime } from '../history/over-time.js';
import { LABELS, type OpenPartitions } from '../rangefile/partitions.js';
import type { RangeFile } from '../rangefile/reader.js';

/**
 * The answers of a release, or of a past day, which `dates` names; `others` are the partitions that are asked for besides the countries,
 * as far as it has them.
 */
export type DayRanges = RangeFile & { others?: OpenPartitions; dates?: readonly string[] };

/** The answers of a day, or those of all days. */
export type EnrichRanges = DayRanges | AnswersOverTime;

/** Returns the names of the labels, if they are opened. */
export function openedLabels(ranges: EnrichRanges): readonly string[] {
  return isOverTime(ranges) ? [] : (ranges.others?.get(LABELS)?.columns ?? []);
}

/** Returns whether each line has the answers of its own date. */
export function isOverTime(ranges: EnrichRanges): ranges is AnswersOverTime {
  return 'timelines' in ranges;
}
