/** The operations other than enrichment: passing on the records of some countries, and counting records by country. */
import { isInEea } from '../country/memberships.js';
import type { CountryResult } from '../database/engine.js';
import { misuse } from '../errors.js';
import type { Addable } from './members.js';

/** Passes on the records with an address in certain countries, unchanged. */
export interface Filter {
  kind: 'filter';
  /** ISO 3166-1 alpha-2 codes, upper case. */
  countries: ReadonlySet<string>;
  /** Whether all countries of the European Union are selected, too; and those of the European Economic Area. */
  selectsEu: boolean;
  selectsEea?: boolean;
  /** AS numbers that are selected, too. */
  asns?: ReadonlySet<number>;
  /** Kinds of networks that are selected, too. */
  kinds?: ReadonlySet<string>;
  /** Passes on the other records instead: every record that is not passed on without it. */
  isInverted: boolean;
}

/** Counts addresses by country, and by network if that is asked for; nothing is passed on. */
export interface Summarize {
  kind: 'summarize';
  summary: CountrySummary;
  networks?: NetworkSummary;
  label?: LabelSummary;
}

/** The number of addresses by the value of a label. */
export interface LabelSummary {
  name: Addable;
  /** Set when all are counted. */
  counts: ReadonlyMap<string, number>;
}

/** The number of addresses of each network, or of each block of one. */
export interface NetworkSummary {
  by: 'asn' | 'network';
  /** Set when all are counted, most addresses first. */
  counts: readonly NetworkCount[];
}

export type RecordQuery = Filter | Summarize;

/** Returns the members besides those of the country that a query decides or counts by. */
export function queriedMembers(query: RecordQuery | undefined): Addable[] {
  if (query?.kind === 'filter') return [...(query.asns ? ['asn'] : []), ...(query.kinds ? ['kind'] : [])] as Addable[];
  if (query?.label !== undefined) return [query.label.name];
  return query?.networks === undefined ? [] : ['asn', 'as_name'];
}

/** Returns whether a filter selects the result of an address. @param day of memberships, `YYYY-MM-DD` */
export function selects({ countries, selectsEu, selectsEea }: Filter, result: CountryResult, day: string): boolean {
  const code = result.country_code;
  if (code === null) return false;
  return countries.has(code) || (selectsEu && result.is_eu) || (selectsEea === true && isInEea(code, day));
}

/** Returns whether a query passes on records that have no address, such as invalid and blank lines. */
export function passesOthers(query: RecordQuery): boolean {
  return query.kind === 'filter' && query.isInverted;
}

/**
 * Checks that a release has the countries of a filter.
 *
 * @param codes the countries of the release
 * @throws AtlasError E_USAGE for a country that it does not have
 */
export function checkCountries({ countries }: Filter, codes: Iterable<string>): void {
  const known = new Set(codes);
  const unknown = [...countries].find((code) => !known.has(code));
  if (unknown === undefined) return;
  throw misuse(
    `the release has no country ${JSON.stringify(unknown)}; countries are ISO 3166-1 alpha-2 codes, such as DE or GB`,
  );
}

/** Passes all records on. */
export const EVERY_RECORD: Filter = { kind: 'filter', countries: new Set(), selectsEu: false, isInverted: true };

export interface CountryCount {
  country: string;
  country_code: string;
  is_eu: boolean;
  /** Number of addresses. */
  count: number;
}

/** The number of addresses of each country; of one that joined or left the Union between their dates, in it and outside. */
export class CountrySummary {
  readonly #counts = new Map<string, CountryCount>();

  /** Counts addresses with the same result; ignores results without a country. */
  add({ country, country_code, is_eu }: CountryResult, count = 1): void {
    if (country === null || country_code === null || count === 0) return;
    const key = `${country_code} ${is_eu}`;
    const entry = this.#counts.get(key);
    if (entry === undefined) this.#counts.set(key, { country, country_code, is_eu, count });
    else entry.count += count;
  }

  /** Returns the countries, most addresses first, and by code if they have the same number. */
  byCountry(): CountryCount[] {
    return [...this.#counts.values()].sort((a, b) => b.count - a.count || (a.country_code < b.country_code ? -1 : 1));
  }

  /** Returns the number of addresses in and outside the European Union. */
  byEu(): { eu: number; not_eu: number } {
    const sums = { eu: 0, not_eu: 0 };
    for (const { is_eu, count } of this.#counts.values()) sums[is_eu ? 'eu' : 'not_eu'] += count;
    return sums;
  }
}

export interface NetworkCount {
  /** The block within which the network is the same, if addresses are counted by block. */
  network?: string;
  asn: number;
  as_name: string | null;
  /** Number of addresses. */
  count: number;
}
