/** What an enrichment looks addresses up in. */
import type { AnswersOverTime } from '../history/over-time.js';
import type { LabelFile, NetworkFile, RangeFile } from '../rangefile/reader.js';

/** What is asked for of a release besides its countries, as far as it has it. */
export interface Others {
  networks?: NetworkFile | undefined;
  labels?: LabelFile | undefined;
}

/** The answers of a release, or of a past day, which `dates` names. */
export type DayRanges = RangeFile & Others & { dates?: readonly string[] };

/** The answers of a day, or those of all days. */
export type EnrichRanges = DayRanges | AnswersOverTime;

/** Returns whether each line has the answers of its own date. */
export function isOverTime(ranges: EnrichRanges): ranges is AnswersOverTime {
  return 'timelines' in ranges;
}
