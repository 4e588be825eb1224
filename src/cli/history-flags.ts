/** The flags of `build` and `pull` that say how long history is kept. */
import { misuse } from '../errors.js';
import { HISTORY_DAYS } from '../limits.js';
import type { FlagTable, OptionValues } from './command.js';
import { wholeNumber } from './number-flags.js';

export const HISTORY_FLAGS: FlagTable = {
  'history-days': {
    value: 'N',
    help: `for how many days the answers of releases are kept for "ipatlas history" and --at (default ${HISTORY_DAYS})`,
  },
  'no-history': { help: 'keep no answers of this release once another one is published' },
};

/**
 * Returns the days that history is kept; 0 for no history.
 *
 * @throws AtlasError E_USAGE if the flags are wrong
 */
export function parseHistoryDays(values: OptionValues): number {
  const days = wholeNumber(values, 'history-days', 1, 999_999);
  if (values['no-history'] === true) {
    if (days === undefined) return 0;
    throw misuse('--history-days and --no-history exclude each other; give one of them');
  }
  return days ?? HISTORY_DAYS;
}
