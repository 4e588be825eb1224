/** What a stage of the build is: a function from the stage before to the next, with its counts for the report. */
import type { BoundedRanges } from '../src/range/columns.js';

/** Numbers of a stage for `report.json` and the progress line: what it took in, gave out, refused. */
export type Counts = Record<string, number | string>;

/** What a stage may use besides its input. */
export interface StageContext {
  /** The data directory: `releases/`, `current`, `cache/`. */
  dataDir: string;
  /** A folder of this build alone, on the file system of the data directory; removed at the end. */
  workDir: string;
  /** Only cached and pinned copies of sources; nothing is fetched. */
  offline: boolean;
  /** The date as of which the release is made, `YYYY-MM-DD`. */
  asOf: string;
  /** Says something to the person who watches; one line, no line end. */
  note: (text: string) => void;
}

/** One stage. `run` throws an AtlasError where the build cannot go on. */
export interface Stage<Input, Output> {
  name: string;
  run: (input: Input, context: StageContext) => Promise<{ output: Output; counts: Counts }>;
}

/** One file of a source, on disk, unpacked, under its content hash. */
export interface FetchedFile {
  /** Name within the source, such as `geo-whois-asn-country-ipv4.csv`. */
  name: string;
  path: string;
  bytes: number;
  /** SHA-256, hexadecimal, of the unpacked file. */
  sha256: string;
}

/** A source whose files are at hand. */
export interface FetchedSource {
  id: string;
  /** Version of the source: the package's, the ETag or date of a download, or empty where there is none. */
  version: string;
  /** Where the copy came from. */
  from: 'network' | 'cache' | 'pinned' | 'file';
  files: FetchedFile[];
}

/** A source as ranges. */
export interface IngestedSource {
  id: string;
  v4: BoundedRanges;
  v6: BoundedRanges;
  /** The country codes as the source writes them, upper case, in order of first use. */
  codes: string[];
  rows: number;
  rejected: number;
}
