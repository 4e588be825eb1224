/** Imports tables and releases of past days into the archive of a data directory, see src/history. */
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CompactCountries } from '../../src/compact/countries.js';
import { buildFile } from '../../src/compact/range-file.js';
import { countryTable } from '../../src/country/country.js';
import { unpackCompact } from '../../src/database/compact.js';
import { MANIFEST_FILE } from '../../src/database/release.js';
import { openReleasePartition, openReleaseRanges } from '../../src/database/release-files.js';
import { AtlasError, causedError, misuse } from '../../src/errors.js';
import { openArchive } from '../../src/history/archive.js';
import type { Answers } from '../../src/history/entry.js';
import { answersOf, importEntry, importProblem, removeImports } from '../../src/history/write.js';
import { DEFAULT_MAX_REJECT_SHARE, MAX_UNPACKED_BYTES } from '../../src/limits.js';
import type { FileRecord, NetworkRecord } from '../../src/rangefile/layout.js';
import { COUNTRIES, NETWORKS, type Partition } from '../../src/rangefile/partitions.js';
import { decodeFile, type PartitionFile } from '../../src/rangefile/reader.js';
import { loadReference, type Reference } from '../config/reference.js';
import { dateInName } from '../fetching/data-date.js';
import { takeFiles } from '../fetching/unpack.js';
import { mergeNetworks } from '../merging/network-merger.js';
import { mergeSources } from '../merging/range-merger.js';
import { hasNetworks as isOfNetworks } from '../source-formats/formats.js';
import { readSource } from '../source-formats/read-source.js';
import { recognizeFormat } from '../source-formats/recognize.js';
import { checkUsableCountries } from '../source-formats/usable-countries.js';
import type { FetchedFile } from '../stage.js';
import { withDataDir } from './data-dir.js';

/** Name of the imported table in messages about its rows. */
const SOURCE_ID = 'import';
/** Bytes at the beginning of a table that tell its format. */
const HEAD_BYTES = 4096;

export interface ImportOptions {
  /** Files and folders. */
  paths: readonly string[];
  /** The day of all of them, `YYYY-MM-DD`; by default each name has a date. */
  day?: string | undefined;
  /** Name of a source format; by default it is recognized. */
  format?: string | undefined;
  note: (text: string) => void;
  /** How long to wait for a build or pull that runs. */
  waitMs?: number | undefined;
}

/** Files that are one table, or a release. */
interface DatedFiles {
  day: string;
  paths: string[];
}

const isRelease = (path: string): boolean => existsSync(join(path, MANIFEST_FILE));

/** Returns whether a path is a folder that is not a release. */
function isFolder(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw misuse(`there is no file ${path}; check its name`);
  return stats.isDirectory() && !isRelease(path);
}

/** Returns the files and releases in a folder, and those in its folders. */
function filesIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => !name.startsWith('.'));
  return names.sort().flatMap((name) => {
    const path = join(folder, name);
    return isFolder(path) ? filesIn(path) : [path];
  });
}

/** Returns the date in the name of a file, or in that of the innermost folder that has one. */
function dateOfPath(path: string): string {
  const day = path.split('/').reverse().map(dateInName).find(Boolean);
  if (day !== undefined) return day;
  throw misuse(`the name of ${path} has no date such as 2026-01-31; give it with --date`);
}

/** Groups files by their days, the earliest first. */
function byDay({ paths, day }: ImportOptions): DatedFiles[] {
  const files = paths.flatMap((path) => (isFolder(path) ? filesIn(path) : [path]));
  if (files.length === 0) throw misuse(`there are no files in ${paths.join(' and ')}; name tables or releases`);
  const groups = new Map<string, string[]>();
  for (const path of files) {
    const each = day ?? dateOfPath(path);
    groups.set(each, [...(groups.get(each) ?? []), path]);
  }
  return [...groups].map(([each, group]) => ({ day: each, paths: group })).sort((a, b) => (a.day < b.day ? -1 : 1));
}

function headOf(path: string): string {
  const fd = openSync(path, 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.toString('latin1', 0, readSync(fd, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}

/** What files of a day have: countries, networks, or both. */
interface DayAnswers {
  countries?: Answers;
  networks?: Answers<NetworkRecord> | undefined;
}

/** Returns the answers of a build that has a table as its only source. */
async function answersOfTable(
  { day, paths }: DatedFiles,
  { format, note }: ImportOptions,
  reference: Reference,
  workDir: string,
): Promise<DayAnswers> {
  let files: FetchedFile[];
  try {
    const packed = paths.map((path) => ({ path, name: basename(path) }));
    files = await takeFiles(workDir, packed, [], MAX_UNPACKED_BYTES);
  } catch (error) {
    if (error instanceof AtlasError) throw error;
    throw causedError('E_BAD_INPUT', `${paths.join(', ')}`, error, 'get the file again');
  }
  const recognized = format ?? recognizeFormat(files.map(({ name, path }) => ({ name, head: headOf(path) })));
  const advice = 'Check the files, or name their format with --format';
  const source = { id: SOURCE_ID, format: recognized, maxRejectShare: DEFAULT_MAX_REJECT_SHARE, advice };
  const { ingested } = await readSource({ source, files }, note);
  if (ingested.networks !== undefined) {
    return { networks: answersOf(mergeNetworks([ingested.networks], reference)) };
  }
  checkUsableCountries(ingested, reference);
  const countries = countryTable(reference, day);
  return { countries: answersOf(mergeSources({ sources: [ingested], reference, countries, overrides: [] })) };
}

async function readAnswers(
  files: DatedFiles,
  options: ImportOptions,
  reference: Reference,
  workDir: string,
): Promise<DayAnswers> {
  const [path] = files.paths as [string];
  if (files.paths.length > 1 || (!isRelease(path) && !path.endsWith('.ipc'))) {
    const other = files.paths.find((each) => isRelease(each) || each.endsWith('.ipc'));
    if (other === undefined) return answersOfTable(files, options, reference, workDir);
    throw misuse(`${other} is a whole release, but it is not the only file of ${files.day}; name only one of them`);
  }
  if (isRelease(path)) {
    const { file, manifest } = openReleaseRanges(path);
    const networks = openReleasePartition(path, manifest, NETWORKS);
    return { countries: answersOf(file), networks: networks && answersOf(networks) };
  }
  const compact = new CompactCountries(unpackCompact(readFileSync(path), path), path);
  const { container, about } = compact;
  const answers = <File extends PartitionFile>(partition: Partition<File>): File =>
    decodeFile(partition, buildFile(partition, container, about.as_of, path), path, true);
  return {
    countries: answersOf(answers(COUNTRIES)),
    networks: container.has(NETWORKS.section) ? answersOf(answers(NETWORKS)) : undefined,
  };
}

/**
 * Imports tables of any source format, releases, and compact forms. Files of one day are one table, such as those of the two
 * families. Each day is imported as a whole; if one fails, those before it stay.
 *
 * @returns the days, the earliest first
 * @throws AtlasError E_USAGE if a file has no date, or a day is imported already or not before the first publication, before
 *   anything is imported; E_BAD_INPUT, E_DAMAGED or E_FETCH if a file cannot be read; and as `withDataDir`
 */
export function importHistory(dataDir: string, options: ImportOptions): Promise<string[]> {
  const days = byDay(options);
  return withDataDir(
    dataDir,
    async (workDir) => {
      const ofNetworks = options.format !== undefined && isOfNetworks(options.format);
      const archive = ofNetworks ? openArchive(dataDir, NETWORKS) : openArchive(dataDir);
      for (const { day } of days) {
        const problem = importProblem(archive, day);
        if (problem !== undefined) throw misuse(problem);
      }
      const reference = loadReference();
      for (const files of days) {
        const { day, paths } = files;
        const { countries, networks } = await readAnswers(files, options, reference, workDir);
        const name = basename(paths[0]!);
        if (countries !== undefined) importEntry(openArchive(dataDir), { day, name, answers: countries });
        if (networks !== undefined) importEntry(openArchive(dataDir, NETWORKS), { day, name, answers: networks });
        const of = (answers: Answers<FileRecord> | undefined, what: string): string[] =>
          answers === undefined ? [] : [`${answers.v4.count} IPv4 and ${answers.v6.count} IPv6 ranges${what}`];
        const names = paths.map((path) => basename(path));
        options.note(`${day}: ${[...of(countries, ''), ...of(networks, ' of networks'), ...names].join(', ')}`);
      }
      return days.map(({ day }) => day);
    },
    options.waitMs,
  );
}

/**
 * Removes imported days, both ends included.
 *
 * @returns the days that were removed, the earliest first
 */
export function removeHistory(dataDir: string, from: string, to: string): Promise<string[]> {
  return withDataDir(dataDir, async () => {
    const days = [
      ...removeImports(openArchive(dataDir), from, to),
      ...removeImports(openArchive(dataDir, NETWORKS), from, to),
    ];
    return [...new Set(days)].sort();
  });
}
