/** How fast the countries of addresses change, by the archive. */
import { CHANGE_DAYS, type MeasuredChange } from '../database/age.js';
import { DAY_MS, dayOf } from '../day.js';
import { combine } from '../range/cut.js';
import type { Archive } from './archive.js';
import type { Answers } from './entry.js';

/** Returns the codes of the values of a partition; undefined for those without a country. */
function codesOf({ records }: Pick<Answers, 'records'>): (string | undefined)[] {
  return [undefined, ...records.map((record) => (record.kind === 'country' ? record.code : undefined))];
}

/** What became of addresses: they had no country, kept theirs or lost it, or got another. */
const NONE = 0;
const KEPT = 1;
const CHANGED = 2;

/**
 * Compares answers with those of the latest base that was published here CHANGE_DAYS days ago or earlier, because reading one
 * takes little; if there is none, with the first publication here.
 *
 * @param now milliseconds since 1970
 * @returns undefined if nothing was published here so long ago
 * @throws AtlasError E_DAMAGED if the entry is damaged
 */
export function measureChange(archive: Archive, answers: Answers, now: number): MeasuredChange | undefined {
  const own = archive.entries.filter(
    ({ kind, origin, time }) => kind !== 'gap' && origin === 'own' && time <= now - CHANGE_DAYS * DAY_MS,
  );
  const entry = own.findLast(({ kind }) => kind === 'base') ?? own[0];
  if (entry === undefined) return undefined;
  const earlier = archive.families(entry);
  const [before, after] = [codesOf(earlier), codesOf(answers)];
  const compared = combine(earlier.layer(4), answers.v4, (from, to) => {
    if (before[from] === undefined) return NONE;
    return after[to] === undefined || after[to] === before[from] ? KEPT : CHANGED;
  });
  const sizes = [0, 0, 0];
  compared.value.forEach((value, range) => {
    sizes[value]! += (compared.first[range + 1] ?? 2 ** 32) - compared.first[range]!;
  });
  const withCountry = sizes[KEPT]! + sizes[CHANGED]!;
  return withCountry === 0
    ? undefined
    : { from: dayOf(entry.time), to: dayOf(now), share: sizes[CHANGED]! / withCountry };
}
