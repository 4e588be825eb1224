/** What an enrichment looks addresses up in. */
import type { AnswersOverTime } from '../history/over-time.js';
import type { RangeFile } from '../rangefile/reader.js';

/** The answers of a release or of a past day, which `dates` names, or those of all days. */
export type EnrichRanges = (RangeFile & { dates?: readonly string[] }) | AnswersOverTime;

/** Returns whether each line has the answers of its own date. */
export function isOverTime(ranges: EnrichRanges): ranges is AnswersOverTime {
  return 'timelines' in ranges;
}
