/**
 * Stage `gate`: compares the new release with the current one and finds the changes that are too large to be genuine.
 *
 * The stage only reports. What happens to a refused release is in `gates/refusal.ts`.
 */
import { join } from 'node:path';
import { BinaryEngine } from '../../src/database/binary-engine.js';
import { Database } from '../../src/database/database.js';
import { computeDelta, type Delta } from '../../src/database/delta.js';
import { formatSize, formatSizeUnit, rangeList } from '../../src/database/diff.js';
import { currentReleaseId, type Manifest, RELEASES_DIR, releaseIds } from '../../src/database/release.js';
import { openReleasePartition, openReleaseRanges } from '../../src/database/release-files.js';
import { AtlasError } from '../../src/errors.js';
import { PAIRS_SHOWN } from '../../src/limits.js';
import { formatCidr } from '../../src/range/cidr.js';
import type { BoundedRanges } from '../../src/range/columns.js';
import { NETWORKS } from '../../src/rangefile/partitions.js';
import type { NetworkFile, RangeFile } from '../../src/rangefile/reader.js';
import { grouped, percent, table } from '../../src/text-table.js';
import type { Override } from '../config/overrides.js';
import type { NetworkSentinel, Sentinel } from '../config/reference.js';
import type { GateLimits } from '../config/sources.js';
import { delegationFlows } from '../gates/delegations.js';
import { judge } from '../gates/limits.js';
import {
  type Measure,
  measureChanges,
  measureLabels,
  measureNetworks,
  measureRows,
  measureSentinels,
} from '../gates/measures.js';
import type { Flow, GateResult } from '../gates/refusal.js';
import { checkNetworkSentinels, checkSentinels, type SentinelResult } from '../gates/sentinels.js';
import { checkSeeds, daysOfStep, describeSourceChanges } from '../gates/step.js';
import type { Counts, FinishedRelease, StageContext, StageResult } from '../stage.js';

export interface GateInput {
  limits: GateLimits;
  sentinels: readonly Sentinel[];
  networkSentinels: readonly NetworkSentinel[];
  overrides: readonly Override[];
  /** The registries' IPv6 delegations, if they are among the sources. */
  delegations?: BoundedRanges | undefined;
  /** Opens what to compare with if no release can be read: the seed; undefined for a list of sources that the user wrote. */
  seed?: (() => Ranges) | undefined;
}

/** A release as the gates need it. */
interface Ranges {
  manifest: Manifest;
  file: RangeFile;
  /** Undefined if it has none. */
  networks?: NetworkFile | undefined;
}

function databaseOf(dir: string, { manifest, file }: Ranges): Database {
  return new Database(dir, manifest, new BinaryEngine(file));
}

/** What to compare with. */
interface Earlier extends Ranges {
  /** Undefined for the seed. */
  database?: Database;
  /** Why its sources are others; empty if only time has passed. */
  sourceChanges: string[];
}

/** Opens what to compare with: the current release, or else the newest that can be read, or else the seed. */
function openEarlier(
  now: Manifest,
  dataDir: string,
  seed: GateInput['seed'],
  note: (text: string) => void,
): Earlier | undefined {
  const current = currentReleaseId(dataDir);
  const ids = releaseIds(dataDir).filter((id) => id !== current);
  const releases = (current === undefined ? ids : [current, ...ids]).map((id) => ({
    name: `release ${id}`,
    open: (): Earlier => {
      const dir = join(dataDir, RELEASES_DIR, id);
      const opened = openReleaseRanges(dir);
      const release = { ...opened, networks: openReleasePartition(dir, opened.manifest, NETWORKS) };
      const sourceChanges = describeSourceChanges(now, release.manifest);
      return { ...release, database: databaseOf(dir, release), sourceChanges };
    },
  }));
  const openSeed = (opened: Ranges): Earlier => {
    const { data_date: date, as_of: asOf } = opened.manifest;
    const why = `there is no earlier release, so the data of ${date ?? asOf} that come with ipatlas are compared`;
    return { ...opened, sourceChanges: [why] };
  };
  if (seed !== undefined) releases.push({ name: 'the seed', open: () => openSeed(seed()) });
  for (const { name, open } of releases) {
    try {
      const earlier = open();
      const { sourceChanges } = earlier;
      if (sourceChanges.length > 0) note(`the limits are those of a change of sources: ${sourceChanges.join('; ')}`);
      return earlier;
    } catch (error) {
      if (!(error instanceof AtlasError)) throw error;
      note(`${name} cannot be used for comparison: ${error.message}`);
    }
  }
  note('no release to compare with: only the sentinels are checked');
  return undefined;
}

/** Returns a function that says whether a country is in the European Union, as of the new release. */
function membership(...files: RangeFile[]): (code: string) => boolean {
  const members = new Map<string, boolean>();
  for (const { records } of files) {
    for (const record of records) if (record.kind === 'country') members.set(record.code, record.isEu);
  }
  return (code) => members.get(code) === true;
}

/**
 * Measures the networks of a release. One whose predecessor has none is measured by its sentinels only.
 *
 * @param before the networks of the release to compare with
 */
function measureNetworkFile(
  networks: NetworkFile | undefined,
  before: NetworkFile | undefined,
  sentinels: readonly NetworkSentinel[],
): Measure[] {
  if (networks === undefined) {
    const text = 'the release to compare with has networks, and this one has none';
    return before === undefined ? [] : [{ gate: 'maxVanishedNetworksShare', value: 1, text }];
  }
  const measures = [measureSentinels(checkNetworkSentinels(sentinels, networks, before), 'maxWrongNetworkSentinels')];
  if (before === undefined) return measures;
  const deltas = ([4, 6] as const).map((family) =>
    computeDelta(rangeList(before, family), rangeList(networks, family)),
  );
  return [...measureNetworks(deltas), ...measures];
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

/**
 * The stage.
 *
 * @param now the release as it was read to verify it
 */
export function compareWithCurrent(
  release: FinishedRelease,
  now: Ranges,
  { dataDir, note }: StageContext,
  { limits, sentinels, networkSentinels, overrides, delegations, seed }: GateInput,
): StageResult<GateResult> {
  const before = openEarlier(now.manifest, dataDir, seed, note);
  const results = checkSentinels(sentinels, overrides, databaseOf(release.dir, now), before?.database);
  const measures: Measure[] = [measureSentinels(results)];
  let deltas: Delta[] = [];
  let days: number | undefined;
  if (before !== undefined) {
    deltas = ([4, 6] as const).map((family) =>
      computeDelta(rangeList(before.file, family), rangeList(now.file, family)),
    );
    const isNight = before.sourceChanges.length === 0;
    const flows = delegationFlows(rangeList(before.file, 6), rangeList(now.file, 6), delegations);
    measures.unshift(...measureChanges(deltas, flows, membership(before.file, now.file), isNight));
    if (isNight) {
      measures.push(measureRows(now.manifest, before.manifest));
      days = daysOfStep(now.manifest, before.manifest);
    }
  }
  measures.push(...measureNetworkFile(now.networks, before?.networks, networkSentinels));
  if (before !== undefined) measures.push(...measureLabels(now.manifest, before.manifest));
  const { gates, refusals } = judge(measures, limits, days);
  if (before?.database !== undefined) refusals.push(...checkSeeds(now.manifest, before.manifest));
  const withStatus = (status: SentinelResult['status']): number =>
    results.filter((result) => result.status === status).length;
  return {
    output: {
      release,
      refusals,
      gates,
      flows: largestFlows(deltas),
      changes: describeDeltas(deltas),
      sourceChanges: before?.sourceChanges ?? [],
    },
    counts: {
      compared_with: before === undefined ? 'nothing' : before.database === undefined ? 'the seed' : before.manifest.id,
      ...(days !== undefined && { days }),
      ...deltaCounts(deltas),
      sentinels: withStatus('right'),
      sentinels_open: withStatus('open'),
      sentinels_known_wrong: withStatus('known'),
      refusals: refusals.length,
    },
  };
}
