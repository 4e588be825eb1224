/** Looks up addresses in the range file, in memory. */
import { type EmbeddedScheme, embeddedIPv4 } from '../address/embedded.js';
import type { Reason } from '../country/assignment.js';
import type { RangeRecord } from '../rangefile/layout.js';
import { findIPv4, findIPv6, type SearchColumns } from '../rangefile/search.js';
import { type CountryResult, type Engine, sharedCountry } from './engine.js';
import type { Country } from './results.js';

/** Returns the result for a record. That of an embedded scheme is a placeholder: the IPv4 address decides. */
export function recordResult(record: RangeRecord): CountryResult {
  const { confidence } = record;
  const more = confidence === undefined ? {} : { confidence };
  if (record.kind === 'country') {
    return { country: record.name, country_code: record.code, is_eu: record.isEu, reason: null, ...more };
  }
  // A file of a newer minor version may have reasons that this version does not list.
  const reason = record.kind === 'none' ? (record.reason as Reason) : null;
  return { country: null, country_code: null, is_eu: false, reason, ...more };
}

/** What the engine needs of a range file. */
export interface RangeLists extends SearchColumns {
  records: readonly RangeRecord[];
  record4: Uint16Array;
  record6: Uint16Array;
}

export class BinaryEngine implements Engine {
  readonly #file: RangeLists;
  /** By record number. */
  readonly #results: CountryResult[];
  readonly #countries: Country[];
  /** By record number: the scheme of records with an embedded IPv4 address. */
  readonly #schemes: (EmbeddedScheme | undefined)[];

  constructor(file: RangeLists) {
    this.#file = file;
    this.#results = file.records.map(recordResult);
    this.#countries = this.#results.map(sharedCountry);
    this.#schemes = file.records.map((record) => (record.kind === 'embedded' ? record.scheme : undefined));
  }

  lookupIPv4(address: number): CountryResult {
    return this.#results[this.#file.record4[findIPv4(this.#file, address)]!]!;
  }

  lookupIPv6(words: Uint32Array): CountryResult {
    const file = this.#file;
    const record = file.record6[findIPv6(file, words)]!;
    const scheme = this.#schemes[record];
    return scheme === undefined ? this.#results[record]! : this.lookupIPv4(embeddedIPv4(scheme, words) | 0);
  }

  countryIPv4(address: number): Country {
    return this.#countries[this.#file.record4[findIPv4(this.#file, address)]!]!;
  }

  countryIPv6(words: Uint32Array): Country {
    const file = this.#file;
    const record = file.record6[findIPv6(file, words)]!;
    const scheme = this.#schemes[record];
    return scheme === undefined ? this.#countries[record]! : this.countryIPv4(embeddedIPv4(scheme, words) | 0);
  }

  /** Does nothing: the file is in memory. */
  close(): void {}
}
