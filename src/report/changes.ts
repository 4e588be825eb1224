/** What differs between two releases, as reports show it: by country, by pair of results, and the largest blocks. */
import type { Family } from '../address/parse.js';
import type { CountryNames } from '../country/names.js';
import { type CountryTotals, computeDelta, type Delta } from '../database/delta.js';
import { type CountryChange, countryChanges, rangeList } from '../database/diff.js';
import type { Manifest } from '../database/release.js';
import { openReleaseRanges } from '../database/release-files.js';
import { PAIRS_SHOWN } from '../limits.js';
import { formatCidr } from '../range/cidr.js';
import type { RangeFile } from '../rangefile/reader.js';

/** The addresses of one country in one family, before and after. */
export interface CountryDelta extends CountryTotals {
  code: string;
}

/** The differences between two releases. */
export interface Changes {
  before: Manifest;
  after: Manifest;
  /** Countries whose name or EU membership differs. */
  countries: CountryChange[];
  /** Returns the name of a country; `name` is the one of a country that neither release has. */
  nameOf: CountryNames;
  /** IPv4, then IPv6. */
  deltas: readonly Delta[];
}

function namesOf({ records }: RangeFile): [code: string, name: string][] {
  return records.flatMap((record) => (record.kind === 'country' ? [[record.code, record.name]] : []));
}

/**
 * Compares two releases.
 *
 * @param beforeDir directory of the earlier release
 * @param afterDir directory of the later release
 * @param namesOfLanguage the names to show, from the English ones
 * @throws AtlasError if one of them is missing or damaged
 */
export function compareReleases(
  beforeDir: string,
  afterDir: string,
  namesOfLanguage: CountryNames = (_, name) => name,
): Changes {
  const [{ manifest: beforeManifest, file: before }, { manifest: afterManifest, file: after }] = [
    openReleaseRanges(beforeDir),
    openReleaseRanges(afterDir),
  ];
  const names = new Map([...namesOf(before), ...namesOf(after)]);
  return {
    before: beforeManifest,
    after: afterManifest,
    countries: countryChanges(before, after),
    nameOf: (code, name) => namesOfLanguage(code, names.get(code) ?? name),
    deltas: ([4, 6] as const).map((family) => computeDelta(rangeList(before, family), rangeList(after, family))),
  };
}

/** Returns the addresses that a country lost to others or to none, plus those that it gained. */
function moved({ before, after, kept }: CountryTotals): bigint {
  return before + after - 2n * kept;
}

/**
 * Returns the share of a country's addresses that changed, 0 to 1: of those that it had or has, the part that it does not
 * have in both.
 */
export function changedShare(totals: CountryTotals): number {
  const { before, after, kept } = totals;
  const all = before + after - kept;
  return all === 0n ? 0 : Number(moved(totals)) / Number(all);
}

/** Returns the countries whose addresses changed, the largest change first; equal changes by code. */
export function changedCountries({ countryTotals }: Delta): CountryDelta[] {
  return [...countryTotals]
    .map(([code, totals]) => ({ code, ...totals }))
    .filter((country) => moved(country) > 0n)
    .sort((a, b) => {
      const [first, second] = [moved(a), moved(b)];
      if (first !== second) return first > second ? -1 : 1;
      return a.code < b.code ? -1 : 1;
    });
}

/** Returns the largest blocks of a family that changed, as CIDR text with the results before and after. */
export function largestBlocks(family: Family, { blocks }: Delta): { cidr: string; from: string; to: string }[] {
  return blocks.map(({ first, prefix, from, to }) => ({ cidr: formatCidr(family, first, prefix), from, to }));
}

/** Returns the changes as JSON values. Sizes are decimal texts in addresses, because JSON numbers are not exact. */
export function changesJson({ before, after, countries, deltas }: Changes): object {
  return {
    before: { release: before.id, as_of: before.as_of },
    after: { release: after.id, as_of: after.as_of },
    countries,
    families: deltas.map((delta) => ({
      family: delta.family,
      assigned: String(delta.assigned),
      changed: String(delta.changed),
      lost: String(delta.lost),
      gained: String(delta.gained),
      countries: changedCountries(delta).map((country) => ({
        code: country.code,
        before: String(country.before),
        after: String(country.after),
        kept: String(country.kept),
      })),
      pairs: delta.pairs.slice(0, PAIRS_SHOWN).map((pair) => ({ ...pair, addresses: String(pair.addresses) })),
      blocks: largestBlocks(delta.family, delta),
    })),
  };
}
