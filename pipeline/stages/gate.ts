/**
 * Stage `gate`: compares the new release with the current one and finds the changes that are too large to be genuine.
 *
 * The stage only reports. What happens to a refused release is in `gates/refusal.ts`.
 */
import { join } from 'node:path';
import type { Family } from '../../src/address/parse.js';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Database } from '../../src/database/database.js';
import { computeDelta, type Delta } from '../../src/database/delta.js';
import { formatSize, formatSizeUnit, type RangeList, rangeList } from '../../src/database/diff.js';
import { currentReleaseId, type Manifest, RELEASES_DIR, releaseIds } from '../../src/database/release.js';
import { openReleaseRanges } from '../../src/database/release-files.js';
import { AtlasError } from '../../src/errors.js';
import { PAIRS_SHOWN } from '../../src/limits.js';
import { formatCidr } from '../../src/range/cidr.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import type { RangeFile } from '../../src/rangefile/reader.js';
import { grouped, percent, table } from '../../src/text-table.js';
import type { Override } from '../config/overrides.js';
import type { Sentinel } from '../config/reference.js';
import type { GateLimits } from '../config/sources.js';
import { delegationFlows } from '../gates/delegations.js';
import { judge } from '../gates/limits.js';
import { type Measure, measureChanges, measureRows, measureSentinels } from '../gates/measures.js';
import type { Flow, GateResult } from '../gates/refusal.js';
import { checkSentinels, type SentinelResult } from '../gates/sentinels.js';
import { checkSeeds, daysOfStep, describeSourceChanges } from '../gates/step.js';
import type { Counts, FinishedRelease, Stage } from '../stage.js';

/** Data to compare a first release with: those that come with the package. */
export interface SeedRanges {
  /** Of the data, `YYYY-MM-DD`. */
  date: string;
  v4: RangeList;
  v6: RangeList;
}

export interface GateInput {
  limits: GateLimits;
  sentinels: readonly Sentinel[];
  overrides: readonly Override[];
  /** The registries' IPv6 delegations, if they are among the sources. */
  delegations?: BoundedRanges | undefined;
  /** Returns what to compare with if no release can be read; undefined for a list of sources that the user wrote. */
  seed?: (() => SeedRanges | undefined) | undefined;
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

/** What to compare with. */
interface Earlier {
  ranges: (family: Family) => RangeList;
  /** Undefined for a seed. */
  release: OpenRelease | undefined;
  /** Why its sources are others; empty if only time has passed. */
  sourceChanges: string[];
}

function earlierData(
  now: OpenRelease,
  dataDir: string,
  seed: GateInput['seed'],
  note: (text: string) => void,
): Earlier | undefined {
  const release = previousRelease(dataDir, note);
  if (release !== undefined) {
    const sourceChanges = describeSourceChanges(now.manifest, release.manifest);
    if (sourceChanges.length > 0) note(`the limits are those of a change of sources: ${sourceChanges.join('; ')}`);
    return { ranges: (family) => rangeList(release.file, family), release, sourceChanges };
  }
  const found = seed?.();
  if (found === undefined) {
    note('no release to compare with: only the sentinels are checked');
    return undefined;
  }
  const why = `there is no earlier release, so the data of ${found.date} that come with ipatlas are compared`;
  note(why);
  return { ranges: (family) => (family === 4 ? found.v4 : found.v6), release, sourceChanges: [why] };
}

/** Returns a function that says whether a country is in the European Union, as of the new release. */
function membership(...files: RangeFile[]): (code: string) => boolean {
  const members = new Map<string, boolean>();
  for (const { records } of files) {
    for (const record of records) if (record.kind === 'country') members.set(record.code, record.isEu);
  }
  return (code) => members.get(code) === true;
}

/** Returns the largest flows of both families by their share. */
function largestFlows(deltas: readonly Delta[]): Flow[] {
  const flows = deltas.flatMap(({ family, assigned, pairs }) =>
    pairs.slice(0, PAIRS_SHOWN).map(({ from, to, addresses }): Flow => {
      const share = assigned === 0n ? 0 : Number(addresses) / Number(assigned);
      return { family, from, to, addresses: String(addresses), share };
    }),
  );
  return flows.sort((a, b) => b.share - a.share).slice(0, PAIRS_SHOWN);
}

/** Returns tables of the changes for a person; empty if nothing changed. */
function describeDeltas(deltas: readonly Delta[]): string {
  const pairs = deltas.flatMap(({ family, pairs }) =>
    pairs
      .slice(0, PAIRS_SHOWN)
      .map(({ from, to, addresses, ranges }) => [
        `  IPv${family}`,
        ...[from, '→', to],
        `${formatSize(family, addresses)} ${formatSizeUnit(family)}`,
        `in ${grouped(ranges)} ranges`,
      ]),
  );
  const blocks = deltas.flatMap(({ family, blocks }) =>
    blocks.map(({ first, prefix, from, to }) => [`  ${formatCidr(family, first, prefix)}`, from, '→', to]),
  );
  if (pairs.length === 0) return '';
  return `What changed:\n${table(pairs, [4])}The largest blocks:\n${table(blocks)}`;
}

/** Returns the shares of changed, lost and gained addresses for the report. */
function deltaCounts(deltas: readonly Delta[]): Counts {
  const counts: Counts = {};
  for (const { family, assigned, changed, lost, gained } of deltas) {
    for (const [name, part] of Object.entries({ changed, lost, gained })) {
      counts[`${name}_ipv${family}`] = percent(assigned === 0n ? 0 : Number(part) / Number(assigned));
    }
  }
  return counts;
}

export const gateStage = ({
  limits,
  sentinels,
  overrides,
  delegations,
  seed,
}: GateInput): Stage<FinishedRelease, GateResult> => ({
  name: 'gate',
  run: async (release, { dataDir, note }) => {
    const now = openRelease(release.dir);
    const before = earlierData(now, dataDir, seed, note);
    const results = checkSentinels(sentinels, overrides, now.database, before?.release?.database);
    const measures: Measure[] = [measureSentinels(results)];
    let deltas: Delta[] = [];
    let days: number | undefined;
    if (before !== undefined) {
      const [v4, v6] = ([4, 6] as const).map((family) => [before.ranges(family), rangeList(now.file, family)] as const);
      deltas = [v4!, v6!].map(([earlier, later]) => computeDelta(earlier, later));
      const isNight = before.sourceChanges.length === 0;
      const files = before.release === undefined ? [now.file] : [before.release.file, now.file];
      const flows = delegationFlows(...v6!, delegations);
      measures.unshift(...measureChanges(deltas, flows, membership(...files), isNight));
      if (isNight) {
        measures.push(measureRows(now.manifest, before.release!.manifest));
        days = daysOfStep(now.manifest, before.release!.manifest);
      }
    }
    const { gates, refusals } = judge(measures, limits, days);
    if (before?.release !== undefined) refusals.push(...checkSeeds(now.manifest, before.release.manifest));
    const withStatus = (status: SentinelResult['status']): number =>
      results.filter((result) => result.status === status).length;
    return {
      output: {
        ...{ release, refusals, gates, flows: largestFlows(deltas), changes: describeDeltas(deltas) },
        sourceChanges: before?.sourceChanges ?? [],
      },
      counts: {
        compared_with: before?.release?.id ?? 'nothing',
        ...(days !== undefined && { days }),
        ...deltaCounts(deltas),
        sentinels: withStatus('right'),
        sentinels_open: withStatus('open'),
        sentinels_known_wrong: withStatus('known'),
        refusals: refusals.length,
      },
    };
  },
});
