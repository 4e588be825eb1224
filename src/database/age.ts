/** The age of a release's data, and the warning about old data. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS, dayOf, startOfDay } from '../day.js';
import { isUnreadable, misuse, orElse } from '../errors.js';
import { DEFAULT_MAX_AGE_DAYS } from '../limits.js';
import { counted } from '../text-table.js';
import type { Manifest } from './release.js';

/**
 * How many IPv4 addresses have another country after some days, as a share of those with a country: `share` of a day's change
 * times the days to the power of `exponent`, because some change again or back. Fitted to 45 pairs of 10 dated copies of one
 * database of the world, 38 to 725 days apart (truth/README.md): within a fifth of each. A release that has its own CHANGE_FILE
 * has another share.
 */
const CHANGE_WITH_AGE = { share: 0.000189, exponent: 0.77 };

/** Has what changed in the history of a data directory up to the publication of a release; in the release's directory. */
export const CHANGE_FILE = 'change.json';

/** How many days the history needs to have before its own change counts. */
export const CHANGE_DAYS = 60;

/** What changed between two days, `YYYY-MM-DD`: the share of the IPv4 addresses with a country that got another one. */
export interface MeasuredChange {
  from: string;
  to: string;
  share: number;
}

/**
 * Returns the share of the IPv4 addresses that change country in a day, as CHANGE_WITH_AGE means it: by the own history of the
 * data directory of a release, if that has {@link CHANGE_DAYS} days.
 *
 * @param dir of a release, or the path of the seed
 */
export function changeRate(dir: string): number {
  const path = join(dir, CHANGE_FILE);
  const read = (): unknown => JSON.parse(readFileSync(path, 'utf8'));
  const change: Partial<Record<keyof MeasuredChange, unknown>> = orElse(read, isUnreadable, undefined) ?? {};
  const { from, to, share } = change;
  const days = (Date.parse(`${to}`) - Date.parse(`${from}`)) / DAY_MS;
  // No look-up depends on it: if the file is damaged, the constant counts until the next publication writes another one.
  const isValid = days >= CHANGE_DAYS && typeof share === 'number' && share >= 0 && share <= 1;
  return isValid ? share / days ** CHANGE_WITH_AGE.exponent : CHANGE_WITH_AGE.share;
}

/**
 * Returns the age of a release's data: the time since the start, in UTC, of the day that its data is from. If that day is
 * not known, it is the day of the build.
 *
 * @param manifest of the release
 * @param now milliseconds since 1970
 * @returns whole seconds; 0 if the day is in the future
 */
export function releaseAge(
  { as_of, data_date = as_of }: Pick<Manifest, 'as_of' | 'data_date'>,
  now: number = Date.now(),
): number {
  return Math.max(0, Math.floor((now - startOfDay(data_date)) / 1000));
}

/** Returns an age in whole days. */
export function ageDays(seconds: number): number {
  return Math.floor((1000 * seconds) / DAY_MS);
}

/** Returns what an age in whole days means; see {@link changeRate}. */
function changeSince(days: number, rate: number): string {
  const share = rate * days ** CHANGE_WITH_AGE.exponent;
  return `about ${Number((100 * share).toPrecision(2))} % of IPv4 addresses have changed country since`;
}

/**
 * Returns an age with what it means, such as "160 days old: about 0.94 % of IPv4 addresses have changed country since".
 *
 * @param rate that {@link changeRate} returned
 */
export function ageText(days: number, rate = CHANGE_WITH_AGE.share): string {
  const age = `${counted(days, 'day')} old`;
  return days === 0 ? age : `${age}: ${changeSince(days, rate)}`;
}

/**
 * Returns the warning about a release with old data, or with a date in the future; undefined if there is none.
 *
 * @param maxDays the age in days above which data is old
 * @param rate as for {@link ageText}
 * @param now milliseconds since 1970
 */
export function staleWarning(
  manifest: Manifest,
  maxDays: number,
  rate: number = CHANGE_WITH_AGE.share,
  now: number = Date.now(),
): string | undefined {
  const today = dayOf(now);
  if (manifest.as_of > today) {
    return `release ${manifest.id} is as of ${manifest.as_of}, and today is ${today}: check the clock of the machine, and that of its builds`;
  }
  const days = ageDays(releaseAge(manifest, now));
  if (days <= maxDays) return undefined;
  return `the data of release ${manifest.id} is ${days} days old, more than ${maxDays}; ${changeSince(days, rate)}; check whether the scheduled builds still run`;
}

/**
 * Parses the age in days above which data is old, from a flag or an environment variable.
 *
 * @param text a number of days, or undefined for the default
 * @param name of the flag or variable, for the message
 * @throws AtlasError E_USAGE if the text is not a number of days
 */
export function parseMaxAge(text: string | undefined, name: string): number {
  if (text === undefined) return DEFAULT_MAX_AGE_DAYS;
  const days = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isFinite(days)) return days;
  throw misuse(`${name} is ${JSON.stringify(text)}; write an age in days, such as ${DEFAULT_MAX_AGE_DAYS}`);
}
