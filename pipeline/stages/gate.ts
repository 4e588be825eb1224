/**
 * Stage `gate`: compares the new release with the current one and finds the changes that are too large to be genuine.
 *
 * The stage only reports. What happens to a refused release is in `gates/refusal.ts`.
 */
import { join } from 'node:path';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Database } from '../../src/database/database.js';
import { computeDelta } from '../../src/database/delta.js';
import { rangeList } from '../../src/database/diff.js';
import { currentReleaseId, type Manifest, RELEASES_DIR, releaseIds } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { AtlasError } from '../../src/errors.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import type { RangeFile } from '../../src/rangefile/reader.js';
import type { Override } from '../config/overrides.js';
import type { Sentinel } from '../config/reference.js';
import type { GateLimits } from '../config/sources.js';
import {
  checkCountries,
  checkDelegations,
  checkDelta,
  checkRows,
  checkSeeds,
  checkSentinelResults,
  deltaCounts,
  describeDeltas,
  describeSourceChanges,
  gateFigures,
  replacesSeed,
} from '../gates/checks.js';
import { computeDelegationDelta } from '../gates/delegations.js';
import type { GateResult } from '../gates/refusal.js';
import { checkSentinels, type SentinelResult } from '../gates/sentinels.js';
import type { FinishedRelease, Stage } from '../stage.js';

export interface GateInput {
  limits: GateLimits;
  sentinels: readonly Sentinel[];
  overrides: readonly Override[];
  /** The registries' IPv6 delegations, if they are among the sources. */
  delegations?: BoundedRanges | undefined;
}

/** A release as the gates need it. */
interface OpenRelease {
  id: string;
  manifest: Manifest;
  file: RangeFile;
  database: Database;
}

function openRelease(dir: string): OpenRelease {
  const { manifest, file } = openReleaseRanges(dir);
  return { id: manifest.id, manifest, file, database: new Database(dir, manifest, new BinaryEngine(file)) };
}

/** Returns the release to compare with: the current one, or else the newest that can be read; undefined if none can. */
function previousRelease(dataDir: string, note: (text: string) => void): OpenRelease | undefined {
  const current = currentReleaseId(dataDir);
  const ids = releaseIds(dataDir).filter((id) => id !== current);
  for (const id of current === undefined ? ids : [current, ...ids]) {
    try {
      return openRelease(join(dataDir, RELEASES_DIR, id));
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      note(`release ${id} cannot be used for comparison: ${error.message}`);
    }
  }
  return undefined;
}

export const gateStage = ({
  limits,
  sentinels,
  overrides,
  delegations,
}: GateInput): Stage<FinishedRelease, GateResult> => ({
  name: 'gate',
  run: async (release, { dataDir, note }) => {
    const now = openRelease(release.dir);
    const before = previousRelease(dataDir, note);
    if (before === undefined) note('no release to compare with: only the sentinels are checked');
    const deltas =
      before === undefined
        ? []
        : ([4, 6] as const).map((family) => computeDelta(rangeList(before.file, family), rangeList(now.file, family)));
    const delegationDelta =
      before && computeDelegationDelta(rangeList(before.file, 6), rangeList(now.file, 6), delegations);
    const results = checkSentinels(sentinels, overrides, now.database, before?.database);
    const refusals = checkSentinelResults(results, limits);
    if (before !== undefined) refusals.push(...checkSeeds(now.manifest, before.manifest));
    const fromSeed = before !== undefined && replacesSeed(now.manifest, before.manifest);
    if (fromSeed) {
      note(`release ${before.id} was made from a seed, so the changes from it are not limited`);
    } else if (before !== undefined) {
      refusals.push(
        ...deltas.flatMap((delta) => checkDelta(delta, limits)),
        ...checkDelegations(delegationDelta!, limits),
        ...checkCountries(deltas, limits),
        ...checkRows(now.manifest, before.manifest, limits),
      );
    }
    const withStatus = (status: SentinelResult['status']): number =>
      results.filter((result) => result.status === status).length;
    const changes = before && { manifest: before.manifest, deltas, delegationDelta: delegationDelta! };
    const gates = gateFigures(now.manifest, changes, results, limits, !fromSeed);
    return {
      output: {
        ...{ release, refusals, gates, changes: describeDeltas(deltas) },
        sourceChanges: before === undefined ? [] : describeSourceChanges(now.manifest, before.manifest),
      },
      counts: {
        compared_with: before?.id ?? 'nothing',
        ...deltaCounts(deltas),
        sentinels: withStatus('right'),
        sentinels_open: withStatus('open'),
        sentinels_known_wrong: withStatus('known'),
        refusals: refusals.length,
      },
    };
  },
});
