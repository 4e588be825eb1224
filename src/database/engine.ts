/** What a look-up engine is, and what it answers. */

/** The answer for a range of addresses. */
export interface Answer {
  /** English short name, or null where no country is named. */
  country: string | null;
  /** ISO 3166-1 alpha-2, upper case, and XK; or null. */
  country_code: string | null;
  /** Whether the country is in the European Union as of the release's date. */
  is_eu: boolean;
  /** Why there is no country (`private`, `unallocated`, …), or null where there is one. */
  reason: string | null;
}

/** A database of ranges. Both engines, the binary and the SQLite one, answer alike. */
export interface Engine {
  /** @param address as a 32-bit integer, of either sign */
  answerIPv4(address: number): Answer;
  /** @param words the address, four 32-bit words, most significant first; not an IPv4-mapped one */
  answerIPv6(words: Uint32Array): Answer;
  close(): void;
}
