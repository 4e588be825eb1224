/** Sentinels: addresses whose correct result is known, looked up in a release. */
import { embeddedIPv4, schemeOf } from '../../src/address/embedded.js';
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords, rangeContains } from '../../src/address/words.js';
import type { Database } from '../../src/database/database.js';
import { recordLabel } from '../../src/database/diff.js';
import { PartitionFinder } from '../../src/database/finder.js';
import { UNANNOUNCED } from '../../src/rangefile/layout.js';
import type { NetworkFile } from '../../src/rangefile/reader.js';
import type { Override } from '../config/overrides.js';
import type { NetworkSentinel, Sentinel } from '../config/reference.js';

/** The expected and the actual result for one sentinel, both written as `DE`, `AS15169` or `reason:private`. */
export interface SentinelResult {
  ip: string;
  expected: string;
  actual: string;
  /** The result in the release to compare with; undefined if there is none. */
  before: string | undefined;
  /**
   * - `right`: the actual result is the expected one.
   * - `open`: no source names a country or a network for the address, which is normal for a build from few sources.
   * - `known`: wrong, but the release to compare with has the same result, and that release was accepted.
   * - `lost`: wrong, and the release to compare with has the right result.
   * - `wrong`: wrong in another way.
   */
  status: 'right' | 'open' | 'known' | 'wrong' | 'lost';
}

/** Returns the label of an address. */
type LabelOf = (ip: string) => string;

/** Results if no source names a country or a network. */
const OPEN = ['unallocated', 'unknown', UNANNOUNCED].map((reason) => `reason:${reason}`);

function check(ip: string, expected: string, labelOf: LabelOf, labelBefore: LabelOf | undefined): SentinelResult {
  const [actual, before] = [labelOf(ip), labelBefore?.(ip)];
  const statusOf = (): SentinelResult['status'] => {
    if (actual === expected) return 'right';
    if (before === expected) return 'lost';
    if (!expected.startsWith('reason:') && OPEN.includes(actual)) return 'open';
    return before === actual ? 'known' : 'wrong';
  };
  return { ip, expected, actual, before, status: statusOf() };
}

function countryLabels(database: Database): LabelOf {
  return (ip) => {
    const result = database.lookupWithReason(ip);
    return result?.country_code ?? `reason:${result?.reason}`;
  };
}

function networkLabels(file: NetworkFile): LabelOf {
  const finder = new PartitionFinder(file, false);
  const words = new Uint32Array(4);
  return (ip) => {
    if (parseAddress(ip, words) === 4) finder.findIPv4(words[0]! | 0);
    else finder.findIPv6(words);
    const label = recordLabel(file.recordAt(finder.record));
    return label === UNANNOUNCED ? `reason:${label}` : label;
  };
}

/**
 * Looks up the AS numbers of sentinels in a release.
 *
 * @param networks of the release to check
 * @param previous those of the release to compare with, if it has any
 */
export function checkNetworkSentinels(
  sentinels: readonly NetworkSentinel[],
  networks: NetworkFile,
  previous: NetworkFile | undefined,
): SentinelResult[] {
  const labelOf = networkLabels(networks);
  const labelBefore = previous && networkLabels(previous);
  return sentinels.map(({ ip, asn }) => check(ip, `AS${asn}`, labelOf, labelBefore));
}

/** Returns whether an override covers the address or, in an embedded prefix, the IPv4 address inside it. */
function isOverridden(ip: string, overrides: readonly Override[]): boolean {
  const words = new Uint32Array(4);
  const family = parseAddress(ip, words);
  if (family === 0) return false;
  const covers = (wanted: Family, address: Uint32Array): boolean =>
    overrides.some((row) => row.family === wanted && rangeContains(row.first, row.last, address));
  if (covers(family, words.slice(0, addressWords(family)))) return true;
  const scheme = family === 6 ? schemeOf(words) : undefined;
  return scheme !== undefined && covers(4, Uint32Array.of(embeddedIPv4(scheme, words)));
}

/**
 * Looks up the sentinels in a release.
 *
 * @param sentinels addresses with the result that every correct database gives
 * @param overrides the user's overrides; a sentinel that one of them covers is not checked
 * @param database the release to check
 * @param previous the release to compare with, if there is one
 */
export function checkSentinels(
  sentinels: readonly Sentinel[],
  overrides: readonly Override[],
  database: Database,
  previous: Database | undefined,
): SentinelResult[] {
  const labelOf = countryLabels(database);
  const labelBefore = previous && countryLabels(previous);
  return sentinels
    .filter(({ ip }) => !isOverridden(ip, overrides))
    .map(({ ip, expected }) => {
      const label = expected.kind === 'country' ? expected.code : `reason:${expected.reason}`;
      return check(ip, label, labelOf, labelBefore);
    });
}
