/** Reads the tables of `data/reference/` and checks them against each other. */
import path from 'node:path';
import { EMBEDDED_SCHEMES, type EmbeddedScheme } from '../../src/address/embedded.js';
import { type Family, parseAddress } from '../../src/address/parse.js';
import { addressWords } from '../../src/address/words.js';
import { type Assignment, isReason, type Reason } from '../../src/country/assignment.js';
import { type CountryGroup, type CountryReference, isDate, type Membership } from '../../src/country/country.js';
import { packageFile } from '../../src/package-root.js';
import { parseCidr } from '../../src/range/cidr.js';
import { addProblem, type ConfigRow, type ConfigTable, readConfigTable, refuseProblems } from './csv-table.js';

/** A range of addresses whose meaning is set by a standard. */
export interface SpecialRange {
  family: Family;
  /** First address, `addressWords(family)` words, most significant first. */
  first: Uint32Array;
  /** Last address, inclusive. */
  last: Uint32Array;
  /** The reason for no country, or the scheme by which addresses carry an IPv4 address. */
  result: Exclude<Assignment, { kind: 'country' }>;
  /**
   * `over`: the range takes precedence over all sources. `under`: a source that names a country for a range inside the
   * block takes precedence.
   */
  layer: 'over' | 'under';
  /** The block as the registry writes it, its name there, and the RFC that defines it. */
  block: string;
  name: string;
  rfc: string;
}

/** An address whose result must be the same in every build. */
export interface Sentinel {
  ip: string;
  expected: Exclude<Assignment, { kind: 'embedded' }>;
  /** Whose address it is, or which rule it checks. */
  why: string;
}

/** An address whose AS number is known. */
export interface NetworkSentinel {
  ip: string;
  asn: number;
  /** Who holds both. */
  why: string;
}

/** A block of addresses that its operator serves from many places. */
export interface AnycastBlock {
  family: Family;
  first: Uint32Array;
  last: Uint32Array;
  /** The block as text, whose service it is, and where its operator says so. */
  block: string;
  service: string;
  origin: string;
}

/** All reference data. */
export interface Reference extends CountryReference {
  /** Of nested blocks, the narrowest applies. */
  special: readonly SpecialRange[];
  sentinels: readonly Sentinel[];
  networkSentinels: readonly NetworkSentinel[];
  anycast: readonly AnycastBlock[];
}

/** Prefix that marks a reason: `reason:private`. */
const REASON_PREFIX = 'reason:';

/** Returns the reason in a cell such as `reason:private`; undefined for any other text. */
export function reasonIn(cell: string): Reason | undefined {
  const word = cell.startsWith(REASON_PREFIX) ? cell.slice(REASON_PREFIX.length) : '';
  return isReason(word) ? word : undefined;
}

/** Adds an error for each of the columns that is empty in the row. */
function needCells<Column extends string>(
  table: ConfigTable<Column>,
  row: ConfigRow<Column>,
  columns: readonly Column[],
): void {
  for (const column of columns) if (row.cells[column] === '') addProblem(table, row.line, `${column} is empty`);
}

function readCountries(table: ConfigTable<'code' | 'name'>): Map<string, string> {
  const countries = new Map<string, string>();
  const names = new Set<string>();
  for (const row of table.rows) {
    const { code, name } = row.cells;
    needCells(table, row, ['name']);
    if (!/^[A-Z]{2}$/.test(code)) addProblem(table, row.line, `code "${code}": write two capital letters`);
    if (countries.has(code)) addProblem(table, row.line, `code ${code} is listed twice`);
    if (names.has(name)) addProblem(table, row.line, `name ${name} is listed twice`);
    names.add(name);
    countries.set(code, name);
  }
  return new Map([...countries].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const MEMBERSHIP_COLUMNS = ['code', 'from', 'until', 'basis'] as const;

function readMemberships(
  table: ConfigTable<(typeof MEMBERSHIP_COLUMNS)[number]>,
  group: CountryGroup,
  countries: ReadonlyMap<string, string>,
): Membership[] {
  const memberships: Membership[] = [];
  for (const row of table.rows) {
    const { code, from, until, basis } = row.cells;
    needCells(table, row, ['basis']);
    if (!countries.has(code)) addProblem(table, row.line, `code "${code}" is not in countries.csv`);
    for (const date of until === '' ? [from] : [from, until]) {
      if (!isDate(date)) addProblem(table, row.line, `"${date}": write a day as YYYY-MM-DD`);
    }
    if (until !== '' && until <= from) addProblem(table, row.line, `until ${until} is not after from ${from}`);
    const membership: Membership = { group, code, from, until: until === '' ? undefined : until, basis };
    const clash = memberships.find((other) => other.code === code && periodsMeet(other, membership));
    if (clash !== undefined) addProblem(table, row.line, `${code}: overlaps the membership from ${clash.from}`);
    memberships.push(membership);
  }
  return memberships;
}

/** Returns whether two memberships have a day in common. */
function periodsMeet(a: Membership, b: Membership): boolean {
  return (a.until === undefined || b.from < a.until) && (b.until === undefined || a.from < b.until);
}

function readAliases(
  table: ConfigTable<'alias' | 'code' | 'note'>,
  countries: ReadonlyMap<string, string>,
): Map<string, string> {
  const aliases = new Map<string, string>();
  for (const row of table.rows) {
    const { alias, code, note } = row.cells;
    if (note === '') addProblem(table, row.line, 'note is empty');
    if (alias !== alias.toUpperCase()) addProblem(table, row.line, `alias "${alias}": write it in upper case`);
    if (countries.has(alias)) addProblem(table, row.line, `alias ${alias} is itself a code of countries.csv`);
    if (aliases.has(alias)) addProblem(table, row.line, `alias "${alias}" is listed twice`);
    if (code !== '' && !countries.has(code)) addProblem(table, row.line, `code "${code}" is not in countries.csv`);
    aliases.set(alias, code);
  }
  return aliases;
}

const SPECIAL_COLUMNS = ['prefix', 'reason', 'embedded', 'layer', 'name', 'rfc', 'registry'] as const;
type SpecialColumn = (typeof SPECIAL_COLUMNS)[number];

function isScheme(text: string): text is EmbeddedScheme {
  return (EMBEDDED_SCHEMES as readonly string[]).includes(text);
}

/** Returns the result for a special-purpose block; undefined unless its cells name exactly one of reason and scheme. */
function specialResult({ reason, embedded }: Record<SpecialColumn, string>): SpecialRange['result'] | undefined {
  if (embedded === '' && isReason(reason)) return { kind: 'none', reason };
  if (reason === '' && isScheme(embedded)) return { kind: 'embedded', scheme: embedded };
  return undefined;
}

/** Returns the range of a row's prefix; undefined, with an error, if it is not a CIDR block. An IPv4-mapped one stays IPv6. */
function blockOf<Column extends string>(
  table: ConfigTable<Column | 'prefix'>,
  { line, cells }: ConfigRow<Column | 'prefix'>,
): Pick<SpecialRange, 'family' | 'first' | 'last'> | undefined {
  const [first, last] = [new Uint32Array(4), new Uint32Array(4)];
  const cidr = parseCidr(cells.prefix, first, last);
  if (cidr === undefined || cidr.hostBitsSet || !cells.prefix.includes('/')) {
    addProblem(table, line, `prefix "${cells.prefix}" is not a CIDR block`);
    return undefined;
  }
  const words = addressWords(cidr.family);
  return { family: cidr.family, first: first.slice(0, words), last: last.slice(0, words) };
}

function readSpecial(table: ConfigTable<SpecialColumn>): SpecialRange[] {
  const blocks: SpecialRange[] = [];
  const lines = new Map<string, number>();
  for (const row of table.rows) {
    const { prefix, layer, name, rfc } = row.cells;
    needCells(table, row, ['name', 'rfc', 'registry']);
    const range = blockOf(table, row);
    if (range === undefined) continue;
    const result = specialResult(row.cells);
    if (result === undefined) addProblem(table, row.line, 'write either a known reason or a known embedded scheme');
    if (result?.kind === 'embedded' && range.family === 4) addProblem(table, row.line, 'embedded is for IPv6 only');
    if (layer !== 'over' && layer !== 'under') addProblem(table, row.line, `layer "${layer}": write over or under`);
    const key = `${range.first.join()}-${range.last.join()}`;
    const earlier = lines.get(key);
    if (earlier !== undefined) addProblem(table, row.line, `prefix ${prefix} is already on line ${earlier}`);
    lines.set(key, row.line);
    if (result === undefined || (layer !== 'over' && layer !== 'under') || earlier !== undefined) continue;
    blocks.push({ ...range, result, layer, block: prefix, name, rfc });
  }
  return blocks;
}

function readSentinels(
  table: ConfigTable<'ip' | 'expected' | 'why'>,
  countries: ReadonlyMap<string, string>,
): Sentinel[] {
  const sentinels: Sentinel[] = [];
  const seen = new Set<string>();
  const words = new Uint32Array(4);
  for (const row of table.rows) {
    const { ip, expected, why } = row.cells;
    needCells(table, row, ['why']);
    if (parseAddress(ip, words) === 0) addProblem(table, row.line, `ip "${ip}" is not an address`);
    if (seen.has(ip)) addProblem(table, row.line, `ip ${ip} is listed twice`);
    seen.add(ip);
    const reason = reasonIn(expected);
    if (reason !== undefined) sentinels.push({ ip, expected: { kind: 'none', reason }, why });
    else if (countries.has(expected)) sentinels.push({ ip, expected: { kind: 'country', code: expected }, why });
    else addProblem(table, row.line, `expected "${expected}" is neither a code of countries.csv nor a reason`);
  }
  return sentinels;
}

function readNetworkSentinels(table: ConfigTable<'ip' | 'asn' | 'why'>): NetworkSentinel[] {
  const words = new Uint32Array(4);
  return table.rows.map((row, index) => {
    const { ip, asn, why } = row.cells;
    needCells(table, row, ['why']);
    if (parseAddress(ip, words) === 0) addProblem(table, row.line, `ip "${ip}" is not an address`);
    if (table.rows.findIndex(({ cells }) => cells.ip === ip) < index)
      addProblem(table, row.line, `ip ${ip} is listed twice`);
    if (!/^[1-9]\d{0,9}$/.test(asn)) addProblem(table, row.line, `asn "${asn}": write a number, such as 15169`);
    return { ip, asn: Number(asn), why };
  });
}

function readAnycast(table: ConfigTable<'prefix' | 'service' | 'origin' | 'date'>): AnycastBlock[] {
  return table.rows.flatMap((row) => {
    const { prefix: block, service, origin, date } = row.cells;
    needCells(table, row, ['service', 'origin']);
    if (!isDate(date)) addProblem(table, row.line, `"${date}": write a day as YYYY-MM-DD`);
    const range = blockOf(table, row);
    return range === undefined ? [] : [{ ...range, block, service, origin }];
  });
}

let packaged: Reference | undefined;

/**
 * Returns the reference tables of the package, which do not change: they are read once.
 *
 * @throws AtlasError E_CONFIG with file and line of every error
 */
export function loadReference(): Reference {
  packaged ??= readReference(packageFile('data/reference'));
  return packaged;
}

/**
 * Reads the reference tables.
 *
 * @param folder directory of the tables
 * @throws AtlasError E_CONFIG with file and line of every error
 */
export function readReference(folder: string): Reference {
  const file = (name: string): string => path.join(folder, name);
  const tables = {
    countries: readConfigTable(file('countries.csv'), ['code', 'name']),
    eu: readConfigTable(file('eu-membership.csv'), MEMBERSHIP_COLUMNS),
    eea: readConfigTable(file('eea-membership.csv'), MEMBERSHIP_COLUMNS),
    aliases: readConfigTable(file('country-aliases.csv'), ['alias', 'code', 'note']),
    special: readConfigTable(file('special-purpose.csv'), SPECIAL_COLUMNS),
    sentinels: readConfigTable(file('sentinels.csv'), ['ip', 'expected', 'why']),
    networkSentinels: readConfigTable(file('network-sentinels.csv'), ['ip', 'asn', 'why']),
    anycast: readConfigTable(file('anycast.csv'), ['prefix', 'service', 'origin', 'date']),
  };
  const countries = readCountries(tables.countries);
  const reference: Reference = {
    countries,
    memberships: [...readMemberships(tables.eu, 'EU', countries), ...readMemberships(tables.eea, 'EEA', countries)],
    aliases: readAliases(tables.aliases, countries),
    special: readSpecial(tables.special),
    sentinels: readSentinels(tables.sentinels, countries),
    networkSentinels: readNetworkSentinels(tables.networkSentinels),
    anycast: readAnycast(tables.anycast),
  };
  refuseProblems(Object.values(tables));
  return reference;
}
