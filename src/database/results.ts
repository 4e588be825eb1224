/** What lookups return. */
import type { Reason } from '../country/assignment.js';

/** A country, as a frozen object that all its addresses share; with nulls for no country. */
export interface Country {
  /** English short name, or null if the address has no country. */
  readonly country: string | null;
  /** ISO 3166-1 alpha-2, upper case, and XK for Kosovo; or null. */
  readonly country_code: string | null;
  /** Whether the country is in the European Union. */
  readonly is_eu: boolean;
}

/** A lookup result: these four fields, the address first. */
export type LookupResult = {
  /** Dotted decimal, or eight groups of four lower-case hex digits. */
  ip: string;
} & { -readonly [Member in keyof Country]: Country[Member] };

/** A lookup result with the reason why it has no country; null if it has one. */
export interface ReasonedResult extends LookupResult {
  reason: Reason | null;
  /**
   * Share of the lineages of sources that agree with the result, in percent; null without a country. Only if the database
   * was opened with `confidence`.
   */
  confidence?: number | null;
}
