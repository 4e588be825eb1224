/**
 * Formats of sources: which files hold ranges, how ranges are written, and which column holds the country. A built-in
 * format has the same form as one that a user writes into `sources.json`; `schemas/source-format.schema.json` defines it.
 */
import type { Family } from '../../src/address/parse.js';
import { AtlasError } from '../../src/errors.js';
import { OPERATOR_FORMATS } from '../config/sources.js';
import type { Dialect } from './csv-file.js';
import type { Operator } from './operator-ranges.js';
import { RIR_VERSIONS } from './record-count.js';

/** Paths of the country code in the records of common files; the first that exists in a record counts. */
export const DEFAULT_COUNTRY_PATHS: readonly string[] = [
  'country.iso_code', // GeoIP2, GeoLite2
  'country_code',
  'country',
  'registered_country.iso_code', // GeoIP2, if the country of use is not known
];

/** A column: its number from zero, or its name in the header row. */
export type Column = number | string;

/** How a row writes its range. All address text is what `src/address/parse.ts` accepts. */
export type RangeNotation =
  /** First and last address as text. */
  | { text: { first: Column; last: Column } }
  /**
   * First and last address as decimal integers. Without `family`, a row is IPv6 if its last address is above 2^32 - 1;
   * with `family`, a damaged number is noticed.
   */
  | { decimal: { first: Column; last: Column; family?: Family } }
  /** A CIDR block as text. */
  | { cidr: { network: Column } }
  /** First address as text, and the number of addresses. */
  | { count: { start: Column; count: Column } }
  /** First address as text, and the length of the prefix in bits. */
  | { prefix: { start: Column; prefix: Column } }
  /** As in RIR delegation files: `value` is a number of addresses for IPv4, a prefix length for IPv6. */
  | { rir: { start: Column; value: Column } };

/** Files that hold ranges, and their notation. */
export type RangeFiles = RangeNotation & {
  /** Names with `*` for any characters and `?` for any one; case does not matter. */
  files: string[];
};

/** The country is in another file, under a key. */
export interface CountryJoin {
  /** Columns of the range row with the key; the first that is not empty counts. */
  keys: Column[];
  locations: { files: string[]; key: Column; country: Column };
}

/** Rows to skip: those with one of the values in the column. */
export interface SkipRule {
  column: Column;
  values: string[];
}

/** A CSV format as written in `sources.json`. */
export interface FormatConfig {
  /** Default: a comma. */
  delimiter?: string;
  /** Default: `"`; null if fields are never quoted, so that a stray quote cannot hide rows. */
  quote?: string | null;
  /** First character of comment lines; default: none. */
  comment?: string;
  /** Whether the first row names the columns; default: true if a column is given by name. `optional`: if it has no address. */
  header?: boolean | 'optional';
  /** Rows that may be rejected whatever the source's limit is: the larger of a number and a share, 0 to 1. */
  minAllowedRejects?: { rows: number; share: number };
  /** Rows to skip at the beginning of each file, before the header row; default: 0. */
  skipRows?: number;
  /** The first entry that matches a file's name applies to it. */
  ranges: RangeFiles[];
  /** Where the country is, unless the rows say which network announces a range. */
  country?: Column | CountryJoin;
  /** The column of the AS number, with or without `AS`, and that of the network's name, if there is one. */
  asn?: Column;
  name?: Column;
  /** Whether the rows say nothing of their ranges but that they are in the list. */
  list?: true;
  skip?: SkipRule[];
}

/** The format of MaxMind DB files, as written in `sources.json`. */
export interface MmdbFormatConfig {
  mmdb: {
    /** Path of the country code in a record, keys joined by dots. Default: see `DEFAULT_COUNTRY_PATHS`. */
    country?: string;
  };
}

/** The format of MaxMind DB files, with defaults filled in. */
export interface MmdbFormat {
  /** The first path that exists in a record counts. */
  countryPaths: readonly string[];
  /** Patterns of the files to read. */
  ranges: readonly { files: string[] }[];
}

/** The list of addresses of a cloud operator, in the operator's own JSON format. */
export interface OperatorFormat {
  operator: Operator;
  /** Patterns of the files to read. */
  ranges: readonly { files: string[] }[];
}

/** A CSV format with defaults filled in. */
export interface Format {
  dialect: Dialect;
  header: boolean | 'optional';
  minAllowedRejects: { rows: number; share: number };
  skipRows: number;
  ranges: readonly RangeFiles[];
  /** What a row says about its range: its country, or the network that announces it. */
  content: { country: Column | CountryJoin } | { asn: Column; name: Column | undefined } | { list: true };
  skip: readonly SkipRule[];
}

/** Statuses of address space that is not delegated (RIR statistics exchange format, extended). */
const UNDELEGATED = ['available', 'reserved'];

type BuiltInConfig = FormatConfig | MmdbFormatConfig | { operator: Operator };

/** The formats that a source can name. */
export const BUILT_IN_FORMATS: Readonly<Record<string, BuiltInConfig>> = {
  // github.com/sapics/ip-location-db: first, last, country; a file for each family.
  'ip-location-db': {
    quote: null,
    ranges: [{ files: ['*'], text: { first: 0, last: 1 } }],
    country: 2,
  },
  // The same with decimal integers, `*-num.csv`.
  'ip-location-db-num': {
    quote: null,
    ranges: [
      { files: ['*-ipv4-num.csv'], decimal: { first: 0, last: 1, family: 4 } },
      { files: ['*-ipv6-num.csv'], decimal: { first: 0, last: 1, family: 6 } },
      { files: ['*'], decimal: { first: 0, last: 1 } },
    ],
    country: 2,
  },
  // DB-IP "IP to Country Lite": first, last, country; both families in one file.
  'dbip-lite': {
    ranges: [{ files: ['*'], text: { first: 0, last: 1 } }],
    country: 2,
  },
  // IP2Location LITE DB1 (DB3 and above begin with the same columns). The archive also holds a license and a readme. The IPv6 file has the
  // IPv4 ranges too, as IPv4-mapped addresses.
  'ip2location-lite': {
    ranges: [
      { files: ['*.IPV6.CSV'], decimal: { first: 0, last: 1, family: 6 } },
      { files: ['IP2LOCATION-LITE-DB*.CSV'], decimal: { first: 0, last: 1, family: 4 } },
      { files: ['*.CSV'], decimal: { first: 0, last: 1 } },
    ],
    country: 2,
  },
  // MaxMind GeoLite2 Country, CSV edition. `geoname_id` is the country of use; if it is empty, the country of registration
  // is the best evidence. A location without `country_iso_code` is a continent.
  'geolite2-country': {
    ranges: [{ files: ['*-Blocks-*.csv'], cidr: { network: 'network' } }],
    country: {
      keys: ['geoname_id', 'registered_country_geoname_id'],
      locations: { files: ['*-Locations-*.csv'], key: 'geoname_id', country: 'country_iso_code' },
    },
  },
  // IPLocate "IP to Country".
  iplocate: {
    ranges: [{ files: ['*'], cidr: { network: 'network' } }],
    country: 'country_code',
  },
  // Tor's `geoip` (IPv4, decimal) and `geoip6` (text).
  'tor-geoip': {
    quote: null,
    comment: '#',
    ranges: [
      { files: ['geoip6*'], text: { first: 0, last: 1 } },
      { files: ['geoip*'], decimal: { first: 0, last: 1, family: 4 } },
    ],
    country: 2,
  },
  // The RIRs' `delegated-*-extended-*` and `delegated-*`: registry|cc|type|start|value|date|status[|opaque-id[|…]], below
  // a version line and summary lines.
  'rir-delegated-extended': {
    delimiter: '|',
    quote: null,
    comment: '#',
    ranges: [{ files: ['*'], rir: { start: 3, value: 4 } }],
    country: 1,
    skip: [
      { column: 0, values: RIR_VERSIONS },
      { column: 5, values: ['summary'] },
      { column: 2, values: ['asn'] },
      { column: 6, values: UNDELEGATED },
    ],
  },
  // github.com/sapics/ip-location-db, `origin-asn-*` and `asn-*`: first, last, AS number, organization. The rows name no
  // country; they say which network announces a range.
  'origin-asn': { ranges: [{ files: ['*'], text: { first: 0, last: 1 } }], asn: 2, name: 3 },
  // MaxMind DB: GeoIP2, GeoLite2, and other files of that format.
  mmdb: { mmdb: {} },
  // RFC 8805: prefix, country, region, city, postal code. Many feeds begin with the names of the columns, without a comment
  // sign, and some have typos, which must not hide the other rows. A prefix may be a single address; a row without a country says
  // that the prefix must not be geolocated.
  geofeed: {
    comment: '#',
    header: 'optional',
    minAllowedRejects: { rows: 5, share: 0.05 },
    ranges: [{ files: ['*'], cidr: { network: 0 } }],
    country: 1,
  },
  // A CIDR block or an address a line.
  'cidr-list': { comment: '#', quote: null, ranges: [{ files: ['*'], cidr: { network: 0 } }], list: true },
  // LACeS, the census of anycast prefixes of the University of Twente: prefix,number_of_sites,backing_prefix. What has one site is in
  // one place.
  'laces-csv': {
    header: 'optional',
    ranges: [{ files: ['*'], cidr: { network: 0 } }],
    list: true,
    skip: [{ column: 1, values: ['0', '1'] }],
  },
  // Lists of the cloud operators. `data/reference/operator-regions.csv` has the countries of their regions.
  ...Object.fromEntries(Object.entries(OPERATOR_FORMATS).map(([name, operator]) => [name, { operator }])),
};

/**
 * Returns the format of a source, with defaults filled in.
 *
 * @param reference the name of a built-in format, or a format that its schema accepted
 * @throws AtlasError E_CONFIG for an unknown name, or for named columns in files without a header row
 */
export function resolveFormat(reference: string | object): Format | MmdbFormat | OperatorFormat {
  const config = typeof reference === 'string' ? builtIn(reference) : (reference as FormatConfig | MmdbFormatConfig);
  if ('operator' in config) return { ...config, ranges: [{ files: ['*'] }] };
  if ('mmdb' in config) {
    const { country } = config.mmdb;
    return { countryPaths: country === undefined ? DEFAULT_COUNTRY_PATHS : [country], ranges: [{ files: ['*.mmdb'] }] };
  }
  const named = columnsOf(config).filter((column) => typeof column === 'string');
  if (config.header === false && named.length > 0) {
    throw new AtlasError(
      'E_CONFIG',
      `format: column ${JSON.stringify(named[0])} is given by name, but "header" is false; give its number, from 0`,
    );
  }
  return {
    dialect: {
      delimiter: config.delimiter ?? ',',
      quote: config.quote === undefined ? '"' : config.quote,
      comment: config.comment ?? null,
    },
    header: config.header ?? named.length > 0,
    minAllowedRejects: config.minAllowedRejects ?? { rows: 0, share: 0 },
    skipRows: config.skipRows ?? 0,
    ranges: config.ranges,
    content: contentOf(config),
    skip: config.skip ?? [],
  };
}

function contentOf({ asn, name, list, country }: FormatConfig): Format['content'] {
  if (list === true) return { list };
  return asn === undefined ? { country: country! } : { asn, name };
}

/** Returns whether the rows of a format say which network announces a range, instead of its country. */
export function hasNetworks(reference: string | object): boolean {
  const format = resolveFormat(reference);
  return 'content' in format && 'asn' in format.content;
}

/** Returns whether a source of a format is a list of prefixes, of which some or none have a country. */
export function hasList(reference: string | object): boolean {
  const format = resolveFormat(reference);
  return 'operator' in format || ('content' in format && 'list' in format.content);
}

function builtIn(name: string): BuiltInConfig {
  const config = Object.hasOwn(BUILT_IN_FORMATS, name) ? BUILT_IN_FORMATS[name] : undefined;
  if (config !== undefined) return config;
  const names = Object.keys(BUILT_IN_FORMATS).join(', ');
  throw new AtlasError('E_CONFIG', `format ${JSON.stringify(name)} is unknown; the built-in formats are ${names}`);
}

/** Returns every column that a format refers to. */
function columnsOf(config: FormatConfig): Column[] {
  const { asn, name } = config;
  const country =
    typeof config.country === 'object'
      ? [...config.country.keys, config.country.locations.key, config.country.locations.country]
      : [config.country];
  const skip = (config.skip ?? []).map((rule) => rule.column);
  const content = [...country, asn, name].filter((column) => column !== undefined);
  return [...config.ranges.flatMap(notationColumns), ...content, ...skip];
}

/** Returns the columns of a range, in the order that `rangeParser` expects. */
export function notationColumns(notation: RangeNotation): Column[] {
  if ('text' in notation) return [notation.text.first, notation.text.last];
  if ('decimal' in notation) return [notation.decimal.first, notation.decimal.last];
  if ('cidr' in notation) return [notation.cidr.network];
  if ('count' in notation) return [notation.count.start, notation.count.count];
  if ('prefix' in notation) return [notation.prefix.start, notation.prefix.prefix];
  return [notation.rir.start, notation.rir.value];
}
