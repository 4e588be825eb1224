/** Sentinels: addresses whose answer is known, asked of a release. */

import { EMBEDDED_SCHEMES, embeddedIPv4 } from '../../src/address/embedded.js';
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords, compareAddresses } from '../../src/address/words.js';
import type { Database } from '../../src/database/database.js';
import type { Override } from '../config/overrides.js';
import type { Sentinel } from '../config/reference.js';

/** A sentinel beside what a release says of it, both as `DE` or `reason:private`. */
export interface Verdict {
  ip: string;
  expected: string;
  got: string;
  /** What the release to compare with says; undefined where there is none. */
  before: string | undefined;
  /**
   * `open`: no source has a country for it, which a build of few sources may well not. `known`: wrong, but the release to
   * compare with, which someone has let through, says the same. `lost`: that release had the right answer.
   */
  verdict: 'right' | 'open' | 'known' | 'wrong' | 'lost';
}

function answerOf(database: Database, ip: string): string {
  const result = database.lookupWithReason(ip);
  return result?.country_code ?? `reason:${result?.reason}`;
}

function judge(sentinel: Sentinel, database: Database, previous: Database | undefined): Verdict {
  const { ip, expected } = sentinel;
  const wanted =
    expected.kind === 'country' ? expected.code : expected.kind === 'none' ? `reason:${expected.reason}` : '';
  const got = answerOf(database, ip);
  const before = previous === undefined ? undefined : answerOf(previous, ip);
  const isOpen = expected.kind === 'country' && ['reason:unallocated', 'reason:unknown'].includes(got);
  const verdict =
    got === wanted ? 'right' : before === wanted ? 'lost' : isOpen ? 'open' : before === got ? 'known' : 'wrong';
  return { ip, expected: wanted, got, before, verdict };
}

/** Whether the user has overridden what the address, or the IPv4 address inside it, answers. */
function isOverridden(ip: string, overrides: readonly Override[]): boolean {
  const words = new Uint32Array(4);
  const covers = (family: Family, address: Uint32Array): boolean => {
    const count = addressWords(family);
    return overrides.some(
      (row) =>
        row.family === family &&
        compareAddresses(row.first, 0, address, 0, count) <= 0 &&
        compareAddresses(row.last, 0, address, 0, count) >= 0,
    );
  };
  const family = parseAddress(ip, words);
  if (family === 0) return false;
  if (covers(family, words)) return true;
  return family === 6 && EMBEDDED_SCHEMES.some((scheme) => covers(4, Uint32Array.of(embeddedIPv4(scheme, words))));
}

/**
 * Asks a release for its sentinels.
 *
 * @param sentinels addresses with the answer that any sound database gives
 * @param overrides of the user, who may know better than a sentinel
 * @param database the release
 * @param previous the release to compare with, if there is one
 */
export function judgeSentinels(
  sentinels: readonly Sentinel[],
  overrides: readonly Override[],
  database: Database,
  previous: Database | undefined,
): Verdict[] {
  return sentinels
    .filter(({ ip }) => !isOverridden(ip, overrides))
    .map((sentinel) => judge(sentinel, database, previous));
}
