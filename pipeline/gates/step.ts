/** How a release follows from the one that it is compared with: after some days from the same sources, or from others. */

import { isDeepStrictEqual } from 'node:util';
import type { Manifest, ManifestInput, Refusal } from '../../src/database/release.js';
import { DAY_MS } from '../../src/day.js';

/** Days that a source's date may say more than the days between two builds: a monthly source brings thirty days at once. */
export const GATE_EXTRA_DAYS = 31;

/** First date of data that can be right: there is no older data of this kind. A server without a clock says 1970. */
const FIRST_DATE = '2000-01-01';

function daysBetween(before: string, now: string): number {
  return Math.round((Date.parse(now) - Date.parse(before)) / DAY_MS);
}

/**
 * Returns the days that the data had to change: the most of any source. If the dates of a source tell nothing (missing, after
 * the day of the build, before 2000, or going back), its days are those between the builds. The result is at most a month
 * more than these, so that a wrong date cannot raise a limit much.
 */
export function daysOfStep(now: Manifest, before: Manifest): number {
  const elapsed = Math.max(0, daysBetween(before.as_of, now.as_of));
  const isUsable = (date: string | undefined, asOf: string): date is string =>
    date !== undefined && date >= FIRST_DATE && date <= asOf;
  const days = now.inputs.map(({ id, data_date: date }) => {
    const earlier = findInput(before, id)?.data_date;
    const isKnown = isUsable(date, now.as_of) && isUsable(earlier, before.as_of) && date >= earlier;
    return isKnown ? daysBetween(earlier, date) : elapsed;
  });
  return Math.min(Math.max(0, ...days), elapsed + GATE_EXTRA_DAYS);
}

/**
 * Returns how the sources of two releases differ, each difference as a phrase such as "source a is new". Empty if only time
 * has passed. An optional source that cannot be had now is not a difference: an outage must not widen the limits.
 */
export function describeSourceChanges(now: Manifest, before: Manifest): string[] {
  const changes: string[] = [];
  for (const { id } of before.inputs) if (isRemoved(now, id)) changes.push(`source ${id} is gone`);
  for (const input of now.inputs) {
    const previous = findInput(before, input.id);
    if (previous === undefined) {
      changes.push(`source ${input.id} ${isRemoved(before, input.id) ? 'is new' : 'was missing'}`);
    } else {
      if (!isSameData(input, previous))
        changes.push(`source ${input.id} is from another location or in another format`);
      else if (input.seed !== previous.seed) changes.push(`source ${input.id} replaces its seed`);
      const evidence = ({ lineage, kind, space, asns }: ManifestInput): unknown[] => [lineage, kind, space, asns];
      if (!isDeepStrictEqual(evidence(input), evidence(previous)))
        changes.push(`source ${input.id} votes in another way`);
    }
  }
  const common = (one: Manifest, other: Manifest): string[] =>
    one.inputs.map(({ id }) => id).filter((id) => findInput(other, id) !== undefined);
  if (!isDeepStrictEqual(common(now, before), common(before, now))) changes.push('the sources are in another order');
  return changes;
}

/**
 * Checks that no source goes back to a seed. A source under a new id counts as one that the earlier release has and the
 * new one does not.
 */
export function checkSeeds(now: Manifest, before: Manifest): Refusal[] {
  const gone = before.inputs.find(({ id, seed }) => seed === undefined && isRemoved(now, id));
  return now.inputs.flatMap(({ id, seed, data_date }) => {
    const earlier = findInput(before, id) ?? gone;
    if (seed === undefined || earlier === undefined || earlier.seed !== undefined) return [];
    const dates = `data of ${data_date ?? 'unknown date'}, previously of ${earlier.data_date ?? 'unknown date'}`;
    return [{ gate: 'seed', message: `source ${id} can only be had from its seed (${dates})` }];
  });
}

/** Returns whether two releases have a source from the same location in the same format. */
export function isSameData(a: ManifestInput, b: ManifestInput): boolean {
  const isSameLocation = a.place === b.place || a.place === undefined || b.place === undefined;
  return isSameLocation && isDeepStrictEqual(a.format, b.format);
}

export function findInput({ inputs }: Manifest, id: string): ManifestInput | undefined {
  return inputs.find((input) => input.id === id);
}

/** Returns whether a release has no source of an id, and not because the source is missing. */
function isRemoved({ inputs, missing = [] }: Manifest, wanted: string): boolean {
  return ![...inputs, ...missing].some(({ id }) => id === wanted);
}
