/** The interfaces of the databases of @ipatlas/lookup. Its declarations and those of results.ts become those of the package. */
import type { Country, LookupResult, ReasonedResult } from '../database/results.js';

/** What all of them say about their data. */
export interface DatedDatabase {
  /** Date of the data, `YYYY-MM-DD`. */
  readonly dataDate: string;
  /** Whom the sources of the data want credited. */
  readonly attribution: readonly string[];
}

export interface LookupDatabase extends DatedDatabase {
  /** Returns the age of the data in whole days, at a time in milliseconds since 1970; now by default. */
  age(now?: number): number;
  /** Returns the country of an address, the same object for all addresses of a country; undefined if it is not an address. */
  country(ip: string): Country | undefined;
  /** Returns the address in its canonical form, and its country; undefined if it is not an address. */
  lookup(ip: string): LookupResult | undefined;
  /** Looks up an address as `lookup`, with the reason why it has no country. */
  lookupWithReason(ip: string): ReasonedResult | undefined;
  /** Looks up 4 or 16 bytes in network order; undefined for any other number of bytes. */
  lookupBytes(bytes: Uint8Array): LookupResult | undefined;
}

/** Who announces an address, as a frozen object that all addresses of the network share; with nulls if nobody does. */
export interface Network {
  /** Number of the autonomous system, or null. */
  readonly asn: number | null;
  /** Its name, or null. */
  readonly as_name: string | null;
}

export interface NetworkDatabase extends DatedDatabase {
  /** Returns the network of an address; undefined if it is not an address. */
  network(ip: string): Network | undefined;
}

/** What kind of network an address is of, as a frozen object that all addresses with the same answer share. */
export interface NetworkKind {
  /** Whether the address is served from many places; null if nothing tells it. */
  readonly anycast: boolean | null;
  /** What operators' own lists say; `none` if no list has the address, null if a list is missing. */
  readonly kind: 'cloud' | 'relay' | 'tor' | 'none' | null;
  /** Whose list has it, such as `aws`; or null. */
  readonly operator: string | null;
}

export interface KindDatabase extends DatedDatabase {
  /** Returns the kind of network of an address; undefined if it is not an address. */
  kind(ip: string): NetworkKind | undefined;
}
