/** The interface of the lookup engines. */
import type { Reason } from '../country/assignment.js';
import type { Country } from './results.js';

/** What a lookup finds for an address. */
export interface CountryResult {
  /** English short name, or null without a country. */
  country: string | null;
  /** ISO 3166-1 alpha-2, upper case, or XK; or null. */
  country_code: string | null;
  /** Whether the country is in the European Union as of the date of the release. */
  is_eu: boolean;
  /** Why there is no country (`private`, `unallocated`, …), or null if there is one. */
  reason: Reason | null;
  /**
   * Share of the lineages of sources that agree, in percent, the lowest within the range; null without a country. Only if
   * the release was opened with its confidence.
   */
  confidence?: number | null;
}

/** Looks up addresses in a release. The binary and the SQLite engine give the same results. */
export interface Engine {
  /** @param address as a 32-bit integer, signed or unsigned */
  lookupIPv4(address: number): CountryResult;
  /** @param words the address, four 32-bit words, most significant first; not IPv4-mapped */
  lookupIPv6(words: Uint32Array): CountryResult;
  /** Returns the country only, see `Lookups.country`. */
  countryIPv4(address: number): Country;
  countryIPv6(words: Uint32Array): Country;
  close(): void;
}

/** Returns the country of a result, to be shared. */
export function sharedCountry({ country, country_code, is_eu }: Country): Country {
  return Object.freeze({ country, country_code, is_eu });
}
