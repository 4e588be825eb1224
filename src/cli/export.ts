/** `ipatlas export`: a release in the form that other software reads. */

import type { EmbeddedScheme } from '../address/embedded.js';
import type { Family } from '../address/parse.js';
import { countryWords } from '../country/continents.js';
import { isListed, parseCountryList } from '../country/memberships.js';
import { manifestOfDatabase, openPartition, openRanges } from '../database/origin.js';
import { type Manifest, namedRelease, readManifest, sourcesOf } from '../database/release.js';
import { noPartition } from '../database/release-files.js';
import { type AtlasError, EXIT } from '../errors.js';
import { type ExportRequest, FORMATS, type FormatName } from '../export/formats.js';
import { joinFiles, joinRows } from '../export/joint.js';
import { limitEntries } from '../export/limited.js';
import { ASN_DATABASE_TYPE, BOTH_DATABASE_TYPE, DEFAULT_DATABASE_TYPE } from '../export/mmdb/mmdb.js';
import type { ExportedRange } from '../export/ranges.js';
import { SET_NAME } from '../export/sets.js';
import { writeFile } from '../files.js';
import { rangesAt } from '../history/day.js';
import { withPackages } from '../optional-packages.js';
import { COUNTRIES, NETWORKS, otherPartitions, type Partition } from '../rangefile/partitions.js';
import type { NetworkFile, PartitionFile, RangeFile, RowFile } from '../rangefile/reader.js';
import { isTerminal, STANDARD_FD } from '../standard-streams.js';
import { counted, grouped } from '../text-table.js';
import {
  type Command,
  databaseOf,
  type Invocation,
  type OptionValues,
  outputPath,
  parseAsns,
  parseDay,
  print,
  printNote,
  text,
  usageError,
} from './command.js';
import { wholeNumber } from './number-flags.js';

/** How programs read the files; it has a heading for each format but those of some firewalls, which are in the other guide. */
const DOCS = 'https://github.com/ipatlas/ipatlas/blob/main/docs';
const programsPage = (format: string): string =>
  format !== 'nft' && (SET_FORMATS as readonly string[]).includes(format)
    ? `${DOCS}/exports.md#other-firewalls`
    : `${DOCS}/programs.md#${format}`;

const usage = (message: string): AtlasError => usageError(message, 'export');

/** Writes several files, so it is not one of the formats. */
const GDNSD = 'gdnsd';

/** A whole release with its records, of which no part can be chosen, so it is not one of the formats either. */
const COMPACT = 'compact';

/** Needs a package that few installations need. */
const PARQUET = 'parquet';

const NAMES = [...Object.keys(FORMATS), PARQUET, COMPACT, GDNSD];

/** The country codes asked for by `--countries` and `--eu` together; undefined where neither is given. */
function chosenCodes(file: RangeFile, values: OptionValues): Set<string> | undefined {
  const named = text(values, 'countries');
  if (named === undefined && values.eu !== true) return undefined;
  const list = parseCountryList([...(named === undefined ? [] : [named]), ...(values.eu ? ['EU'] : [])], '--countries');
  const known = file.records.filter((record) => record.kind === 'country');
  const unknown = [...list.codes].find((code) => !known.some((country) => country.code === code));
  if (unknown !== undefined)
    throw usage(
      `--countries names ${JSON.stringify(unknown)}, which no range of this release has (as of ${file.asOf})`,
    );
  return new Set(known.filter(({ code, isEu }) => isListed(list, code, isEu, file.asOf)).map(({ code }) => code));
}

/** The schemes that `--embedded` names. */
function chosenSchemes(name: FormatName, value: string | undefined): Set<EmbeddedScheme> {
  const { schemes, embedded } = FORMATS[name];
  if (value === undefined) return new Set(embedded);
  if (value === 'all') return new Set(schemes);
  if (value === 'none') return new Set();
  return new Set(
    value.split(',').map((part) => {
      const scheme = schemes.find((one) => one === part.trim());
      if (scheme !== undefined) return scheme;
      throw usage(
        `--embedded is ${JSON.stringify(value)}; for ${name} it can be all, none, or some of ${schemes.join(',')}`,
      );
    }),
  );
}

function defaultSet(values: OptionValues): string {
  if (values.asn !== undefined) return 'networks';
  return values.eu === true && values.countries === undefined ? 'eu' : 'countries';
}

/** Name of the sets of a firewall, without the family's digit. */
function setName(values: OptionValues): string {
  const name = text(values, 'set') ?? defaultSet(values);
  if (SET_NAME.test(name)) return name;
  throw usage(`--set is ${JSON.stringify(name)}; it can be up to 30 letters, digits and "_", a letter first`);
}

/** Returns which countries are in the file, for its title. */
function partText(codes: ReadonlySet<string> | undefined): string {
  return codes === undefined ? '' : `, ${[...codes].sort().join(' ')}`;
}

/** What the file says of itself, on one line: which release, which part of it, and whom its sources want credited. */
function titleOf(
  manifest: Manifest,
  codes: ReadonlySet<string> | undefined,
  content: readonly Partition[] = [COUNTRIES],
): string {
  const { id } = manifest;
  const part = partText(codes);
  const credits = [...new Set(sourcesOf(manifest, content).map(({ attribution }) => attribution))].filter(
    (text) => text !== '',
  );
  const data = credits.length === 0 ? '' : `. Data: ${credits.join('; ')}`;
  return `Countries of IP addresses, ipatlas release ${id}${part}${data}`.replace(/\s+/g, ' ');
}

/** What is exported: the ranges, the date of their data, and the title of a file with some countries of them. */
interface ChosenRanges {
  file: RangeFile;
  /** What is asked for together with the countries. */
  networks?: NetworkFile | undefined;
  rows?: { partition: Partition; file: RowFile } | undefined;
  dataDate: string | undefined;
  title: (codes: ReadonlySet<string> | undefined) => string;
}

/** Returns the directory of the release that is asked for, or of the current one. */
function chosenRelease({ dataDir, values }: Invocation): string {
  return namedRelease(dataDir, text(values, 'release') ?? 'current');
}

/** Returns the directory of the release that is asked for; without one, also the path of the seed. */
function chosenDatabase(invocation: Invocation): string {
  return invocation.values.release === undefined ? databaseOf(invocation) : chosenRelease(invocation);
}

/** Opens the release, the seed or the past day that is asked for. */
function chosenRanges(invocation: Invocation): ChosenRanges {
  const { dataDir, values } = invocation;
  const day = parseDay(values, 'at');
  if (day === undefined) {
    const database = chosenDatabase(invocation);
    const { manifest, file } = openRanges(database);
    const ranges = { file, dataDate: manifest.data_date };
    const others = partsOf(values);
    const what = ['Countries', ...others.map(({ name }) => name)].join(' and ');
    const title = (codes: ReadonlySet<string> | undefined): string =>
      titleOf(manifest, codes, [COUNTRIES, ...others]).replace('Countries', what);
    const rows = others.find((partition): partition is Partition<RowFile> => partition.columns !== undefined);
    return {
      ...ranges,
      networks: others.includes(NETWORKS) ? needPartition(database, manifest, NETWORKS) : undefined,
      rows: rows && { partition: rows, file: needPartition(database, manifest, rows) },
      title,
    };
  }
  refuseFlags(values, '--at', ['with', 'release']);
  const { file, date } = rangesAt(dataDir, day);
  return {
    file,
    dataDate: date,
    title: (codes) => `Countries of IP addresses on ${day}, by ipatlas${partText(codes)}`,
  };
}

/** The formats of firewalls. */
const SET_FORMATS: readonly FormatName[] = ['nft', 'ipset', 'firewalld', 'pf', 'mikrotik'];
/** The formats that can have the networks of an operator, and those that can be limited to a number of blocks: lists of blocks. */
const BLOCK_FORMATS: readonly FormatName[] = ['cidr', 'nginx', 'haproxy', ...SET_FORMATS];

/** The AS numbers that are asked for; undefined where there are none. */
function chosenAsns(values: OptionValues): Set<number> | undefined {
  const list = text(values, 'asn');
  return list === undefined ? undefined : new Set(parseAsns(list));
}

/** Opens a partition of a release or of the seed; throws E_NO_DATABASE if it has none. */
function needPartition<File extends PartitionFile>(
  database: string,
  manifest: Manifest,
  partition: Partition<File>,
): File {
  const file = openPartition(database, manifest, partition);
  if (file === undefined) throw noPartition(manifest, partition);
  return file;
}

/** Returns the networks of a release or of the seed, and what the file says of itself. */
function chosenNetworks(invocation: Invocation, asns: ReadonlySet<number> | undefined) {
  refuseFlags(invocation.values, 'networks', ['countries', 'eu', 'at', 'with']);
  const database = chosenDatabase(invocation);
  const manifest = manifestOfDatabase(database);
  const file = needPartition(database, manifest, NETWORKS);
  const labels = asns && new Set([...asns].map((asn) => `AS${asn}`));
  const title = titleOf(manifest, labels, [NETWORKS]).replace('Countries', 'Networks');
  return { file, dataDate: manifest.networks_date ?? manifest.data_date, title };
}

/** Returns the partitions that are asked for together with the countries; throws E_USAGE for one that tables do not have. */
function partsOf(values: OptionValues): Partition[] {
  const sections = text(values, 'with')?.split(',') ?? [];
  const known = otherPartitions().filter(({ isPrivate }) => !isPrivate);
  const wrong = sections.some((name, at) => !known.some((one) => one.name === name) || sections.indexOf(name) < at);
  if (!wrong) return known.filter(({ name }) => sections.includes(name));
  const names = known.map(({ name }) => name).join(', ');
  throw usage(`--with is ${JSON.stringify(sections.join())}; here it can be ${names}`);
}

function requestFrom(format: FormatName, invocation: Invocation): ExportRequest {
  const { values } = invocation;
  const asns = chosenAsns(values);
  const isOfNetworks = format === 'asn-mmdb' || asns !== undefined;
  const ranges = isOfNetworks ? undefined : chosenRanges(invocation);
  const countries = ranges && chosenCodes(ranges.file, values);
  const { file, dataDate, title } = ranges
    ? { ...ranges, title: ranges.title(countries) }
    : chosenNetworks(invocation, asns);
  const networks = ranges?.networks;
  if (format === 'firewalld' && values.family === undefined)
    throw usage('an ipset of firewalld has one family: add --family 4, and write another file with --family 6');
  const places = networks === undefined ? file : joinFiles(ranges!.file, networks);
  const joined = ranges?.rows && joinRows(places, ranges.rows.file, ranges.rows.partition.flags);
  const request: ExportRequest = {
    file: joined?.file ?? places,
    rows: joined?.rows,
    hasBoth: networks !== undefined,
    countries,
    asns,
    families: values.family === undefined ? [4, 6] : [values.family === '4' ? 4 : 6],
    embedded: chosenSchemes(format, text(values, 'embedded')),
    title,
    dataDate,
    databaseType: text(values, 'database-type') ?? databaseType(format, networks !== undefined),
    setName: setName(values),
  };
  const max = wholeNumber(values, 'max-entries', 2, 2 ** 22);
  return max === undefined ? request : { ...request, limited: limited(request, max) };
}

/** Countries that are named of those that a limit added addresses of. */
const NAMED_COUNTRIES = 5;

/** Returns the chosen addresses in at most `max` blocks of each family, and says what was added to them. */
function limited(request: ExportRequest, max: number): Map<Family, readonly ExportedRange[]> {
  const all = new Map<Family, readonly ExportedRange[]>();
  for (const family of request.families) {
    const { ranges, added } = limitEntries(request, family, max);
    all.set(family, ranges);
    const largest = [...added].filter(([, size]) => size >= 0.5).sort(([, a], [, b]) => b - a);
    const unit = family === 4 ? 'addresses' : '/64 blocks';
    const sum = grouped(Math.round(largest.reduce((total, [, size]) => total + size, 0)));
    const names = largest.slice(0, NAMED_COUNTRIES).map(([name, size]) => `${name} ${grouped(Math.round(size))}`);
    const more = largest.length > NAMED_COUNTRIES ? `, ${largest.length - NAMED_COUNTRIES} more` : '';
    const of = names.length === 0 ? '' : ` (${names.join(', ')}${more})`;
    printNote(`IPv${family}: ${counted(ranges.length, 'block')}, with ${sum} ${unit} that were not asked for${of}\n`);
  }
  return all;
}

const TABLES = [...Object.keys(FORMATS), PARQUET];
/** The formats that flags go with, if not all. */
const FORMATS_OF_FLAGS: Readonly<Record<string, readonly string[]>> = {
  ...{ family: TABLES, countries: TABLES, eu: TABLES, embedded: TABLES, at: TABLES },
  ...{ set: Object.keys(FORMATS), 'database-type': Object.keys(FORMATS) },
  ...{ asn: BLOCK_FORMATS, 'max-entries': BLOCK_FORMATS, with: ['mmdb', 'csv', 'cidr', PARQUET, COMPACT] },
  ...{ nodes: [GDNSD], gzip: [COMPACT] },
};

/** Checks that the flags go with the format. @throws AtlasError E_USAGE */
function checkFlags({ values, positionals: [format] }: Invocation): void {
  for (const [flag, formats] of Object.entries(FORMATS_OF_FLAGS)) {
    if (values[flag] === undefined || formats.includes(format!)) continue;
    throw usage(`--${flag} does not go with ${format}; it is for ${formats.join(', ')}`);
  }
}

/** What is written: the content, whether it is binary, and what the message says about it. */
interface Export {
  pieces: Iterable<string | Uint8Array>;
  isBinary: boolean;
  title: string;
}

/** Returns the type of a database by what it has. */
function databaseType(format: FormatName, hasBoth: boolean): string {
  if (hasBoth) return BOTH_DATABASE_TYPE;
  return format === 'asn-mmdb' ? ASN_DATABASE_TYPE : DEFAULT_DATABASE_TYPE;
}

/** Checks that none of the flags is given. */
function refuseFlags(values: OptionValues, format: string, flags: readonly string[]): void {
  for (const flag of flags) if (values[flag] !== undefined) throw usage(`--${flag} does not go with ${format}`);
}

/** Returns a release in the compact form, compressed. */
async function compactExport(invocation: Invocation): Promise<Export> {
  const { values } = invocation;
  const sections = text(values, 'with')?.split(',') ?? [];
  const { compactParts, compactRelease, compressCompact } = await import('../database/compact.js');
  const parts = compactParts().filter((part) => sections.includes(part));
  if (parts.length !== sections.length) {
    throw usage(`--with is ${JSON.stringify(sections.join())}; it can be ${compactParts().join(', ')}, each once`);
  }
  const release = chosenRelease(invocation);
  const bytes = compactRelease(release, parts);
  const content = [COUNTRIES, ...otherPartitions().filter(({ name }) => parts.includes(name))];
  const compressed = compressCompact(bytes, values.gzip === true ? 'gzip' : 'brotli');
  return { pieces: [compressed], isBinary: true, title: titleOf(readManifest(release), undefined, content) };
}

/** Writes the database, the zone and the configuration of gdnsd. Files that would not change are left alone. */
async function exportGdnsd(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  const nodesFile = text(values, 'nodes');
  const directory = outputPath(values);
  if (nodesFile === undefined) throw usage('gdnsd needs --nodes FILE');
  if (directory === undefined) throw usage('gdnsd needs a directory: -o DIR');
  const { exportForGdnsd } = await import('../export/gdnsd/export.js');
  const release = chosenRelease(invocation);
  const { written, removed, warnings } = await exportForGdnsd({
    release,
    nodesFile,
    directory,
    database: requestFrom('mmdb', invocation),
  });
  for (const warning of warnings) printNote(`warning: ${warning}\n`);
  const done = written.length === 0 ? 'nothing changed' : `wrote ${written.join(', ')}`;
  const rest = removed.length === 0 ? '' : `; removed ${removed.join(', ')}`;
  printNote(`${directory}: ${done}${rest}\n`);
}

/** Returns the ranges as a Parquet file. */
async function parquetExport(invocation: Invocation): Promise<Export> {
  const { parquet } = await withPackages('export parquet', () => import('../export/parquet.js'));
  const request = requestFrom('csv', invocation);
  return { pieces: [await parquet(request, request.title)], isBinary: true, title: request.title };
}

async function exportOf(invocation: Invocation): Promise<Export> {
  if (invocation.positionals[0] === PARQUET) return parquetExport(invocation);
  if (invocation.positionals[0] === COMPACT) return compactExport(invocation);
  const name = invocation.positionals[0] as FormatName;
  const request = requestFrom(name, invocation);
  const format = FORMATS[name];
  return { pieces: format.write(request), isBinary: format.isBinary, title: request.title };
}

async function run(invocation: Invocation): Promise<number> {
  const name = invocation.positionals[0]!;
  if (!NAMES.includes(name)) throw usage(`there is no format ${JSON.stringify(name)}; there are ${NAMES.join(', ')}`);
  checkFlags(invocation);
  if (name === GDNSD) {
    await exportGdnsd(invocation);
    return EXIT.ok;
  }
  const output = outputPath(invocation.values);
  const { pieces, isBinary, title } = await exportOf(invocation);
  if (output !== undefined) {
    const bytes = writeFile(output, pieces);
    printNote(`${output}: ${bytes} bytes. ${title}\n`);
    if (name !== COMPACT && isTerminal(STANDARD_FD.error)) printNote(`How programs read it: ${programsPage(name)}\n`);
    return EXIT.ok;
  }
  if (isBinary && isTerminal(STANDARD_FD.output)) {
    throw usage(`${name} is not text for a terminal; name a file with -o`);
  }
  for (const piece of pieces) await print(piece);
  return EXIT.ok;
}

export const command: Command = {
  usage: ['export FORMAT [-o FILE]'],
  description: `Writes the current release in the form that other software reads; docs/exports.md shows how each uses it.`,
  words: {
    ...Object.fromEntries(Object.entries(FORMATS).map(([name, { summary }]) => [name, summary])),
    [PARQUET]: 'a table of ranges for warehouses: DuckDB, Spark, BigQuery; docs/warehouses.md',
    [COMPACT]: 'all countries in 0.5 to 0.7 MB, for @ipatlas/lookup in browsers and programs; docs/library.md',
    [GDNSD]: 'a directory with the configuration of gdnsd: DNS by country',
  },
  options: {
    output: {
      value: 'FILE',
      short: 'o',
      help: 'the file, replaced in one step (default: stdout); for gdnsd a directory',
    },
    nodes: { value: 'FILE', help: 'gdnsd: the servers that DNS routes to; docs/routing.md' },
    release: { value: 'ID', help: 'another release than the current one' },
    at: { value: 'YYYY-MM-DD', help: 'the answers of this day (UTC), see "ipatlas history"' },
    family: { value: '4|6', choices: ['4', '6'], help: 'one family only' },
    countries: {
      value: 'LIST',
      common: countryWords,
      help: 'only these countries, by their codes, EU for the European Union, EEA for the European Economic Area: DE,FR or EEA,GB',
    },
    eu: { help: 'only countries in the European Union; with --countries these as well' },
    asn: {
      value: 'LIST',
      help: 'lists of blocks (cidr, nginx, haproxy, firewalls): networks by the number of their autonomous system: 13335,AS15169',
    },
    embedded: {
      value: 'LIST',
      help: 'IPv6 addresses that get the country of the IPv4 address in them: 6to4, nat64, and in mmdb teredo; or all, or none (default: 6to4,nat64 for mmdb, nginx and haproxy, else none)',
    },
    gzip: { help: 'compact: compressed with gzip, for readers in browsers (default: Brotli, which is smaller)' },
    with: {
      value: 'LIST',
      common: () => ['confidence', 'networks', 'kinds'],
      help: 'compact: also confidence, that of each range; compact, mmdb, csv, cidr, parquet: networks, who announces the addresses, and kinds, the kind of network',
    },
    set: { value: 'NAME', help: 'firewalls: the sets are NAME4 and NAME6 (default: eu, countries or networks)' },
    'max-entries': {
      value: 'N',
      help: 'lists of blocks: at most N blocks of each family, from 2, which hold all that was asked for and as few other addresses as possible; stderr says how many',
    },
    'database-type': {
      value: 'NAME',
      help: `mmdb, asn-mmdb: the type in its metadata (default: ${DEFAULT_DATABASE_TYPE}; ${ASN_DATABASE_TYPE})`,
    },
  },
  examples: {
    'ipatlas export mmdb -o country.mmdb': 'a database for readers of MaxMind DB files',
    'ipatlas export nft --countries DE,FR -o countries.nft': 'sets for nftables with two countries',
    'ipatlas export gdnsd --nodes nodes.json -o /etc/gdnsd': 'DNS by country',
  },
  operand: 'none',
  arguments: [1, 1],
  answersFromSeed: true,
  run,
};
