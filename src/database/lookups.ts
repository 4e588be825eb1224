/** Lookups of text and bytes, in every kind of database: the same code in ipatlas and in @ipatlas/lookup. */
import { formatIPv4, formatIPv6Full } from '../address/format.js';
import {
  IPV6_IN_FULL,
  isMapped,
  looksLikeIPv6,
  NOT_IPV6,
  parseAddress,
  parseIPv4,
  parseIPv6Form,
} from '../address/parse.js';
import type { Engine } from './engine.js';
import type { Country, LookupResult, ReasonedResult } from './results.js';

/** Receives parsed addresses. One array serves all lookups, because they are synchronous. */
const words = new Uint32Array(4);

/** Reads four bytes in network order as an unsigned number. */
function readWord(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

export class Lookups {
  protected engine: Engine;

  constructor(engine: Engine) {
    this.engine = engine;
  }

  /**
   * Returns the country of an address: the fastest lookup, because it makes no object and formats no address.
   *
   * @param text an IPv4 address in dotted decimal or an IPv6 address in any form of RFC 4291, without white space
   * @returns a frozen object that all addresses of a country share, with nulls if the address has no country; undefined if
   *   the text is not an address
   */
  country(text: string): Country | undefined {
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    return address < 0 ? this.#countryIPv6(text) : this.engine.countryIPv4(address | 0);
  }

  /**
   * Looks up an address.
   *
   * @param text as for {@link country}
   * @returns the result, or undefined if the text is not an address
   */
  lookup(text: string): LookupResult | undefined {
    // IPv6 has a method of its own to keep this one small: V8 then inlines the engine, which halves the time.
    const address = looksLikeIPv6(text) ? -1 : parseIPv4(text);
    if (address < 0) return this.#lookupIPv6(text);
    const { country, country_code, is_eu } = this.engine.lookupIPv4(address | 0);
    // Leading zeros are not accepted, so the text of an IPv4 address is its canonical form.
    return { ip: text, country, country_code, is_eu };
  }

  /**
   * Looks up an address as {@link lookup}, with the reason why it has no country.
   *
   * @returns the result, or undefined if the text is not an address
   */
  lookupWithReason(text: string): ReasonedResult | undefined {
    const family = parseAddress(text, words);
    if (family === 0) return undefined;
    if (family === 4) return { ip: formatIPv4(words[0]!), ...this.engine.lookupIPv4(words[0]! | 0) };
    return { ip: formatIPv6Full(words), ...this.engine.lookupIPv6(words) };
  }

  /**
   * Looks up an address given as bytes in network order.
   *
   * @param bytes 4 bytes (IPv4) or 16 (IPv6)
   * @returns the result, or undefined for any other number of bytes
   */
  lookupBytes(bytes: Uint8Array): LookupResult | undefined {
    if (bytes.length === 4) {
      const address = readWord(bytes, 0);
      const { country, country_code, is_eu } = this.engine.lookupIPv4(address | 0);
      return { ip: formatIPv4(address), country, country_code, is_eu };
    }
    if (bytes.length !== 16) return undefined;
    for (let i = 0; i < 4; i++) words[i] = readWord(bytes, 4 * i);
    return this.#lookupWords();
  }

  #countryIPv6(text: string): Country | undefined {
    if (parseIPv6Form(text, words) === NOT_IPV6) return undefined;
    return isMapped(words) ? this.engine.countryIPv4(words[3]! | 0) : this.engine.countryIPv6(words);
  }

  #lookupIPv6(text: string): LookupResult | undefined {
    const form = parseIPv6Form(text, words);
    if (form === NOT_IPV6) return undefined;
    return this.#lookupWords(form === IPV6_IN_FULL ? text : undefined);
  }

  /** Returns the result for the IPv6 address in `words`; `full` is its text in full, if known. */
  #lookupWords(full?: string): LookupResult {
    if (isMapped(words)) {
      const { country, country_code, is_eu } = this.engine.lookupIPv4(words[3]! | 0);
      return { ip: formatIPv4(words[3]!), country, country_code, is_eu };
    }
    const { country, country_code, is_eu } = this.engine.lookupIPv6(words);
    return { ip: full ?? formatIPv6Full(words), country, country_code, is_eu };
  }
}
