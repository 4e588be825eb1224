/** Releases on disk: where they are, what a manifest says, which one is current. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AtlasError, messageOf, systemErrorCode } from '../errors.js';

/** Files of a release. */
export const RANGE_FILE = 'ranges.ipr';
export const MIRROR_FILE = 'ranges.sqlite';
export const MANIFEST_FILE = 'manifest.json';
export const REPORT_FILE = 'report.json';

/** Names in the data directory. */
export const RELEASES_DIR = 'releases';
export const CURRENT_LINK = 'current';
/** Within the releases: those that a gate refused. */
export const REFUSED_DIR = 'refused';

/** A file as a manifest lists it. */
export interface ManifestFile {
  name: string;
  bytes: number;
  /** SHA-256, hexadecimal. */
  sha256: string;
}

/** A source as a manifest lists it. */
export interface ManifestInput {
  id: string;
  version: string;
  license: string;
  attribution: string;
  rows: number;
  rejected: number;
  /** How its files are read, as in sources.json; what an explanation needs to read them again. */
  format: string | object;
  files: ManifestFile[];
}

/** A gate that would not let a release through. */
export interface Refusal {
  /** The threshold's name in sources.json, or `rolledBack`. */
  gate: string;
  message: string;
}

/** `manifest.json`: what a release was made of and what it holds; its schema is schemas/manifest.schema.json. */
export interface Manifest {
  manifest_version: 1;
  id: string;
  /** `YYYY-MM-DD`: EU membership and expiry of overrides are as of this day. */
  as_of: string;
  tool_version: string;
  /** SHA-256 over all that decides the content; equal for two builds that would give the same ranges. */
  input_hash: string;
  /** In order of priority, the first answering first. */
  inputs: ManifestInput[];
  /** The user's overrides; not there where none are configured. */
  overrides?: ManifestFile;
  /** Not there but where a person overrode the gates. Such a manifest is not a function of the inputs alone. */
  forced?: {
    /** Name of the account. */
    by: string;
    /** ISO 8601, UTC. */
    at: string;
    refusals: Refusal[];
  };
  outputs: ManifestFile[];
  counts: {
    ipv4_ranges: number;
    ipv6_ranges: number;
    countries: number;
    /** Addresses with a country, decimal. */
    ipv4_addresses_with_country: string;
    /** Blocks of 2^80 addresses (/48) with a country, whole ones, decimal. */
    ipv6_48s_with_country: string;
  };
}

/** The directory of a release, checked to be there: a release directory itself, or the data directory's current one. */
export function releaseDir(dir: string): string {
  // Resolved once: a release that is published meanwhile must not change what is being read.
  for (const candidate of [dir, join(dir, CURRENT_LINK)]) {
    if (statSync(join(candidate, MANIFEST_FILE), { throwIfNoEntry: false }) !== undefined)
      return realpathSync(candidate);
  }
  throw new AtlasError(
    'E_NO_DATABASE',
    `no release in ${dir}; make one with "ipatlas build --offline", or name another directory with --data`,
  );
}

/**
 * Reads a release's manifest.
 *
 * @param dir the release's directory
 * @throws AtlasError E_NO_DATABASE where there is none, E_DAMAGED where it is not readable as one
 */
export function readManifest(dir: string): Manifest {
  const path = join(dir, MANIFEST_FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = systemErrorCode(error) === 'ENOENT' ? 'E_NO_DATABASE' : 'E_DAMAGED';
    throw new AtlasError(code, `${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  let manifest: Partial<Manifest> | null;
  try {
    manifest = JSON.parse(text) as Partial<Manifest> | null;
  } catch (error) {
    throw new AtlasError('E_DAMAGED', `${path} is not JSON: ${messageOf(error)}`, { cause: error });
  }
  if (manifest?.manifest_version !== 1 || typeof manifest.id !== 'string') {
    throw new AtlasError('E_DAMAGED', `${path} is not a manifest of version 1; build the release again`);
  }
  return manifest as Manifest;
}

/** The id of the release that `current` names, or undefined where there is none. */
export function currentReleaseId(dataDir: string): string | undefined {
  try {
    return basename(realpathSync(join(dataDir, CURRENT_LINK)));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** A release's id: its as-of date and the head of a hash over what it was made from. */
const RELEASE_ID = /^\d{4}-\d\d-\d\d-[0-9a-f]{12}$/;

/** The ids of the releases in a folder, the newest first by the time they were made. */
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

/** The ids of the releases there are, the newest first by the time they were made. Refused ones are not among them. */
export function releaseIds(dataDir: string): string[] {
  return idsIn(join(dataDir, RELEASES_DIR));
}

/** The ids of the refused releases that are kept, the newest first. */
export function refusedIds(dataDir: string): string[] {
  return idsIn(join(dataDir, RELEASES_DIR, REFUSED_DIR));
}

/**
 * The directory of a release as a person names it.
 *
 * @param dataDir the data directory
 * @param name `current`; the id of a release, a refused one included; or the path of a release or of a data directory
 * @throws AtlasError E_NO_DATABASE where there is no such release
 */
export function namedRelease(dataDir: string, name: string): string {
  if (name === CURRENT_LINK) return releaseDir(dataDir);
  for (const dir of [join(dataDir, RELEASES_DIR, name), join(dataDir, RELEASES_DIR, REFUSED_DIR, name)]) {
    if (RELEASE_ID.test(name) && statSync(dir, { throwIfNoEntry: false }) !== undefined) return dir;
  }
  if (!RELEASE_ID.test(name) && statSync(name, { throwIfNoEntry: false }) !== undefined) return releaseDir(name);
  throw new AtlasError(
    'E_NO_DATABASE',
    `there is no release ${JSON.stringify(name)}; "ipatlas releases" lists those in ${dataDir}, and the path of one does as well`,
  );
}
