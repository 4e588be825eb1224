/** Why a well-formed address has no country: the closed vocabulary, and what each word means. */

/** Every reason with its meaning. The words are part of the public answer (`--reason`) and of the range file. */
export const REASONS = {
  private: 'for use inside a network, never on the Internet (RFC 1918, RFC 4193)',
  shared: "between a provider and its customers, behind carriers' NAT (RFC 6598)",
  loopback: 'the host itself (127.0.0.0/8, ::1)',
  link_local: 'valid on one link only (169.254.0.0/16, fe80::/10)',
  unspecified: 'the absence of an address (0.0.0.0, ::)',
  multicast: 'a group of receivers, not a place (RFC 5771, RFC 4291)',
  broadcast: 'all hosts on the link (255.255.255.255)',
  anycast: 'a service that many places answer for at once (AS112, AMT, 6to4 relays)',
  documentation: 'for examples in text, never in use (RFC 5737, RFC 3849, RFC 9637)',
  benchmarking: 'for tests of network devices (RFC 2544, RFC 5180)',
  discard: 'traffic to be thrown away (RFC 6666)',
  protocol: 'set aside by the IETF for the workings of a protocol (RFC 6890 and others)',
  reserved: 'kept by the IETF, not in use',
  unknown: 'a source or an override covers the address, but names no country',
  unallocated: 'no source covers the address',
} as const;

export type Reason = keyof typeof REASONS;

/** Whether the text is a word of the vocabulary. */
export function isReason(text: string): text is Reason {
  return Object.hasOwn(REASONS, text);
}
