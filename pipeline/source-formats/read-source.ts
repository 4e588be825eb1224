/** Reads the files of one source, in any format, into ranges. */
import { formatAddress } from '../../src/address/format.js';
import type { Family } from '../../src/address/parse.js';
import { AtlasError } from '../../src/errors.js';
import { type CandidateRanges, RangeBuilder } from '../../src/range/columns.js';
import type { SourceKind } from '../../src/range/vote.js';
import { counted, percent } from '../../src/text-table.js';
import { matchesPattern } from '../../src/wildcards.js';
import type { OwnedRange } from '../merging/evidence.js';
import type { FetchedFile, IngestedSource, RowRun, SourceRanges } from '../stage.js';
import { CsvFile } from './csv-file.js';
import {
  type Column,
  type CountryJoin,
  type Format,
  type MmdbFormat,
  notationColumns,
  type RangeFiles,
  type RangeNotation,
  resolveFormat,
} from './formats.js';
import type { Operator, OperatorRegions } from './operator-ranges.js';
import { Delegations, NetworkTable } from './ownership.js';
import { emptyRange, parseCidrRange, type Range, rangeParser } from './range-notation.js';
import { RecordCount } from './record-count.js';
import { printable, type Reject, RejectLog } from './rejects.js';

/** Different country codes in one source. ISO 3166-1 assigns about 250; a thousand means a wrong column. */
export const MAX_CODES_PER_SOURCE = 1000;

/**
 * Longest country code in a source, in characters. ISO 3166-1 codes have 2 or 3, and some sources write `unknown`. A longer
 * text means that the column is not the country's.
 */
const MAX_COUNTRY_CODE_LENGTH = 8;

/** Number of rejected rows that an error message shows. */
const REJECTS_SHOWN = 3;

/** Number of regions without a country that a note shows. */
const REGIONS_SHOWN = 20;

/** A source to read. */
export interface SourceInput {
  source: {
    id: string;
    /** Name of a built-in format, or a format that its schema accepted. */
    format: string | object;
    /** What its rows are made of: a list of kind `anycast` says what is anycast. */
    kind?: SourceKind | undefined;
    /** Share of the source's rows that may be rejected, 0 to 1. */
    maxRejectShare: number;
    /** What to do if it cannot be read. */
    advice?: string;
  };
  files: readonly FetchedFile[];
  /** AS numbers of the networks whose space the caller wants to know. */
  asns?: ReadonlySet<number>;
}

/** The ranges of a source, and the rows that gave none. */
export interface SourceResult {
  ingested: IngestedSource;
  /** Number of rows that the format's `skip` rules leave out. */
  skipped: number;
  /** The first rejected rows. */
  rejects: readonly Reject[];
  /** The ranges that belong to networks with an AS number that was asked for, as far as this source tells. */
  owned: readonly OwnedRange[];
  /** The files in the order in which they were read. */
  files: readonly ReadFile[];
}

/** A file that was read. */
export interface ReadFile {
  name: string;
  /** Line breaks in its rows, see CsvFile; undefined in a file without lines. */
  breaks: ReadonlyMap<number, number> | undefined;
}

/** A range and its position in the source. The object is valid only during the call. */
export interface LocatedRange {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  file: FetchedFile;
  /** Undefined in a file without text. */
  written: WrittenRow | undefined;
}

/** How the file has a range. The object is valid only during the call. */
export interface WrittenRow {
  /** Where the row can be looked up; undefined in a file without lines. */
  csv: CsvFile | undefined;
  /** Number of the row in `csv`, else of the range. */
  row: number;
  notation: RangeNotation;
  /** Returns the cells of the range, in the order of `notationColumns`. */
  texts: () => string[];
}

/** Receives every range that is read, in order. */
export type RangeListener = (range: LocatedRange) => void;

/**
 * Reads one source.
 *
 * @param input the source with its fetched files
 * @param note reports files that are not read
 * @param onRange receives every range, in order
 * @param log receives the rejected rows, also if reading fails
 * @throws AtlasError E_CONFIG if the format is contradictory; E_BAD_INPUT if no file matches the format, a named column is
 *   missing, a file is not CSV or MMDB, too many rows are rejected, or there is no range; E_FETCH if a file cannot be read
 */
export async function readSource(
  input: SourceInput,
  note: (text: string) => void,
  onRange?: RangeListener,
  log = new RejectLog(input.source.id),
): Promise<SourceResult> {
  const { source, files, asns = new Set() } = input;
  try {
    const format = resolveFormat(source.format);
    const rows = new SourceRows(source.id, onRange, log);
    const noteUnused = (unused: readonly FetchedFile[]): void => {
      for (const { name } of unused) note(`${source.id}: ${name} is not read; its name matches nothing in the format`);
    };
    if ('countryPaths' in format) {
      const sorted = sortFiles(files, format.ranges, []);
      noteUnused(sorted.unused);
      for (const { file } of sorted.ranges) await readNetworks(file, format, rows);
    } else if ('operator' in format) {
      const { loadOperatorRegions } = await import('./operator-ranges.js');
      const regions = loadOperatorRegions();
      for (const file of files) await readOperatorFile(file, format.operator, regions, rows, note);
    } else {
      const sorted = sortFiles(files, format.ranges, locationNames(format));
      noteUnused(sorted.unused);
      const delegations = asns.size > 0 && 'rir' in format.ranges[0]! ? new Delegations(asns) : undefined;
      if ('asn' in format.content) rows.networks = new NetworkTable(asns);
      if ('list' in format.content) {
        rows.isList = true;
        rows.listed = { 4: new RowsBuilder(4), 6: new RowsBuilder(6) };
      }
      const reader = new CsvSourceReader(rows, format, source.kind === 'anycast', delegations);
      for (const file of sorted.locations) await reader.readLocations(file);
      for (const { file, ranges } of sorted.ranges) await reader.readRanges(file, ranges);
      const shared = delegations?.sharedAsns() ?? [];
      if (shared.length > 0) {
        note(
          `${source.id}: AS ${shared.join(', ')}: the members of a national registry share one holder in the file, so space that is delegated to them is not known`,
        );
      }
      const owned = rows.networks?.owned ?? delegations?.ranges();
      return rows.result(source.maxRejectShare, owned, format.minAllowedRejects);
    }
    return rows.result(source.maxRejectShare);
  } catch (error) {
    if (!(error instanceof AtlasError)) throw error;
    const { id, advice = 'Check the fetched files, and the source\'s "format" and "maxRejectShare"' } = source;
    const separator = error.message.includes('\n') ? '\n' : '. ';
    throw new AtlasError(error.code, `source ${id}: ${error.message}${separator}${advice}`, { cause: error });
  }
}

interface SortedFiles<Entry> {
  ranges: { file: FetchedFile; ranges: Entry }[];
  locations: FetchedFile[];
  unused: FetchedFile[];
}

/** Returns the patterns of the files with the countries, if the format has them in files of their own. */
function locationNames({ content }: Format): readonly string[] {
  return 'country' in content && typeof content.country === 'object' ? content.country.locations.files : [];
}

/** Sorts the files of the source by their role, which their names tell; order is kept. */
function sortFiles<Entry extends { files: string[] }>(
  files: readonly FetchedFile[],
  rangeFiles: readonly Entry[],
  locations: readonly string[],
): SortedFiles<Entry> {
  const sorted: SortedFiles<Entry> = { ranges: [], locations: [], unused: [] };
  for (const file of files) {
    const ranges = rangeFiles.find((entry) => matchesAny(file.name, entry.files));
    if (matchesAny(file.name, locations)) sorted.locations.push(file);
    else if (ranges !== undefined) sorted.ranges.push({ file, ranges });
    else sorted.unused.push(file);
  }
  const rangeNames = rangeFiles.flatMap((entry) => entry.files);
  if (sorted.ranges.length === 0) throw noSuchFile('ranges', rangeNames, files);
  if (locations.length > 0 && sorted.locations.length === 0) throw noSuchFile('locations', locations, files);
  return sorted;
}

function matchesAny(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matchesPattern(pattern, name, { ignoreCase: true }));
}

function noSuchFile(what: string, patterns: readonly string[], files: readonly FetchedFile[]): AtlasError {
  const names = files.map((file) => file.name).join(', ') || 'none';
  return new AtlasError(
    'E_BAD_INPUT',
    `no file of ${what}: the format reads ${patterns.join(', ')}; the source has ${names}`,
  );
}

/** Parses a row. Returns the index of its country code or of its network, the reason why the row is rejected, or null if it is skipped. */
type RowParser = (row: readonly string[]) => number | string | null;

/** Collects ranges, and the rows that they are in. */
class RowsBuilder extends RangeBuilder {
  readonly #runs: RowRun[] = [];
  #file = -1;
  #nextRow = 0;

  /** @param row undefined in a file without lines */
  addRow({ first, last }: Pick<Range, 'first' | 'last'>, value: number, file: number, row = this.#nextRow): void {
    if (file !== this.#file || row !== this.#nextRow) this.#runs.push({ start: this.count, file, row });
    this.#file = file;
    this.#nextRow = row + 1;
    this.add(first, last, 0, value);
  }

  override finish(): CandidateRanges & SourceRanges {
    return { ...super.finish(), runs: this.#runs };
  }
}

/** The ranges and rejected rows of a source so far. */
class SourceRows {
  readonly codes = new CountryCodes();
  readonly rejects: RejectLog;
  /** Number of rows that the format's `skip` rules leave out. */
  skipped = 0;
  /** The networks so far, if the rows have networks. */
  networks: NetworkTable | undefined;
  /** Prefixes of a list, if the source is one. */
  listed: Record<Family, RowsBuilder> | undefined;
  /** Whether the rows are nothing but its prefixes. */
  isList = false;
  readonly #id: string;
  readonly #v4 = new RowsBuilder(4);
  readonly #v6 = new RowsBuilder(6);
  readonly #onRange: RangeListener | undefined;
  readonly #files: ReadFile[] = [];
  #file: FetchedFile | undefined;
  /** One object for all ranges: there are millions. */
  readonly #located = {} as LocatedRange;

  constructor(id: string, onRange: RangeListener | undefined, log: RejectLog) {
    this.#id = id;
    this.#onRange = onRange;
    this.rejects = log;
  }

  /** Number of ranges so far, rejected ones included. */
  get count(): number {
    return this.#v4.count + this.#v6.count + this.rejects.total;
  }

  /** Sets the file that the next ranges come from. */
  beginFile(file: FetchedFile, csv?: CsvFile): void {
    this.#file = file;
    this.#files.push({ name: file.name, breaks: csv?.breaks });
    this.rejects.beginFile(file.name);
  }

  append(range: Range, code: number, written?: WrittenRow): void {
    this.#add(range.family === 4 ? this.#v4 : this.#v6, range, code, written);
  }

  /** Adds a prefix of a list. */
  list(range: Range, isAnycast: boolean, written?: WrittenRow): void {
    this.#add(this.listed![range.family], range, Number(isAnycast), written);
  }

  #add(builder: RowsBuilder, range: Range, value: number, written: WrittenRow | undefined): void {
    builder.addRow(range, value, this.#files.length - 1, written?.csv && written.row);
    if (this.#onRange === undefined) return;
    const located = this.#located;
    located.family = range.family;
    located.first = range.first;
    located.last = range.last;
    located.file = this.#file!;
    located.written = written;
    this.#onRange(located);
  }

  result(
    maxRejectShare: number,
    owned: readonly OwnedRange[] = [],
    { rows: always, share }: Format['minAllowedRejects'] = { rows: 0, share: 0 },
  ): SourceResult {
    const { networks, listed } = this;
    const rejected = this.rejects.total;
    const rows = this.isList ? listed![4].count + listed![6].count : this.#v4.count + this.#v6.count;
    const limit = Math.max(maxRejectShare, share);
    if (rejected > Math.max(always, limit * (rows + rejected))) throw tooManyRejects(this.rejects, rows, limit);
    if (rows === 0) {
      throw new AtlasError('E_BAD_INPUT', `its files hold no ranges (${this.skipped} rows were skipped)`);
    }
    const columns = { v4: this.#v4.finish(), v6: this.#v6.finish() };
    const prefixes = listed && { listed: { v4: listed[4].finish(), v6: listed[6].finish() } };
    const counts = { id: this.#id, rows, rejected, ...prefixes };
    const ingested: IngestedSource =
      networks === undefined
        ? { ...counts, ...columns, codes: this.codes.codes }
        : { ...counts, ...NO_COUNTRIES, networks: { ...columns, asns: networks.asns, names: networks.names } };
    return {
      ingested,
      skipped: this.skipped,
      rejects: this.rejects.rejects,
      owned,
      files: this.#files,
    };
  }
}

/** The countries of a source that has networks, or is a list. */
const NO_COUNTRIES = { v4: new RangeBuilder(4, 0).finish(), v6: new RangeBuilder(6, 0).finish(), codes: [] };

/** Reads an MMDB file. A record without a country counts as a row with an empty country column. */
async function readNetworks(file: FetchedFile, format: MmdbFormat, rows: SourceRows): Promise<void> {
  const { readMmdb } = await import('./mmdb.js');
  rows.beginFile(file);
  readMmdb(file.path, file.name, format.countryPaths, (family, first, last, country) => {
    const text = String(country ?? '');
    const code = rows.codes.index(text);
    if (typeof code === 'number') rows.append({ family, first, last }, code);
    else rows.rejects.add(rows.count + 1, `${formatAddress(family, first)} ${text}`, code);
  });
}

const NOT_ASN = 'the AS number cannot be read';

/** Reads the list of a cloud operator. Prefixes of regions without a country, such as `GLOBAL`, are skipped. */
async function readOperatorFile(
  file: FetchedFile,
  operator: Operator,
  regions: OperatorRegions,
  rows: SourceRows,
  note: (text: string) => void,
): Promise<void> {
  const { readOperatorPrefixes } = await import('./operator-ranges.js');
  rows.beginFile(file);
  const range = emptyRange();
  rows.listed ??= { 4: new RowsBuilder(4), 6: new RowsBuilder(6) };
  /** Regions whose country is not known, with the number of their prefixes. */
  const unknown = new Map<string, number>();
  for (const { prefix, region, zone, isElsewhere } of await readOperatorPrefixes(file.path, file.name, operator)) {
    const country = regions.get(`${operator} ${zone}`) ?? regions.get(`${operator} ${region}`);
    const isGlobal = region.toLowerCase() === 'global';
    const wrong = parseCidrRange(prefix, range);
    const texts = (): string[] => [prefix];
    const written = { csv: undefined, row: rows.count + 1, notation: { cidr: { network: 0 } }, texts };
    if (wrong === undefined) rows.list(range, isGlobal, written);
    if (isElsewhere === true) continue;
    if (country === undefined && region !== '') {
      if (!isGlobal) unknown.set(region, (unknown.get(region) ?? 0) + 1);
      rows.skipped++;
      continue;
    }
    const problem = country === undefined ? 'the region is missing' : wrong;
    const code = rows.codes.index(country ?? '');
    if (problem === undefined && typeof code === 'number') {
      rows.append(range, code, written);
    } else rows.rejects.add(rows.count + 1, `${prefix} ${region}`, problem ?? String(code));
  }
  if (unknown.size > 0) {
    const shown = [...unknown].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, REGIONS_SHOWN);
    const names = shown.map(([region, count]) => `${printable(region)} (${counted(count, 'prefix', 'prefixes')})`);
    const more = unknown.size > REGIONS_SHOWN ? ` and ${unknown.size - REGIONS_SHOWN} more` : '';
    note(`${file.name}: no country is known for the regions ${names.join(', ')}${more}; they are skipped`);
  }
}

/** Reads the CSV files of a source. */
class CsvSourceReader {
  readonly #rows: SourceRows;
  readonly #format: Format;
  readonly #isAnycast: boolean;
  /** Country code by location key, if the format has locations. */
  readonly #locations = new Map<string, string>();
  /** The range of the current row. */
  readonly #range = emptyRange();
  /** The current row, and how its file writes ranges. */
  #written: WrittenRow | undefined;
  #cells: readonly string[] = [];
  /** Receives every row if the space of networks is wanted. */
  readonly #delegations: Delegations | undefined;

  constructor(rows: SourceRows, format: Format, isAnycast: boolean, delegations?: Delegations) {
    this.#rows = rows;
    this.#format = format;
    this.#isAnycast = isAnycast;
    this.#delegations = delegations;
  }

  /** Reads a file of location keys and their countries. */
  async readLocations(file: FetchedFile): Promise<void> {
    const { locations } = (this.#format.content as { country: CountryJoin }).country;
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
    const count = 'rir' in ranges ? new RecordCount() : undefined;
    await this.#readFile(file, (header) => this.#rangeParser(ranges, header), count);
    count?.check(file.name);
  }

  /** Passes the rows of a file, without those to skip and the header row, to the row parser that `makeParser` returns. */
  async #readFile(
    file: FetchedFile,
    makeParser: (header: readonly string[]) => RowParser,
    count?: RecordCount,
  ): Promise<void> {
    const { dialect, header, skipRows } = this.#format;
    let toSkip = skipRows;
    const begin = (row: readonly string[]): RowParser => inFile(file.name, () => makeParser(row));
    const csv = new CsvFile(file.path, file.name, dialect);
    this.#rows.beginFile(file, csv);
    let parse = header === false ? begin([]) : undefined;
    try {
      await csv.read((cells, row, breaks) => {
        count?.add(cells);
        if (toSkip > 0) {
          toSkip--;
          return;
        }
        const isHead = parse === undefined && (header !== 'optional' || isNamesOfColumns(cells));
        parse ??= begin(header === 'optional' ? [] : cells);
        if (!isHead) this.#addRow(parse, cells, csv, row, breaks);
      });
    } finally {
      await this.#rows.rejects.locateRows(csv);
    }
  }

  /** Adds the range of a row, or rejects the row. */
  #addRow(parse: RowParser, cells: readonly string[], csv: CsvFile, row: number, breaks: number): void {
    this.#delegations?.add(cells);
    let found = breaks === 0 ? parse(cells) : 'a quote is not closed: the row has a line break in it';
    // Blanks around fields are rare, so fields are trimmed only if the row does not parse as it is.
    if (typeof found === 'string' && breaks === 0) found = parse(cells.map((cell) => cell.trim()));
    if (typeof found === 'number') {
      const written = this.#written!;
      written.csv = csv;
      written.row = row;
      this.#cells = cells;
      if ('list' in this.#format.content) this.#rows.list(this.#range, this.#isAnycast, written);
      else this.#rows.append(this.#range, found, written);
    } else if (found !== null && !isBlank(cells)) {
      this.#rows.rejects.add(row, '', found, breaks);
    }
  }

  #rangeParser(ranges: RangeFiles, header: readonly string[]): RowParser {
    const { content, skip } = this.#format;
    const range = this.#range;
    const numbers = (columns: readonly Column[]): number[] => columns.map((column) => columnNumber(column, header));
    const rangeColumns = numbers(notationColumns(ranges));
    const texts = (): string[] => rangeColumns.map((column) => this.#cells[column]!.trim());
    this.#written = { csv: undefined, row: 0, notation: ranges, texts };
    const isJoined = 'country' in content && typeof content.country === 'object';
    const contentColumns = numbers(isJoined ? (content.country as CountryJoin).keys : contentColumn(content));
    const width = Math.max(...rangeColumns, ...contentColumns) + 1;
    const isSkipped = skipTest(skip.map((rule) => ({ ...rule, column: columnNumber(rule.column, header) })));
    const parseRange = rangeParser(ranges, rangeColumns);
    const parseContent =
      'asn' in content
        ? this.#network(contentColumns[0]!, content.name === undefined ? undefined : columnNumber(content.name, header))
        : isJoined
          ? this.#joinedCountry(contentColumns)
          : 'list' in content
            ? () => 0
            : this.#country(contentColumns[0]!);
    return (row) => {
      if (isSkipped(row)) {
        this.#rows.skipped++;
        return null;
      }
      if (row.length < width) return missingColumns(row, width);
      return parseRange(row, range) ?? parseContent(row);
    };
  }

  #network(asn: number, name: number | undefined): RowParser {
    const networks = this.#rows.networks!;
    return (row) => {
      const index = networks.index(row[asn]!, name === undefined ? '' : (row[name] ?? ''));
      if (index === undefined) return NOT_ASN;
      if (index < 0) {
        this.#rows.skipped++;
        return null;
      }
      networks.addOwned(index, this.#range);
      return index;
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
      return code === undefined ? 'its location is in no file of locations' : this.#rows.codes.index(code);
    };
  }
}

/** Returns the column that says what a row is about, if there is one and the country is not in another file. */
function contentColumn(content: Format['content']): Column[] {
  if ('list' in content) return [];
  return ['asn' in content ? content.asn : (content.country as Column)];
}

/** Returns whether a row has several words, of which none is an address, a country code or a number. */
function isNamesOfColumns(row: readonly string[]): boolean {
  return row.length > 1 && row.every((cell) => /^\s*[a-z][a-z0-9 _-]{2,}\s*$/i.test(cell));
}

/** Returns a test for the rows that a format skips. */
function skipTest(
  rules: readonly { column: number; values: readonly string[] }[],
): (row: readonly string[]) => boolean {
  const sets = rules.map(({ column, values }) => ({ column, values: new Set(values) }));
  return (row) => sets.some(({ column, values }) => values.has(row[column]!));
}

/** Returns the number of a column. A name is looked up in the header row; case and surrounding blanks do not matter. */
function columnNumber(column: Column, header: readonly string[]): number {
  if (typeof column === 'number') return column;
  const normalize = (name: string): string => name.trim().toLowerCase();
  const index = header.findIndex((name) => normalize(name) === normalize(column));
  if (index >= 0) return index;
  throw new AtlasError(
    'E_BAD_INPUT',
    `no column ${JSON.stringify(column)} in the header row ${printable(header.join(), 200)}`,
  );
}

/** Runs an action; its errors name the file. */
function inFile<T>(name: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw error instanceof AtlasError ? new AtlasError(error.code, `${name}: ${error.message}`) : error;
  }
}

/** Returns whether a row is a line of blanks. */
function isBlank(row: readonly string[]): boolean {
  return row.length === 1 && row[0]!.trim() === '';
}

function missingColumns(row: readonly string[], width: number): string | null {
  if (isBlank(row)) return null;
  return `the row has ${row.length} of at least ${width} columns`;
}

function tooManyRejects(log: RejectLog, rows: number, maxShare: number): AtlasError {
  const all = rows + log.total;
  const shown = log.rejects.slice(0, REJECTS_SHOWN);
  return new AtlasError(
    'E_BAD_INPUT',
    [
      `${log.total} of ${all} rows cannot be read (${percent(log.total / all)}); the limit is ${percent(maxShare)}`,
      ...shown.map(({ file, line, reason, text }) => `  ${file}, line ${line}: ${reason}: ${printable(text)}`),
    ].join('\n'),
  );
}

/** The country codes of a source, numbered in order of first use. */
class CountryCodes {
  /** Upper case; no code at all is the empty text. */
  readonly codes: string[] = [];
  /** Index by text as written in the file, so that a code is normalized once. */
  readonly #byText = new Map<string, number>();

  /** Returns the index of a code, or the reason why the text is not a country code. */
  index(text: string): number | string {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const trimmed = text.trim();
    // Before it is in upper case: that of "ß" is "SS", which is South Sudan.
    if (trimmed.length > MAX_COUNTRY_CODE_LENGTH || !/^[A-Za-z0-9?*/_-]*$/.test(trimmed)) {
      return 'the country is not a country code';
    }
    const code = trimmed.toUpperCase();
    let index = this.codes.indexOf(code);
    if (index < 0) {
      if (this.codes.length === MAX_CODES_PER_SOURCE) {
        return `the country is not one of the first ${MAX_CODES_PER_SOURCE} different codes; is this the country column?`;
      }
      index = this.codes.push(code) - 1;
    }
    this.#byText.set(text, index);
    return index;
  }
}
