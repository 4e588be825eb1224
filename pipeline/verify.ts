/** The stage `verify`: the release as it stands on disk is whole, and addresses whose answer is known get it. */
import { EMBEDDED_SCHEMES, embeddedIPv4 } from '../src/address/embedded.js';
import { type Family, parseAddress } from '../src/address/parse.js';
import { BinaryEngine } from '../src/database/binary-engine.js';
import { Database } from '../src/database/database.js';
import { verifyRelease } from '../src/database/verify.js';
import { AtlasError } from '../src/errors.js';
import { addressWords } from '../src/range/cidr.js';
import { compareAt } from '../src/range/overlay.js';
import type { Override } from './overrides.js';
import type { FinishedRelease } from './publish.js';
import type { Sentinel } from './reference.js';
import type { Stage } from './stage.js';

/** A sentinel beside what the database says of it, both as `DE` or `reason:private`. */
interface Verdict {
  ip: string;
  expected: string;
  got: string;
  /** `open`: no source has a country for it, which a build of few sources may well not. */
  verdict: 'right' | 'wrong' | 'open';
}

function judge(database: Database, { ip, expected }: Sentinel): Verdict {
  const result = database.lookupWithReason(ip);
  const got = result?.country_code ?? `reason:${result?.reason}`;
  const wanted =
    expected.kind === 'country' ? expected.code : expected.kind === 'none' ? `reason:${expected.reason}` : '';
  const isOpen = expected.kind === 'country' && (result?.reason === 'unallocated' || result?.reason === 'unknown');
  return { ip, expected: wanted, got, verdict: got === wanted ? 'right' : isOpen ? 'open' : 'wrong' };
}

/** Whether the user has overridden what the address, or the IPv4 address inside it, answers. */
function isOverridden(ip: string, overrides: readonly Override[]): boolean {
  const words = new Uint32Array(4);
  const covers = (family: Family, address: Uint32Array): boolean => {
    const count = addressWords(family);
    return overrides.some(
      (row) =>
        row.family === family &&
        compareAt(row.first, 0, address, 0, count) <= 0 &&
        compareAt(row.last, 0, address, 0, count) >= 0,
    );
  };
  const family = parseAddress(ip, words);
  if (family === 0) return false;
  if (covers(family, words)) return true;
  return family === 6 && EMBEDDED_SCHEMES.some((scheme) => covers(4, Uint32Array.of(embeddedIPv4(scheme, words))));
}

/**
 * @param sentinels addresses with the answer that any sound database gives
 * @param overrides of the user, who may know better than a sentinel
 */
export function verifyStage(
  sentinels: readonly Sentinel[],
  overrides: readonly Override[],
): Stage<FinishedRelease, FinishedRelease> {
  return {
    name: 'verify',
    run: async (release) => {
      const { manifest, file } = verifyRelease(release.dir);
      const database = new Database(release.dir, manifest, new BinaryEngine(file));
      const verdicts = sentinels
        .filter(({ ip }) => !isOverridden(ip, overrides))
        .map((sentinel) => judge(database, sentinel));
      const wrong = verdicts.filter(({ verdict }) => verdict === 'wrong');
      if (wrong.length > 0) {
        const list = wrong.map(({ ip, expected, got }) => `  ${ip}: expected ${expected}, got ${got}`).join('\n');
        throw new AtlasError(
          'E_REFUSED',
          `${wrong.length} of ${verdicts.length} sentinel addresses have another answer than expected; nothing is published\n${list}`,
        );
      }
      const right = verdicts.filter(({ verdict }) => verdict === 'right').length;
      return {
        output: release,
        counts: { ranges: file.count4 + file.count6, sentinels: right, sentinels_open: verdicts.length - right },
      };
    },
  };
}
