/** The interface of the lookup engines. */
import type { Country, ReasonedResult } from './results.js';

/** What a lookup finds for an address. */
export type CountryResult = Omit<ReasonedResult, 'ip'>;

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
