/** Releases on disk: their directories, their manifests, and the current one. */
import { closeSync, openSync, readdirSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { crypto } from '../builtins.js';
import { isDate } from '../country/country.js';
import {
  AtlasError,
  causedError,
  damagedRelease,
  hasCode,
  misuse,
  orElse,
  orThrow,
  REBUILD,
  systemErrorCode,
} from '../errors.js';
import { packageFile } from '../package-root.js';
import type { SourceKind } from '../range/vote.js';
import { COUNTRIES, KINDS, LABELS, NETWORKS, PARTITIONS, type Partition } from '../rangefile/partitions.js';
import { SYSTEM, whenReleased } from '../system.js';
import { type Schema, schemaViolation } from './schema.js';

/** Files of a release. */
export const RANGE_FILE = COUNTRIES.file;
export const MIRROR_FILE = 'ranges.sqlite';
export const MANIFEST_FILE = 'manifest.json';
export const REPORT_FILE = 'report.json';

/** Names in the data directory. */
export const RELEASES_DIR = 'releases';
export const CURRENT_LINK = 'current';
/** Directory within `releases` for releases that a gate refused. */
export const REFUSED_DIR = 'refused';

/** A file as a manifest lists it. */
export interface ManifestFile {
  name: string;
  bytes: number;
  /** SHA-256, hexadecimal. */
  sha256: string;
}

/** Returns the manifest's entry for a file. */
export function describeFile(name: string, content: Uint8Array): ManifestFile {
  return { name, bytes: content.length, sha256: crypto().createHash('sha256').update(content).digest('hex') };
}

/** Bytes read at once for a hash. Through a stream, it takes twice the processor time. */
const HASH_CHUNK_BYTES = 2 ** 18;

/**
 * Returns the manifest's entry for a file on the disk, without holding all of it in memory: a mirror has 60 MB.
 *
 * @throws the system error
 */
export function describeStoredFile(path: string): ManifestFile {
  const hash = crypto().createHash('sha256');
  const chunk = Buffer.allocUnsafeSlow(HASH_CHUNK_BYTES);
  const fd = openSync(path, 'r');
  try {
    let bytes = 0;
    for (let read = readSync(fd, chunk); read > 0; read = readSync(fd, chunk)) {
      hash.update(chunk.subarray(0, read));
      bytes += read;
    }
    return { name: basename(path), bytes, sha256: hash.digest('hex') };
  } finally {
    closeSync(fd);
  }
}

/** What the rows of a list of an operator say of their addresses. */
export interface NetworkList {
  kind: 'cloud' | 'relay' | 'tor';
  /** Whose list it is, such as `aws`. */
  operator: string;
}

/** A list of a kind of network that a build did without. */
export interface MissingList extends Pick<NetworkList, 'kind'> {
  id: string;
}

/** A source as a manifest lists it. */
export interface ManifestInput {
  id: string;
  version: string;
  license: string;
  attribution: string;
  /** Web address where its publisher takes corrections, if sources.json has it. */
  corrections?: string;
  rows: number;
  rejected: number;
  /** The format of its files, as in sources.json: `ipatlas explain` reads them again. */
  format: string | object;
  /** How it took part in merging by evidence; without a lineage the sources were merged by priority. */
  lineage?: string;
  kind?: SourceKind;
  /** Present if its publisher interpolates. */
  interpolates?: true;
  space?: readonly string[];
  /** AS numbers of the owner, whose space is the owner's too. */
  asns?: readonly number[];
  /** Present if it is a list of a kind of network. */
  network?: NetworkList;
  /** Date of the data, `YYYY-MM-DD`, and how it is known; missing if nothing tells it. */
  data_date?: string;
  data_date_evidence?: string;
  /** Why the date that was found does not count, as a phrase: it is in the future, or older than before. */
  data_date_problem?: string;
  /** Present if the files are a seed (data for a first build only): the publisher's warning, as text. */
  seed?: string;
  /** Where the files are from, as sources.json writes it; missing in releases of earlier versions. */
  place?: string;
  files: ManifestFile[];
}

/** A gate that refused a release. */
export interface Refusal {
  /** The threshold's name in sources.json, or `rolledBack`. */
  gate: string;
  message: string;
}

/** What a manifest counts of the networks; see the counts of the countries. */
export interface NetworkCounts {
  /** AS numbers. */
  networks: number;
  ipv4_ranges: number;
  ipv6_ranges: number;
  ipv4_addresses: string;
  ipv6_48s: string;
}

/** What a manifest says of the labels, the user's own columns. They leave the machine only if the operator says so. */
export interface LabelInputs {
  /** Their names, in the order of the files. */
  columns: string[];
  /** Rows of all files. */
  rows: number;
  /** The day on which the file that changed last was written, `YYYY-MM-DD`. */
  date: string;
  files: ManifestFile[];
}

/** `manifest.json`: the inputs and the content of a release; its schema is schemas/manifest.schema.json. */
export interface Manifest {
  manifest_version: 1;
  id: string;
  /** `YYYY-MM-DD`: EU membership and expiry of overrides are as of this day. */
  as_of: string;
  tool_version: string;
  /** SHA-256 over everything that determines the content: equal for two builds that give the same ranges. */
  input_hash: string;
  /** In order of priority, the highest first. */
  inputs: ManifestInput[];
  /** The user's overrides, if configured. */
  overrides?: ManifestFile;
  /** The user's labels; missing if there are none. */
  labels?: LabelInputs;
  /** The lists of kinds of networks that are configured, but that the build did without; missing in releases of earlier versions. */
  kinds?: { missing: MissingList[] };
  /** Present if a person overrode the gates, or made it again although nothing had changed. Such a manifest does not depend on the inputs alone. */
  forced?: {
    /** Name of the account; it is not published. */
    by?: string;
    /** ISO 8601, UTC. */
    at: string;
    /** None if nothing had changed. */
    refusals: Refusal[];
  };
  /** Date of the oldest source with a substantial share of the addresses, `YYYY-MM-DD`; missing if nothing tells it. */
  data_date?: string;
  /** Date of the oldest source of networks, `YYYY-MM-DD`; missing if nothing tells it, or if there are no networks. */
  networks_date?: string;
  /** Optional sources that the build did without, with the reason; missing if there are none. */
  missing?: { id: string; reason: string }[];
  outputs: ManifestFile[];
  /** Present if the release must not be part of a published package, such as one made of the CSV packages: why. */
  not_for_publication?: string;
  counts: {
    ipv4_ranges: number;
    ipv6_ranges: number;
    countries: number;
    /** IPv4 addresses with a country, decimal. */
    ipv4_addresses_with_country: string;
    /** IPv6 addresses with a country in units of a /48 (2^80 addresses), rounded down, decimal. */
    ipv6_48s_with_country: string;
    /** Missing in a release without networks. */
    networks?: NetworkCounts;
  };
}

/** Returns whether a release has a partition. */
export function hasPartition({ outputs }: Manifest, { file }: Partition): boolean {
  return outputs.some(({ name }) => name === file);
}

/** Returns the partitions that a source gives something to. */
function partitionsOf({ kind, network }: ManifestInput): Partition[] {
  if (kind === 'routing') return [NETWORKS];
  return network === undefined && kind !== 'anycast' ? [COUNTRIES] : [COUNTRIES, KINDS];
}

/** Returns the sources of what a file made of a release has. */
export function sourcesOf({ inputs }: Manifest, content: readonly Partition[]): ManifestInput[] {
  return inputs.filter((input) => partitionsOf(input).some((partition) => content.includes(partition)));
}

/** Returns the kinds of networks of which a release has a list and misses none; `none` if it misses no list at all. */
export function knownKinds(manifest: Manifest): ReadonlySet<string> {
  const missing = manifest.kinds?.missing ?? [];
  const kinds = listsOfKinds(manifest).map(({ network }) => network.kind);
  const known = kinds.filter((kind) => !missing.some((list) => list.kind === kind));
  return new Set([...known, ...(kinds.length > 0 && missing.length === 0 ? ['none'] : [])]);
}

/** Returns the lists of kinds of networks that a release was made of. */
export function listsOfKinds({ inputs }: Manifest): (ManifestInput & { network: NetworkList })[] {
  return inputs.filter((input): input is ManifestInput & { network: NetworkList } => input.network !== undefined);
}

/** The members of a manifest, and of its inputs, that may be published; `missing` without its reasons, which may name paths and hosts. */
const PUBLISHED = {
  manifest: [
    ...['manifest_version', 'id', 'as_of', 'tool_version', 'input_hash', 'inputs', 'overrides', 'labels', 'forced'],
    ...['kinds', 'data_date', 'networks_date', 'missing', 'outputs', 'not_for_publication', 'counts'],
  ],
  input: [
    ...['id', 'version', 'license', 'attribution', 'corrections', 'rows', 'rejected', 'format', 'lineage', 'kind'],
    ...['space', 'interpolates', 'asns', 'network', 'data_date', 'data_date_evidence', 'data_date_problem', 'seed'],
    ...['place', 'files'],
  ],
};

/** Returns the members of an object that have one of the names, in its order. */
function pick<Value extends object>(value: Value, names: readonly string[]): Value {
  return Object.fromEntries(Object.entries(value).filter(([name]) => names.includes(name))) as Value;
}

/**
 * Returns what other machines may know of a manifest.
 *
 * @param content the partitions that leave the machine
 */
export function publishedManifest(manifest: Manifest, content: readonly Partition[]): Manifest {
  const { labels, forced, missing, inputs, outputs, ...published } = pick(manifest, PUBLISHED.manifest);
  const hidden = PARTITIONS.filter((partition) => !content.includes(partition)).map(({ file }) => file);
  const members = {
    ...published,
    inputs: inputs.map((input) => pick(input, PUBLISHED.input)),
    ...(labels && !hidden.includes(LABELS.file) && { labels }),
    ...(forced && { forced: pick(forced, ['at', 'refusals']) }),
    ...(missing && { missing: missing.map(({ id }) => ({ id, reason: 'not available to the build' })) }),
    outputs: outputs.filter(({ name }) => !hidden.includes(name)),
  };
  // In the order of the manifest, so that one with nothing to hide keeps its bytes.
  return Object.fromEntries(
    Object.keys(manifest).flatMap((name) => (name in members ? [[name, members[name as keyof typeof members]]] : [])),
  ) as unknown as Manifest;
}

/**
 * Returns the directory of a release, with symbolic links resolved.
 *
 * @param dir a release directory, or a data directory, whose current release is meant
 * @throws AtlasError E_NO_DATABASE if there is none
 */
export function releaseDir(dir: string): string {
  // Links are resolved once, so that a release published later does not change what is read.
  for (const find of [() => realpathSync(dir), () => currentDir(dir)]) {
    const found = ifPresent(find);
    if (found !== undefined && statSync(join(found, MANIFEST_FILE), { throwIfNoEntry: false }) !== undefined)
      return found;
  }
  const advice = `make one with "ipatlas build --offline --data ${dir}", or name another directory with --data`;
  throw new AtlasError('E_NO_DATABASE', `no release in ${dir}; ${advice}`);
}

/** Returns the id of a release: its as-of date and a hash of the date and {@link Manifest.input_hash}. */
export function releaseId(asOf: string, inputHash: string): string {
  const hash = crypto()
    .createHash('sha256')
    .update(JSON.stringify([asOf, inputHash]))
    .digest('hex');
  return `${asOf}-${hash.slice(0, 12)}`;
}

/** Returns what is wrong with a parsed manifest, or undefined. */
function manifestProblem(manifest: unknown): string | undefined {
  const schema = JSON.parse(readFileSync(packageFile('schemas/manifest.schema.json'), 'utf8')) as Schema;
  const violation = schemaViolation(schema, manifest);
  if (violation !== undefined) return violation;
  const { id, as_of, data_date, networks_date, input_hash } = manifest as Manifest;
  if (!isDate(as_of)) return `as_of is ${as_of}, which is not a date`;
  if (data_date !== undefined && !isDate(data_date)) return `data_date is ${data_date}, which is not a date`;
  if (networks_date !== undefined && !isDate(networks_date))
    return `networks_date is ${networks_date}, which is not a date`;
  return id === releaseId(as_of, input_hash) ? undefined : `id is ${id}, which is not that of its date and inputs`;
}

/** Returns how the id differs from the name of its directory, or undefined. */
function directoryProblem({ id }: Manifest, directory: string): string | undefined {
  // A release may be copied to a directory with a name of another kind.
  return RELEASE_ID.test(directory) && id !== directory ? `id is ${id}, but its directory is ${directory}` : undefined;
}

/**
 * Parses a manifest that belongs to no directory, and checks the form of every value.
 *
 * @param name of the file that it is from, for messages
 * @throws AtlasError E_DAMAGED if it is not valid
 */
export function parseStoredManifest(text: string, name: string): Manifest {
  const manifest = parseJson(text, name);
  const problem = manifestProblem(manifest);
  if (problem !== undefined) throw damagedRelease(`${name} has no valid manifest: ${problem}`);
  return manifest as Manifest;
}

function parseJson(text: string, path: string): unknown {
  return orThrow(() => JSON.parse(text), 'E_DAMAGED', `${path} is not JSON`, REBUILD);
}

/**
 * Parses the manifest of a release and checks the form of every value.
 *
 * @param text of the file
 * @param dir the release directory
 * @param wasChecked whether this very text was checked before, which takes longer than all the rest of opening a release
 * @throws AtlasError E_DAMAGED if it is not valid or belongs to another directory
 */
export function parseManifest(text: string, dir: string, wasChecked = false): Manifest {
  const path = join(dir, MANIFEST_FILE);
  const manifest = parseJson(text, path);
  const problem =
    (wasChecked ? undefined : manifestProblem(manifest)) ??
    directoryProblem(manifest as Manifest, basename(realpathSync(dir)));
  if (problem === undefined) return manifest as Manifest;
  throw damagedRelease(`${path} is not a valid manifest: ${problem}`);
}

/** Returns the error for a manifest that cannot be read. */
export function manifestError(dir: string, error: unknown): AtlasError {
  const code = systemErrorCode(error) === 'ENOENT' ? 'E_NO_DATABASE' : 'E_DAMAGED';
  return causedError(code, `${join(dir, MANIFEST_FILE)} cannot be read`, error, REBUILD);
}

/**
 * Reads the manifest of a release and checks the form of every value.
 *
 * @param dir the release directory
 * @throws AtlasError E_NO_DATABASE if there is none, E_DAMAGED if it is not valid or belongs to another directory
 */
export function readManifest(dir: string): Manifest {
  let text: string;
  try {
    text = readFileSync(join(dir, MANIFEST_FILE), 'utf8');
  } catch (error) {
    throw manifestError(dir, error);
  }
  return parseManifest(text, dir);
}

/**
 * Returns the directory of the release that `current` names, with symbolic links resolved. On Windows, where a symbolic link
 * needs a privilege, `current` is a file with the id.
 *
 * @throws the system error `ENOENT` if there is no `current`, or it names a release that is gone; AtlasError E_NO_DATABASE
 *   if the file has no id
 */
export function currentDir(dataDir: string): string {
  const link = join(dataDir, CURRENT_LINK);
  if (!SYSTEM.isWindows) return realpathSync(link);
  const id = whenReleased(() => readFileSync(link, 'utf8')).trim();
  if (RELEASE_ID.test(id)) return realpathSync(join(dataDir, RELEASES_DIR, id));
  const advice = 'publish one with "ipatlas build" or "ipatlas rollback"';
  throw new AtlasError('E_NO_DATABASE', `${link} has no id of a release; ${advice}`);
}

/** Returns the id of the release that `current` names, or undefined if there is none. */
export function currentReleaseId(dataDir: string): string | undefined {
  const dir = ifPresent(() => currentDir(dataDir));
  return dir === undefined ? undefined : basename(dir);
}

/** Returns what a function finds, or undefined if there is no file or folder of the name. */
function ifPresent<T>(find: () => T): T | undefined {
  return orElse(find, hasCode('ENOENT'), undefined);
}

/** The form of a release id, see {@link releaseId}. */
export const RELEASE_ID = /^\d{4}-\d\d-\d\d-[0-9a-f]{12}$/;

/** Returns the ids of the releases in a directory, the newest first by the time of their manifests. */
function idsIn(releases: string): string[] {
  if (statSync(releases, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(releases, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && RELEASE_ID.test(entry.name))
    .map((entry) => ({
      id: entry.name,
      time: statSync(join(releases, entry.name, MANIFEST_FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => b.time - a.time || (a.id < b.id ? 1 : -1))
    .map(({ id }) => id);
}

/** Returns the ids of the published releases, the newest first. */
export function releaseIds(dataDir: string): string[] {
  return idsIn(join(dataDir, RELEASES_DIR));
}

/** Returns the ids of the refused releases that are kept, the newest first. */
export function refusedIds(dataDir: string): string[] {
  return idsIn(join(dataDir, RELEASES_DIR, REFUSED_DIR));
}

/** Returns the directories of all releases that are kept, refused ones included. */
export function keptReleaseDirs(dataDir: string): string[] {
  const releases = join(dataDir, RELEASES_DIR);
  const refused = join(releases, REFUSED_DIR);
  return [...idsIn(releases).map((id) => join(releases, id)), ...idsIn(refused).map((id) => join(refused, id))];
}

/** Characters of the shortest beginning of an id that names it: the year. */
const MIN_ID_START = 4;

/**
 * Returns the id that begins with a text; the text itself if none does.
 *
 * @throws AtlasError E_USAGE if several do
 */
export function fullId(ids: readonly string[], start: string): string {
  const [id = start, ...others] = new Set(ids.filter((each) => start.length >= MIN_ID_START && each.startsWith(start)));
  if (others.length === 0) return id;
  throw misuse(`several releases begin with ${start}: ${[id, ...others].join(', ')}; name more of it`);
}

/**
 * Returns the directory of a release that a user names.
 *
 * @param dataDir the data directory
 * @param text `current`; the id of a release, refused ones included, or its beginning; or the path of a release or of a data directory
 * @throws AtlasError E_NO_DATABASE if there is no such release; E_USAGE for the beginning of several ids
 */
export function namedRelease(dataDir: string, text: string): string {
  if (text === CURRENT_LINK) return releaseDir(dataDir);
  const name = fullId([...releaseIds(dataDir), ...refusedIds(dataDir)], text);
  for (const dir of [join(dataDir, RELEASES_DIR, name), join(dataDir, RELEASES_DIR, REFUSED_DIR, name)]) {
    if (RELEASE_ID.test(name) && statSync(dir, { throwIfNoEntry: false }) !== undefined) return dir;
  }
  if (!RELEASE_ID.test(name) && statSync(name, { throwIfNoEntry: false }) !== undefined) return releaseDir(name);
  throw new AtlasError(
    'E_NO_DATABASE',
    `there is no release ${JSON.stringify(name)}; "ipatlas releases" lists those in ${dataDir}; a path is accepted as well`,
  );
}
