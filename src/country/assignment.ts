/** What a range of addresses is assigned: a country, a reason why it has none, or an embedded IPv4 address. */
import type { EmbeddedScheme } from '../address/embedded.js';

/**
 * Why a valid address has no country: a closed list, with the meaning of each word. The words appear in public output
 * (`--reason`) and in the range file.
 */
export const REASONS = {
  private: 'for use inside a network, not on the Internet (RFC 1918, RFC 4193)',
  shared: 'between a provider and its customers, in carrier-grade NAT (RFC 6598)',
  loopback: 'the host itself (127.0.0.0/8, ::1)',
  link_local: 'valid on one link only (169.254.0.0/16, fe80::/10)',
  unspecified: 'the absence of an address (0.0.0.0, ::)',
  multicast: 'a group of receivers, not a location (RFC 5771, RFC 4291)',
  broadcast: 'all hosts on the link (255.255.255.255)',
  anycast: 'a service reached at many locations at once (AS112, AMT, 6to4 relays)',
  documentation: 'for examples in text, never in use (RFC 5737, RFC 3849, RFC 9637)',
  benchmarking: 'for tests of network devices (RFC 2544, RFC 5180)',
  discard: 'traffic to be discarded (RFC 6666)',
  protocol: 'assigned by the IETF to a protocol (RFC 6890 and others)',
  reserved: 'reserved by the IETF, not in use',
  unknown: 'a source or an override covers the address, but names no country',
  unallocated: 'no source covers the address, or no registry has delegated it',
} as const;

export type Reason = keyof typeof REASONS;

/** Whether a text is one of {@link REASONS}. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}

/**
 * What a range is assigned, before the country's name and EU membership as of a date are added: with them it is a
 * `RangeRecord` of the range file.
 */
export type Assignment =
  /** A country, as an ISO 3166-1 alpha-2 code or `XK`. */
  | { kind: 'country'; code: string }
  /** No country, and the reason. */
  | { kind: 'none'; reason: Reason }
  /** The country of the IPv4 address embedded in the address; IPv6 only. */
  | { kind: 'embedded'; scheme: EmbeddedScheme };
