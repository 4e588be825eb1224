/** What a range of addresses answers: the three kinds of record of the range file. */
import type { EmbeddedScheme } from '../address/embedded.js';
import type { Reason } from './reasons.js';

export type RangeAnswer =
  /** A country, as an ISO 3166-1 alpha-2 code or `XK`. */
  | { kind: 'country'; code: string }
  /** No country, and why. */
  | { kind: 'none'; reason: Reason }
  /** Whatever the IPv4 address inside the address answers; IPv6 only. */
  | { kind: 'embedded'; scheme: EmbeddedScheme };
