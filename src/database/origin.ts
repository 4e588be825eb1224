/** Decides where the database comes from: the current release of a data directory, or the seed in the package. Opens either. */
import { lstatSync, readdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Partition } from '../rangefile/partitions.js';
import type { PartitionFile, RangeFile } from '../rangefile/reader.js';
import { SYSTEM } from '../system.js';
import { ageDays, ageText, releaseAge } from './age.js';
import { CURRENT_LINK, MANIFEST_FILE, type Manifest, readManifest, releaseDir, releaseIds } from './release.js';
import { openReleasePartition, openReleaseRanges } from './release-files.js';
import { openSeed, openSeedPartition, readSeed, seedPath } from './seed.js';

/** The default data directory, as help texts describe it. */
export const DATA_DIR_HELP = `the data directory (default: IPATLAS_DATA, else ./data if it is empty or has files of ipatlas, else ${SYSTEM.isWindows ? '%LOCALAPPDATA%\\ipatlas' : '~/.local/share/ipatlas'})`;

/**
 * When the seed answers: only as long as the data directory never had a release; always, because the user wants it; or never,
 * because the user named the directory, which may be a volume that is not mounted.
 */
export type SeedUse = 'without-release' | 'always' | 'never';

/** Where to look for the database. */
export interface DataPlace {
  dataDir: string;
  seed: SeedUse;
  /** A directory that looks like a data directory by its name, but has only other files. */
  ignored?: string;
}

/** Files of a data directory, one of which is there after any command that writes, and that of sources in a checkout. */
const OWN_FILES = ['releases', 'current', 'cache', 'keys.sqlite', 'lock.sqlite', 'history', 'sources.json'];
const LOCAL_DIR = 'data';

/**
 * Returns the data directory that is used without `--data` and `IPATLAS_DATA`: `data` in the working directory if it
 * is empty or has files of ipatlas, so that a checkout and a project keep their own database, else a directory of the user, so
 * that any other working directory stays clean.
 *
 * Source of the second: XDG Base Directory Specification 0.8. A relative XDG_DATA_HOME is invalid and is ignored. On Windows,
 * LOCALAPPDATA takes its place.
 */
function defaultDataDir(env: NodeJS.ProcessEnv): Pick<DataPlace, 'dataDir' | 'ignored'> {
  const hasLocal = statSync(LOCAL_DIR, { throwIfNoEntry: false })?.isDirectory() === true;
  const files = hasLocal ? readdirSync(LOCAL_DIR) : [];
  if (hasLocal && (files.length === 0 || files.some((name) => OWN_FILES.includes(name)))) return { dataDir: LOCAL_DIR };
  const base = SYSTEM.isWindows ? env.LOCALAPPDATA : env.XDG_DATA_HOME;
  const usual = SYSTEM.isWindows ? ['AppData', 'Local'] : ['.local', 'share'];
  const dataDir = join(base !== undefined && isAbsolute(base) ? base : join(homedir(), ...usual), 'ipatlas');
  return { dataDir, ...(hasLocal && { ignored: LOCAL_DIR }) };
}

/**
 * Returns where to look for the database.
 *
 * @param named the data directory that the user named, if any
 * @param wantsSeed whether the user asked for the seed
 * @param env the environment; only IPATLAS_DATA, XDG_DATA_HOME and LOCALAPPDATA are read
 */
export function dataPlace(
  named: string | undefined,
  wantsSeed = false,
  env: NodeJS.ProcessEnv = process.env,
): DataPlace {
  const dataDir = named ?? env.IPATLAS_DATA;
  if (dataDir === undefined) return { ...defaultDataDir(env), seed: wantsSeed ? 'always' : 'without-release' };
  return { dataDir, seed: wantsSeed ? 'always' : 'never' };
}

/** Returns whether a directory has a release or had one: a link to a release that is gone counts, a refused release does not. */
function hadRelease(dataDir: string): boolean {
  const exists = (name: string) => lstatSync(join(dataDir, name), { throwIfNoEntry: false }) !== undefined;
  return exists(CURRENT_LINK) || exists(MANIFEST_FILE) || releaseIds(dataDir).length > 0;
}

/** Returns whether the seed answers at this moment. */
export function seedAnswers({ dataDir, seed }: DataPlace): boolean {
  return seed === 'always' || (seed === 'without-release' && !hadRelease(dataDir));
}

/**
 * Finds the database.
 *
 * @returns the directory of a release, with symbolic links resolved, or the path of the seed
 * @throws AtlasError E_NO_DATABASE if there is no release and the seed does not answer
 */
export function findDatabase(place: DataPlace): string {
  return seedAnswers(place) ? seedPath() : releaseDir(place.dataDir);
}

/** Returns whether the result of {@link findDatabase} is the seed. */
export function isSeed(database: string): boolean {
  return database === seedPath();
}

/** Reads the manifest of a release or of the seed; throws as `readManifest` and `readSeed` do. */
export function manifestOfDatabase(database: string): Manifest {
  return isSeed(database) ? readSeed().manifest : readManifest(database);
}

/** Opens the range file of a release or of the seed; throws as `openReleaseRanges` and `openSeed` do. */
export function openRanges(
  database: string,
  allocate?: (bytes: number) => Buffer,
): { manifest: Manifest; file: RangeFile } {
  return isSeed(database) ? openSeed(allocate) : openReleaseRanges(database, allocate);
}

/**
 * Opens a partition of a release or of the seed.
 *
 * @param manifest of the database
 * @param allocate as for {@link openRanges}
 * @returns undefined if it has none
 */
export function openPartition<File extends PartitionFile>(
  database: string,
  manifest: Manifest,
  partition: Partition<File>,
  allocate?: (bytes: number) => Buffer,
): File | undefined {
  return isSeed(database)
    ? openSeedPartition(partition, allocate)
    : openReleasePartition(database, manifest, partition, allocate);
}

/** What JSON output says about a database that is the seed; nothing about a release. */
export function seedFacts(database: string): { seed: true; data_date: string | undefined } | undefined {
  return isSeed(database) ? { seed: true, data_date: manifestOfDatabase(database).data_date } : undefined;
}

/** Returns what messages say about the seed: that it answers, how old it is, and how to get newer data. */
export function seedText(manifest: Manifest): string {
  const age = ageText(ageDays(releaseAge(manifest)));
  return `answering from the database that comes with ipatlas, ${age}; "ipatlas build" gets today's`;
}
