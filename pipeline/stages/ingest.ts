/**
 * The stage that reads the sources: CSV files in, ranges in columns out. A row that cannot be read is put aside into
 * `rejects.ndjson`; a source with too many of them fails the build.
 */
import { appendFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { formatAddress } from '../../src/address/format.js';
import type { Family } from '../../src/address/parse.js';
import { AtlasError, messageOf } from '../../src/errors.js';
import { MAX_CODES_PER_SOURCE, MAX_COUNTRY_CODE_LENGTH } from '../../src/limits.js';
import { RangeBuilder } from '../../src/range/columns.js';
import { type RowPlace, readRows } from '../source-formats/csv-rows.js';
import {
  type Column,
  type CountryJoin,
  type Format,
  fitsName,
  type MmdbFormat,
  notationColumns,
  type RangeFiles,
  resolveFormat,
} from '../source-formats/formats.js';
import { readMmdb } from '../source-formats/mmdb.js';
import { emptyRange, rangeReader } from '../source-formats/range-notation.js';
import { printable, type Reject, RejectLog } from '../source-formats/rejects.js';
import type { FetchedFile, FetchedSource, IngestedSource, Stage } from '../stage.js';

/** Name of the file of unreadable rows, in the data directory: those of the last build, one JSON object a line. */
export const REJECTS_FILE = 'rejects.ndjson';

/** Unreadable rows that an error message shows; the file goes with the failed build. */
const REJECTS_SHOWN = 3;

/** What the stage needs to know of a source. */
export interface IngestInput {
  source: {
    id: string;
    /** Name of a ready-made format, or a format that its schema has accepted. */
    format: string | object;
    /** Share of the source's rows that may be unreadable, 0 to 1. */
    maxRejectShare: number;
  };
  fetched: FetchedSource;
}

/** A source that was read, with what was put aside. */
export interface IngestResult {
  ingested: IngestedSource;
  /** Rows passed over because the format's `skip` says so. */
  skipped: number;
  /** The first unreadable rows. */
  rejects: readonly Reject[];
}

/** A range as it was read, for whoever wants to see where it stands. The object is valid during the call only. */
export interface WatchedRange {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  /** What the source says of the country, as in the `codes` of its result. */
  code: string;
  file: FetchedFile;
  /** Where in the file; undefined in a file without lines. */
  place: Readonly<RowPlace> | undefined;
}

export type RangeWatcher = (range: WatchedRange) => void;

/**
 * The stage. Its counts are, for each source, `<id>.rows` (ranges read), `.ipv4`, `.ipv6`, `.rejected` and `.skipped`, and
 * the sums of rows and rejected.
 */
export const ingest: Stage<readonly IngestInput[], IngestedSource[]> = {
  name: 'ingest',
  run: async (inputs, context) => {
    const rejectsPath = path.join(context.dataDir, REJECTS_FILE);
    await writeFile(rejectsPath, '');
    const output: IngestedSource[] = [];
    const counts: Record<string, number> = { rows: 0, rejected: 0 };
    for (const input of inputs) {
      const { ingested, skipped, rejects } = await ingestSource(input, context.note);
      await appendFile(rejectsPath, rejects.map((reject) => `${JSON.stringify(reject)}\n`).join(''));
      output.push(ingested);
      const { id, rows, rejected, v4, v6 } = ingested;
      for (const [name, value] of Object.entries({ rows, ipv4: v4.count, ipv6: v6.count, rejected, skipped })) {
        counts[`${id}.${name}`] = value;
      }
      counts.rows = counts.rows! + rows;
      counts.rejected = counts.rejected! + rejected;
      context.note(`${id}: ${v4.count} IPv4 and ${v6.count} IPv6 ranges, ${rejected} rows rejected`);
    }
    return { output, counts };
  },
};

/**
 * Reads one source.
 *
 * @param input the source, its files at hand
 * @param note says what a person should know of it
 * @param watch sees every range that is read, in order
 * @throws AtlasError E_CONFIG for a format that cannot be; E_BAD_INPUT where no file fits the format, a named column is not
 *   there, a file falls into no rows, too many rows are unreadable, or there is no range; E_FETCH where a file cannot be read
 */
export async function ingestSource(
  input: IngestInput,
  note: (text: string) => void,
  watch?: RangeWatcher,
): Promise<IngestResult> {
  const { source, fetched } = input;
  try {
    const format = resolveFormat(source.format);
    const rows = new SourceRows(source.id, watch);
    const tellUnused = (files: readonly FetchedFile[]): void => {
      for (const { name } of files) note(`${source.id}: ${name} is not read; its name fits nothing in the format`);
    };
    if ('countryPaths' in format) {
      const files = sortFiles(fetched.files, format.ranges, []);
      tellUnused(files.unused);
      for (const { file } of files.ranges) readNetworks(file, format, rows);
    } else {
      const files = sortFiles(fetched.files, format.ranges, locationNames(format));
      tellUnused(files.unused);
      const reading = new Reading(rows, format);
      for (const file of files.locations) await reading.readLocations(file);
      for (const { file, ranges } of files.ranges) await reading.readRanges(file, ranges);
    }
    return rows.result(source.maxRejectShare);
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    throw new AtlasError(error.code, `source ${source.id}: ${messageOf(error)}`, { cause: error });
  }
}

interface SortedFiles<Entry> {
  ranges: { file: FetchedFile; ranges: Entry }[];
  locations: FetchedFile[];
  unused: FetchedFile[];
}

/** Names of the files that hold the countries, where the format joins them. */
function locationNames({ country }: Format): readonly string[] {
  return typeof country === 'object' ? country.locations.files : [];
}

/** Which files of the source hold what, by their names; each in the order of the source. */
function sortFiles<Entry extends { files: string[] }>(
  files: readonly FetchedFile[],
  rangeFiles: readonly Entry[],
  locations: readonly string[],
): SortedFiles<Entry> {
  const sorted: SortedFiles<Entry> = { ranges: [], locations: [], unused: [] };
  for (const file of files) {
    const ranges = rangeFiles.find((entry) => fitsName(file.name, entry.files));
    if (fitsName(file.name, locations)) sorted.locations.push(file);
    else if (ranges !== undefined) sorted.ranges.push({ file, ranges });
    else sorted.unused.push(file);
  }
  const rangeNames = rangeFiles.flatMap((entry) => entry.files);
  if (sorted.ranges.length === 0) throw noSuchFile('ranges', rangeNames, files);
  if (locations.length > 0 && sorted.locations.length === 0) throw noSuchFile('locations', locations, files);
  return sorted;
}

function noSuchFile(what: string, patterns: readonly string[], files: readonly FetchedFile[]): AtlasError {
  const names = files.map((file) => file.name).join(', ') || 'none';
  return new AtlasError(
    'E_BAD_INPUT',
    `no file of ${what}: the format reads ${patterns.join(', ')}; the source has ${names}. ` +
      `Check the source's "format" and which files are fetched`,
  );
}

/** Reads a row: its country's index where it holds a range, why it cannot be read, or null where no range is looked for. */
type RowReader = (row: readonly string[]) => number | string | null;

/** What was read of a source so far. */
class SourceRows {
  readonly codes = new CodeTable();
  readonly rejects: RejectLog;
  /** Rows passed over because the format says so. */
  skipped = 0;
  readonly #id: string;
  readonly #v4 = new RangeBuilder(4);
  readonly #v6 = new RangeBuilder(6);
  readonly #watch: RangeWatcher | undefined;
  #file: FetchedFile | undefined;

  constructor(id: string, watch: RangeWatcher | undefined) {
    this.#id = id;
    this.#watch = watch;
    this.rejects = new RejectLog(id);
  }

  /** Ranges so far, readable or not. */
  get count(): number {
    return this.#v4.count + this.#v6.count + this.rejects.total;
  }

  /** Says which file the next ranges come from. */
  beginFile(file: FetchedFile): void {
    this.#file = file;
    this.rejects.beginFile(file.name);
  }

  append(
    family: Family,
    first: Uint32Array,
    last: Uint32Array,
    code: number,
    place: Readonly<RowPlace> | undefined,
  ): void {
    (family === 4 ? this.#v4 : this.#v6).add(first, last, 0, code);
    this.#watch?.({ family, first, last, code: this.codes.codes[code]!, file: this.#file!, place });
  }

  result(maxRejectShare: number): IngestResult {
    const rejected = this.rejects.total;
    const rows = this.#v4.count + this.#v6.count;
    if (rejected > maxRejectShare * (rows + rejected)) throw tooManyRejects(this.rejects, rows, maxRejectShare);
    if (rows === 0) {
      throw new AtlasError(
        'E_BAD_INPUT',
        `its files hold no range (${this.skipped} rows were passed over). Check what was fetched, and the source's "format"`,
      );
    }
    const columns = { v4: this.#v4.finish(), v6: this.#v6.finish() };
    const ingested: IngestedSource = { id: this.#id, ...columns, codes: this.codes.codes, rows, rejected };
    return { ingested, skipped: this.skipped, rejects: this.rejects.rejects };
  }
}

/** Reads an MMDB file. A record that names no country says so of its range, as an empty column does. */
function readNetworks(file: FetchedFile, format: MmdbFormat, rows: SourceRows): void {
  rows.beginFile(file);
  readMmdb(file.path, file.name, format.countryPaths, (family, first, last, country) => {
    const text = String(country ?? '');
    const code = rows.codes.index(text);
    if (typeof code === 'number') rows.append(family, first, last, code, undefined);
    else rows.rejects.addRange(rows.count + 1, `${formatAddress(family, first)} ${text}`, code);
  });
}

/** A source of CSV files while it is read. */
class Reading {
  readonly #rows: SourceRows;
  readonly #format: Format;
  /** Country code by key, where the format joins them. */
  readonly #locations = new Map<string, string>();
  /** The range of the row at hand. */
  readonly #range = emptyRange();

  constructor(rows: SourceRows, format: Format) {
    this.#rows = rows;
    this.#format = format;
  }

  /** Reads a file of keys and their countries. */
  async readLocations(file: FetchedFile): Promise<void> {
    const { locations } = this.#format.country as CountryJoin;
    await this.#readFile(file, (header) => {
      const key = columnNumber(locations.key, header);
      const country = columnNumber(locations.country, header);
      const width = Math.max(key, country) + 1;
      return (row) => {
        if (row.length < width) return missingColumns(row, width);
        this.#locations.set(row[key]!, row[country]!);
        return null;
      };
    });
  }

  /** Reads a file of ranges. */
  async readRanges(file: FetchedFile, ranges: RangeFiles): Promise<void> {
    await this.#readFile(file, (header) => this.#rangeRowReader(ranges, header));
  }

  /** Hands a file's rows, those at its head aside, to the reader that is made once the header row is known. */
  async #readFile(file: FetchedFile, makeReader: (header: readonly string[]) => RowReader): Promise<void> {
    const { dialect, header, skipRows } = this.#format;
    let toSkip = skipRows;
    let read = header ? undefined : makeReader([]);
    this.#rows.beginFile(file);
    await readRows(file.path, file.name, dialect, (row, place) => {
      if (toSkip > 0) {
        toSkip--;
      } else if (read === undefined) {
        read = inFile(file.name, () => makeReader(row));
      } else {
        this.#take(read, row, place);
      }
    });
    await this.#rows.rejects.endFile(file.path);
  }

  /** Reads one row, and keeps or refuses it. */
  #take(read: RowReader, row: readonly string[], place: Readonly<RowPlace>): void {
    let found = place.breaks === 0 ? read(row) : 'a quote is not closed: the row has a line break in it';
    // Blanks around fields are rare, so rows pay for them only where they fail.
    if (typeof found === 'string' && place.breaks === 0) found = read(row.map((field) => field.trim()));
    if (typeof found === 'number') {
      const { family, first, last } = this.#range;
      this.#rows.append(family, first, last, found, place);
    } else if (found !== null) {
      this.#rows.rejects.add(place, found);
    }
  }

  #rangeRowReader(ranges: RangeFiles, header: readonly string[]): RowReader {
    const { country, skip } = this.#format;
    const range = this.#range;
    const rangeColumns = notationColumns(ranges).map((column) => columnNumber(column, header));
    const countryColumns = (typeof country === 'object' ? country.keys : [country]).map((column) =>
      columnNumber(column, header),
    );
    const width = Math.max(...rangeColumns, ...countryColumns) + 1;
    const isSkipped = skipper(skip.map((rule) => ({ ...rule, column: columnNumber(rule.column, header) })));
    const readRange = rangeReader(ranges, rangeColumns);
    const readCountry =
      typeof country === 'object' ? this.#joinedCountry(countryColumns) : this.#country(countryColumns[0]!);
    return (row) => {
      if (isSkipped(row)) {
        this.#rows.skipped++;
        return null;
      }
      if (row.length < width) return missingColumns(row, width);
      return readRange(row, range) ?? readCountry(row);
    };
  }

  #country(column: number): (row: readonly string[]) => number | string {
    return (row) => this.#rows.codes.index(row[column]!);
  }

  #joinedCountry(columns: readonly number[]): (row: readonly string[]) => number | string {
    return (row) => {
      const column = columns.find((each) => row[each] !== '');
      if (column === undefined) return this.#rows.codes.index('');
      const code = this.#locations.get(row[column]!);
      return code === undefined ? 'its location stands in no file of locations' : this.#rows.codes.index(code);
    };
  }
}

/** The country codes of a source, numbered in order of first use. */
class CodeTable {
  readonly codes: string[] = [];
  /** Index by text as it stands in the file. */
  readonly #byText = new Map<string, number>();

  /** The index of a code, or why the text is none. No code at all is one too: the empty one. */
  index(text: string): number | string {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const code = text.trim().toUpperCase();
    if (code.length > MAX_COUNTRY_CODE_LENGTH || !/^[A-Z0-9?*/_-]*$/.test(code))
      return 'the country is no country code';
    let index = this.codes.indexOf(code);
    if (index < 0) {
      if (this.codes.length === MAX_CODES_PER_SOURCE) {
        return `the country is none of the first ${MAX_CODES_PER_SOURCE} different ones: is this the country column?`;
      }
      index = this.codes.push(code) - 1;
    }
    this.#byText.set(text, index);
    return index;
  }
}

/** Tells the rows that a format passes over. */
function skipper(rules: readonly { column: number; values: readonly string[] }[]): (row: readonly string[]) => boolean {
  const sets = rules.map(({ column, values }) => ({ column, values: new Set(values) }));
  return (row) => {
    for (const { column, values } of sets) {
      const field = row[column];
      if (field !== undefined && values.has(field)) return true;
    }
    return false;
  };
}

/** The number of a column; a name is looked up in the header row, in which letter case and blanks do not count. */
function columnNumber(column: Column, header: readonly string[]): number {
  if (typeof column === 'number') return column;
  const plain = (name: string): string => name.trim().toLowerCase();
  const index = header.findIndex((name) => plain(name) === plain(column));
  if (index >= 0) return index;
  throw new AtlasError(
    'E_BAD_INPUT',
    `no column ${JSON.stringify(column)} in the header row ${printable(header.join(), 200)}`,
  );
}

/** Runs `act`; errors tell the file. */
function inFile<T>(name: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw error instanceof AtlasError ? new AtlasError(error.code, `${name}: ${error.message}`) : error;
  }
}

function missingColumns(row: readonly string[], width: number): string | null {
  if (row.length === 1 && row[0]!.trim() === '') return null; // a line of blanks
  return `the row has ${row.length} of at least ${width} columns`;
}

function tooManyRejects(log: RejectLog, rows: number, maxShare: number): AtlasError {
  const all = rows + log.total;
  const shown = log.rejects.slice(0, REJECTS_SHOWN);
  return new AtlasError(
    'E_BAD_INPUT',
    [
      `${log.total} of ${all} rows cannot be read (${percent(log.total / all)}); ${percent(maxShare)} may be`,
      ...shown.map(({ file, line, reason, text }) => `  ${file}, line ${line}: ${reason}: ${printable(text)}`),
      'Correct the file or the source\'s "format", or allow more with its "maxRejectShare"',
    ].join('\n'),
  );
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
