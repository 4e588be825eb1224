/** The stage `verify`: the release as it stands on disk is whole, and addresses whose answer is known get it. */
import { BinaryEngine } from '../src/database/binary-engine.js';
import { Database } from '../src/database/database.js';
import { verifyRelease } from '../src/database/verify.js';
import { AtlasError } from '../src/errors.js';
import type { FinishedRelease } from './publish.js';
import type { Sentinel } from './reference.js';
import type { Stage } from './stage.js';

/** What the database says of a sentinel, in the notation of sentinels.csv. */
function answer(database: Database, ip: string): string {
  const result = database.lookupWithReason(ip);
  return result?.country_code ?? `reason:${result?.reason ?? 'invalid'}`;
}

/** @param sentinels addresses with the answer that any sound database gives */
export function verifyStage(sentinels: Sentinel[]): Stage<FinishedRelease, FinishedRelease> {
  return {
    name: 'verify',
    run: async (release) => {
      const { manifest, file } = verifyRelease(release.dir);
      const database = new Database(release.dir, manifest, new BinaryEngine(file));
      const wrong = sentinels
        .map((sentinel) => ({ ...sentinel, got: answer(database, sentinel.ip) }))
        .filter(({ expected, got }) => got !== expected);
      if (wrong.length > 0) {
        const list = wrong.map(({ ip, expected, got }) => `  ${ip}: expected ${expected}, got ${got}`).join('\n');
        throw new AtlasError(
          'E_REFUSED',
          `${wrong.length} of ${sentinels.length} sentinel addresses have another answer than expected; nothing is published\n${list}`,
        );
      }
      return { output: release, counts: { ranges: file.count4 + file.count6, sentinels: sentinels.length } };
    },
  };
}
