/** Builds a release: runs the stages in order and publishes the result. */

import { createReadStream, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { countryTable } from '../src/country/country.js';
import { ageDays, ageText, releaseAge } from '../src/database/age.js';
import { isTaken } from '../src/database/fields.js';
import {
  currentReleaseId,
  type ManifestFile,
  type ManifestInput,
  type MissingList,
  RELEASES_DIR,
  type Refusal,
  readManifest,
} from '../src/database/release.js';
import { readSeed } from '../src/database/seed.js';
import { verifyWithReport } from '../src/database/verify.js';
import { DAY_MS, dayOf, startOfDay, today } from '../src/day.js';
import { AtlasError } from '../src/errors.js';
import { HISTORY_DAYS } from '../src/limits.js';
import { KINDS, LABELS, NETWORKS, type PartitionContent } from '../src/rangefile/partitions.js';
import { checkOf, sampleRows } from './checking/check-stage.js';
import { unpackRelease } from './compact-release.js';
import { loadOverrides, type Override } from './config/overrides.js';
import { loadReference, type Reference } from './config/reference.js';
import { loadSources, type SourceConfig, type SourcesConfig, selectSources } from './config/sources.js';
import { storeObject } from './fetching/cache.js';
import { believedDate } from './fetching/data-date.js';
import { copyFromCurrentRelease, currentManifest, lastCopy } from './fetching/released-copy.js';
import { checkRolledBack, RefusedError } from './gates/refusal.js';
import type { MergeStrategy } from './merging/evidence.js';
import { type KindInput, kindLists, mergeKinds } from './merging/kind-merger.js';
import { mergeLabels } from './merging/label-merger.js';
import { mergeNetworks } from './merging/network-merger.js';
import { type MergeInput, type MergeResult, mergeSources } from './merging/range-merger.js';
import { withDataDir } from './operations/data-dir.js';
import { currentText, type PublishOptions, publishGated } from './publish-gated.js';
import { identifyRelease, type ReleaseIdentity } from './release-id.js';
import { type LabelFiles, readLabels, storeLabels } from './source-formats/labels.js';
import {
  type FetchedSource,
  type FetchedSources,
  type IngestedSource,
  type StageContext,
  type StageResult,
  timed,
} from './stage.js';
import { compile, type OtherContent } from './stages/compile.js';
import { fetchSources } from './stages/fetch.js';
import type { GateInput } from './stages/gate.js';
import { ingestSources } from './stages/ingest.js';

/** Days after the current release from which on a build says that no server confirms the clock. */
const MAX_UNCONFIRMED_DAYS = 366;

export interface BuildOptions {
  dataDir: string;
  sourcesFile: string;
  /** Ids of the sources to use; empty for all. */
  only: string[];
  /** `YYYY-MM-DD`, or undefined for today (UTC). */
  asOf: string | undefined;
  offline: boolean;
  /** Whether to build although nothing changed, and to publish although gates refuse. */
  force: boolean;
  /**
   * What to compare a first release with, and what to publish offline if there is nothing to build from; undefined for a list
   * of sources that the user wrote.
   */
  seed?: GateInput['seed'];
  /** Days of own publications that the archive keeps; 0 for no history. Default: HISTORY_DAYS. */
  historyDays?: number;
  /** How long to wait for another build or pull that runs. */
  waitMs?: number | undefined;
  /** Reports progress to the user; one line without a line end. */
  note: (line: string) => void;
  /** Whether one line is enough on sources if no server was reached; default false. */
  brief?: boolean;
}

export interface BuildResult {
  id: string;
  /** `unchanged`: the current release has the same inputs, so nothing was built. */
  outcome: 'published' | 'unchanged';
  /** The gates that refused a release that was published by force. */
  forced: Refusal[];
}

/**
 * Returns whether the current release has the same inputs and is not damaged.
 *
 * @param asOfGiven whether the user chose the date; if not, a release of an earlier day with the same ranges will do
 */
function isUpToDate(
  dataDir: string,
  identity: ReleaseIdentity,
  asOfGiven: boolean,
  note: StageContext['note'],
): boolean {
  const id = currentReleaseId(dataDir);
  if (id === undefined) return false;
  const dir = join(dataDir, RELEASES_DIR, id);
  try {
    const manifest = readManifest(dir);
    if (
      manifest.input_hash !== identity.inputHash ||
      ((asOfGiven || manifest.as_of > today()) && manifest.id !== identity.id)
    )
      return false;
    verifyWithReport(dir);
    return true;
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    note(`the current release ${id} is damaged and will be built again: ${error.message}`);
    return false;
  }
}

function manifestInputs(
  merge: MergeStrategy,
  fetched: readonly FetchedSource[],
  ingested: readonly IngestedSource[],
): ManifestInput[] {
  return fetched.map(({ id, source, version, dataDate, dateProblem, seed, location, files }, index) => ({
    id,
    version,
    license: source.license,
    attribution: source.attribution,
    ...(source.corrections !== '' && { corrections: source.corrections }),
    rows: ingested[index]!.rows,
    rejected: ingested[index]!.rejected,
    format: source.format,
    ...(merge === 'evidence'
      ? { lineage: source.lineage, kind: source.kind, space: source.space }
      : source.kind === 'anycast' && { kind: source.kind }),
    ...(merge === 'evidence' && source.interpolates && { interpolates: true }),
    ...(merge === 'evidence' && source.asns.length > 0 && { asns: source.asns }),
    ...(source.network && { network: source.network }),
    ...(dataDate && { data_date: dataDate.date, data_date_evidence: dataDate.evidence }),
    ...(dateProblem !== undefined && { data_date_problem: dateProblem }),
    ...(seed !== undefined && { seed }),
    place: location,
    files: files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
  }));
}

/** Reads the overrides, and keeps a copy of their file in the cache so that `explain` can show its rows later. */
async function readOverrides(
  { overrides: path }: SourcesConfig,
  reference: Reference,
  { dataDir, asOf }: StageContext,
): Promise<{ rows: Override[]; file: ManifestFile | undefined }> {
  if (path === undefined) return { rows: [], file: undefined };
  const { rows } = loadOverrides(path, reference, asOf);
  const { name, bytes, sha256 } = await storeObject(dataDir, basename(path), () => [createReadStream(path)]);
  return { rows, file: { name, bytes, sha256 } };
}

/** What stage `merge` gives. */
interface MergeOutput {
  merged: MergeResult;
  /** Undefined if no source has networks. */
  networks: PartitionContent | undefined;
  kinds: PartitionContent;
}

/** Stage `merge`: merges the rows of all sources into sorted, gap-free lists of ranges for each family and partition. */
function merge(input: MergeInput & KindInput, note: StageContext['note']): StageResult<MergeOutput> {
  const kinds = mergeKinds(input);
  const routing = input.sources.flatMap(({ networks }) => networks ?? []);
  const networks = routing.length === 0 ? undefined : mergeNetworks(routing, input.reference);
  const merged = mergeSources(input);
  const { v4, v6, candidates, withoutSpace, outsideSpace, unknownCodes } = merged;
  for (const id of withoutSpace)
    note(`${id}: no source says which space belongs to its owner, so its rows are not used`);
  for (const [id, rows] of outsideSpace) note(`${id}: ${rows} rows outside the space of its owner are not used`);
  for (const [code, rows] of unknownCodes) {
    note(`the code ${JSON.stringify(code)} (${rows} rows) is not a known country; treated as no country`);
  }
  return {
    output: { merged, networks, kinds },
    counts: {
      candidates,
      ipv4_ranges: v4.count,
      ipv6_ranges: v6.count,
      duplicates: v4.duplicates + v6.duplicates,
      conflicts: v4.conflicts + v6.conflicts,
      unknown_codes: unknownCodes.size,
      ...(networks && { ipv4_network_ranges: networks.v4.count, ipv6_network_ranges: networks.v6.count }),
      ipv4_kind_ranges: kinds.v4.count,
      ipv6_kind_ranges: kinds.v6.count,
    },
  };
}

/** Reads and merges the labels; returns undefined if none are configured. */
async function labelsOf({ files, date }: LabelFiles, reference: Reference, note: StageContext['note']) {
  if (files.length === 0) return undefined;
  const tables = await readLabels(files);
  const merged = mergeLabels(tables, reference);
  const rows = tables.reduce((sum, { v4, v6 }) => sum + v4.count + v6.count, 0);
  const late = merged.columns.filter((column) => isTaken(column) === 'late');
  if (late.length > 0) {
    note(
      `labels: ${late.join(', ')} ${late.length === 1 ? 'is also a name' : 'are also names'} of what ipatlas says of addresses; until version 1.0 the labels are answered instead. Rename them`,
    );
  }
  const named = files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
  return { merged, inputs: { columns: merged.columns, rows, date, files: named } };
}

/** Returns the lists of kinds of networks that are configured, but are not among the inputs. */
function missingListsOf({ sources }: SourcesConfig, inputs: readonly FetchedSource[]): MissingList[] {
  const isRead = (id: string): boolean => inputs.some((input) => input.id === id);
  return sources.flatMap(({ id, network }) =>
    network === undefined || isRead(id) ? [] : [{ id, kind: network.kind }],
  );
}

async function runStages(options: BuildOptions, fetchContext: StageContext): Promise<BuildResult> {
  const { dataDir, note } = fetchContext;
  const { force } = options;
  const config = await loadSources(options.sourcesFile);
  const sources = options.only.length === 0 ? config.sources : selectSources(config, options.only);
  const reference = loadReference();
  const publishing = {
    config,
    sentinels: reference.sentinels,
    networkSentinels: reference.networkSentinels,
    // Read before anything is downloaded, so that a mistake in them costs no time.
    overrides: (await readOverrides(config, reference, fetchContext)).rows,
    force,
    command: 'build',
    historyDays: options.historyDays ?? HISTORY_DAYS,
    asOf: options.asOf,
    seed: options.seed,
  } as const;
  const fetching = timed(fetchContext, 'fetch', () => fetchSources(sources, fetchContext));
  const available = await fetching.catch((error: unknown) => publishSeed(options, fetchContext, publishing, error));
  if ('outcome' in available) return available;
  const asOf = options.asOf ?? dayOfBuild(dataDir, available.clockErrors, note);
  const context = { ...fetchContext, asOf };
  const countries = countryTable(reference, asOf);
  const { rows: overrides, file: overridesFile } = await readOverrides(config, reference, context);
  const labelFiles = await storeLabels(dataDir, config.labels);

  const identify = (inputs: readonly FetchedSource[]): ReleaseIdentity =>
    identifyRelease({
      sources: inputs.map(({ source, files }) => ({ ...source, files })),
      merge: config.merge,
      reference,
      overrides,
      overridesFile: overridesFile?.sha256 ?? '',
      labels: labelFiles.files,
      missingLists: missingListsOf(config, inputs),
      asOf,
    });
  /** Returns the result if there is nothing to build from inputs; throws if they may not be built from. */
  const resultIfUnchanged = ({ inputHash, ...identity }: ReleaseIdentity): BuildResult | undefined => {
    if (force) return undefined;
    if (isUpToDate(dataDir, { inputHash, ...identity }, options.asOf !== undefined, note)) {
      note(`nothing has changed; ${currentText(dataDir)}`);
      return { id: currentReleaseId(dataDir)!, outcome: 'unchanged', forced: [] };
    }
    const [refusal] = checkRolledBack(dataDir, inputHash);
    if (refusal === undefined) return undefined;
    const advice = 'Nothing is built until they change, or --force confirms that the release is wanted again.';
    const message = `${refusal.message}; ${currentText(dataDir)}. ${advice}`;
    throw new RefusedError(message, { release: identity.id, refusals: [refusal], gates: [], flows: [] });
  };

  const { sources: found, missing } = await withLastNetworks(available, sources, context);
  const last = currentManifest(dataDir)?.inputs ?? [];
  const requested = found.map((each): FetchedSource => {
    // Other files, such as those of a seed, have dates of their own.
    const lastDate = last.find(({ id, place }) => id === each.id && place === each.location)?.data_date;
    const { date, problem } = believedDate(each.dataDate, lastDate, today());
    if (problem !== undefined) note(`${each.id}: ${problem}, so it does not count`);
    return { ...each, dataDate: date, dateProblem: problem };
  });
  const accept = async (inputs: readonly FetchedSource[]): Promise<void> => {
    for (const input of inputs) await input.accept();
  };
  const unchanged = resultIfUnchanged(identify(requested));
  if (unchanged !== undefined) {
    await accept(requested);
    return unchanged;
  }

  const {
    ingested,
    inputs: read,
    owned,
    samples,
  } = await timed(context, 'ingest', () =>
    ingestSources(requested, context, {
      reference,
      findEarlier: (input) => copyFromCurrentRelease(dataDir, input),
      asns: new Set(requested.flatMap(({ source }) => source.asns)),
    }),
  );
  const identity = identify(read);
  const stillUnchanged = read.some((input, index) => input !== requested[index])
    ? resultIfUnchanged(identity)
    : undefined;
  if (stillUnchanged !== undefined) {
    await accept(read);
    return stillUnchanged;
  }

  const evidence = config.merge === 'evidence' ? read.map(({ source }) => source) : undefined;
  const inputs = manifestInputs(config.merge, read, ingested);
  const networksDate = dateOfNetworks(inputs, ingested);
  const delegations = ingested.find((_source, index) => read[index]!.source.kind === 'registry')?.v6;
  const missingLists = missingListsOf(config, read);
  const lists = kindLists(inputs, missingLists);
  const sampled = sampleRows(samples, config.overrides, overrides);
  // A function of its own, and merging empties the list of the sources, so that columns are not in memory for longer than needed.
  const mergeAndCompile = async () => {
    const { check, merged, networks, kinds } = await timed(context, 'merge', () => {
      const input = { sources: ingested, reference, overrides, evidence, owned, lists };
      const check = checkOf(input, sampled, note);
      const { output, counts } = merge({ ...input, countries }, note);
      return { output: { check, ...output }, counts };
    });
    const labels = await labelsOf(labelFiles, reference, note);
    const others: OtherContent[] = [];
    if (networks !== undefined) others.push({ partition: NETWORKS, content: networks });
    others.push({ partition: KINDS, content: kinds });
    if (labels !== undefined) others.push({ partition: LABELS, content: labels.merged });
    const made = { merged, others, networksDate, labels: labels?.inputs, missingLists, inputs, missing, identity };
    const compiled = await timed(context, 'compile', () => compile({ ...made, overrides: overridesFile }, context));
    return { compiled, check };
  };
  const { compiled, check } = await mergeAndCompile();
  const forced = await publishGated(compiled, context, { ...publishing, overrides, delegations, check });
  // Only now: files that cannot be read, or that the gates refuse, must not become the copy that later builds fall back to.
  await accept(read);
  return { id: compiled.id, outcome: 'published', forced };
}

/**
 * Publishes the seed of the package as a release, for a build that could not get its sources: offline, in an installed package,
 * nothing else is there. A data directory with another release keeps it.
 *
 * @param failure why the sources cannot be had; thrown if the seed is not the answer
 */
async function publishSeed(
  { seed, offline, asOf }: BuildOptions,
  context: StageContext,
  publishing: PublishOptions,
  failure: unknown,
): Promise<BuildResult> {
  const { dataDir, workDir, note } = context;
  if (!(failure instanceof AtlasError && failure.code === 'E_FETCH') || seed === undefined) throw failure;
  const current = currentReleaseId(dataDir);
  if (!offline && current === undefined) {
    const advice = 'without network, "ipatlas build --offline" publishes the database that comes with ipatlas';
    throw new AtlasError('E_FETCH', `${failure.message}; ${advice}`, { cause: failure });
  }
  if (!offline) throw failure;
  const { compact, manifest, path } = readSeed();
  const { id } = manifest;
  if (asOf !== undefined && asOf !== manifest.as_of) throw failure;
  if (current === id) {
    note(`nothing has changed; ${currentText(dataDir)}`);
    return { id, outcome: 'unchanged', forced: [] };
  }
  if (current !== undefined) throw failure;
  const age = ageText(ageDays(releaseAge(manifest)));
  note(`offline, without copies of the sources: publishing the database that comes with ipatlas, ${age}`);
  const dir = join(workDir, 'seed');
  mkdirSync(dir);
  unpackRelease(compact, path, dir);
  return { id, outcome: 'published', forced: await publishGated({ id, dir }, context, publishing) };
}

/**
 * Adds the sources of networks that cannot be had as the current release has them: networks change slowly, and a release that
 * loses all of them is refused.
 *
 * @param configured the sources of the build, in order of priority
 */
async function withLastNetworks(
  { sources, missing, clockErrors }: FetchedSources,
  configured: readonly SourceConfig[],
  { dataDir, note }: StageContext,
): Promise<FetchedSources> {
  const carried: FetchedSource[] = [];
  for (const source of configured) {
    if (source.kind !== 'routing' || !missing.some(({ id }) => id === source.id)) continue;
    const copy = await lastCopy(dataDir, source);
    if (copy === undefined) continue;
    carried.push(copy);
    note(
      `${source.id}: the files of the current release are used again, with data of ${copy.dataDate?.date ?? 'unknown date'}`,
    );
  }
  const position = (id: string): number => configured.findIndex((source) => source.id === id);
  return {
    sources: [...sources, ...carried].sort((a, b) => position(a.id) - position(b.id)),
    missing: missing.filter(({ id }) => !carried.some((copy) => copy.id === id)),
    clockErrors,
  };
}

/** Returns the oldest date of the sources with networks; undefined if there is none, or the date of one is not known. */
function dateOfNetworks(inputs: readonly ManifestInput[], ingested: readonly IngestedSource[]): string | undefined {
  const dates = inputs
    .filter((_input, index) => ingested[index]!.networks !== undefined)
    .map((input) => input.data_date);
  return dates.some((date) => date === undefined) ? undefined : dates.sort()[0];
}

/**
 * Returns the day of a build: today. If no server answered, nothing tells whether the clock is right; it is then not before the
 * day of the current release.
 *
 * @param clockErrors see FetchedSources
 * @throws AtlasError E_REFUSED if the clock is more than a day from that of every server that answered
 */
function dayOfBuild(dataDir: string, clockErrors: readonly number[], note: StageContext['note']): string {
  const [least] = clockErrors.toSorted((a, b) => Math.abs(a) - Math.abs(b));
  if (least !== undefined && Math.abs(least) > DAY_MS) {
    throw new AtlasError(
      'E_REFUSED',
      `the clock of this machine says ${today()}, but the servers of the sources say ${dayOf(Date.now() - least)}; set the clock, or name the day with --as-of`,
    );
  }
  const last = currentManifest(dataDir)?.as_of ?? today();
  if (least !== undefined || last === today()) return today();
  if (last > today()) {
    note(
      `the clock says ${today()}, but the current release is as of ${last}; the build is as of that day. Check the clock`,
    );
    return last;
  }
  const days = (startOfDay(today()) - startOfDay(last)) / DAY_MS;
  if (days > MAX_UNCONFIRMED_DAYS) {
    note(
      `no server confirms the clock, which says ${today()}, ${days} days after the current release. Check the clock`,
    );
  }
  return today();
}

/**
 * Builds a release from its sources and publishes it.
 *
 * @throws AtlasError for every failure that is not a bug; the current release then stays current
 */
export async function build(options: BuildOptions): Promise<BuildResult> {
  const { dataDir, offline, note, brief } = options;
  return withDataDir(
    dataDir,
    (workDir) => {
      const asOf = options.asOf ?? today();
      return runStages(options, { dataDir, workDir, offline, asOf, note, brief, stages: [] });
    },
    options.waitMs,
  );
}
