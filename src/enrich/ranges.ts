/** What an enrichment looks addresses up in. */
import type { AnswersOverTime } from '../history/over-time.js';
import type { NetworkFile, RangeFile } from '../rangefile/reader.js';

/** The answers of a release, with its networks if they are asked for and it has any, or of a past day, which `dates` names. */
export type DayRanges = RangeFile & { dates?: readonly string[]; networks?: NetworkFile | undefined };

/** The answers of a day, or those of all days. */
export type EnrichRanges = DayRanges | AnswersOverTime;

/** Returns whether each line has the answers of its own date. */
export function isOverTime(ranges: EnrichRanges): ranges is AnswersOverTime {
  return 'timelines' in ranges;
}
