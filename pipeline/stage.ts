/** The stages of a build: how one is run, and the types that pass from one to the next. Their order is in build.ts. */
import type { BoundedRanges } from '../src/range/columns.js';
import type { StoredReport } from '../src/report/stored-report.js';
import type { SourceConfig } from './config/sources.js';

/** Figures of a stage for `report.json` and the progress line: input, output, rejected. */
export type Counts = Record<string, number | string>;

/** What a stage uses besides its input. */
export interface StageContext {
  /** The data directory: `releases/`, `current`, `cache/`. */
  dataDir: string;
  /** A temporary folder of this build, on the file system of the data directory. */
  workDir: string;
  /** Whether to use only local copies of sources: cached, installed, or files. */
  offline: boolean;
  /** The date of the release, `YYYY-MM-DD`: EU membership and expiry of overrides are as of this day. */
  asOf: string;
  /** Reports progress to the user; one line without a line end. */
  note: (text: string) => void;
  /** Whether one line is enough on sources if no server was reached. */
  brief?: boolean | undefined;
  /** The stages so far, for `report.json`. */
  stages: StoredReport['stages'];
}

/** What a stage returns. A stage throws an AtlasError if the build cannot continue. */
export interface StageResult<Output> {
  output: Output;
  counts: Counts;
}

/** Runs a stage, records its time and its counts, and returns its output. */
export async function timed<Output>(
  { stages, note }: StageContext,
  stage: string,
  run: () => StageResult<Output> | Promise<StageResult<Output>>,
): Promise<Output> {
  const start = performance.now();
  const { output, counts } = await run();
  const seconds = (performance.now() - start) / 1000;
  stages.push({ stage, seconds: Number(seconds.toFixed(3)), counts });
  // Counts of a single source, `id.rows`, are only in the report: the line would become too long.
  const facts = Object.entries(counts)
    .filter(([name]) => !name.includes('.'))
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`);
  note(`${stage.padEnd(9)}  ${seconds.toFixed(2).padStart(6)} s  ${facts.join(', ')}`);
  return output;
}

/** One unpacked file of a source, stored under its content hash. */
export interface FetchedFile {
  /** Name within the source, such as `geo-whois-asn-country-ipv4.csv`. */
  name: string;
  path: string;
  bytes: number;
  /** SHA-256 of the unpacked file, hexadecimal. */
  sha256: string;
}

/** The date of a source's data, and how it is known. */
export interface DataDate {
  /** `YYYY-MM-DD`. */
  date: string;
  evidence: string;
}

/** The files of a source. */
export interface FetchedSource {
  id: string;
  /** The source with what the location of its files sets: format, license, attribution. */
  source: SourceConfig;
  /** Where the files are from, as sources.json writes it but without credentials. */
  location: string;
  /** Version of the source: that of the package, or the ETag or date of a download; empty if there is none. */
  version: string;
  /** Where the copy came from; `bundled` is a package installed together with ipatlas. */
  from: 'network' | 'cache' | 'bundled' | 'file';
  /** Undefined if nothing tells it. */
  dataDate: DataDate | undefined;
  /** Why a date that was found does not count, as a phrase. */
  dateProblem?: string | undefined;
  /** The publisher's warning if the files are only a seed for the first build. */
  seed: string | undefined;
  files: FetchedFile[];
  /** Makes these files the cached copy of the location, once a build has read and accepted them. */
  accept: () => Promise<void>;
}

/** An optional source that a build does without. */
export interface MissingSource {
  id: string;
  reason: string;
}

/** The sources of a build. */
export interface FetchedSources {
  /** In order of priority. */
  sources: FetchedSource[];
  missing: MissingSource[];
  /** For each response of a server, by how much the clock of this machine is ahead of it, in milliseconds. */
  clockErrors: number[];
}

/** Ranges of a source in the order of its rows. */
export interface SourceRanges extends BoundedRanges {
  /** Where they are written: each run goes on to the next one. Undefined if nobody asks. */
  runs?: readonly RowRun[];
}

/** Ranges that are in consecutive rows of a file. */
export interface RowRun {
  /** Number of the first one. */
  start: number;
  /** Index of the file among those that were read. */
  file: number;
  /** Number of the row that has it. */
  row: number;
}

/** The ranges of a source; each range's value is an index into `codes`. */
export interface IngestedSource {
  id: string;
  v4: SourceRanges;
  v6: SourceRanges;
  /** The country codes as the source writes them, in upper case, in order of first use. */
  codes: string[];
  /** Number of ranges. */
  rows: number;
  /** Number of rows that could not be parsed. */
  rejected: number;
  /**
   * The prefixes of a list: all of an operator's, or those of a source whose rows name no country. The value is 1 for prefixes that are
   * anycast by what the operator says, else 0.
   */
  listed?: { v4: SourceRanges; v6: SourceRanges } | undefined;
  /** Which network announces each range, if the source says so; it then has no countries. */
  networks?: IngestedNetworks | undefined;
}

/** The networks of a source; each range's value is an index into the two lists. */
export interface IngestedNetworks {
  v4: SourceRanges;
  v6: SourceRanges;
  /** AS numbers, in order of first use. */
  asns: number[];
  /** Their names; empty if no row has one. */
  names: string[];
}

/** The rows of a file of labels; each range's value is an index into `values`, whose rows differ. */
export interface LabelTable {
  columns: string[];
  v4: BoundedRanges;
  v6: BoundedRanges;
  values: (string | null)[][];
}

/** A release in the work folder, complete but not published. */
export interface FinishedRelease {
  id: string;
  dir: string;
}
